package worker_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"lancefleet/activities"
	"lancefleet/control"
	"lancefleet/e2e/temporaltest"
	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/metrics"
	"lancefleet/store"
	"lancefleet/workflows"
)

// One server and one engine for all: starting them is most of the cost.
func TestAFleetOnARealServer(t *testing.T) {
	engine, temporal := openEngine(t), server(t)
	for name, test := range map[string]func(*testing.T, *lance.Engine, client.Client){
		"rounds see what was written and commit only changes":             roundsSeeWrites,
		"one broken experiment costs its own row never the round":         brokenExperiment,
		"a refresh stores one row and is journalled":                      refreshStores,
		"a pause by Temporal's tool is kept over restarts and journalled": toggleIsKept,
		"a pause by ours tells who and why":                               pauseTellsWho,
		"a lost schedule comes back paused":                               lostSchedule,
		"two fleets share a namespace":                                    twoFleets,
		"no schedule yet, and very long texts":                            longTexts,
		"a foreign fleet is refused":                                      foreignRefused,
		"changed settings reach the schedule and keep its pause":          settingsChange,
		"a source that cannot be read fails the round with its class":     unreadableSource,
		"metrics tell the same in every process":                          sameMetrics,
		"a damaged table fails the round until it is moved away":          damagedStats,
	} {
		t.Run(name, func(t *testing.T) { test(t, engine, temporal.Client) })
	}
}

func roundsSeeWrites(t *testing.T, e *lance.Engine, c client.Client) {
	r := newRig(t, e, c, "writes", "a", "b", "c")
	r.config.PageSize = 2
	r.start()

	first := r.round()
	require.Equal(t, int64(3), first.Observed+first.Skipped) // the schedule's own first round may have come before
	require.Equal(t, int64(3), first.Hot)
	require.Len(t, r.snapshot().Rows, 3)

	quiet := r.round()
	require.Equal(t, int64(3), quiet.Skipped)
	require.Nil(t, quiet.CommittedVersion)
	require.Greater(t, quiet.Number, first.Number)
	before := r.snapshot()

	_, err := e.MakeWrites(t.Context(), lance.WritesSpec{URI: filepath.Join(r.config.DataDir, "b.rollout.lance"), Rows: 4, Flush: true, Seed: 99})
	require.NoError(t, err)
	changed := r.round()
	require.Equal(t, int64(1), changed.Observed, "a flush that moves no base version is seen")
	require.Equal(t, int64(2), changed.Skipped)
	require.Equal(t, before.Version+1, *changed.CommittedVersion)
	row, _ := r.snapshot().Row(fleet.ID{Kind: fleet.Rollout, Name: "b"})
	old, _ := before.Row(row.ID)
	require.Greater(t, row.PendingWAL, old.PendingWAL)

	commits, err := activities.StatsCommits{Engine: e, URI: filepath.Join(r.config.DataDir, "_stats.rollout.lance")}.Since(t.Context(), before.Version)
	require.NoError(t, err)
	require.Len(t, commits, 1)
	require.Equal(t, "round/"+changed.RoundID, commits[0].Action, "a retried commit finds the one that landed")
	recorded, err := r.browser.Rounds.Latest(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, changed, recorded[0])
	left, err := e.List(t.Context(), filepath.Join(r.config.DataDir, "_lancefleet", "rounds"), 0)
	require.NoError(t, err)
	require.Empty(t, left, "staged pages do not pile up")
	asked, err := r.control.Round(t.Context(), changed.WorkflowID, changed.RoundID)
	require.NoError(t, err)
	require.Equal(t, &changed, asked)
}

func brokenExperiment(t *testing.T, e *lance.Engine, c client.Client) {
	r := newRig(t, e, c, "broken", "good", "bad")
	r.start()
	r.round()
	versions := filepath.Join(r.config.DataDir, "bad.rollout.lance", "_versions")
	files, err := filepath.Glob(filepath.Join(versions, "*"))
	require.NoError(t, err)
	for _, f := range files {
		require.NoError(t, os.Truncate(f, 3))
	}

	record := r.round()

	require.Equal(t, int64(1), record.Failed)
	require.Equal(t, int64(1), record.Skipped)
	row, _ := r.snapshot().Row(fleet.ID{Kind: fleet.Rollout, Name: "bad"})
	require.Equal(t, "corrupt", row.ErrorClass, row.Error)
	require.Positive(t, row.RowCount, "the old numbers stay")
	require.Equal(t, int64(1), r.round().BackingOff)
}

func refreshStores(t *testing.T, e *lance.Engine, c client.Client) {
	r := newRig(t, e, c, "refresh", "a")
	r.start()
	r.round()
	id := fleet.ID{Kind: fleet.Rollout, Name: "a"}
	before, _ := r.snapshot().Row(id)

	result, err := r.control.Refresh(t.Context(), id, "alice")

	require.NoError(t, err)
	require.Empty(t, result.Failed)
	after, _ := r.snapshot().Row(id)
	require.Greater(t, after.ObservedAt, before.ObservedAt)
	require.Equal(t, before.RowCount, after.RowCount)
	entry := r.journal()[0]
	require.Equal(t, []string{"rescan", id.String(), "alice"}, []string{entry.Kind, entry.Target, entry.By})
}

func toggleIsKept(t *testing.T, e *lance.Engine, c client.Client) {
	r := newRig(t, e, c, "toggle", "a")
	r.config.ScanInterval = time.Second // also that of the watchdog's tours
	stop := r.start()
	handle := c.ScheduleClient().GetHandle(t.Context(), "lancefleet-scan-toggle")

	require.NoError(t, handle.Pause(t.Context(), client.SchedulePauseOptions{Note: "moving the bucket"}))

	paused := func() bool {
		last, err := r.browser.Journal.LastOf(t.Context(), "pause", "resume")
		return err == nil && last != nil && last.Kind == "pause" && last.Why == "moving the bucket"
	}
	r.eventually("the pause is journalled", paused)
	stop()
	r.config.PageSize = 7 // so that the restart updates the schedule
	r.start()
	r.eventually("the schedule has the new settings", func() bool { return r.argsPageSize() == 7 })
	require.True(t, r.schedule().Paused)
	require.Equal(t, "moving the bucket", r.schedule().Reason)
	require.Equal(t, int64(0), r.schedule().NextAt)
}

func pauseTellsWho(t *testing.T, e *lance.Engine, c client.Client) {
	r := newRig(t, e, c, "who", "a")
	r.start()
	began := time.Now().UnixMilli()

	require.NoError(t, r.control.Pause(t.Context(), "alice", "disk is full"))

	s := r.schedule()
	require.True(t, s.Paused)
	require.Equal(t, []string{"alice", "disk is full"}, []string{s.By, s.Reason})
	require.GreaterOrEqual(t, s.Since, began)
	r.eventually("the pause is journalled", func() bool { return len(r.journalOf("pause")) == 1 })
	require.Equal(t, s.EntryID, r.journalOf("pause")[0].ID)
	require.Equal(t, int64(1), r.round().Hot, "a direct round still looks")
	require.NoError(t, r.control.Resume(t.Context(), "bob", "cleaned up"))
	require.False(t, r.schedule().Paused)
	r.eventually("the end is journalled", func() bool { return len(r.journalOf("resume")) == 1 })
}

func lostSchedule(t *testing.T, e *lance.Engine, c client.Client) {
	r := newRig(t, e, c, "lost", "a")
	r.config.ScanInterval = time.Second
	r.start()
	require.NoError(t, r.control.Pause(t.Context(), "alice", "disk is full"))
	r.eventually("the pause is journalled", func() bool { return len(r.journalOf("pause")) == 1 })
	was := r.schedule()

	require.NoError(t, c.ScheduleClient().GetHandle(t.Context(), "lancefleet-scan-lost").Delete(t.Context()))

	r.eventually("the schedule is back", func() bool { return r.schedule().Exists })
	s := r.schedule()
	require.True(t, s.Paused)
	require.Equal(t, []any{was.By, was.Reason, was.Since, was.EntryID}, []any{s.By, s.Reason, s.Since, s.EntryID})
	r.eventually("it is journalled", func() bool { return len(r.journalOf("schedule-restored")) == 1 })
}

func twoFleets(t *testing.T, e *lance.Engine, c client.Client) {
	red, blue := newRig(t, e, c, "red", "a"), newRig(t, e, c, "blue", "b", "c")
	red.start()
	blue.start()

	require.Equal(t, int64(1), red.round().Hot)
	require.Equal(t, int64(2), blue.round().Hot)
	require.NoError(t, red.control.Pause(t.Context(), "alice", "only red"))
	require.True(t, red.schedule().Paused)
	require.False(t, blue.schedule().Paused)
	require.Equal(t, "a", red.snapshot().Rows[0].Name)
	require.Len(t, blue.snapshot().Rows, 2)
}

func foreignRefused(t *testing.T, e *lance.Engine, c client.Client) {
	r := newRig(t, e, c, "mine", "a")
	r.start()()

	other := newRig(t, e, c, "mine", "a") // same name, same namespace, another directory
	require.ErrorContains(t, other.refused(), "belongs to the data directory "+r.config.DataDir)
	require.NoFileExists(t, filepath.Join(other.config.DataDir, "_lancefleet", "fleet.json"))

	renamed := newRig(t, e, c, "yours")
	renamed.config.DataDir = r.config.DataDir // another name, same directory
	var foreign *store.ForeignFleetError
	require.ErrorAs(t, renamed.refused(), &foreign)

	require.NoError(t, os.Remove(filepath.Join(r.config.DataDir, "_lancefleet", "fleet.json")))
	id := r.schedule().FleetID
	r.start()
	there, err := store.ReadIdentity(t.Context(), e, r.config.DataDir)
	require.NoError(t, err)
	require.Equal(t, id, there.FleetID, "a directory that lost its file gets its id back")
}

func longTexts(t *testing.T, e *lance.Engine, c client.Client) {
	r := newRig(t, e, c, "long", "a")
	long := strings.Repeat("why ", 1000)
	require.ErrorIs(t, r.control.Pause(t.Context(), "alice", "too early"), control.ErrNoSchedule)
	_, err := r.control.StartScan(t.Context(), false, "alice")
	require.ErrorIs(t, err, control.ErrNoSchedule)
	r.start()

	require.NoError(t, r.control.Pause(t.Context(), long, long))
	require.True(t, strings.HasPrefix(r.schedule().Reason, "why why"))
	_, err = r.control.StartScan(t.Context(), false, long)
	require.NoError(t, err)
	_, err = r.control.Refresh(t.Context(), fleet.ID{Kind: fleet.Rollout, Name: "a"}, long)
	require.NoError(t, err)
	r.eventually("the pause is journalled", func() bool { return len(r.journalOf("pause")) == 1 })
	require.Equal(t, long, r.journalOf("pause")[0].Why, "the journal keeps all of it")
}

func settingsChange(t *testing.T, e *lance.Engine, c client.Client) {
	r := newRig(t, e, c, "settings", "a")
	r.start()()
	require.NoError(t, r.control.Pause(t.Context(), "alice", "why"))
	before := r.schedule()
	r.config.ScanInterval = 2 * time.Hour

	r.start()

	r.eventually("the interval is new", func() bool { return r.schedule().IntervalSecs == 7200 })
	require.True(t, r.schedule().Paused)
	require.Equal(t, before.EntryID, r.schedule().EntryID)
}

func unreadableSource(t *testing.T, e *lance.Engine, c client.Client) {
	r := newRig(t, e, c, "unreadable", "a")
	r.config.Sources = store.SourcesRegistry // and there is none
	r.start()
	s, err := r.control.StartScan(t.Context(), false, "test")
	require.NoError(t, err)

	_, err = r.control.WaitRound(t.Context(), s)

	require.Equal(t, "gone", control.ClassOf(err), "%v", err)
	require.ErrorContains(t, err, "list experiments")
	require.Empty(t, r.snapshot().Rows)
	_, err = r.control.Round(t.Context(), s.WorkflowID, s.RunID)
	require.Equal(t, "gone", control.ClassOf(err))
}

func sameMetrics(t *testing.T, e *lance.Engine, c client.Client) {
	r := newRig(t, e, c, "metrics", "a", "b")
	w := r.worker()
	r.start()
	r.round()
	require.NoError(t, r.control.Pause(t.Context(), "alice", "why"))
	require.NoError(t, r.metrics.RegisterShared(w.Shared(), metrics.SharedOptions{Prices: fleet.DefaultPriceSheet()}))
	fresh := metrics.New() // of a process that did nothing
	require.NoError(t, fresh.RegisterShared(w.Shared(), metrics.SharedOptions{Prices: fleet.DefaultPriceSheet()}))

	for _, line := range []string{
		"master_experiments 2", "master_stats_hot_experiments 2", "lancefleet_schedule_paused 1", "lancefleet_schedule_exists 1",
		"lancefleet_schedule_interval_seconds 3600", `lancefleet_shared_state_readable{part="schedule"} 1`,
	} {
		require.Contains(t, scrape(fresh), line+"\n")
		require.Contains(t, scrape(r.metrics), line+"\n")
	}
	require.Contains(t, scrape(r.metrics), "master_scan_duration_seconds_count")
}

func scrape(m *metrics.Metrics) string {
	answer := httptest.NewRecorder()
	m.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return answer.Body.String()
}

// argsPageSize is what the schedule starts rounds with.
func (r *rig) argsPageSize() int {
	r.t.Helper()
	d, err := r.client.ScheduleClient().GetHandle(r.t.Context(), workflows.Names{Fleet: r.config.Fleet}.ScanSchedule()).Describe(r.t.Context())
	require.NoError(r.t, err)
	args, err := control.ActionArgs(d.Schedule.Action)
	require.NoError(r.t, err)
	return args.PageSize
}

func (r *rig) journalOf(kind string) []fleet.Action {
	r.t.Helper()
	var found []fleet.Action
	for _, a := range r.journal() {
		if a.Kind == kind {
			found = append(found, a)
		}
	}
	return found
}

func TestAPauseIsKeptOverARestartOfTemporalItself(t *testing.T) {
	engine := openEngine(t)
	options := temporaltest.Options{DBFile: filepath.Join(t.TempDir(), "temporal.db"), Address: temporaltest.FreeAddress(t)}
	first := temporaltest.Start(t, options)
	r := newRig(t, engine, first.Client, "default", "a")
	stop := r.start()
	require.NoError(t, r.control.Pause(t.Context(), "alice", "disk is full"))
	stop()
	first.Stop()

	second := temporaltest.Start(t, options)
	r.client, r.control = second.Client, control.New(second.Client, workflows.Names{Fleet: "default"})
	r.start()

	require.True(t, r.schedule().Paused)
	require.True(t, strings.HasPrefix(r.schedule().Reason, "disk is full"))
}
