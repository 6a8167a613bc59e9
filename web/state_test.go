package web

import (
	"testing"

	"github.com/stretchr/testify/require"

	"lancefleet/control"
	"lancefleet/fleet"
)

// restful is a fleet with two that are hot and two at rest, one of which the table
// still has.
func restful() *fakeStore {
	store := oneRow(120)
	left := retiredOne(fleet.Rollout, "left")
	row := healthy(fleet.Rollout, "left", left.LastWrite)
	written := retiredOne(fleet.Rollout, "written")
	again := healthy(fleet.Rollout, "written", written.LastWrite+1)
	store.snapshot.Rows = append(store.snapshot.Rows, again, row)
	store.retired = []fleet.LedgerEntry{retiredOne(fleet.Table, "old"), left, written}
	return store
}

func idsOf(list ExperimentList) map[string]State {
	found := map[string]State{}
	for _, e := range list.Experiments {
		found[e.ID] = e.State
	}
	return found
}

func TestRetiredOnesAreFoundBySearchAndOneFilterAwayAndNotInTheWay(t *testing.T) {
	b := newBench(t, restful())
	for query, want := range map[string]map[string]State{
		"":                     {"rollout:run-1": Hot, "rollout:written": Hot},
		"?state=hot":           {"rollout:run-1": Hot, "rollout:written": Hot},
		"?state=retired":       {"rollout:left": Retired, "table:old": Retired},
		"?search=l":            {"rollout:left": Retired, "table:old": Retired},
		"?search=l&state=hot":  {},
		"?state=hot,retired":   {"rollout:run-1": Hot, "rollout:written": Hot, "rollout:left": Retired, "table:old": Retired},
		"?kind=table":          {},
		"?search=rollout:left": {"rollout:left": Retired},
	} {
		list := decode[ExperimentList](t, b.get("/api/v1/experiments"+query), 200)
		require.Equal(t, want, idsOf(list), query)
		require.Equal(t, len(want), list.Total, query)
	}
	status := decode[Status](t, b.get("/api/v1/status"), 200)
	require.EqualValues(t, 2, status.Totals.Experiments, "sums are of the hot ones")
	require.Contains(t, b.get("/").Body.String(), "state%3Aretired", "one click away")
}

func TestARetiredOneIsShownFromTheLedgerAtItsOwnAddress(t *testing.T) {
	b := newBench(t, restful())
	for _, id := range []string{"table:old", "rollout:left"} {
		d := decode[Detail](t, b.get("/api/v1/experiments/"+id), 200)
		require.Equal(t, Retired, d.State)
		require.Equal(t, "none", d.Action)
		require.Contains(t, d.Reason, "retired 3 d ago by ada")
		require.Equal(t, minutesAgo(3*daysOfMinutes), d.Evidence.RetiredAt)
		require.EqualValues(t, 37, d.Evidence.Version)
		require.Equal(t, 2, d.Evidence.Shards)
		require.EqualValues(t, 12_000, *d.RowCount)
		page := b.get("/experiments/" + id)
		require.Equal(t, 200, page.Code)
		require.Contains(t, page.Body.String(), "At rest")
		require.Contains(t, page.Body.String(), "finished")
	}
	require.Empty(t, b.store.observed, "nobody looked at storage")
}

func TestALookAtARetiredOneSaysWhetherItWasWrittenSince(t *testing.T) {
	b := newBench(t, restful())
	entry := b.store.retired[0]
	b.store.observe = func(fleet.Experiment) (fleet.Observation, error) {
		return fleet.Observation{Fingerprint: entry.Evidence.Fingerprint, BaseRows: 12_000, Fragments: 2, ObservedAt: testNow.UnixMilli()}, nil
	}
	d := decode[Detail](t, b.get("/api/v1/experiments/old?fresh=true"), 200)
	require.Equal(t, Retired, d.State)
	b.store.observe = observes
	d = decode[Detail](t, b.get("/api/v1/experiments/old?fresh=true"), 200)
	require.Equal(t, Hot, d.State)
	require.Contains(t, d.Reason, "written since")
	require.Nil(t, d.Evidence)
	require.Equal(t, Retired, decode[Detail](t, b.get("/api/v1/experiments/old"), 200).State, "looking changes nothing")
}

func TestOneWhoseRetirementRunsIsRetiring(t *testing.T) {
	b := newBench(t, restful())
	b.temporal.maintaining = []control.Running{{ID: fleet.ID{Kind: fleet.Rollout, Name: "run-1"}, Action: "retire", WorkflowID: "experiment/rollout:run-1", RunID: "r1", StartedAt: minutesAgo(2)}}
	b.renew(t)
	require.Equal(t, map[string]State{"rollout:run-1": Retiring}, idsOf(decode[ExperimentList](t, b.get("/api/v1/experiments?state=retiring"), 200)))
	require.Len(t, idsOf(decode[ExperimentList](t, b.get("/api/v1/experiments"), 200)), 2, "it is still hot data")
	d := decode[Detail](t, b.get("/api/v1/experiments/run-1"), 200)
	require.Equal(t, Retiring, d.State)
	require.Equal(t, "r1", d.Running.RunID)
	page := b.get("/experiments/rollout:run-1").Body.String()
	require.Contains(t, page, "retiring")
	require.Contains(t, page, "/r1/history")
}

func TestTheDecisionIsMadeByThePolicyOfTheExperiment(t *testing.T) {
	store := oneRow(8 * daysOfMinutes)
	generations := int64(2)
	store.snapshot.Rows[0].PendingWAL = 3
	b := newBench(t, store, func(_ *Config, p *parts) {
		p.policies.Default.RetireAfter = 0
		p.policies.Overrides = []fleet.Override{{Pattern: "other"}, {Pattern: "run-*", Kind: fleet.Rollout, MergeMinGenerations: &generations}}
	})
	d := decode[Detail](t, b.get("/api/v1/experiments/run-1"), 200)
	require.Equal(t, "merge", d.Action)
	require.Contains(t, d.Reason, "merged from 2 on")
	require.EqualValues(t, 2, d.Policy.MergeMinGenerations)
	require.Equal(t, []int{2}, d.Policy.From)
	require.Zero(t, d.Policy.RetireAfterSecs)
}

func TestWhatTheJournalRemembersDecides(t *testing.T) {
	store := oneRow(120)
	store.snapshot.Rows[0].PendingWAL = 30
	for i := range 4 {
		store.actions = append(store.actions, fleet.Action{ID: string(rune('a' + i)), At: minutesAgo(int64(i + 1)), Kind: fleet.ActMergeWAL,
			Target: "rollout:run-1", Outcome: fleet.OutcomeFailed, Error: "commit conflict"})
	}
	d := decode[Detail](t, newBench(t, store).get("/api/v1/experiments/run-1"), 200)
	require.Equal(t, "none", d.Action)
	require.Contains(t, d.Reason, "cooling down until")
	require.NotNil(t, d.NotBefore)
}
