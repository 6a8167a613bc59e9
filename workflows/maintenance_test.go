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

func TestEachStepIsAskedAboutWhatWasPrepared(t *testing.T) {
	args := upkeepArgs()
	args.By, args.Why, args.Shard, args.AllowUnknown = "alice", "the demo", "s1", true
	run := func(name string) (*upkept, workflows.MaintenanceResult) {
		u := cold()
		u.seal = workflows.SealResult{Entries: 1, Rows: 1, Generation: 5}
		result, err := newUpkeepEnv(t, u).run(name, args)
		require.NoError(t, err)
		return u, result
	}
	u, _ := run(workflows.RetireWorkflowName)
	target, limits := u.prepared.Target, u.prepared.Limits
	require.Equal(t, workflows.PrepareInput{Args: args, Action: workflows.ActionRetire}, u.asked[workflows.PrepareName])
	require.Equal(t, workflows.MergeInput{Target: target, Limits: limits, Marks: u.prepared.Marks}, u.asked[workflows.MergeWALName])
	require.Equal(t, workflows.CompactInput{Target: target, Limits: limits}, u.asked[workflows.CompactName])
	require.Equal(t, workflows.VerifyInput{Target: target}, u.asked[workflows.VerifyName])
	require.Equal(t, workflows.DropInput{Args: args, Target: target, Evidence: u.evidence}, u.asked[workflows.DropRowName])
	u, _ = run(workflows.OptimizeWorkflowName)
	require.Equal(t, target, u.asked[workflows.RefreshRowName])
	u, _ = run(workflows.SealWorkflowName)
	require.Equal(t, workflows.SealInput{Target: target, Limits: limits, Shard: "s1", AllowUnknown: true}, u.asked[workflows.SealShardName])
	u, _ = run(workflows.WakeWorkflowName)
	require.Equal(t, args, u.asked[workflows.WakeName])
}

func TestTheJournalIsToldWhoAskedAndHowLongItTook(t *testing.T) {
	u := cold()
	env := newUpkeepEnv(t, u)
	env.SetStartTime(time.UnixMilli(1_000_000))
	args := upkeepArgs()
	args.By, args.Why = "alice", "the demo"
	result, err := env.run(workflows.RetireWorkflowName, args)
	require.NoError(t, err)
	record := u.recorded[0]
	require.Equal(t, args, record.Args)
	require.Equal(t, result, record.Result)
	require.Empty(t, record.ErrorClass)
	require.Equal(t, int64(1_000_000), record.StartedAt)
	require.GreaterOrEqual(t, record.FinishedAt, record.StartedAt+5*60_000, "it waited for a grace")
	took := map[string]int64{}
	for _, s := range result.Steps {
		took[s.Action] = s.DurationMS
	}
	require.GreaterOrEqual(t, took["sweep"], int64(5*60_000))
	require.Less(t, took["verify"], int64(60_000))
}

func TestMarksAreToldOnceAndByTheStepThatMovesThem(t *testing.T) {
	u := cold()
	u.prepared.Facts.Marks, u.prepared.Facts.Accepted = map[string]uint64{"s1": 4}, map[string]uint64{"s1": 2}
	result, _, err := retire(t, u)
	require.NoError(t, err)
	require.Nil(t, result.Before.Marks)
	require.Nil(t, result.Before.Accepted)
	for _, s := range result.Steps {
		require.Nil(t, s.Before.Marks, s.Action)
		require.Nil(t, s.Before.Accepted, s.Action)
		if s.Action == "merge_wal" {
			require.Equal(t, map[string]uint64{"s1": 10, "s2": 6}, s.After.Marks)
			continue
		}
		require.Nil(t, s.After.Marks, s.Action)
		require.Nil(t, s.After.Accepted, s.Action)
	}
	require.Equal(t, map[string]uint64{"s1": 10, "s2": 6}, result.After.Marks)
	require.Equal(t, map[string]uint64{"s1": 2}, result.After.Accepted)
}

func TestARunSumsUpWhatItsStepsDidAndThenWhatWasRefused(t *testing.T) {
	u := cold()
	u.merges = []workflows.MergeResult{{Refused: []string{"it is sealed"}}}
	u.compacts = []workflows.CompactResult{{Version: 9}}
	u.cleanup, u.sweeps = workflows.CleanupResult{Removed: 1}, []workflows.SweepResult{{}}
	result, err := newUpkeepEnv(t, u).run(workflows.OptimizeWorkflowName, upkeepArgs())
	require.NoError(t, err)
	require.Equal(t, []any{workflows.OutcomeRefused, "removed 1 version older than 24 h; not merged: it is sealed"}, []any{result.Outcome, result.Sentence})

	u = cold()
	u.prepared.NoMerge = true
	u.compacts, u.cleanup, u.sweeps = []workflows.CompactResult{{Version: 9}}, workflows.CleanupResult{}, []workflows.SweepResult{{}}
	result, err = newUpkeepEnv(t, u).run(workflows.OptimizeWorkflowName, upkeepArgs())
	require.NoError(t, err)
	require.Equal(t, []any{workflows.OutcomeNoop, "nothing to do"}, []any{result.Outcome, result.Sentence})
	require.Len(t, u.recorded, 1, "a run that had steps is journalled")
}

func TestARefusalOfARoundsRunIsJournalled(t *testing.T) {
	u := cold()
	u.prepared.Due, u.prepared.Refused, u.prepared.Reason = false, true, "paused"
	_, _, err := retire(t, u)
	require.NoError(t, err)
	require.Len(t, u.recorded, 1)
}

func TestARunThatFailedBeforeItsFirstStepIsJournalledWithItsSentence(t *testing.T) {
	u := cold()
	u.fail[workflows.PrepareName] = final("denied")
	_, _, err := retire(t, u)
	require.ErrorContains(t, err, "retire rollout:exp-1: it broke")
	require.Equal(t, []any{"it broke", "denied", 0}, []any{u.recorded[0].Result.Sentence, u.recorded[0].ErrorClass, len(u.recorded[0].Result.Steps)})
}

func TestAStepThatFailedIsNamedWithItsClassAndLooksAsBefore(t *testing.T) {
	u := cold()
	u.fail[workflows.VerifyName] = final("corrupt")
	_, _, err := retire(t, u)
	require.ErrorContains(t, err, "verify: it broke", "Temporal's page names the step too")
	steps := u.recorded[0].Result.Steps
	last := steps[len(steps)-1]
	require.Equal(t, []any{"verify", workflows.OutcomeFailed, "it broke", "corrupt"}, []any{last.Action, last.Outcome, last.Sentence, last.ErrorClass})
	require.Equal(t, "verify: it broke", u.recorded[0].Result.Sentence)
}

func TestACancelledStepIsCancelledAndSoIsItsRun(t *testing.T) {
	u := cold()
	env := newUpkeepEnv(t, u)
	env.RegisterDelayedCallback(env.CancelWorkflow, 2*time.Minute)
	_, err := env.run(workflows.RetireWorkflowName, upkeepArgs())
	require.Error(t, err)
	record := u.recorded[0]
	last := record.Result.Steps[len(record.Result.Steps)-1]
	require.Equal(t, []any{"sweep", workflows.OutcomeCancelled}, []any{last.Action, last.Outcome})
	require.Equal(t, []any{"cancelled", "cancelled; it stays as the finished steps left it"}, []any{record.ErrorClass, record.Result.Sentence})
}
