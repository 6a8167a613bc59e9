package workflows_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"lancefleet/workflows"
)

func TestAnEmptyPlanIsRememberedWithItsVersionAndOptions(t *testing.T) {
	u := cold()
	u.compacts = []workflows.CompactResult{{Version: 9, Fragments: 16, FragmentsBefore: 16}}

	result, err := newUpkeepEnv(t, u).run(workflows.OptimizeWorkflowName, upkeepArgs())

	require.NoError(t, err)
	require.Equal(t, int64(9), result.After.NoOpVersion)
	require.Equal(t, "options", result.After.NoOpOptions)
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
