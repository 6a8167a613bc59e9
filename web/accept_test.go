package web

import (
	"testing"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
	"lancefleet/lance"
)

func TestADecisionIsShownFirstAndMadeForWhatWasShown(t *testing.T) {
	store := oneRow(120)
	after := fleet.UnknownFacts()
	after.Version, after.Marks = 1, map[string]uint64{"s": 4}
	store.actions = append(store.actions, fleet.Action{ID: "1", At: minutesAgo(60), Kind: fleet.ActMergeWAL, Target: "rollout:run-1", Outcome: fleet.OutcomeDone, After: after.Text()})
	b := newBench(t, store)
	b.store.accepting = func(spec lance.AcceptSpec) (lance.Accepted, error) {
		require.Equal(t, map[string]uint64{"s": 4}, spec.RememberedMarks)
		if spec.LeaveOut {
			return lance.Accepted{Refused: &lance.Refusal{Code: "nothing_refused", Sentence: "no shard stands refused"}}, nil
		}
		return lance.Accepted{Seen: "as it is", Shards: []lance.AcceptedShard{{Shard: "s", Generations: 2, Sentences: []string{"it was restored"}}}}, nil
	}
	path := "/api/v1/experiments/run-1/accept"
	plan := decode[MaintenancePlan](t, b.do("POST", path+"?dry_run=true", `{}`), 200)
	require.True(t, plan.Start, plan.Reason)
	require.EqualValues(t, 2, plan.Generations)
	require.Equal(t, "as it is", plan.Accept.Seen)
	plan = decode[MaintenancePlan](t, b.get("/api/v1/experiments/run-1/plan?action=accept&leave_out=true"), 200)
	require.False(t, plan.Start)
	require.Equal(t, "no shard stands refused", plan.Reason)

	requireError(t, b.do("POST", path, `{"seen":"as it is"}`), 422, "why")
	requireError(t, b.do("POST", path, `{"why":"restored on purpose"}`), 422, "seen")
	started := decode[MaintenanceStarted](t, b.do("POST", path, `{"by":"ada","why":"restored on purpose","seen":"as it is","leave_out":true}`), 202)
	require.Equal(t, "accept", started.Action)
	asked := b.temporal.asked
	require.Equal(t, []any{"ada", "restored on purpose", "as it is", true}, []any{asked.By, asked.Why, asked.Seen, asked.LeaveOut})
}
