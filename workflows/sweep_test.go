package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/workflows"
)

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
