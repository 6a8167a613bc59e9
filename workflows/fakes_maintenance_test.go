package workflows_test

import (
	"context"
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
	asked    map[string]any // activity -> what it was asked last
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
		fail: map[string]error{}, failOnce: map[string]error{}, queues: map[string]string{}, asked: map[string]any{},
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

func (u *upkept) call(name string, in any) error {
	u.called = append(u.called, name)
	u.asked[name] = in
	if err := u.failOnce[name]; err != nil {
		delete(u.failOnce, name)
		return err
	}
	return u.fail[name]
}

func (u *upkept) activities() map[string]any {
	return map[string]any{
		workflows.PrepareName: func(_ context.Context, in workflows.PrepareInput) (workflows.Prepared, error) {
			return u.prepared, u.call(workflows.PrepareName, in)
		},
		workflows.MergeWALName: func(_ context.Context, in workflows.MergeInput) (workflows.MergeResult, error) {
			u.mergeIn = append(u.mergeIn, in)
			if err := u.call(workflows.MergeWALName, in); err != nil {
				return workflows.MergeResult{}, err
			}
			return next(&u.merges), nil
		},
		workflows.CompactName: func(_ context.Context, in workflows.CompactInput) (workflows.CompactResult, error) {
			if err := u.call(workflows.CompactName, in); err != nil {
				return workflows.CompactResult{}, err
			}
			if u.compacted != nil {
				u.compacted <- struct{}{}
			}
			return next(&u.compacts), nil
		},
		workflows.CleanupVersionsName: func(_ context.Context, in workflows.CleanupInput) (workflows.CleanupResult, error) {
			return u.cleanup, u.call(workflows.CleanupVersionsName, in)
		},
		workflows.SweepGenerationsName: func(_ context.Context, in workflows.SweepInput) (workflows.SweepResult, error) {
			if err := u.call(workflows.SweepGenerationsName, in); err != nil {
				return workflows.SweepResult{}, err
			}
			return next(&u.sweeps), nil
		},
		workflows.SealShardName: func(_ context.Context, in workflows.SealInput) (workflows.SealResult, error) {
			return u.seal, u.call(workflows.SealShardName, in)
		},
		workflows.AcceptShardsName: func(_ context.Context, in workflows.AcceptInput) (workflows.AcceptResult, error) {
			u.acceptIn = in
			return u.accept, u.call(workflows.AcceptShardsName, in)
		},
		workflows.VerifyName: func(_ context.Context, in workflows.VerifyInput) (fleet.Evidence, error) {
			return u.evidence, u.call(workflows.VerifyName, in)
		},
		workflows.DropRowName: func(_ context.Context, in workflows.DropInput) (workflows.DropResult, error) {
			u.dropIn = in
			return u.drop, u.call(workflows.DropRowName, in)
		},
		workflows.WakeName: func(_ context.Context, in workflows.MaintenanceArgs) (workflows.WakeResult, error) {
			return u.wake, u.call(workflows.WakeName, in)
		},
		workflows.RefreshRowName: func(_ context.Context, in workflows.Target) (workflows.RefreshRowResult, error) {
			return u.refresh, u.call(workflows.RefreshRowName, in)
		},
		workflows.RecordMaintenanceName: func(_ context.Context, in workflows.MaintenanceRecord) error {
			if err := u.call(workflows.RecordMaintenanceName, in); err != nil {
				return err
			}
			u.recorded = append(u.recorded, in)
			return nil
		},
		workflows.UpkeepName: func(_ context.Context, in workflows.TablesArgs) (workflows.Upkeep, error) {
			return workflows.Upkeep{StatsVersion: 9, Tables: []workflows.TableUpkeep{{Table: "_stats.rollout.lance", Removed: 3}}}, u.call(workflows.UpkeepName, in)
		},
		workflows.RecordUpkeepName: func(_ context.Context, in workflows.UpkeepRecord) (workflows.TablesResult, error) {
			return workflows.TablesResult{Outcome: workflows.OutcomeDone, Sentence: in.Error}, u.call(workflows.RecordUpkeepName, in)
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

func count(all []string, one string) int {
	n := 0
	for _, s := range all {
		if s == one {
			n++
		}
	}
	return n
}
