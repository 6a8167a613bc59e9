package workflows_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
	"lancefleet/workflows"
)

func TestWakingTellsWhetherItIsHotAgain(t *testing.T) {
	u := cold()
	u.wake = workflows.WakeResult{Outcome: workflows.OutcomeDone, Sentence: "hot again: an entry was added", Facts: fleet.UnknownFacts()}
	env := newUpkeepEnv(t, u)
	result, err := env.run(workflows.WakeWorkflowName, upkeepArgs())
	require.NoError(t, err)
	require.Equal(t, []string{workflows.WakeName, workflows.RecordMaintenanceName}, u.called)
	require.Equal(t, "hot again: an entry was added", result.Sentence)
	require.Equal(t, workflows.OutcomeDone, env.outcome)
}

func TestAWakeThatFoundNothingIsJournalledOnlyIfSomebodyAskedForIt(t *testing.T) {
	for _, by := range []string{"", "alice"} {
		u := cold()
		u.wake = workflows.WakeResult{Outcome: workflows.OutcomeNoop, Sentence: "not written since", Facts: fleet.UnknownFacts()}
		u.wake.Facts.Version = 5
		args := upkeepArgs()
		args.By = by
		env := newUpkeepEnv(t, u)
		result, err := env.run(workflows.WakeWorkflowName, args)
		require.NoError(t, err)
		require.Equal(t, []any{workflows.OutcomeNoop, "not written since", int64(5)}, []any{result.Outcome, result.Sentence, result.After.Version})
		require.Equal(t, by != "", len(u.recorded) == 1)
		require.Equal(t, workflows.OutcomeNoop, env.outcome)
	}
}

func TestAWakeThatFailsSaysWhy(t *testing.T) {
	u := cold()
	u.fail[workflows.WakeName] = final("denied")
	_, err := newUpkeepEnv(t, u).run(workflows.WakeWorkflowName, upkeepArgs())
	require.ErrorContains(t, err, "wake rollout:exp-1: it broke")
	require.Equal(t, "denied", u.recorded[0].ErrorClass)
}
