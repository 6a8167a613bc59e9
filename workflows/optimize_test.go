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

func TestOptimizingDoesItsStepsInThisOrder(t *testing.T) {
	u := cold()
	_, err := newUpkeepEnv(t, u).run(workflows.OptimizeWorkflowName, upkeepArgs())
	require.NoError(t, err)
	require.Equal(t, []string{
		workflows.PrepareName, workflows.MergeWALName, workflows.CompactName, workflows.CleanupVersionsName,
		workflows.SweepGenerationsName, workflows.RefreshRowName, workflows.RecordMaintenanceName,
	}, u.called)
}

func TestALaterLookTellsWhatItKnowsAndTheRestIsRemembered(t *testing.T) {
	for name, c := range map[string]struct {
		stranded, unknown int64 // by the look
		want              []int64
	}{
		"it classified the tails":    {5, 6, []int64{5, 6}},
		"it did not":                 {-1, -1, []int64{1, 2}},
		"it knows one of both":       {0, -1, []int64{1, 2}},
		"it knows the other of both": {-1, 0, []int64{1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			u := cold()
			u.merges[0].Stranded, u.merges[0].Unknown = 1, 2
			u.refresh.Facts = fleet.UnknownFacts()
			u.refresh.Facts.Stranded, u.refresh.Facts.Unknown = c.stranded, c.unknown
			result, err := newUpkeepEnv(t, u).run(workflows.OptimizeWorkflowName, upkeepArgs())
			require.NoError(t, err)
			require.Equal(t, c.want, []int64{result.After.Stranded, result.After.Unknown})
		})
	}
}

func TestThatSomebodyElseDrainedIsNotForgottenByALaterLook(t *testing.T) {
	for _, c := range []struct{ before, look, want bool }{{false, false, false}, {true, false, true}, {false, true, true}} {
		u := cold()
		u.prepared.Facts.ForeignDrain, u.refresh.Facts.ForeignDrain = c.before, c.look
		result, err := newUpkeepEnv(t, u).run(workflows.OptimizeWorkflowName, upkeepArgs())
		require.NoError(t, err)
		require.Equal(t, c.want, result.After.ForeignDrain)
	}
}
