package worker

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/sdk/client"

	"lancefleet/activities"
	"lancefleet/control"
	"lancefleet/lance"
	"lancefleet/metrics"
	"lancefleet/store"
)

// Deps is what a worker works with. The caller closes them after Run has returned.
type Deps struct {
	Engine    *lance.Engine
	Client    client.Client
	Namespace string // of Client; "" = default
	Metrics   *metrics.Metrics

	// StartHeavy starts the process that carries out one heavy step; nil = this
	// program again, as `native-exec`.
	StartHeavy activities.StartHeavy

	Log *slog.Logger     // nil = the default one
	Now func() time.Time // nil = the clock
}

// Worker serves one fleet.
type Worker struct {
	config  Config
	deps    Deps
	control *control.Control
	stats   *store.Stats
	rounds  *store.RoundsWriter
	journal *store.JournalWriter
	ledger  *store.LedgerWriter
	ready   chan struct{}
}

// Temporal's own limits of the worker. Heartbeats are sent at least this often, so
// that a cancelled activity hears of it soon.
const heartbeatThrottle = 10 * time.Second

// New checks the configuration and builds a worker. Nothing is asked or written
// before Run.
func New(c Config, d Deps) (*Worker, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	if d.Log == nil {
		d.Log = slog.Default()
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	if d.Namespace == "" {
		d.Namespace = client.DefaultNamespace
	}
	return &Worker{
		config:  c,
		deps:    d,
		control: control.New(d.Client, c.names()),
		stats:   store.NewStats(d.Engine, c.DataDir),
		rounds:  store.NewRoundsWriter(d.Engine, store.NewRounds(d.Engine, c.DataDir)),
		journal: store.NewJournalWriter(d.Engine, store.NewJournal(d.Engine, c.DataDir)),
		ledger:  store.NewLedgerWriter(d.Engine, store.NewLedger(d.Engine, c.DataDir)),
		ready:   make(chan struct{}),
	}, nil
}

// Ready is closed once the worker takes work.
func (w *Worker) Ready() <-chan struct{} { return w.ready }

// Run serves the fleet until ctx ends, then stops taking work and gives running
// activities StopTimeout to end. It fails when the data directory or the schedule
// belong to another fleet; it waits while Temporal can't be reached. Call it once.
func (w *Worker) Run(ctx context.Context) error {
	var identity store.Identity
	var tw temporalWorkers
	err := w.untilReachable(ctx, func() (err error) {
		if identity, err = w.prepare(ctx); err != nil {
			return err
		}
		tw, err = w.start(identity.FleetID)
		return err
	})
	if err != nil && ctx.Err() != nil {
		return nil // told to stop before it had begun
	}
	if err != nil {
		return err
	}
	defer tw.Stop()
	args := w.config.scanArgs(identity.FleetID)
	close(w.ready)
	w.deps.Log.InfoContext(ctx, "worker runs", "fleet", w.config.Fleet, "fleet_id", identity.FleetID,
		"data_dir", w.config.DataDir, "queue", w.config.names().ScanQueue(), "maintenance", w.config.Maintenance)
	w.watchdog(args).run(ctx, w.config.watchEvery())
	w.deps.Log.Info("worker stops")
	return nil
}

// prepare does what has to be true before work is taken. Each step may be done
// again by any worker at any time.
func (w *Worker) prepare(ctx context.Context) (store.Identity, error) {
	identity, err := w.identify(ctx)
	if err != nil {
		return identity, err
	}
	if err := registerAttributes(ctx, w.deps.Client.OperatorService(), w.deps.Namespace); err != nil {
		return identity, err
	}
	return identity, w.watchdog(w.config.scanArgs(identity.FleetID)).ensure(ctx)
}

// untilReachable tries again while Temporal gives no answer: it often starts later
// than its workers.
func (w *Worker) untilReachable(ctx context.Context, try func() error) error {
	const first, most = time.Second, 15 * time.Second
	for wait := first; ; wait = min(2*wait, most) {
		err := try()
		if err == nil || control.ClassOf(err) != control.ClassUnreachable {
			return err
		}
		w.deps.Log.WarnContext(ctx, "temporal can't be reached, trying again", "error", err, "wait", wait)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
	}
}

func (w *Worker) scanActivities(fleetID string) (*activities.Scan, error) {
	e, dir := w.deps.Engine, w.config.DataDir
	statsURI, err := store.Locate(dir, statsTable)
	if err != nil {
		return nil, fmt.Errorf("locate _stats: %w", err)
	}
	return &activities.Scan{
		FleetID: fleetID,
		Engine:  e,
		Stats:   w.stats,
		Writer:  store.NewStatsWriter(e, w.stats),
		Commits: activities.StatsCommits{Engine: e, URI: statsURI},
		Sources: store.NewSources(e, dir, w.config.Sources),
		Staging: store.NewStaging(e, dir),
		Rounds:  w.rounds,
		Journal: w.journal,
		Ledger:  w.ledger,
		Samples: store.NewSamplesWriter(e, store.NewSamples(e, dir)),
		Metrics: w.deps.Metrics,
		Heart:   w.deps.Client,
		Config:  w.config.activities(),
		Now:     w.deps.Now,
		Log:     w.deps.Log,
	}, nil
}

const statsTable = "_stats.rollout.lance"
