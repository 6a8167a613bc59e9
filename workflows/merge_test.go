package workflows_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"lancefleet/workflows"
)

func TestARefusedMergeEndsARetirementButNotTheCompactionOfAHotOne(t *testing.T) {
	refused := func() *upkept {
		u := cold()
		u.merges = []workflows.MergeResult{{Left: 3, Marks: map[string]uint64{}, Refused: []string{"shard s1 restarted its generation counter"}}}
		return u
	}
	u := refused()
	result, _, err := retire(t, u)
	require.NoError(t, err)
	require.Equal(t, workflows.OutcomeRefused, result.Outcome)
	require.Equal(t, "not merged: shard s1 restarted its generation counter", result.Sentence)
	require.Equal(t, []string{workflows.PrepareName, workflows.MergeWALName, workflows.RecordMaintenanceName}, u.called)

	u = refused()
	result, err = newUpkeepEnv(t, u).run(workflows.OptimizeWorkflowName, upkeepArgs())
	require.NoError(t, err)
	require.Equal(t, workflows.OutcomeRefused, result.Outcome)
	require.Contains(t, u.called, workflows.CompactName)
	require.Contains(t, result.Sentence, "compacted 16 fragments into 1")
	require.Contains(t, result.Sentence, "restarted its generation counter")
}

func TestAnAttemptThatStopsHalfWayIsFollowedByTheNextOneFromItsMarks(t *testing.T) {
	u := cold()
	u.merges = []workflows.MergeResult{
		{More: true, Passes: 90, Generations: 720, Drained: 720, Rows: 10, Shards: 1, Left: 780, Marks: map[string]uint64{"s1": 720}, Version: 9},
		{Passes: 98, Generations: 780, Drained: 780, Rows: 20, Shards: 1, Marks: map[string]uint64{"s1": 1500}, Version: 10},
	}
	u.compacts = []workflows.CompactResult{
		{More: true, Passes: 1, Removed: 32, Added: 1, FragmentsBefore: 64, Fragments: 33, Version: 11},
		{Passes: 1, Removed: 32, Added: 1, FragmentsBefore: 33, Fragments: 2, Version: 12},
	}

	result, _, err := retire(t, u)

	require.NoError(t, err)
	require.Equal(t, map[string]uint64{"s1": 720}, u.mergeIn[1].Marks)
	require.Contains(t, result.Sentence, "merged 1500 generations of 1 shard (30 rows)")
	require.Contains(t, result.Sentence, "compacted 64 fragments into 2")
}

func TestWhereThereIsNothingToMergeNoSlotIsWaitedFor(t *testing.T) {
	u := cold()
	u.prepared.NoMerge = true
	result, _, err := retire(t, u)
	require.NoError(t, err)
	require.Equal(t, workflows.OutcomeDone, result.Outcome)
	require.NotContains(t, u.called, workflows.MergeWALName)
	require.Contains(t, u.called, workflows.VerifyName)
}
