package web

import (
	"testing"

	"github.com/stretchr/testify/require"

	"lancefleet/control"
	"lancefleet/fleet"
	"lancefleet/workflows"
)

func TestARunThatGoesOnSaysHowFarItIs(t *testing.T) {
	b := newBench(t, oneRow(120))
	b.temporal.maintaining = []control.Running{{ID: b.store.snapshot.Rows[0].ID, Action: "retire", WorkflowID: "experiment/rollout:run-1", RunID: "run-7"}}
	b.renew(t)
	const at = "/api/v1/maintenance/experiment%2Frollout:run-1/run-7"
	require.Nil(t, decode[MaintenanceRunning](t, b.get(at), 202).Progress, "no worker answers")

	far := workflows.MaintenanceProgress{Now: "Waiting until 12:03 UTC.", Until: 5, Steps: []workflows.StepProgress{{Action: "merge_wal", Outcome: "done"}}}
	b.temporal.progress = &far
	require.Equal(t, &far, decode[MaintenanceRunning](t, b.get(at), 202).Progress)
	require.Equal(t, &far, decode[History](t, b.get("/api/v1/experiments/run-1/history"), 200).Running.Progress)
}

func TestAnAnswerNamesItsFleet(t *testing.T) {
	b := newBench(t, oneRow(120))
	require.Equal(t, "demo", b.get("/api/v1/status").Header().Get(FleetHeader))
}

func TestWhatWasToldToBeOverIsNotShownAsRunningHoweverTemporalsListLags(t *testing.T) {
	b := newBench(t, oneRow(120))
	id := b.store.snapshot.Rows[0].ID
	b.temporal.maintaining = []control.Running{{ID: id, Action: "retire", WorkflowID: "experiment/rollout:run-1", RunID: "run-7"}}
	b.renew(t)
	state := func() State { return decode[Detail](t, b.get("/api/v1/experiments/run-1"), 200).State }
	running := func() *Running { return decode[History](t, b.get("/api/v1/experiments/run-1/history"), 200).Running }
	require.NotNil(t, running())
	require.Equal(t, Retiring, state())

	b.temporal.result = &workflows.MaintenanceResult{ID: id.String(), Action: "retire", Outcome: "refused", Before: fleet.UnknownFacts(), After: fleet.UnknownFacts()}
	decode[MaintenanceEnded](t, b.get("/api/v1/maintenance/experiment%2Frollout:run-1/run-7"), 200)
	require.Nil(t, running())
	require.Equal(t, Hot, state())
	b.renew(t)
	require.Nil(t, running(), "the list has it still")

	b.temporal.maintaining[0].RunID = "run-8"
	b.renew(t)
	require.NotNil(t, running(), "the next run is another one")
}

func TestALookAtASilentTailSaysWhetherItIsStranded(t *testing.T) {
	for name, c := range map[string]struct {
		stranded, unknown int64
		want              string
	}{
		"stranded":       {2, 0, "2 WAL entries in no generation and not in the base: stranded."},
		"accounted for":  {0, 0, "the flush cursor lags behind 2 WAL entries"},
		"nobody can say": {0, 1, "Verify tells."},
	} {
		t.Run(name, func(t *testing.T) {
			store := oneRow(300)
			row := store.snapshot.Rows[0]
			store.observe = looksLike(row, func(o *fleet.Observation) {
				o.Shards = []fleet.Shard{{ShardMark: fleet.ShardMark{ID: "a", WALNext: 3}, Status: "active", TailEntries: 2, NewestEntry: 2, NewestEntryTime: row.LastWrite}}
			})
			store.tails = tailsOf(c.stranded, c.unknown)
			d := decode[Detail](t, newBench(t, store).get("/api/v1/experiments/run-1?fresh=true"), 200)
			require.Contains(t, d.Health, c.want)
		})
	}
}
