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
