package activities

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/workflows"
)

func TestARoundIsRecordedAndItsStagedPagesGo(t *testing.T) {
	w := newWorld("a")
	w.staged["run/0/1"] = []fleet.Row{{}}

	_, err := do[struct{}](t, w.scan().RecordRound, fleet.RoundRecord{RoundID: "run", Number: 3})

	require.NoError(t, err)
	require.Len(t, w.rounds, 1)
	require.Empty(t, w.staged)
	require.Empty(t, w.journal, "the schedule's rounds are not an operator's action")
}

func TestARoundKeepsTheNumbersOfWhatItObservedForCharts(t *testing.T) {
	w := newWorld("a", "b").seen()
	rows := append([]fleet.Row(nil), w.head().Rows...)
	rows[0].ObservedAt = w.now.Add(-time.Hour).UnixMilli()
	w.put(rows, "")
	record := fleet.RoundRecord{RoundID: "run", Observed: 1, StartedAt: w.now.UnixMilli(), FinishedAt: w.now.UnixMilli() + 5}

	_, err := do[struct{}](t, w.scan().RecordRound, record)
	require.NoError(t, err)
	require.Len(t, w.samples, 1)
	require.Equal(t, "b", w.samples[0].Name)
	require.Equal(t, int64(10), w.samples[0].Rows)

	w.appendErr = &lance.Error{Class: lance.Denied, Message: "403"}
	_, err = do[struct{}](t, w.scan().RecordRound, record)
	require.NoError(t, err, "a gap in a chart fails no round")
	record.Observed, w.samples = 0, nil
	_, err = do[struct{}](t, w.scan().RecordRound, record)
	require.NoError(t, err)
	require.Empty(t, w.samples)
}

func TestARoundThatSomebodyAskedForIsJournalled(t *testing.T) {
	w := newWorld("a")

	_, err := do[struct{}](t, w.scan().RecordRound, fleet.RoundRecord{RoundID: "run", By: "alice", StartedAt: 5, FinishedAt: 9})

	require.NoError(t, err)
	require.Equal(t, "scan", w.journal[0].Kind)
	require.Equal(t, "alice", w.journal[0].By)
	require.Equal(t, "run", w.journal[0].ID)
	require.Equal(t, int64(4), w.journal[0].DurationMS)
}

func TestARefreshNeverSkipsAndStoresWhatItFinds(t *testing.T) {
	w := newWorld("a", "b").seen()
	w.fail("b", 0)
	good := w.observe
	w.observe = func(target lance.ObserveTarget) lance.ObserveResult {
		if target.URI == exp("b").URI {
			return lance.ObserveResult{Err: &lance.Error{Class: lance.Denied, Message: "403"}}
		}
		return good(target)
	}
	args := workflows.RefreshArgs{By: "alice", IDs: []fleet.ID{exp("a").ID, exp("b").ID, exp("nobody").ID}}

	result, err := do[workflows.RefreshResult](t, w.scan().RefreshRows, args)

	require.NoError(t, err)
	require.Empty(t, w.probes)
	require.Len(t, w.observes, 2, "one that keeps failing is asked too")
	require.Equal(t, map[string]string{"rollout:b": "403", "rollout:nobody": "no source names it"}, result.Failed)
	require.Equal(t, w.head().Version, *result.Version)
	require.Equal(t, int64(2), w.head().Rows[0].Version)
	require.Equal(t, "denied", w.head().Rows[1].ErrorClass)
	require.Equal(t, []string{"done", "failed", "failed"}, []string{w.journal[0].Outcome, w.journal[1].Outcome, w.journal[2].Outcome})
	require.NotEqual(t, w.journal[0].ID, w.journal[1].ID)
}

func TestARefreshOfNothingKnownStoresNothing(t *testing.T) {
	w := newWorld("a").seen()

	result, err := do[workflows.RefreshResult](t, w.scan().RefreshRows, workflows.RefreshArgs{IDs: []fleet.ID{exp("x").ID}})

	require.NoError(t, err)
	require.Nil(t, result.Version)
	require.Equal(t, uint64(1), w.head().Version)
}

func TestAnOperatorsActionIsJournalled(t *testing.T) {
	w := newWorld()

	_, err := do[struct{}](t, w.scan().RecordAction, fleet.Action{ID: "id", Kind: "pause"})

	require.NoError(t, err)
	require.Equal(t, []fleet.Action{{ID: "id", Kind: "pause"}}, w.journal)
}
