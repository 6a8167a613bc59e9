package web

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/control"
	"lancefleet/e2e/notrun"
	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/metrics"
	"lancefleet/store"
)

// realFleet is two datasets that real writers left, one with a row in `_stats`.
func realFleet(t *testing.T) (*lance.Engine, string) {
	t.Helper()
	engine, err := lance.Open(lance.Options{})
	if errors.Is(err, lance.ErrLibrary) {
		notrun.Skip(t, "native library", err.Error())
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	dir := t.TempDir()
	for _, name := range []string{"seen.rollout.lance", "unseen.rollout.lance"} {
		_, err := engine.MakeDataset(t.Context(), lance.DatasetSpec{
			URI: dir + "/" + name, Kind: fleet.Rollout, Shards: 1, Generations: 2, Rows: 10, Fragments: 3, Seed: 1,
		})
		require.NoError(t, err)
	}
	exp := fleet.Experiment{ID: fleet.ID{Kind: fleet.Rollout, Name: "seen"}, URI: dir + "/seen.rollout.lance", Source: fleet.FromFolder}
	o, err := demand{engine.Reader, 1 << 20}.Observe(t.Context(), exp, nil)
	require.NoError(t, err)
	stats := store.NewStats(engine.Reader, dir)
	base, err := stats.Latest(t.Context())
	require.NoError(t, err)
	row := fleet.Observed(exp, nil, o, time.Now().UnixMilli())
	_, err = store.NewStatsWriter(engine, stats).Commit(t.Context(), base, []fleet.Row{row}, nil)
	require.NoError(t, err)
	return engine, dir
}

// everything lists each file below dir with size and time of change.
func everything(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		out[path] = info.ModTime().String() + " " + info.Mode().String() + " " + count(info.Size())
		return err
	}))
	return out
}

func TestBrowsingARealFleetShowsItAndChangesNothing(t *testing.T) {
	engine, dir := realFleet(t)
	reader := engine.ReadOnly()
	server, err := New(Deps{
		Config: DefaultConfig(), Browser: store.NewBrowser(reader, dir, store.SourcesAuto), Reader: reader,
		Metrics: metrics.New(), DataDir: dir, Fleet: "default", Policies: fleet.Policies{Default: fleet.ObserveOnly()}, Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	b := &bench{Server: server}
	b.feed.readStorage(t.Context())
	b.feed.askTemporal(t.Context())
	before := everything(t, dir)

	list := decode[ExperimentList](t, b.get("/api/v1/experiments"), 200)
	require.Equal(t, 1, list.Total)
	require.EqualValues(t, 2, *list.Experiments[0].PendingWAL)
	require.EqualValues(t, 3, *list.Experiments[0].FragmentCount)
	for range 2 {
		d := decode[Detail](t, b.get("/api/v1/experiments/seen?fresh=true"), 200)
		require.EqualValues(t, 2, *d.PendingWAL)
		d = decode[Detail](t, b.get("/api/v1/experiments/unseen"), 200)
		require.True(t, d.Fresh, "without a row it is observed on demand")
		require.EqualValues(t, 3, *d.FragmentCount)
	}
	requireError(t, b.get("/api/v1/experiments/neither"), 404, "no source names")
	for _, r := range everyRoute {
		if r.method == http.MethodGet {
			target := strings.Replace(strings.Replace(r.example, "rollout:run-1", "rollout:seen", 1), "run-1", "seen", 1)
			code := b.get(target).Code
			none := code == 503 && strings.Contains(target, "/api/v1/") || code == 404 && strings.Contains(target, "/tasks/")
			require.True(t, code < 400 || none, "%s: %d", target, code)
		}
	}
	require.Equal(t, before, everything(t, dir), "looking wrote something")
	require.Contains(t, b.get("/metrics").Body.String(), `http_requests_total{method="GET",path="/api/v1/experiments/:name",status="200"}`)
}

// steered is a Control whose answers are set by the test.
type steered struct {
	Control
	state  control.ScheduleState
	record *fleet.RoundRecord
	wait   chan fleet.RoundRecord
	called string
}

func (s *steered) Schedule(context.Context) (control.ScheduleState, error) { return s.state, nil }

func (s *steered) StartScan(context.Context, bool, string) (control.Started, error) {
	s.called = "now"
	return control.Started{WorkflowID: "w", RunID: "r", AlreadyRunning: true}, nil
}

func (s *steered) StartScanAfterNow(context.Context, bool, string) (control.Started, error) {
	s.called = "next"
	return control.Started{WorkflowID: "w", RunID: "r"}, nil
}

func (s *steered) Round(context.Context, string, string) (*fleet.RoundRecord, error) {
	return s.record, nil
}

func (s *steered) WaitRound(ctx context.Context, _ control.Started) (fleet.RoundRecord, error) {
	select {
	case r := <-s.wait:
		return r, nil
	case <-ctx.Done():
		return fleet.RoundRecord{}, &control.Error{Class: control.ClassUnreachable, Op: "round", Err: ctx.Err()}
	}
}

func TestControlIsAskedForWhatAHandlerWants(t *testing.T) {
	s := &steered{state: control.ScheduleState{Exists: true, Paused: true, By: "ada", Since: 5, IntervalSecs: 300}, wait: make(chan fleet.RoundRecord, 1)}
	a := temporal{s}
	schedule, err := a.Schedule(t.Context())
	require.NoError(t, err)
	require.True(t, schedule.Paused)
	require.EqualValues(t, 5, *schedule.Since)
	require.Nil(t, schedule.NextAt, "none is planned while paused")

	started, err := a.Scan(t.Context(), false, false, "ada")
	require.NoError(t, err)
	require.True(t, started.AlreadyRunning)
	require.Equal(t, "now", s.called)
	_, err = a.Scan(t.Context(), false, true, "ada")
	require.NoError(t, err)
	require.Equal(t, "next", s.called)

	record, err := a.Round(t.Context(), "w", "r", 0)
	require.NoError(t, err)
	require.Nil(t, record, "still running, and nobody waits")
	record, err = a.Round(t.Context(), "w", "r", time.Millisecond)
	require.NoError(t, err, "the end of the wait is no failure")
	require.Nil(t, record)
	s.wait <- fleet.RoundRecord{RoundID: "r"}
	record, err = a.Round(t.Context(), "w", "r", time.Minute)
	require.NoError(t, err)
	require.Equal(t, "r", record.RoundID)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = a.Round(gone, "w", "r", time.Minute)
	require.Error(t, err, "a client that went away is not answered with 202")
}

// What production passes fits.
var (
	_ Control = (*control.Control)(nil)
	_ Metrics = (*metrics.Metrics)(nil)
)
