package workflows_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
	"lancefleet/workflows"
)

// The journal's marks of the accepted shards are void: what is remembered from then on
// is what was decided, and what the merge after it made of that.
func TestADecisionIsFollowedByTheMergeAndRemembered(t *testing.T) {
	args := upkeepArgs()
	args.By, args.Why, args.Seen, args.LeaveOut = "ada", "restored on purpose", "as it was", true
	u := cold()
	u.prepared.Facts.Marks = map[string]uint64{"s1": 4, "s2": 9}
	u.prepared.Marks = map[string]uint64{"s1": 7, "s2": 9}
	u.accept = workflows.AcceptResult{Marks: map[string]uint64{"s1": 0}, Generations: 2, Version: 8}
	u.merges = []workflows.MergeResult{{Passes: 1, Generations: 2, Rows: 10, Drained: 2, Shards: 1, Version: 9, Marks: map[string]uint64{"s1": 2, "s2": 9}}}
	u.refresh.Facts = fleet.UnknownFacts()
	u.refresh.Facts.Version, u.refresh.Facts.Marks = 9, map[string]uint64{"s1": 2, "s2": 9}
	result, err := newUpkeepEnv(t, u).run(workflows.AcceptWorkflowName, args)
	require.NoError(t, err)
	require.Equal(t, workflows.OutcomeDone, result.Outcome, result.Sentence)
	require.Equal(t, workflows.AcceptInput{Target: u.prepared.Target, Marks: map[string]uint64{"s1": 7, "s2": 9}, Seen: "as it was", LeaveOut: true}, u.acceptIn)
	require.Equal(t, map[string]uint64{"s1": 0, "s2": 9}, u.mergeIn[0].Marks)
	require.Less(t, slices.Index(u.called, workflows.AcceptShardsName), slices.Index(u.called, workflows.MergeWALName))
	require.Contains(t, result.Sentence, "taken out of the log")
	recorded := u.recorded[0].Result.After
	require.Equal(t, map[string]uint64{"s1": 0}, recorded.Accepted)
	require.Equal(t, map[string]uint64{"s1": 2, "s2": 9}, recorded.Marks)

	// Where the merge fails, the decision is remembered all the same.
	u = cold()
	u.prepared.Facts.Marks = map[string]uint64{"s1": 4}
	u.accept = workflows.AcceptResult{Marks: map[string]uint64{"s1": 0}, Version: 8}
	u.fail[workflows.MergeWALName] = final("corrupt")
	_, err = newUpkeepEnv(t, u).run(workflows.AcceptWorkflowName, args)
	require.Error(t, err)
	recorded = u.recorded[0].Result.After
	require.Equal(t, []any{map[string]uint64{"s1": 0}, map[string]uint64{"s1": 0}, int64(8)}, []any{recorded.Accepted, recorded.Marks, recorded.Version})
}

func TestADecisionAboutSomethingElseThanWasSeenIsNone(t *testing.T) {
	u := cold()
	u.accept = workflows.AcceptResult{Refused: "look again, then decide"}
	args := upkeepArgs()
	args.By, args.Seen = "ada", "as it was"
	result, err := newUpkeepEnv(t, u).run(workflows.AcceptWorkflowName, args)
	require.NoError(t, err)
	require.Equal(t, workflows.OutcomeRefused, result.Outcome)
	require.Equal(t, "nothing was decided: look again, then decide", result.Sentence)
	require.NotContains(t, u.called, workflows.MergeWALName)
	require.Nil(t, u.recorded[0].Result.After.Accepted)
}

func TestADecisionThenMergesLooksAndSweepsInThisOrder(t *testing.T) {
	u := cold()
	u.accept = workflows.AcceptResult{Marks: map[string]uint64{"s1": 3, "s2": 1}, Generations: 2, Version: 5}
	args := upkeepArgs()
	args.By, args.Seen = "ada", "as it was"
	result, err := newUpkeepEnv(t, u).run(workflows.AcceptWorkflowName, args)
	require.NoError(t, err)
	require.Equal(t, []string{
		workflows.PrepareName, workflows.AcceptShardsName, workflows.MergeWALName,
		workflows.RefreshRowName, workflows.SweepGenerationsName, workflows.RecordMaintenanceName,
	}, u.called)
	require.Equal(t, workflows.Names{Fleet: "default"}.MergeQueue(), u.queues[workflows.AcceptShardsName])
	require.Equal(t, "accepted what is listed in 2 shards: 2 generations to be merged next", result.Steps[0].Sentence)
	require.False(t, u.acceptIn.LeaveOut)
	require.Equal(t, int64(7), result.Steps[0].After.Version, "versions only climb")
	require.Equal(t, map[string]uint64{"s1": 3, "s2": 1}, u.mergeIn[0].Marks)
	require.Equal(t, map[string]uint64{"s1": 4}, u.prepared.Marks, "what was prepared is not written over")
}

func TestAMergeThatIsRefusedAfterADecisionEndsTheRun(t *testing.T) {
	u := cold()
	u.accept = workflows.AcceptResult{Marks: map[string]uint64{"s1": 0}, Version: 8}
	u.merges = []workflows.MergeResult{{Refused: []string{"it is sealed"}}}
	args := upkeepArgs()
	args.By, args.Seen = "ada", "as it was"
	result, err := newUpkeepEnv(t, u).run(workflows.AcceptWorkflowName, args)
	require.NoError(t, err)
	require.Equal(t, workflows.OutcomeRefused, result.Outcome)
	require.NotContains(t, u.called, workflows.SweepGenerationsName)
	require.Equal(t, map[string]uint64{"s1": 0}, u.recorded[0].Result.After.Accepted)
}

func TestADecisionWhereNothingWasRememberedIsRememberedToo(t *testing.T) {
	u := cold()
	u.prepared.Marks = nil
	u.accept = workflows.AcceptResult{Marks: map[string]uint64{"s1": 3}, Version: 8}
	args := upkeepArgs()
	args.By, args.Seen = "ada", "as it was"
	_, err := newUpkeepEnv(t, u).run(workflows.AcceptWorkflowName, args)
	require.NoError(t, err)
	require.Equal(t, map[string]uint64{"s1": 3}, u.mergeIn[0].Marks)
}
