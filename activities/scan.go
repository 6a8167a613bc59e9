package activities

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/sdk/activity"

	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/store"
	"lancefleet/workflows"
)

// Scan is the group of activities that look at the fleet and keep `_stats`.
type Scan struct {
	FleetID string // of the data directory that all the rest works on
	Engine  Prober
	Stats   Snapshots
	Writer  SnapshotWriter
	Commits Commits
	Sources Sources
	Staging Staging
	Rounds  Rounds
	Journal Journal
	Ledger  LedgerWriter
	Samples Samples
	Metrics Metrics
	Heart   Heart
	Config  Config
	Now     func() time.Time
	Log     *slog.Logger

	first precedence
	told  problems
}

// Config bounds the work of one activity. Validated by package worker.
type Config struct {
	Concurrency    int           // targets under way at once in this process
	PagesAtOnce    int           // pages that share them
	ProbeTimeout   time.Duration // of one experiment
	ObserveTimeout time.Duration // of one experiment
	ObserveChunk   int           // experiments per batch of full observations: bounds memory
	TargetRows     int64         // a fragment with fewer live rows counts as small
	MaxCommits     int           // looked through for the last write; 0 = the library's limit
	Freshness      time.Duration // between commits of an unchanged fleet
	SweepEvery     int64         // rounds between sweeps of staged objects that nobody needs any more
	Probe          fleet.ProbePolicy
}

// Prober looks at datasets; lance.Reader is one.
type Prober interface {
	Probe(ctx context.Context, targets []lance.ProbeTarget, o lance.BatchOptions) ([]lance.ProbeResult, error)
	Observe(ctx context.Context, targets []lance.ObserveTarget, o lance.ObserveOptions) ([]lance.ObserveResult, error)
	Verify(ctx context.Context, uri string, o lance.VerifyOptions) (fleet.Evidence, error)
	Stats(ctx context.Context) (lance.Stats, error)
}

// Snapshots reads `_stats`; store.Stats is one.
type Snapshots interface {
	Latest(ctx context.Context) (*store.Snapshot, error)
	At(ctx context.Context, version uint64) (*store.Snapshot, error)
}

// SnapshotWriter commits `_stats`; store.StatsWriter is one.
type SnapshotWriter interface {
	Commit(ctx context.Context, base *store.Snapshot, rows []fleet.Row, props map[string]string) (uint64, error)
	RefreshRows(ctx context.Context, rows []fleet.Row, addMissing bool) (uint64, error)
}

// Commits lists the newest commits of `_stats`, newest first, down to a version.
type Commits interface {
	Since(ctx context.Context, version uint64) ([]fleet.Commit, error)
}

// Sources lists experiments; store.Sources is one.
type Sources interface {
	ListKnowing(ctx context.Context, rows []fleet.Row) (store.Listing, error)
	Lookup(ctx context.Context, ref fleet.Ref) ([]fleet.Experiment, error)
}

// Staging keeps what a round's activities hand to each other; store.Staging is one.
type Staging interface {
	PutListing(ctx context.Context, l store.Listing) (hash string, err error)
	Listing(ctx context.Context, hash string) (*store.Listing, error)
	PutPage(ctx context.Context, roundID string, page, attempt int, rows []fleet.Row) (key string, err error)
	Page(ctx context.Context, key string) ([]fleet.Row, error)
	PutHints(ctx context.Context, runID string, ids []fleet.ID) error
	TakeHints(ctx context.Context, roundID string) (key string, ids []fleet.ID, err error)
	Hints(ctx context.Context, key string) (map[fleet.ID]bool, error)
	RemovePages(ctx context.Context, roundID string) (int, error)
	Sweep(ctx context.Context, keepListing string, now int64) (int, error)
	StorageNow(ctx context.Context) (int64, error) // unix ms
}

// Rounds reads and writes `_rounds`. Append is idempotent by round id.
type Rounds interface {
	Latest(ctx context.Context, n int) ([]fleet.RoundRecord, error)
	Append(ctx context.Context, r fleet.RoundRecord) error
}

// Journal writes `_journal`. Append is idempotent by the entries' ids.
type Journal interface {
	Append(ctx context.Context, entries ...fleet.Action) error
}

// Samples writes `_samples`. Of each experiment and hour the first counts.
type Samples interface {
	Append(ctx context.Context, samples ...fleet.Sample) error
}

// Metrics counts what this process did; metrics.Metrics is one.
type Metrics interface {
	ObservationFailed(class string)
	PageDone(observed, skipped int)
	SourceProblems(n int)
	Committed(freshnessOnly bool)
	CommitConflict()
	RoundFinished(r fleet.RoundRecord)
	PendingRecounted(n int) // a WAL moved although the base's version did not
	RetiredChecked(n int)
	Returned(n int) // hot again
	Hinted(n int)   // named by events, and taken in
	Journalled(action, outcome, class string)
	StepFailed(activity, class string) // one attempt
}

// attempt runs one attempt of an activity under a lease and gives its error the
// class that Temporal acts on.
func (a *Scan) attempt(ctx context.Context, work func(ctx context.Context, l *lease) error) error {
	leased, l := holdLease(ctx, a.Heart)
	defer l.release()
	err := temporalError(leaseError(leased, work(leased, l)))
	if err != nil {
		a.Metrics.StepFailed(activity.GetInfo(ctx).ActivityType.Name, workflows.ErrorClass(err))
	}
	return err
}

// checkFleet refuses work for another fleet: a queue says nothing about data.
func (a *Scan) checkFleet(id string) error {
	if id == a.FleetID {
		return nil
	}
	return classError(typeForeignFleet, fmt.Errorf("asked to work for fleet %s, but this worker's data directory is fleet %s", id, a.FleetID))
}

// spent is what the engine's requests counter moved by since before. Other work of
// this process in between is counted too: an upper bound.
func (a *Scan) spent(ctx context.Context, before fleet.Requests) fleet.Requests {
	now := a.requests(ctx)
	return fleet.Requests{
		List:   now.List - before.List,
		Head:   now.Head - before.Head,
		Get:    now.Get - before.Get,
		Put:    now.Put - before.Put,
		Delete: now.Delete - before.Delete,
	}
}

func (a *Scan) requests(ctx context.Context) fleet.Requests {
	s, err := a.Engine.Stats(ctx)
	if err != nil {
		a.Log.WarnContext(ctx, "read request counters", "error", err)
	}
	return s.Requests
}

func (a *Scan) nowMS() int64 { return a.Now().UnixMilli() }

// attemptOf is the number of the attempt, from 1.
func attemptOf(ctx context.Context) int { return int(activity.GetInfo(ctx).Attempt) }
