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

// swept runs a retirement that drained nothing itself.
func swept(t *testing.T, sweeps ...workflows.SweepResult) (*upkept, workflows.MaintenanceResult) {
	t.Helper()
	u := cold()
	u.merges[0].Drained = 0
	u.sweeps = sweeps
	env := newUpkeepEnv(t, u)
	env.SetStartTime(time.UnixMilli(hour))
	result, err := env.run(workflows.RetireWorkflowName, upkeepArgs())
	require.NoError(t, err)
	return u, result
}

const hour = 3_600_000 // ms

func TestSweepingEndsAfterThreeTriesAndTellsWhatStays(t *testing.T) {
	u, result := swept(t,
		workflows.SweepResult{Deleted: 1, Kept: 9, NextDue: hour + 10*60_000},
		workflows.SweepResult{Deleted: 2, Kept: 8, NextDue: hour + 20*60_000},
		workflows.SweepResult{Deleted: 3, Kept: 7, NextDue: hour + 30*60_000},
		workflows.SweepResult{Deleted: 7},
	)
	require.Equal(t, 3, count(u.called, workflows.SweepGenerationsName))
	require.Equal(t, "swept 6 folders of merged generations, 7 stay", result.Steps[3].Sentence)
	require.Equal(t, workflows.OutcomeDone, result.Steps[3].Outcome)
	require.Len(t, u.waited, 2)
	require.InDelta(t, 10*time.Minute, u.waited[0], float64(time.Second))
	require.InDelta(t, 10*time.Minute, u.waited[1], float64(time.Second))
	require.Equal(t, workflows.SweepInput{Target: u.prepared.Target, Limits: u.prepared.Limits}, u.asked[workflows.SweepGenerationsName])
}

func TestWhereWaitingDoesNotHelpNothingIsWaitedFor(t *testing.T) {
	u, result := swept(t, workflows.SweepResult{Kept: 2})
	require.Empty(t, u.waited)
	require.Equal(t, 1, count(u.called, workflows.SweepGenerationsName))
	require.Equal(t, []any{"swept 0 folders of merged generations, 2 stay", workflows.OutcomeNoop}, []any{result.Steps[3].Sentence, result.Steps[3].Outcome})
}

func TestAFolderThatIsDueAlreadyIsTriedAgainInAMinute(t *testing.T) {
	u, _ := swept(t, workflows.SweepResult{Kept: 1, NextDue: 1}, workflows.SweepResult{Deleted: 1})
	require.Equal(t, []time.Duration{time.Minute}, u.waited)
}

func TestAFolderThatIsDueWithinTheLongestGraceIsWaitedForAndOneBeyondIsNot(t *testing.T) {
	u, _ := swept(t, workflows.SweepResult{Kept: 1, NextDue: 2 * hour}, workflows.SweepResult{Deleted: 1})
	require.Len(t, u.waited, 1)
	u, _ = swept(t, workflows.SweepResult{Kept: 1, NextDue: 2*hour + 60_000})
	require.Empty(t, u.waited)
}

func TestWithoutAGraceNothingIsWaitedFor(t *testing.T) {
	u := cold()
	u.prepared.Limits.Grace = 0
	_, _, err := retire(t, u)
	require.NoError(t, err)
	require.Empty(t, u.waited)
}
