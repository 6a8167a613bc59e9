package activities

import (
	"context"
	"fmt"
	"time"

	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/store"
	"lancefleet/workflows"
)

// Maintenance is the group of activities that rewrite experiments, retire them and
// take them back.
type Maintenance struct {
	Scan       *Scan // looks at experiments and keeps their rows
	Ledger     LedgerWriter
	Journal    HistoryJournal
	StartHeavy StartHeavy
	Policies   fleet.Policies
	Paused     Paused
	Metrics    MaintenanceMetrics
	Config     MaintenanceConfig
}

// MaintenanceConfig bounds the steps. Validated by package worker.
type MaintenanceConfig struct {
	MergeGenerations int           // of one pass
	MergeBytes       int64         // of one pass
	CompactSources   int           // fragments of one pass
	CompactBytes     int64         // of one pass
	Grace            time.Duration // from a drain until its folders go
	UnknownGrace     time.Duration // of folders whose drain nobody can prove
	AttemptFor       time.Duration // after this no further pass is started in one attempt
}

// Heavy carries out what needs much memory or rewrites data, in a process of its
// own; subprocess.Process is one. Close ends the process.
type Heavy interface {
	MergeWAL(ctx context.Context, s lance.MergeSpec) (lance.Merged, error)
	Compact(ctx context.Context, s lance.CompactSpec) (lance.Compacted, error)
	SealShard(ctx context.Context, s lance.SealSpec) (lance.Sealed, error)
	AcceptShards(ctx context.Context, s lance.AcceptSpec) (lance.Accepted, error)
	CleanExperiment(ctx context.Context, uri string, olderThan time.Duration) (lance.CleanedVersions, error)
	SweepGenerations(ctx context.Context, s lance.SweepSpec) (lance.Swept, error)
	ClassifyTail(ctx context.Context, uri string) ([]lance.Tail, error)
	Verify(ctx context.Context, uri string, o lance.VerifyOptions) (fleet.Evidence, error)
	Close() error
}

// StartHeavy starts one. It is killed when ctx ends.
type StartHeavy func(ctx context.Context) (Heavy, error)

// Paused says why nothing new may be started, "" if it may.
type Paused func(ctx context.Context) (why string, err error)

// Ledger reads `_retired`; store.Ledger is one.
type Ledger interface {
	Latest(ctx context.Context) (*store.LedgerView, error)
}

// LedgerWriter adds to `_retired`. Append is idempotent by the entries' keys.
type LedgerWriter interface {
	Ledger
	Append(ctx context.Context, entries ...fleet.LedgerEntry) error
}

// HistoryJournal reads and writes `_journal`.
type HistoryJournal interface {
	Journal
	History(ctx context.Context) (map[fleet.ID]fleet.History, error)
}

// MaintenanceMetrics counts what this process did.
type MaintenanceMetrics interface {
	Retired()
	RetireFailed()
	RetireTook(d time.Duration)
	DropRefused()
	Returned(n int)
	Journalled(action, outcome, class string)
}

// prompt runs one attempt of a step that somebody waits for.
func (a *Maintenance) prompt(ctx context.Context, fleetID string, work func(ctx context.Context, l *lease) error) error {
	return a.Scan.attempt(ctx, func(ctx context.Context, l *lease) error {
		if err := a.Scan.checkFleet(fleetID); err != nil {
			return err
		}
		return work(ctx, l)
	})
}

// light runs one attempt of a step that reads or commits something small, and lets
// rounds go first.
func (a *Maintenance) light(ctx context.Context, fleetID string, work func(ctx context.Context, l *lease) error) error {
	return a.prompt(ctx, fleetID, func(ctx context.Context, l *lease) error {
		a.Scan.first.yield(ctx)
		return work(ctx, l)
	})
}

// heavy runs one attempt of a step in a process of its own, which ends with it.
func (a *Maintenance) heavy(ctx context.Context, t workflows.Target, work func(ctx context.Context, l *lease, h Heavy) error) error {
	return a.light(ctx, t.FleetID, func(ctx context.Context, l *lease) error {
		h, err := a.StartHeavy(ctx)
		if err != nil {
			return fmt.Errorf("start a process for %s: %w", t.ID, err)
		}
		defer h.Close()
		return work(ctx, l, h)
	})
}

// until is when an attempt that begins now stops starting passes.
func (a *Maintenance) until() time.Time { return a.Scan.Now().Add(a.Config.AttemptFor) }

func (a *Maintenance) over(until time.Time) bool { return !a.Scan.Now().Before(until) }

func millis(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }
