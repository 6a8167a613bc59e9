package web

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/control"
	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/workflows"
)

func decode[T any](t testing.TB, w *httptest.ResponseRecorder, status int) T {
	t.Helper()
	require.Equal(t, status, w.Code, w.Body.String())
	var out T
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &out), w.Body.String())
	return out
}

// requireError checks the one shape of errors: {"error": "..."} and no more than candidates.
func requireError(t testing.TB, w *httptest.ResponseRecorder, status int, says string) {
	t.Helper()
	fields := decode[map[string]any](t, w, status)
	message, _ := fields["error"].(string)
	require.Contains(t, message, says)
	delete(fields, "error")
	delete(fields, "candidates")
	delete(fields, "mistakes")
	require.Empty(t, fields)
}

func TestUnknownNumbersAreNullNeverZero(t *testing.T) {
	b := newBench(t, &fakeStore{snapshot: Snapshot{Version: 3, Rows: []fleet.Row{fleet.UnknownRow(experiment(fleet.Rollout, "new"))}}})
	fields := decode[map[string]any](t, b.get("/api/v1/experiments/new"), 200)
	for _, name := range []string{"row_count", "fragment_count", "last_updated", "last_write", "pending_wal_generations", "last_compaction",
		"total_compactions", "scanned_at", "evidence", "shards", "wal_shards", "bytes", "staleness", "rows_exact", "version", "fingerprint"} {
		value, there := fields[name]
		require.True(t, there, name)
		require.Nil(t, value, name)
	}
	require.Equal(t, "hot", fields["state"])
	require.NotEmpty(t, fields["reason"])
}

func TestASummaryHasUpstreamsNamesAndOurs(t *testing.T) {
	row := healthy(fleet.Generic, "eval", minutesAgo(10))
	b := newBench(t, &fakeStore{snapshot: Snapshot{Version: 3, Rows: []fleet.Row{row}}})
	list := decode[ExperimentList](t, b.get("/api/v1/experiments"), 200)
	s := list.Experiments[0]
	require.Equal(t, "generic:eval", s.Name)
	require.Equal(t, "generic:eval", s.ID)
	require.Equal(t, row.URI, s.URI)
	require.EqualValues(t, 12_000, *s.RowCount)
	require.Equal(t, minutesAgo(10), *s.LastUpdated)
	require.Equal(t, minutesAgo(10), *s.LastWrite)
	require.EqualValues(t, 0, *s.PendingWAL)
	require.EqualValues(t, 60, *s.Staleness)
	require.Nil(t, s.LastCompaction, "never")
	require.Equal(t, 1, list.Total)
}

func TestARolloutsNameIsBareAsUpstreamHasIt(t *testing.T) {
	b := newBench(t, &fakeStore{snapshot: Snapshot{Rows: []fleet.Row{healthy(fleet.Rollout, "run-1", minutesAgo(1))}}})
	d := decode[Detail](t, b.get("/api/v1/experiments/rollout:run-1"), 200)
	require.Equal(t, "run-1", d.Name)
	require.Equal(t, "rollout:run-1", d.ID)
}

func TestBareNamesResolve(t *testing.T) {
	store := &fakeStore{
		snapshot: Snapshot{Rows: []fleet.Row{
			healthy(fleet.Rollout, "twice", 1), healthy(fleet.Generic, "twice", 1), healthy(fleet.Datagen, "only", 1),
			healthy(fleet.Generic, "both", 1), healthy(fleet.Table, "both", 1),
		}},
		named:   []fleet.Experiment{experiment(fleet.Table, "cold")},
		observe: observes,
	}
	for _, c := range []struct {
		name, target string
		status       int
		id           string
	}{
		{"the rollout wins", "twice", 200, "rollout:twice"},
		{"a kind says which", "generic:twice", 200, "generic:twice"},
		{"the unique match", "only", 200, "datagen:only"},
		{"two candidates", "both", 409, ""},
		{"without a row, through its source", "cold", 200, "table:cold"},
		{"the wrong kind", "generic:only", 404, ""},
		{"nobody", "nobody", 404, ""},
		{"no such kind", "blue:only", 400, ""},
		{"a path", "..%2F..%2Fetc%2Fpasswd", 400, ""},
		{"a reserved name", "_stats", 400, ""},
		{"not UTF-8", "%ff%fe", 400, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newBench(t, store).get("/api/v1/experiments/" + c.target)
			require.Equal(t, c.status, w.Code, w.Body.String())
			if c.status != 200 {
				requireError(t, w, c.status, "")
				return
			}
			require.Equal(t, c.id, decode[Detail](t, w, 200).ID)
		})
	}
	w := newBench(t, store).get("/api/v1/experiments/both")
	require.Equal(t, []string{"generic:both", "table:both"}, decode[ErrorBody](t, w, 409).Candidates)
}

func TestFreshObservesNowAndStoresNothing(t *testing.T) {
	store := &fakeStore{snapshot: Snapshot{Version: 9, Rows: []fleet.Row{healthy(fleet.Rollout, "run-1", minutesAgo(500))}}, observe: observes}
	b := newBench(t, store)
	d := decode[Detail](t, b.get("/api/v1/experiments/run-1?fresh=true"), 200)
	require.True(t, d.Fresh)
	require.EqualValues(t, 41, *d.Version)
	require.EqualValues(t, 1200, *d.RowCount)
	again := decode[Detail](t, b.get("/api/v1/experiments/run-1"), 200)
	require.False(t, again.Fresh)
	require.EqualValues(t, 37, *again.Version, "what is stored did not change")
	require.Equal(t, []fleet.ID{{Kind: fleet.Rollout, Name: "run-1"}}, store.observed)
	require.Empty(t, b.temporal.said(), "nothing was started")
}

func TestAFailedObservationSaysWhatItMeans(t *testing.T) {
	for class, status := range map[lance.Class]int{
		lance.Unreachable: 503, lance.Timeout: 503, lance.Denied: 503, lance.Closed: 503,
		lance.Gone: 422, lance.Corrupt: 422, lance.Unsupported: 422, lance.Internal: 500, lance.Panic: 500,
	} {
		t.Run(string(class), func(t *testing.T) {
			store := &fakeStore{snapshot: Snapshot{Rows: []fleet.Row{healthy(fleet.Rollout, "run-1", 1)}}}
			store.observe = func(e fleet.Experiment) (fleet.Observation, error) {
				return fleet.Observation{}, &lance.Error{Class: class, Op: "observe", URI: e.URI, Message: "as the store said"}
			}
			w := newBench(t, store).get("/api/v1/experiments/run-1?fresh=true")
			if status == 500 {
				requireError(t, w, status, "request id")
				require.NotContains(t, w.Body.String(), "as the store said")
				return
			}
			requireError(t, w, status, "as the store said")
		})
	}
}

func TestBeforeTheTableWasReadEverythingSaysSo(t *testing.T) {
	b := newBench(t, &fakeStore{err: unreadable()})
	for _, target := range []string{"/api/v1/experiments", "/api/v1/experiments/x", "/api/v1/rounds"} {
		requireError(t, b.get(target), 503, "has not been read yet: reading the fleet's table")
	}
	status := decode[Status](t, b.get("/api/v1/status"), 200)
	require.False(t, status.Loaded)
	require.Nil(t, status.Totals)
}

func TestAStoreThatStopsAnsweringCostsFreshnessNotTheList(t *testing.T) {
	b := newBench(t, demoStore(100))
	b.store.set(func(f *fakeStore) { f.err = unreadable() })
	b.renew(t)
	list := decode[ExperimentList](t, b.get("/api/v1/experiments"), 200)
	require.Equal(t, 100, list.Total)
	require.False(t, list.Stale, "half a minute is no drama")
	later := testNow.Add(time.Minute)
	b.now = func() time.Time { return later }
	list = decode[ExperimentList](t, b.get("/api/v1/experiments"), 200)
	require.True(t, list.Stale)
	require.Contains(t, list.StaleWhy, "connection refused")
}

func TestLimitsAreClampedAndMistakesAreNamed(t *testing.T) {
	b := newBench(t, demoStore(700))
	for query, want := range map[string]int{"": 50, "limit=0": 1, "limit=-4": 1, "limit=100000": 500, "limit=7": 7, "offset=-3": 50} {
		list := decode[ExperimentList](t, b.get("/api/v1/experiments?"+query), 200)
		require.Len(t, list.Experiments, want, query)
		require.Equal(t, 700, list.Total)
		require.GreaterOrEqual(t, list.Offset, 0)
	}
	for query, says := range map[string]string{
		"limit=many": "limit", "sort=colour": `"colour" is not a column`, "order=up": `"up"`, "kind=blue": `"blue"`,
		"state=gone": `"gone"`, "failing=perhaps": `"perhaps"`, "search=" + strings.Repeat("x", 300): "search",
	} {
		requireError(t, b.get("/api/v1/experiments?"+query), 422, says)
	}
}

func TestSearchIsLiteralAndIgnoresCase(t *testing.T) {
	names := []string{"GSM8K-1", "gsm8k_2", "a.b", "axb", "100", "x-100-y"}
	var rows []fleet.Row
	for _, n := range names {
		rows = append(rows, healthy(fleet.Rollout, n, 1))
	}
	rows = append(rows, healthy(fleet.Generic, "rollouts", 1))
	b := newBench(t, &fakeStore{snapshot: Snapshot{Rows: rows}})
	for search, want := range map[string][]string{
		"gsm8K": {"rollout:GSM8K-1", "rollout:gsm8k_2"}, "a.b": {"rollout:a.b"}, "_": {"rollout:gsm8k_2"}, "%": nil, ".*": nil,
		"100": {"rollout:100", "rollout:x-100-y"}, "rollout": {"generic:rollouts"}, "rollout:a": {"rollout:a.b", "rollout:axb"},
		"GENERIC:": {"generic:rollouts"}, "' or 1=1": nil,
	} {
		list := decode[ExperimentList](t, b.get("/api/v1/experiments?sort=name&search="+url.QueryEscape(search)), 200)
		var got []string
		for _, e := range list.Experiments {
			got = append(got, e.ID)
		}
		require.ElementsMatch(t, want, got, search)
		require.Equal(t, len(want), list.Total, search)
		require.EqualValues(t, len(want), list.Totals.Experiments, search)
	}
}

func TestAnUnchangedListIsNotSentTwice(t *testing.T) {
	b := newBench(t, demoStore(100))
	first := b.get("/api/v1/experiments")
	tag := first.Header().Get("ETag")
	require.NotEmpty(t, tag)
	again := b.do(http.MethodGet, "/api/v1/experiments", "", "If-None-Match", tag)
	require.Equal(t, http.StatusNotModified, again.Code)
	require.Empty(t, again.Body.String())
	require.Equal(t, tag, again.Header().Get("ETag"))
	b.store.set(func(f *fakeStore) { f.snapshot.Version++ })
	b.renew(t)
	require.Equal(t, 200, b.do(http.MethodGet, "/api/v1/experiments", "", "If-None-Match", tag).Code)
}

func TestPauseNeedsAReasonAndSaysWhoAndWhy(t *testing.T) {
	b := newBench(t, demoStore(10))
	requireError(t, b.do("POST", "/api/v1/schedule/pause", `{"reason":"  "}`), 422, "reason")
	requireError(t, b.do("POST", "/api/v1/schedule/pause", `{}`), 422, "reason")
	requireError(t, b.do("POST", "/api/v1/schedule/pause", `{"reason"`), 400, "")
	requireError(t, b.do("POST", "/api/v1/schedule/pause", `{"reason":"x","colour":"blue"}`), 422, "colour")
	require.Empty(t, b.temporal.said())
	state := decode[Schedule](t, b.do("POST", "/api/v1/schedule/pause", `{"reason":"moving\nthe bucket","by":"ada"}`), 200)
	require.True(t, state.Paused)
	require.Equal(t, []string{"pause ada: moving the bucket"}, b.temporal.said())
	require.Contains(t, b.get("/").Body.String(), "moving the bucket", "every page says so at once")
	state = decode[Schedule](t, b.do("POST", "/api/v1/schedule/resume", ``), 200)
	require.False(t, state.Paused)
	require.Equal(t, "resume somebody over HTTP: ", b.temporal.said()[1])
}

func TestARoundIsStartedAndPolled(t *testing.T) {
	b := newBench(t, demoStore(10))
	w := b.do("POST", "/api/v1/rescan", `{"full":true,"by":"ada","next":true}`)
	started := decode[Started](t, w, 202)
	require.Equal(t, "/api/v1/rounds/lancefleet-scan-now/run-1", started.Location)
	require.Equal(t, started.Location, w.Header().Get("Location"))
	require.Equal(t, []string{"scan full=true next=true ada"}, b.temporal.said())
	require.Equal(t, 202, b.do("POST", "/api/v1/rescan", "").Code, "a body is not needed")

	b.temporal.ended = make(chan struct{})
	running := decode[RunningRound](t, b.get(started.Location), 202)
	require.True(t, running.Running)

	version := uint64(7)
	b.temporal.record = &fleet.RoundRecord{RoundID: "run-1", Observed: 3, CommittedVersion: &version}
	answer := make(chan *httptest.ResponseRecorder, 1)
	go func() { answer <- b.get(started.Location + "?wait_secs=9999") }()
	require.Eventually(t, func() bool { return len(b.temporal.said()) == 4 }, 5*time.Second, time.Millisecond)
	close(b.temporal.ended)
	round := decode[Round](t, <-answer, 200)
	require.EqualValues(t, 3, round.Observed)
	require.EqualValues(t, 7, *round.CommittedVersion)
	require.Equal(t, "round lancefleet-scan-now run-1 wait=1m0s", b.temporal.said()[3], "the wait is bounded")
}

func TestAWorkflowIDMayHoldASlash(t *testing.T) {
	b := newBench(t, demoStore(10))
	b.temporal.record = &fleet.RoundRecord{RoundID: "r"}
	require.Equal(t, 200, b.get("/api/v1/rounds/lancefleet-scan%2Fx/r").Code)
	require.Equal(t, "round lancefleet-scan/x r wait=0s", b.temporal.said()[0])
}

func TestTemporalAwayIs503AndTheBrowserWorks(t *testing.T) {
	b := newBench(t, demoStore(10))
	b.temporal.err = unreachable()
	b.renew(t)
	for _, c := range [][2]string{{"GET", "/schedule"}, {"POST", "/rescan"}, {"POST", "/schedule/resume"}, {"GET", "/rounds/a/b"},
		{"POST", "/experiments/" + b.feed.moment().view.Rows[5].String() + "/rescan"}} {
		requireError(t, b.do(c[0], "/api/v1"+c[1], ""), 503, "connection refused")
	}
	requireError(t, b.do("POST", "/api/v1/schedule/pause", `{"reason":"x"}`), 503, "connection refused")
	require.Equal(t, 200, b.get("/api/v1/experiments").Code)
	require.Equal(t, 200, b.get("/api/v1/rounds").Code)

	none := newBench(t, demoStore(10), func(_ *Config, p *parts) { p.steer = nil })
	requireError(t, none.do("POST", "/api/v1/rescan", ""), 503, "no connection to Temporal")
	require.Equal(t, 200, none.get("/").Code)
}

func TestAnUnknownRoundIs404(t *testing.T) {
	b := newBench(t, demoStore(10))
	b.temporal.err = &control.Error{Class: control.ClassGone, Op: "describe round", ID: "a/b", Err: http.ErrNoLocation}
	requireError(t, b.get("/api/v1/rounds/a/b"), 404, "describe round a/b")
}

func TestRescanAnswersWithWhatIsStoredThen(t *testing.T) {
	store := &fakeStore{snapshot: Snapshot{Version: 9, Rows: []fleet.Row{healthy(fleet.Rollout, "run-1", minutesAgo(500))}}}
	b := newBench(t, store)
	b.temporal.refresh = func(id fleet.ID) (workflows.RefreshResult, error) {
		store.set(func(f *fakeStore) {
			row := f.snapshot.Rows[0]
			row.Version = 38
			f.snapshot = Snapshot{Version: 10, Rows: []fleet.Row{row}}
		})
		v := uint64(10)
		return workflows.RefreshResult{Version: &v}, nil
	}
	ctx, stop := newRunning(t, b)
	defer stop()
	_ = ctx
	out := decode[Rescanned](t, b.do("POST", "/api/v1/experiments/run-1/rescan?by=ada", ""), 200)
	require.EqualValues(t, 10, *out.CommittedVersion)
	require.EqualValues(t, 38, *out.Experiment.Version)
	require.Contains(t, b.temporal.said(), "refresh rollout:run-1 ada")
}

func TestARescanThatCouldNotObserveSaysWhy(t *testing.T) {
	row := healthy(fleet.Rollout, "run-1", 1)
	row.Failures, row.ErrorClass = 1, "corrupt"
	b := newBench(t, &fakeStore{snapshot: Snapshot{Version: 9, Rows: []fleet.Row{row}}})
	b.temporal.refresh = func(id fleet.ID) (workflows.RefreshResult, error) {
		return workflows.RefreshResult{Failed: map[string]string{id.String(): "the manifest is truncated"}}, nil
	}
	requireError(t, b.do("POST", "/api/v1/experiments/run-1/rescan", ""), 422, "the manifest is truncated")
	page := b.postForm("/experiments/run-1/refresh", "")
	require.Equal(t, 422, page.Code)
	require.Contains(t, page.Body.String(), "the manifest is truncated")
	require.Contains(t, page.Body.String(), "Overview", "the page stays")
}

func TestReadinessSaysWhatIsMissing(t *testing.T) {
	b := newBench(t, demoStore(10))
	r := decode[Readiness](t, b.get("/readyz"), 200)
	require.True(t, r.Ready && r.Snapshot && r.Temporal)
	require.Empty(t, r.Missing)

	b.temporal.err = unreachable()
	b.renew(t)
	r = decode[Readiness](t, b.get("/readyz"), 200)
	require.True(t, r.Ready, "the browser works without Temporal")
	require.Contains(t, r.Missing[0], "temporal: describe schedule")

	r = decode[Readiness](t, newBench(t, &fakeStore{err: unreadable()}).get("/readyz"), 503)
	require.False(t, r.Ready)
	require.Contains(t, r.Missing[0], "snapshot: reading the fleet's table")
	require.Equal(t, 200, newBench(t, &fakeStore{err: unreadable()}).get("/healthz").Code, "a dead store is no reason to restart")
}

func TestRoundsPageAndPriceOnlyWhereRequestsCost(t *testing.T) {
	b := newBench(t, demoStore(3000))
	list := decode[RoundList](t, b.get("/api/v1/rounds?limit=10&offset=55"), 200)
	require.Len(t, list.Rounds, 5)
	require.False(t, list.More)
	require.Nil(t, list.Rounds[0].PricePerDay, "local disk")
	s3 := newBench(t, demoStore(3000), func(_ *Config, p *parts) { p.dataDir = "s3://b/f" })
	list = decode[RoundList](t, s3.get("/api/v1/rounds?limit=1"), 200)
	require.True(t, list.More)
	// 750 list + 3 put at $5, 6000 head + 420 get at $0.40 a million, 288 times a day
	require.InDelta(t, (753*5+6420*0.4)/1e6*288, *list.Rounds[0].PricePerDay, 1e-9)
}

func TestTheDocumentationNamesEveryRouteAndTheErrors(t *testing.T) {
	b := newBench(t, demoStore(1))
	doc := decode[map[string]any](t, b.get("/api/v1/openapi.json"), 200)
	paths := doc["paths"].(map[string]any)
	for _, p := range []string{"/experiments", "/experiments/{name}", "/experiments/{name}/rescan", "/rescan", "/rounds",
		"/rounds/{workflow_id}/{run_id}", "/schedule", "/schedule/pause", "/schedule/resume", "/status"} {
		require.Contains(t, paths, "/api/v1"+p)
	}
	text := b.get("/api/v1/openapi.json").Body.String()
	require.Contains(t, text, "ErrorBody")
	require.NotContains(t, text, "problem+json")
}
