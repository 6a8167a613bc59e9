package workflows_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"lancefleet/fleet"
	"lancefleet/workflows"
)

func TestHintsAreTakenInByOneActivity(t *testing.T) {
	env := newEnv(t)
	args := workflows.HintArgs{Fleet: "default", FleetID: "id", IDs: []fleet.ID{{Kind: fleet.Rollout, Name: "a"}, {Kind: fleet.Table, Name: "b"}}}
	var got []workflows.HintArgs
	env.OnActivity(workflows.TakeHintsName, mock.Anything, mock.Anything).Return(
		func(_ context.Context, a workflows.HintArgs) (workflows.HintResult, error) {
			got = append(got, a)
			return workflows.HintResult{Waiting: 1, Retired: 1, Returned: 1}, nil
		})

	env.ExecuteWorkflow(workflows.HintWorkflowName, args)

	require.NoError(t, env.GetWorkflowError())
	var result workflows.HintResult
	require.NoError(t, env.GetWorkflowResult(&result))
	require.Equal(t, workflows.HintResult{Waiting: 1, Retired: 1, Returned: 1}, result)
	require.Equal(t, []workflows.HintArgs{args}, got)
	require.Equal(t, workflows.OutcomeDone, env.outcome)
}

func TestHintsThatCannotBeTakenFailTheRunLoudly(t *testing.T) {
	env := newEnv(t)
	env.OnActivity(workflows.TakeHintsName, mock.Anything, mock.Anything).Return(
		workflows.HintResult{}, temporal.NewNonRetryableApplicationError("stage hints", "denied", nil))

	env.ExecuteWorkflow(workflows.HintWorkflowName, workflows.HintArgs{})

	require.Equal(t, "denied", workflows.ErrorClass(env.GetWorkflowError()))
	require.ErrorContains(t, env.GetWorkflowError(), "take hints: stage hints")
	require.Equal(t, workflows.OutcomeFailed, env.outcome)
}

func TestARoundBeginsWithThePagesThatEventsNamed(t *testing.T) {
	env := newEnv(t)
	begun := round(50)
	begun.First, begun.Hints = []int{3, 1}, "key"
	env.begin(begun)
	var mu sync.Mutex
	var order []int
	env.observe(func(p workflows.Page) (workflows.PageResult, error) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, p.Number)
		require.Equal(t, "key", p.Round.Hints)
		require.Empty(t, p.Round.First, "it does not travel with each page")
		require.Equal(t, 10*p.Number, p.Offset)
		return workflows.PageResult{Page: p.Number, Skipped: p.Count}, nil
	})
	env.commit(nil, workflows.CommitResult{})
	env.record()
	a := args(10)
	a.MaxPagesAtOnce = 1

	env.run(a)

	require.Equal(t, []int{1, 3, 0, 2, 4}, order)
}
