package workflows_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
	"lancefleet/workflows"
)

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
