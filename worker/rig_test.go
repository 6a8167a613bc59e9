package worker_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"lancefleet/activities"
	"lancefleet/control"
	"lancefleet/e2e/notrun"
	"lancefleet/e2e/temporaltest"
	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/metrics"
	"lancefleet/store"
	"lancefleet/worker"
	"lancefleet/workflows"
)

const patience = 3 * time.Minute

// rig is one fleet on local disk, without a worker yet.
type rig struct {
	t       *testing.T
	engine  *lance.Engine
	config  worker.Config
	control *control.Control
	client  client.Client
	metrics *metrics.Metrics
	browser *store.Browser
	heavy   activities.StartHeavy // nil = the worker's own
}

func openEngine(t *testing.T) *lance.Engine {
	t.Helper()
	engine, err := lance.Open(lance.Options{})
	if err != nil {
		notrun.Skip(t, "native library", err.Error())
	}
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	return engine
}

// newRig makes a data directory of its own with some small experiments.
func newRig(t *testing.T, engine *lance.Engine, c client.Client, name string, experiments ...string) *rig {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	for i, e := range experiments {
		_, err := engine.MakeDataset(t.Context(), lance.DatasetSpec{
			URI: filepath.Join(dir, e+".rollout.lance"), Kind: fleet.Rollout, Shards: 1, Generations: 1, Rows: 5, Fragments: 1, Seed: int64(i + 1),
		})
		require.NoError(t, err)
	}
	r := &rig{
		t: t, engine: engine, client: c, config: worker.DefaultConfig(), metrics: metrics.New(),
		control: control.New(c, workflows.Names{Fleet: name}),
		browser: store.NewBrowser(engine.ReadOnly(), dir, store.SourcesFolder),
	}
	r.config.Fleet, r.config.DataDir, r.config.Sources = name, dir, store.SourcesFolder
	r.config.ScanInterval = time.Hour // rounds come when a test asks for them
	r.config.StopTimeout = 10 * time.Second
	return r
}

func (r *rig) worker() *worker.Worker {
	r.t.Helper()
	w, err := worker.New(r.config, worker.Deps{
		Engine: r.engine, Client: r.client, Metrics: r.metrics, StartHeavy: r.heavy, Log: slog.New(slog.NewTextHandler(temporaltest.LastWords(r.t, "the worker"), &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	require.NoError(r.t, err)
	return w
}

// start runs a worker until stop is called or the test ends, and waits until it
// takes work.
func (r *rig) start() (stop func()) {
	r.t.Helper()
	w := r.worker()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(r.t, <-done)
	})
	r.t.Cleanup(stop)
	select {
	case <-w.Ready():
	case err := <-done:
		r.t.Fatalf("the worker ended: %v", err)
	case <-time.After(patience):
		r.t.Fatal("the worker never took work")
	}
	return stop
}

// refused runs a worker that should not come to work, and returns why it ended.
func (r *rig) refused() error {
	r.t.Helper()
	w := r.worker()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	go func() {
		select {
		case <-w.Ready():
			cancel() // it was accepted: Run returns nil
		case <-ctx.Done():
		}
	}()
	return w.Run(ctx)
}

// schedule describes the schedule. A busy server may take long to answer.
func (r *rig) schedule() (s control.ScheduleState) {
	r.t.Helper()
	r.eventually("the schedule can be described", func() bool {
		var err error
		s, err = r.control.Schedule(r.t.Context())
		return err == nil
	})
	return s
}

// round runs a round that begins now, and returns its record.
func (r *rig) round() fleet.RoundRecord {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	s, err := r.control.StartScanAfterNow(ctx, false, "test")
	require.NoError(r.t, err)
	record, err := r.control.WaitRound(ctx, s)
	require.NoError(r.t, err)
	return record
}

func (r *rig) snapshot() *store.Snapshot {
	r.t.Helper()
	s, err := r.browser.Stats.Latest(r.t.Context())
	require.NoError(r.t, err)
	return s
}

func (r *rig) journal() []fleet.Action {
	r.t.Helper()
	entries, err := r.browser.Journal.Latest(r.t.Context(), 0)
	require.NoError(r.t, err)
	return entries
}

// eventually waits for what another process does and tells nobody.
func (r *rig) eventually(what string, is func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(patience); !is(); {
		if time.Now().After(deadline) {
			r.t.Fatalf("never: %s", what)
		}
		select {
		case <-r.t.Context().Done():
			r.t.Fatalf("the test ended before %s", what)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func server(t *testing.T) *temporaltest.Server {
	t.Helper()
	return temporaltest.Start(t, temporaltest.Options{})
}
