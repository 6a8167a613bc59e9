package web

import (
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
	"lancefleet/workflows"
)

func TestAPauseThatTookEffectIsNeverToldAsFailed(t *testing.T) {
	b := newBench(t, demoStore(10))
	b.temporal.unread = unreachable()
	state := decode[Schedule](t, b.do("POST", "/api/v1/schedule/pause", `{"reason":"moving the bucket","by":"ada"}`), 200)
	require.True(t, state.Paused)
	require.Equal(t, "ada", state.By)
	require.EqualValues(t, 300, state.IntervalSecs, "what was known before is kept")
	require.Nil(t, state.NextAt)
	require.Contains(t, state.Warning, "connection refused")
	page := b.get("/").Body.String()
	require.Contains(t, page, "moving the bucket", "every page says so at once")
	require.Contains(t, page, "Temporal does not answer")

	state = decode[Schedule](t, b.do("POST", "/api/v1/schedule/resume", ""), 200)
	require.False(t, state.Paused)
	require.Contains(t, state.Warning, "connection refused")

	form := b.postForm("/rounds/pause", "reason=again&by=ada")
	require.Equal(t, http.StatusSeeOther, form.Code)
	require.Contains(t, b.get(form.Header().Get("Location")).Body.String(), "could not be asked for the schedule afterwards")

	b.temporal.unread = nil
	state = decode[Schedule](t, b.do("POST", "/api/v1/schedule/resume", ""), 200)
	require.Empty(t, state.Warning)
}

func TestAPauseWithoutAnAnswerIsLookedFor(t *testing.T) {
	b := newBench(t, demoStore(10))
	b.temporal.lost = unreachable()
	state := decode[Schedule](t, b.do("POST", "/api/v1/schedule/pause", `{"reason":"x","by":"ada"}`), 200)
	require.True(t, state.Paused, "the schedule shows that it took effect")
	require.Empty(t, state.Warning)

	b.temporal.unread = unreachable()
	requireError(t, b.do("POST", "/api/v1/schedule/resume", ""), 503, "whether it took effect is not known")
}

func TestAnActionWithoutAnAnswerSaysThatItMayHaveTakenEffect(t *testing.T) {
	b := newBench(t, demoStore(10))
	b.temporal.err = unreachable()
	for _, path := range []string{"/rescan", "/schedule/resume", "/experiments/" + pathOfRow(b, 5) + "/rescan"} {
		requireError(t, b.do("POST", "/api/v1"+path, ""), 503, "whether it took effect is not known")
	}
}

func pathOfRow(b *bench, i int) string { return b.feed.moment().view.Rows[i].String() }

func TestARescanThatTookEffectIsNeverToldAsFailed(t *testing.T) {
	cold := experiment(fleet.Table, "cold")
	store := &fakeStore{snapshot: Snapshot{Version: 9}, named: []fleet.Experiment{cold}}
	store.observe = func(fleet.Experiment) (fleet.Observation, error) { return fleet.Observation{}, unreadable() }
	b := newBench(t, store)
	out := decode[Rescanned](t, b.do("POST", "/api/v1/experiments/cold/rescan", ""), 200)
	require.Equal(t, "table:cold", out.ID)
	require.Nil(t, out.Experiment)
	require.Contains(t, out.Warning, "connection refused")
	require.Equal(t, http.StatusSeeOther, b.postForm("/experiments/cold/refresh", "").Code)
	require.Contains(t, b.temporal.said()[0], "refresh table:cold")
}

func TestAnExperimentIsNotShownAsStoredWhileAnOlderVersionIsRead(t *testing.T) {
	store := &fakeStore{snapshot: Snapshot{Version: 9, Rows: []fleet.Row{healthy(fleet.Rollout, "run-1", 1)}}}
	b := newBench(t, store)
	newer := uint64(10)
	m := b.feed.moment()
	found, err := b.resolve(t.Context(), m.view, "run-1")
	require.NoError(t, err)
	out := b.rescanned(t.Context(), m, found, &newer)
	require.Nil(t, out.Experiment)
	require.Contains(t, out.Warning, "version 10")
	b.temporal.refresh = func(fleet.ID) (workflows.RefreshResult, error) {
		return workflows.RefreshResult{}, errors.New("broken")
	}
	requireError(t, b.do("POST", "/api/v1/experiments/run-1/rescan", ""), 500, "request id")
}
