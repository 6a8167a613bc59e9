package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"lancefleet/workflows"
)

func TestARunThatIsAskedSaysWhatIsOverAndUntilWhenItWaits(t *testing.T) {
	env := newUpkeepEnv(t, cold())
	env.SetStartTime(time.Date(2026, 11, 30, 11, 57, 0, 0, time.UTC))
	ask := func() workflows.MaintenanceProgress {
		var p workflows.MaintenanceProgress
		answer, err := env.QueryWorkflow(workflows.ProgressQuery)
		require.NoError(t, err)
		require.NoError(t, answer.Get(&p))
		return p
	}
	var waiting workflows.MaintenanceProgress
	env.RegisterDelayedCallback(func() { waiting = ask() }, 2*time.Minute) // within the grace

	_, err := env.run(workflows.RetireWorkflowName, upkeepArgs())

	require.NoError(t, err)
	require.Equal(t, "Waiting until 12:02 UTC (5 min): grace: readers of the merged generations may still be busy.", waiting.Now)
	require.Equal(t, time.Date(2026, 11, 30, 12, 2, 0, 0, time.UTC).UnixMilli(), waiting.Until)
	require.Equal(t, []string{"merge_wal", "compact", "cleanup"}, actions(waiting.Steps))
	require.Equal(t, workflows.OutcomeDone, waiting.Steps[0].Outcome)
	require.Contains(t, waiting.Steps[0].Sentence, "merged 12 generations")

	ended := ask()
	require.Empty(t, ended.Now)
	require.Zero(t, ended.Until)
	require.Len(t, ended.Steps, 6)
}

func actions(steps []workflows.StepProgress) []string {
	var all []string
	for _, s := range steps {
		all = append(all, s.Action)
	}
	return all
}

func TestEntriesOfAWriterThatMayLiveAreNotCalledStranded(t *testing.T) {
	u := cold()
	u.merges = []workflows.MergeResult{{Stranded: 3, Unflushed: 2, Marks: map[string]uint64{}}}
	result, _, err := retire(t, u)
	require.NoError(t, err)
	require.Equal(t, "nothing pending to merge, 2 WAL entries not flushed yet by a writer that may live, 1 WAL entry stranded", result.Steps[0].Sentence)
	require.Equal(t, int64(3), u.recorded[0].Result.Steps[0].After.Stranded)
}

func TestAFailedRunTellsNothingMore(t *testing.T) {
	u := cold()
	u.fail[workflows.PrepareName] = temporal.NewNonRetryableApplicationError("403", "denied", nil)
	_, env, err := retire(t, u)
	require.Error(t, err)
	answer, err := env.QueryWorkflow(workflows.ProgressQuery)
	require.NoError(t, err)
	var p workflows.MaintenanceProgress
	require.NoError(t, answer.Get(&p))
	require.Equal(t, workflows.MaintenanceProgress{Steps: []workflows.StepProgress{}}, p)
}
