package workflows_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"lancefleet/workflows"
)

func TestSealingTellsWhatItReplayedOrWhyNot(t *testing.T) {
	args := upkeepArgs()
	args.Shard, args.By, args.AllowUnknown = "s1", "alice", true
	u := cold()
	u.seal = workflows.SealResult{Entries: 2, Rows: 7, Generation: 5}
	result, err := newUpkeepEnv(t, u).run(workflows.SealWorkflowName, args)
	require.NoError(t, err)
	require.Equal(t, "sealed shard s1: 2 WAL entries with 7 rows are generation 5 now", result.Sentence)
	require.Equal(t, workflows.OutcomeDone, result.Outcome)

	u = cold()
	u.seal = workflows.SealResult{Refused: "it was written 3 min ago"}
	result, err = newUpkeepEnv(t, u).run(workflows.SealWorkflowName, args)
	require.NoError(t, err)
	require.Equal(t, workflows.OutcomeRefused, result.Outcome)
	require.Equal(t, "not sealed: it was written 3 min ago", result.Sentence)
	require.NotContains(t, u.called, workflows.RefreshRowName)
}

func TestSealingLooksAgainAfterwardsAndWithoutAnEntryDoesNothing(t *testing.T) {
	args := upkeepArgs()
	args.Shard, args.By = "s1", "alice"
	u := cold()
	u.seal = workflows.SealResult{Entries: 2, Rows: 7, Generation: 5}
	_, err := newUpkeepEnv(t, u).run(workflows.SealWorkflowName, args)
	require.NoError(t, err)
	require.Equal(t, []string{workflows.PrepareName, workflows.SealShardName, workflows.RefreshRowName, workflows.RecordMaintenanceName}, u.called)
	require.Equal(t, workflows.Names{Fleet: "default"}.MergeQueue(), u.queues[workflows.SealShardName])

	u = cold()
	result, err := newUpkeepEnv(t, u).run(workflows.SealWorkflowName, args)
	require.NoError(t, err)
	require.Equal(t, []any{workflows.OutcomeNoop, "no stranded WAL entry in shard s1"}, []any{result.Steps[0].Outcome, result.Steps[0].Sentence})
}
