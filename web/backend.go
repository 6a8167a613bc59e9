package web

import (
	"context"
	"time"

	"lancefleet/control"
	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/store"
	"lancefleet/workflows"
)

// Snapshot is one version of `_stats`. It is shared and never changed.
type Snapshot struct {
	Version     uint64 // 0 = there is no table yet
	ETag        string
	CommittedAt int64 // unix ms; 0 unknown
	Rows        []fleet.Row
}

// snapshots reads the newest version of `_stats`, cheaply when nothing changed.
type snapshots interface {
	Latest(ctx context.Context) (Snapshot, error)
}

// lookup asks the sources for experiments that have no row.
type lookup interface {
	Lookup(ctx context.Context, ref fleet.Ref) ([]fleet.Experiment, error)
}

// names lists what the sources name, as far as they can be read.
type names interface {
	Names(ctx context.Context) (store.Named, error)
}

// rounds reads the newest n finished rounds, newest first.
type rounds interface {
	Latest(ctx context.Context, n int) ([]fleet.RoundRecord, error)
}

// observer measures one experiment and stores nothing. prev is what is known of it,
// nil = nothing.
type observer interface {
	Observe(ctx context.Context, exp fleet.Experiment, prev *fleet.Row) (fleet.Observation, error)
}

// ledger reads what is retired.
type ledger interface {
	Latest(ctx context.Context) (*store.LedgerView, error)
}

// journal reads what was done, newest first. All is shared, and the same slice until
// there is more.
type journal interface {
	Latest(ctx context.Context, n int) ([]fleet.Action, error)
	All(ctx context.Context) ([]fleet.Action, error)
	Of(ctx context.Context, id fleet.ID, n int) ([]fleet.Action, error)
	History(ctx context.Context) (map[fleet.ID]fleet.History, error)
}

// samples reads the numbers of experiments over time, newest first. All is shared as
// the journal's.
type samples interface {
	All(ctx context.Context) ([]fleet.Sample, error)
	Of(ctx context.Context, id fleet.ID, n int) ([]fleet.Sample, error)
}

// inspector looks closely at one experiment and writes nothing.
type inspector interface {
	Preview(ctx context.Context, s lance.PreviewSpec) (lance.Preview, error)
	PreviewSeal(ctx context.Context, s lance.SealSpec) (lance.Sealed, error)
	ClassifyTail(ctx context.Context, uri string) ([]lance.Tail, error)
	PreviewAccept(ctx context.Context, s lance.AcceptSpec) (lance.Accepted, error)
	Verify(ctx context.Context, uri string, o lance.VerifyOptions) (fleet.Evidence, error)
}

// steering starts and steers Temporal workflows: the only way this package
// changes anything.
type steering interface {
	Schedule(ctx context.Context) (Schedule, error)
	Pause(ctx context.Context, by, reason string) error
	Resume(ctx context.Context, by, reason string) error
	// Scan starts a round, or joins the one that runs. With next it waits for a
	// running one, so that the round began after the call.
	Scan(ctx context.Context, full, next bool, by string) (Started, error)
	// Round waits up to the given time for a round to end; nil = still running.
	Round(ctx context.Context, workflowID, runID string, wait time.Duration) (*fleet.RoundRecord, error)
	// Refresh observes one experiment in full and stores it.
	Refresh(ctx context.Context, id fleet.ID, by string) (workflows.RefreshResult, error)
	// Maintain starts maintenance of one experiment, or joins what runs.
	Maintain(ctx context.Context, action string, r control.MaintenanceRequest) (control.Started, error)
	// Maintenance waits up to the given time for a run to end; nil = still running.
	Maintenance(ctx context.Context, workflowID, runID string, wait time.Duration) (*workflows.MaintenanceResult, error)
	// Hint tells the workers of experiments that were written.
	Hint(ctx context.Context, ids []fleet.ID) (taken bool, err error)
	// Progress says how far a run is; only a worker can answer.
	Progress(ctx context.Context, workflowID, runID string) (workflows.MaintenanceProgress, error)
	// Running lists the maintenance that runs; it may lag by seconds.
	Running(ctx context.Context) ([]control.Running, error)
	// RunningRounds lists the rounds that run, oldest first; it may lag by seconds.
	RunningRounds(ctx context.Context) ([]control.RunningRound, error)
}
