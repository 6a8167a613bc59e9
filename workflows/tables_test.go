package workflows_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"lancefleet/workflows"
)

// runTables runs a pass whose activity answers so, and returns what was recorded.
func runTables(t *testing.T, u workflows.Upkeep, failure error, result workflows.TablesResult) (*upkeepEnv, []workflows.UpkeepRecord, error) {
	t.Helper()
	env := newTablesEnv(t)
	var recorded []workflows.UpkeepRecord
	tries := 0
	env.RegisterActivityWithOptions(func(context.Context, workflows.TablesArgs) (workflows.Upkeep, error) {
		tries++
		return u, failure
	}, activity.RegisterOptions{Name: workflows.UpkeepName})
	env.RegisterActivityWithOptions(func(_ context.Context, in workflows.UpkeepRecord) (workflows.TablesResult, error) {
		recorded = append(recorded, in)
		return result, nil
	}, activity.RegisterOptions{Name: workflows.RecordUpkeepName})
	env.ExecuteWorkflow(workflows.TablesWorkflowName, workflows.TablesArgs{Fleet: "default", FleetID: "fleet"})
	require.Equal(t, 1, tries)
	return env, recorded, env.GetWorkflowError()
}

// newTablesEnv has no activities of its own.
func newTablesEnv(t *testing.T) *upkeepEnv {
	t.Helper()
	return newEnvOf(t, cold(), nil)
}

func TestAPassOverOurTablesStandsInItsOwnQueueAndIsRecorded(t *testing.T) {
	u := workflows.Upkeep{StatsVersion: 9, Tables: []workflows.TableUpkeep{{Table: "_stats", Removed: 3}}}
	env, recorded, err := runTables(t, u, nil, workflows.TablesResult{Outcome: workflows.OutcomeDone})
	require.NoError(t, err)
	require.Equal(t, u, recorded[0].Upkeep)
	names := workflows.Names{Fleet: "default"}
	require.Equal(t, names.TablesQueue(), env.world.queues[workflows.UpkeepName])
	require.Equal(t, names.MaintenanceQueue(), env.world.queues[workflows.RecordUpkeepName], "a pass that hangs does not keep its record waiting")
	require.Equal(t, workflows.OutcomeDone, env.outcome)
}

func TestAPassThatFailsIsRecordedAndFails(t *testing.T) {
	for name, c := range map[string]struct {
		failure error
		result  workflows.TablesResult
	}{
		"one table":      {nil, workflows.TablesResult{Outcome: workflows.OutcomeFailed, Sentence: "disk is full", ErrorClass: "denied"}},
		"without result": {temporal.NewApplicationError("disk is full", "denied"), workflows.TablesResult{Outcome: workflows.OutcomeFailed}},
	} {
		t.Run(name, func(t *testing.T) {
			env, recorded, err := runTables(t, workflows.Upkeep{}, c.failure, c.result)
			require.Equal(t, "denied", workflows.ErrorClass(err))
			require.ErrorContains(t, err, "disk is full")
			require.Len(t, recorded, 1)
			if c.failure != nil {
				require.Equal(t, []any{"disk is full", "denied"}, []any{recorded[0].Error, recorded[0].ErrorClass})
			}
			require.Equal(t, workflows.OutcomeFailed, env.outcome)
		})
	}
}

func TestACancelledPassIsRecorded(t *testing.T) {
	env := newTablesEnv(t)
	env.RegisterActivityWithOptions(func(context.Context, workflows.TablesArgs) (workflows.Upkeep, error) {
		return workflows.Upkeep{}, temporal.NewCanceledError()
	}, activity.RegisterOptions{Name: workflows.UpkeepName})
	env.RegisterActivityWithOptions(func(context.Context, workflows.UpkeepRecord) (workflows.TablesResult, error) {
		return workflows.TablesResult{Outcome: workflows.OutcomeFailed}, nil
	}, activity.RegisterOptions{Name: workflows.RecordUpkeepName})
	env.OnActivity(workflows.RecordUpkeepName, mock.Anything, mock.Anything).Return(workflows.TablesResult{Outcome: workflows.OutcomeFailed}, nil).Once()
	env.RegisterDelayedCallback(env.CancelWorkflow, 0)
	env.ExecuteWorkflow(workflows.TablesWorkflowName, workflows.TablesArgs{Fleet: "default", FleetID: "fleet"})
	require.True(t, temporal.IsCanceledError(env.GetWorkflowError()), "%v", env.GetWorkflowError())
	env.AssertExpectations(t)
}
