package web

import (
	"context"
	"time"

	"lancefleet/fleet"
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

// rounds reads the newest n finished rounds, newest first.
type rounds interface {
	Latest(ctx context.Context, n int) ([]fleet.RoundRecord, error)
}

// observer measures one experiment and stores nothing.
type observer interface {
	Observe(ctx context.Context, exp fleet.Experiment) (fleet.Observation, error)
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
}
