package workflows_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"lancefleet/fleet"
	"lancefleet/workflows"
)

var exp1 = fleet.ID{Kind: fleet.Rollout, Name: "exp-1"}

// upkept plays the activities of maintenance over one experiment, and keeps what
// they were asked.
type upkept struct {
	prepared workflows.Prepared
	merges   []workflows.MergeResult // one after the other; the last again and again
	compacts []workflows.CompactResult
	cleanup  workflows.CleanupResult
	sweeps   []workflows.SweepResult
	seal     workflows.SealResult
	accept   workflows.AcceptResult
	evidence fleet.Evidence
	drop     workflows.DropResult
	wake     workflows.WakeResult
	refresh  workflows.RefreshRowResult
	fail     map[string]error // by activity
	failOnce map[string]error

	called   []string
	mergeIn  []workflows.MergeInput
	acceptIn workflows.AcceptInput
	dropIn   workflows.DropInput
	recorded []workflows.MaintenanceRecord
	queues   map[string]string // activity -> queue
	waited   []time.Duration

	compacted chan struct{} // told after the compaction, if set
}

// cold is an experiment that is due for retirement and gives no trouble.
func cold() *upkept {
	facts := fleet.UnknownFacts()
	facts.Version, facts.Fragments, facts.Pending = 7, 16, 12
	return &upkept{
		prepared: workflows.Prepared{
			Due: true, Reason: "not written for 8 d, retired after 7 d", Facts: facts, Marks: map[string]uint64{"s1": 4},
			Target: workflows.Target{FleetID: "fleet", ID: exp1, URI: "/data/exp-1.rollout.lance"},
			Limits: workflows.Limits{
				MergeGenerations: 8, CompactFragments: 2, CompactTargetRows: 1000, CompactOptions: "options",
				CleanupOlderThan: (24 * time.Hour).Milliseconds(),
				Grace:            (5 * time.Minute).Milliseconds(), UnknownGrace: time.Hour.Milliseconds(),
			},
		},
		merges: []workflows.MergeResult{{
			Passes: 2, Generations: 12, Drained: 12, Rows: 500, Shards: 2, Sealed: 1, SealedRows: 3, Version: 9,
			Marks: map[string]uint64{"s1": 10, "s2": 6},
		}},
		compacts: []workflows.CompactResult{{Passes: 1, Removed: 16, Added: 1, FragmentsBefore: 16, Fragments: 1, Rows: 500, Version: 10}},
		cleanup:  workflows.CleanupResult{Removed: 4, Held: []string{"tag v1"}},
		sweeps:   []workflows.SweepResult{{Deleted: 12}},
		evidence: fleet.Evidence{
			Fingerprint: fleet.Fingerprint{Version: 10}, Rows: 500, Fragments: 1, Bytes: 1000,
			Shards: []fleet.ShardEvidence{{ID: "s1", Mark: 10}, {ID: "s2", Mark: 6}}, DistinctKeys: -1, VerifiedAt: 5,
		},
		drop: workflows.DropResult{LastWrite: 1},
		fail: map[string]error{}, failOnce: map[string]error{}, queues: map[string]string{},
	}
}

// next takes the next of some answers; the last one stays.
func next[T any](answers *[]T) T {
	first := (*answers)[0]
	if len(*answers) > 1 {
		*answers = (*answers)[1:]
	}
	return first
}

func (u *upkept) call(name string) error {
	u.called = append(u.called, name)
	if err := u.failOnce[name]; err != nil {
		delete(u.failOnce, name)
		return err
	}
	return u.fail[name]
}

func (u *upkept) activities() map[string]any {
	return map[string]any{
		workflows.PrepareName: func(context.Context, workflows.PrepareInput) (workflows.Prepared, error) {
			return u.prepared, u.call(workflows.PrepareName)
		},
		workflows.MergeWALName: func(_ context.Context, in workflows.MergeInput) (workflows.MergeResult, error) {
			u.mergeIn = append(u.mergeIn, in)
			if err := u.call(workflows.MergeWALName); err != nil {
				return workflows.MergeResult{}, err
			}
			return next(&u.merges), nil
		},
		workflows.CompactName: func(context.Context, workflows.CompactInput) (workflows.CompactResult, error) {
			if err := u.call(workflows.CompactName); err != nil {
				return workflows.CompactResult{}, err
			}
			if u.compacted != nil {
				u.compacted <- struct{}{}
			}
			return next(&u.compacts), nil
		},
		workflows.CleanupVersionsName: func(context.Context, workflows.CleanupInput) (workflows.CleanupResult, error) {
			return u.cleanup, u.call(workflows.CleanupVersionsName)
		},
		workflows.SweepGenerationsName: func(context.Context, workflows.SweepInput) (workflows.SweepResult, error) {
			if err := u.call(workflows.SweepGenerationsName); err != nil {
				return workflows.SweepResult{}, err
			}
			return next(&u.sweeps), nil
		},
		workflows.SealShardName: func(context.Context, workflows.SealInput) (workflows.SealResult, error) {
			return u.seal, u.call(workflows.SealShardName)
		},
		workflows.AcceptShardsName: func(_ context.Context, in workflows.AcceptInput) (workflows.AcceptResult, error) {
			u.acceptIn = in
			return u.accept, u.call(workflows.AcceptShardsName)
		},
		workflows.VerifyName: func(context.Context, workflows.VerifyInput) (fleet.Evidence, error) {
			return u.evidence, u.call(workflows.VerifyName)
		},
		workflows.DropRowName: func(_ context.Context, in workflows.DropInput) (workflows.DropResult, error) {
			u.dropIn = in
			return u.drop, u.call(workflows.DropRowName)
		},
		workflows.WakeName: func(context.Context, workflows.MaintenanceArgs) (workflows.WakeResult, error) {
			return u.wake, u.call(workflows.WakeName)
		},
		workflows.RefreshRowName: func(context.Context, workflows.Target) (workflows.RefreshRowResult, error) {
			return u.refresh, u.call(workflows.RefreshRowName)
		},
		workflows.RecordMaintenanceName: func(_ context.Context, in workflows.MaintenanceRecord) error {
			if err := u.call(workflows.RecordMaintenanceName); err != nil {
				return err
			}
			u.recorded = append(u.recorded, in)
			return nil
		},
		workflows.UpkeepName: func(context.Context, workflows.TablesArgs) (workflows.Upkeep, error) {
			return workflows.Upkeep{StatsVersion: 9, Tables: []workflows.TableUpkeep{{Table: "_stats.rollout.lance", Removed: 3}}}, u.call(workflows.UpkeepName)
		},
		workflows.RecordUpkeepName: func(_ context.Context, in workflows.UpkeepRecord) (workflows.TablesResult, error) {
			return workflows.TablesResult{Outcome: workflows.OutcomeDone, Sentence: in.Error}, u.call(workflows.RecordUpkeepName)
		},
	}
}

// upkeepEnv is a test environment with the maintenance workflows.
type upkeepEnv struct {
	*testsuite.TestWorkflowEnvironment
	t       *testing.T
	outcome string
	world   *upkept
}

func newUpkeepEnv(t *testing.T, u *upkept) *upkeepEnv {
	t.Helper()
	return newEnvOf(t, u, u.activities())
}

func newEnvOf(t *testing.T, u *upkept, activities map[string]any) *upkeepEnv {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	e := &upkeepEnv{TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment(), t: t, world: u}
	registerMaintenanceWorkflows(e)
	for name, a := range activities {
		e.RegisterActivityWithOptions(a, activity.RegisterOptions{Name: name})
	}
	e.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, _ converter.EncodedValues) {
		u.queues[info.ActivityType.Name] = info.TaskQueue
	})
	e.SetOnTimerScheduledListener(func(_ string, d time.Duration) { u.waited = append(u.waited, d) })
	e.OnUpsertTypedSearchAttributes(mock.MatchedBy(func(set temporal.SearchAttributes) bool {
		e.outcome, _ = set.GetKeyword(temporal.NewSearchAttributeKeyKeyword(workflows.AttrOutcome))
		return true
	})).Return(nil)
	return e
}

func registerMaintenanceWorkflows(r interface {
	RegisterWorkflowWithOptions(w any, o workflow.RegisterOptions)
}) {
	for name, w := range map[string]any{
		workflows.OptimizeWorkflowName: workflows.OptimizeWorkflow,
		workflows.RetireWorkflowName:   workflows.RetireWorkflow,
		workflows.SealWorkflowName:     workflows.SealWorkflow,
		workflows.AcceptWorkflowName:   workflows.AcceptWorkflow,
		workflows.WakeWorkflowName:     workflows.WakeWorkflow,
		workflows.TablesWorkflowName:   workflows.TablesWorkflow,
	} {
		r.RegisterWorkflowWithOptions(w, workflow.RegisterOptions{Name: name})
	}
}

func upkeepArgs() workflows.MaintenanceArgs {
	return workflows.MaintenanceArgs{Fleet: "default", FleetID: "fleet", ID: exp1}
}

// run runs one to its end.
func (e *upkeepEnv) run(name string, args workflows.MaintenanceArgs) (workflows.MaintenanceResult, error) {
	e.t.Helper()
	e.ExecuteWorkflow(name, args)
	require.True(e.t, e.IsWorkflowCompleted())
	var result workflows.MaintenanceResult
	if err := e.GetWorkflowError(); err != nil {
		return result, err
	}
	require.NoError(e.t, e.GetWorkflowResult(&result))
	return result, nil
}

func retire(t *testing.T, u *upkept) (workflows.MaintenanceResult, *upkeepEnv, error) {
	t.Helper()
	env := newUpkeepEnv(t, u)
	result, err := env.run(workflows.RetireWorkflowName, upkeepArgs())
	return result, env, err
}

func final(class string) error {
	return temporal.NewNonRetryableApplicationError("it broke", class, nil)
}

func TestARetirementMergesCompactsVerifiesAndOnlyThenDrops(t *testing.T) {
	u := cold()

	result, env, err := retire(t, u)

	require.NoError(t, err)
	require.Equal(t, []string{
		workflows.PrepareName, workflows.MergeWALName, workflows.CompactName, workflows.CleanupVersionsName,
		workflows.SweepGenerationsName, workflows.VerifyName, workflows.DropRowName, workflows.RecordMaintenanceName,
	}, u.called)
	require.Equal(t, workflows.OutcomeDone, result.Outcome)
	require.Equal(t, workflows.OutcomeDone, env.outcome)
	require.Equal(t, u.evidence, u.dropIn.Evidence, "what was verified is what is dropped")
	require.Equal(t, []time.Duration{5 * time.Minute}, u.waited, "the grace of what was merged")
	require.Equal(t, map[string]uint64{"s1": 4}, u.mergeIn[0].Marks, "as the journal remembers them")
}

func TestARetirementTellsItsStory(t *testing.T) {
	u := cold()

	result, _, err := retire(t, u)

	require.NoError(t, err)
	require.Equal(t, "sealed 1 shard with 3 stranded rows of its dead writer, merged 12 generations of 2 shards (500 rows); "+
		"compacted 16 fragments into 1 (500 rows); removed 4 versions older than 24 h, others held by tag v1; "+
		"swept 12 folders of merged generations; verified: nothing pending in 2 shards, 500 rows in 1 fragment, version 10; "+
		"retired, last written 1970 Jan 1 00:00 UTC", result.Sentence)
	var told []string
	for _, s := range result.Steps {
		told = append(told, s.Action+" "+s.Outcome)
	}
	require.Equal(t, []string{"merge_wal done", "compact done", "cleanup done", "sweep done", "verify done", "drop done"}, told)
	require.Equal(t, int64(7), result.Before.Version)
	require.Equal(t, int64(12), result.Before.Pending)
	require.Equal(t, int64(10), result.After.Version)
	require.Zero(t, result.After.Pending)
	require.Equal(t, map[string]uint64{"s1": 10, "s2": 6}, result.After.Marks)
	require.Equal(t, result, u.recorded[0].Result)
}

func TestHeavyStepsStandInQueuesOfTheirOwn(t *testing.T) {
	u := cold()
	_, _, err := retire(t, u)
	require.NoError(t, err)
	names := workflows.Names{Fleet: "default"}
	require.Equal(t, names.MergeQueue(), u.queues[workflows.MergeWALName])
	require.Equal(t, names.CompactQueue(), u.queues[workflows.CompactName])
	require.Equal(t, names.CompactQueue(), u.queues[workflows.CleanupVersionsName])
	require.Equal(t, names.CheckQueue(), u.queues[workflows.SweepGenerationsName])
	require.Equal(t, names.CheckQueue(), u.queues[workflows.VerifyName])
	for _, light := range []string{workflows.PrepareName, workflows.DropRowName, workflows.RecordMaintenanceName} {
		require.Equal(t, names.MaintenanceQueue(), u.queues[light])
	}
	require.Len(t, slices.Compact(slices.Sorted(slices.Values([]string{
		names.ScanQueue(), names.MaintenanceQueue(), names.MergeQueue(), names.CompactQueue(), names.CheckQueue(), names.TablesQueue(),
	}))), 6)
}

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

func TestEvidenceThatIsNotCleanNeverReachesTheDrop(t *testing.T) {
	for name, dirty := range map[string]func(*fleet.Evidence){
		"pending":  func(e *fleet.Evidence) { e.Pending = 1 },
		"stranded": func(e *fleet.Evidence) { e.Stranded = 2 },
		"unknown":  func(e *fleet.Evidence) { e.Unknown = 3 },
		"blocking": func(e *fleet.Evidence) { e.Blocking = []string{"shard s1 is sealed"} },
	} {
		t.Run(name, func(t *testing.T) {
			u := cold()
			dirty(&u.evidence)

			result, _, err := retire(t, u)

			require.NoError(t, err)
			require.Equal(t, workflows.OutcomeRefused, result.Outcome)
			require.NotContains(t, u.called, workflows.DropRowName)
			require.True(t, strings.HasPrefix(result.Sentence, "not retired: "), result.Sentence)
			require.Equal(t, u.evidence.Stranded, result.After.Stranded, "the journal remembers what was found")
			require.Equal(t, u.evidence.Unknown, result.After.Unknown)
		})
	}
}

func TestAWriteBetweenVerifyAndDropLeavesItHot(t *testing.T) {
	u := cold()
	u.drop = workflows.DropResult{Refused: "it moved since it was verified: wal tail"}

	result, env, err := retire(t, u)

	require.NoError(t, err)
	require.Equal(t, workflows.OutcomeRefused, result.Outcome)
	require.Equal(t, "not retired: it moved since it was verified: wal tail", result.Sentence)
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

func TestADropThatFailsForGoodIsAFailedRetirement(t *testing.T) {
	u := cold()
	u.fail[workflows.DropRowName] = final("denied")
	_, env, err := retire(t, u)
	require.Equal(t, "denied", workflows.ErrorClass(err))
	require.Equal(t, workflows.OutcomeFailed, env.outcome)
	require.Equal(t, workflows.OutcomeFailed, u.recorded[0].Result.Steps[5].Outcome)
}

func TestAConflictWithAWriterIsTriedAgain(t *testing.T) {
	u := cold()
	conflict := temporal.NewApplicationErrorWithOptions("somebody was faster", "conflict", temporal.ApplicationErrorOptions{NextRetryDelay: 2 * time.Second})
	u.failOnce[workflows.MergeWALName], u.failOnce[workflows.CompactName] = conflict, conflict

	result, _, err := retire(t, u)

	require.NoError(t, err)
	require.Equal(t, workflows.OutcomeDone, result.Outcome)
	require.Len(t, u.mergeIn, 2)
}

func TestAConflictThatNeverEndsFailsWithItsClassAndBacksOff(t *testing.T) {
	u := cold()
	u.fail[workflows.CompactName] = temporal.NewApplicationError("somebody was faster", "conflict")

	_, _, err := retire(t, u)

	require.Equal(t, "conflict", workflows.ErrorClass(err))
	require.Equal(t, "conflict", u.recorded[0].ErrorClass)
	require.Equal(t, 5, count(u.called, workflows.CompactName))
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

func TestAnEmptyPlanIsRememberedWithItsVersionAndOptions(t *testing.T) {
	u := cold()
	u.compacts = []workflows.CompactResult{{Version: 9, Fragments: 16, FragmentsBefore: 16}}

	result, err := newUpkeepEnv(t, u).run(workflows.OptimizeWorkflowName, upkeepArgs())

	require.NoError(t, err)
	require.Equal(t, int64(9), result.After.NoOpVersion)
	require.Equal(t, "options", result.After.NoOpOptions)
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

func TestWithoutAPolicyForItNothingIsCompactedOrCleanedUp(t *testing.T) {
	u := cold()
	u.prepared.Limits.CompactFragments, u.prepared.Limits.CleanupOlderThan = 0, 0

	result, _, err := retire(t, u)

	require.NoError(t, err)
	require.Equal(t, workflows.OutcomeDone, result.Outcome)
	require.NotContains(t, u.called, workflows.CompactName)
	require.NotContains(t, u.called, workflows.CleanupVersionsName)
}

func TestFoldersWhoseGraceIsNotOverAreWaitedFor(t *testing.T) {
	u := cold()
	env := newUpkeepEnv(t, u)
	env.SetStartTime(time.UnixMilli(0))
	grace := 5 * time.Minute
	u.sweeps = []workflows.SweepResult{{Deleted: 1, Kept: 2, NextDue: (grace + 20*time.Minute).Milliseconds()}, {Deleted: 2}}

	_, err := env.run(workflows.RetireWorkflowName, upkeepArgs())

	require.NoError(t, err)
	require.Len(t, u.waited, 2)
	require.InDelta(t, 20*time.Minute, u.waited[1], float64(time.Second))
	require.Equal(t, 2, count(u.called, workflows.SweepGenerationsName))
}

func TestAFolderThatNobodyMayDeleteSoonHoldsNothingUp(t *testing.T) {
	u := cold()
	u.merges[0].Drained = 0
	u.sweeps = []workflows.SweepResult{{Kept: 2, NextDue: time.Now().Add(30 * 24 * time.Hour).UnixMilli()}}
	_, _, err := retire(t, u)
	require.NoError(t, err)
	require.Empty(t, u.waited)
	require.Equal(t, 1, count(u.called, workflows.SweepGenerationsName))
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

func TestOptimizingRefreshesTheRowAndKeepsWhatALookCannotTell(t *testing.T) {
	u := cold()
	u.refresh.Facts = fleet.UnknownFacts()
	u.refresh.Facts.Version, u.refresh.Facts.Fragments = 11, 1
	u.merges[0].Stranded, u.merges[0].Unknown = 0, 2

	result, err := newUpkeepEnv(t, u).run(workflows.OptimizeWorkflowName, upkeepArgs())

	require.NoError(t, err)
	require.Equal(t, workflows.OutcomeDone, result.Outcome)
	require.Equal(t, int64(11), result.After.Version)
	require.Equal(t, int64(2), result.After.Unknown)
	require.NotContains(t, u.called, workflows.DropRowName)
	require.NotContains(t, u.called, workflows.VerifyName)
}

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

func count(all []string, one string) int {
	n := 0
	for _, s := range all {
		if s == one {
			n++
		}
	}
	return n
}
