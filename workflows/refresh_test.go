package workflows_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"lancefleet/fleet"
	"lancefleet/workflows"
)

func TestARefreshReportsEachExperimentThatGaveNoAnswer(t *testing.T) {
	env := newEnv(t)
	version := uint64(3)
	env.OnActivity(workflows.RefreshRowsName, mock.Anything, mock.Anything).Return(
		workflows.RefreshResult{Version: &version, Failed: map[string]string{"rollout:b": "manifest is truncated"}}, nil)

	env.ExecuteWorkflow(workflows.RefreshWorkflowName, workflows.RefreshArgs{IDs: []fleet.ID{
		{Kind: fleet.Rollout, Name: "a"}, {Kind: fleet.Rollout, Name: "b"},
	}})

	require.NoError(t, env.GetWorkflowError())
	var result workflows.RefreshResult
	require.NoError(t, env.GetWorkflowResult(&result))
	require.Equal(t, &version, result.Version)
	require.Equal(t, "manifest is truncated", result.Failed["rollout:b"])
	require.Equal(t, workflows.OutcomePartial, env.outcome)
}

func TestARefreshThatCannotBeStoredFails(t *testing.T) {
	env := newEnv(t)
	env.OnActivity(workflows.RefreshRowsName, mock.Anything, mock.Anything).Return(
		workflows.RefreshResult{}, temporal.NewNonRetryableApplicationError("store refreshed rows", "denied", nil))

	env.ExecuteWorkflow(workflows.RefreshWorkflowName, workflows.RefreshArgs{})

	require.Equal(t, "denied", workflows.ErrorClass(env.GetWorkflowError()))
	require.ErrorContains(t, env.GetWorkflowError(), "refresh: store refreshed rows")
	require.Equal(t, workflows.OutcomeFailed, env.outcome)
}

func TestAnOperatorsActionReachesTheJournalAsItWasGiven(t *testing.T) {
	env := newEnv(t)
	entry := fleet.Action{ID: "id", At: 5, Kind: "pause", Outcome: "done", By: "alice", Why: "disk is full"}
	var got fleet.Action
	env.OnActivity(workflows.RecordActionName, mock.Anything, mock.Anything).Return(
		func(_ context.Context, a fleet.Action) error {
			got = a
			return nil
		})

	env.ExecuteWorkflow(workflows.RecordWorkflowName, entry)

	require.NoError(t, env.GetWorkflowError())
	require.Equal(t, entry, got)
	require.Equal(t, workflows.OutcomeDone, env.outcome)
}

func TestAnActionThatCannotBeRecordedFails(t *testing.T) {
	env := newEnv(t)
	env.OnActivity(workflows.RecordActionName, mock.Anything, mock.Anything).Return(temporal.NewNonRetryableApplicationError("disk is full", "denied", nil))
	env.ExecuteWorkflow(workflows.RecordWorkflowName, fleet.Action{Kind: "pause"})
	require.ErrorContains(t, env.GetWorkflowError(), "record pause: disk is full")
	require.Equal(t, workflows.OutcomeFailed, env.outcome)
}
