package workflows_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"lancefleet/workflows"
)

func TestHeavyStepsStandInQueuesOfTheirOwn(t *testing.T) {
	u := cold()
	_, _, err := retire(t, u)
	require.NoError(t, err)
	names := workflows.Names{Fleet: "default"}
	require.Equal(t, names.MergeQueue(), u.queues[workflows.MergeWALName])
	require.Equal(t, names.CompactQueue(), u.queues[workflows.CompactName])
	require.Equal(t, names.CompactQueue(), u.queues[workflows.CleanupVersionsName])
	require.Equal(t, names.CheckQueue(), u.queues[workflows.SweepGenerationsName])
	require.Equal(t, names.CheckQueue(), u.queues[workflows.VerifyName])
	for _, light := range []string{workflows.PrepareName, workflows.DropRowName, workflows.RecordMaintenanceName} {
		require.Equal(t, names.MaintenanceQueue(), u.queues[light])
	}
	require.Len(t, slices.Compact(slices.Sorted(slices.Values([]string{
		names.ScanQueue(), names.MaintenanceQueue(), names.MergeQueue(), names.CompactQueue(), names.CheckQueue(), names.TablesQueue(),
	}))), 6)
}

func TestAConflictWithAWriterIsTriedAgain(t *testing.T) {
	u := cold()
	conflict := temporal.NewApplicationErrorWithOptions("somebody was faster", "conflict", temporal.ApplicationErrorOptions{NextRetryDelay: 2 * time.Second})
	u.failOnce[workflows.MergeWALName], u.failOnce[workflows.CompactName] = conflict, conflict

	result, _, err := retire(t, u)

	require.NoError(t, err)
	require.Equal(t, workflows.OutcomeDone, result.Outcome)
	require.Len(t, u.mergeIn, 2)
}

func TestAConflictThatNeverEndsFailsWithItsClassAndBacksOff(t *testing.T) {
	u := cold()
	u.fail[workflows.CompactName] = temporal.NewApplicationError("somebody was faster", "conflict")

	_, _, err := retire(t, u)

	require.Equal(t, "conflict", workflows.ErrorClass(err))
	require.Equal(t, "conflict", u.recorded[0].ErrorClass)
	require.Equal(t, 5, count(u.called, workflows.CompactName))
}
