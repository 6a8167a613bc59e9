package web

import (
	"testing"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
)

func TestATaskIsItsRunAndNotItsLastStep(t *testing.T) {
	store := oneRow(120)
	of := func(id, kind, outcome string, at, took int64) fleet.Action {
		return fleet.Action{ID: id, At: testNow.UnixMilli() - at, DurationMS: took, Kind: kind, Target: "rollout:run-1", Outcome: outcome, RunID: "r1"}
	}
	own := of("own", fleet.ActOptimize, fleet.OutcomeRefused, 0, 60_000)
	own.Error = "a mark fell"
	store.actions = []fleet.Action{own, of("c", fleet.ActCompact, fleet.OutcomeDone, 1000, 5000), of("m", fleet.ActMergeWAL, fleet.OutcomeRefused, 6000, 5000)}
	b := newBench(t, store)
	task := decode[Task](t, b.get("/api/v1/tasks/r1"), 200)
	require.Equal(t, fleet.ActOptimize, task.Kind)
	require.Equal(t, "failed", task.State, "the compaction was done, the run was refused")
	require.Equal(t, "a mark fell", task.Error)
}

func TestATaskThatWasCancelledIsNotDone(t *testing.T) {
	task := taskOf(&fleet.Action{ID: "1", Kind: fleet.ActOptimize, Target: "rollout:a", Outcome: outcomeCancelled, Error: "cancelled; it stays"})
	require.Equal(t, "failed", task.State)
	require.Equal(t, "cancelled; it stays", task.Error)
}

func TestAPageOfTasksMayBeginAnywhere(t *testing.T) {
	b := guarded(t)
	require.Empty(t, decode[TaskList](t, b.get("/api/v1/tasks?offset=9223372036854775807&limit=500"), 200).Tasks)
	require.Len(t, decode[TaskList](t, b.get("/api/v1/tasks?offset=-5"), 200).Tasks, 1)
}
