package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"lancefleet/workflows"
)

func TestWhatIsNotDueIsLeftAloneAndARoundsStartIsNotJournalled(t *testing.T) {
	for name, workflowName := range map[string]string{"retire": workflows.RetireWorkflowName, "optimize": workflows.OptimizeWorkflowName} {
		t.Run(name, func(t *testing.T) {
			u := cold()
			u.prepared.Due, u.prepared.Reason = false, "written 2 h ago"
			env := newUpkeepEnv(t, u)

			result, err := env.run(workflowName, upkeepArgs())

			require.NoError(t, err)
			require.Equal(t, workflows.OutcomeNoop, result.Outcome)
			require.Equal(t, "written 2 h ago", result.Sentence)
			require.Equal(t, []string{workflows.PrepareName}, u.called)
			require.Equal(t, workflows.OutcomeNoop, env.outcome)
		})
	}
}

func TestAPersonsRequestIsJournalledAlsoWhenThereWasNothingToDo(t *testing.T) {
	u := cold()
	u.prepared.Due, u.prepared.Reason = false, "written 2 h ago"
	args := upkeepArgs()
	args.By = "alice"

	_, err := newUpkeepEnv(t, u).run(workflows.RetireWorkflowName, args)

	require.NoError(t, err)
	require.Len(t, u.recorded, 1)
	require.Equal(t, workflows.OutcomeNoop, u.recorded[0].Result.Outcome)
}

func TestWhatIsRefusedBeforeItBeginsTouchesNothing(t *testing.T) {
	u := cold()
	u.prepared.Due, u.prepared.Refused, u.prepared.Reason = false, true, "paused: disk is full"

	result, env, err := retire(t, u)

	require.NoError(t, err)
	require.Equal(t, workflows.OutcomeRefused, result.Outcome)
	require.Equal(t, []string{workflows.PrepareName, workflows.RecordMaintenanceName}, u.called)
	require.Equal(t, workflows.OutcomeRefused, env.outcome)
}

func TestAStepThatFailsForGoodEndsTheRunBeforeTheDropAndIsJournalledWithItsClass(t *testing.T) {
	for _, step := range []string{
		workflows.PrepareName, workflows.MergeWALName, workflows.CompactName, workflows.CleanupVersionsName,
		workflows.SweepGenerationsName, workflows.VerifyName,
	} {
		t.Run(step, func(t *testing.T) {
			u := cold()
			u.fail[step] = final("corrupt")

			_, env, err := retire(t, u)

			require.Equal(t, "corrupt", workflows.ErrorClass(err))
			require.ErrorContains(t, err, "retire rollout:exp-1")
			require.ErrorContains(t, err, "it broke")
			require.NotContains(t, u.called, workflows.DropRowName)
			require.Equal(t, step, u.called[len(u.called)-2], "nothing came after it but the record")
			require.Equal(t, workflows.OutcomeFailed, env.outcome)
			require.Equal(t, "corrupt", u.recorded[0].ErrorClass)
			require.Equal(t, workflows.OutcomeFailed, u.recorded[0].Result.Outcome)
			require.Contains(t, u.recorded[0].Result.Sentence, "it broke")
		})
	}
}

func TestACancelledRunEndsCancelledDropsNothingAndIsJournalled(t *testing.T) {
	u := cold()
	env := newUpkeepEnv(t, u)
	env.RegisterDelayedCallback(env.CancelWorkflow, 2*time.Minute) // within the grace

	_, err := env.run(workflows.RetireWorkflowName, upkeepArgs())

	require.True(t, temporal.IsCanceledError(err), "%v", err)
	require.NotContains(t, u.called, workflows.DropRowName)
	require.Equal(t, workflows.OutcomeCancelled, env.outcome)
	require.Equal(t, workflows.OutcomeCancelled, u.recorded[0].Result.Outcome)
	require.Equal(t, "merge_wal", u.recorded[0].Result.Steps[0].Action, "what was done stays done, and is told")
}

func TestARunThatCannotBeJournalledFails(t *testing.T) {
	u := cold()
	u.fail[workflows.RecordMaintenanceName] = final("denied")
	_, _, err := retire(t, u)
	require.Equal(t, "denied", workflows.ErrorClass(err))
	require.ErrorContains(t, err, "record retire")
}
