package main

import (
	"bytes"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
	"lancefleet/web"
	"lancefleet/workflows"
)

func TestWaitingTellsEachStepOnceAndWhatItWaitsFor(t *testing.T) {
	s := newMaintenanceServer(t)
	s.ended.MaintenanceResult = workflows.MaintenanceResult{ID: "rollout:x", Action: "retire", Outcome: workflows.OutcomeDone, Before: fleet.UnknownFacts(), After: fleet.UnknownFacts()}
	merged := workflows.StepProgress{Action: "merge_wal", Outcome: "done", Sentence: "merged 3 generations"}
	compacted := workflows.StepProgress{Action: "compact", Outcome: "noop", Sentence: "nothing to compact"}
	waits := "Waiting until 12:03 UTC (5 min): readers of the merged generations may still be busy."
	far := []*workflows.MaintenanceProgress{
		{Now: "Merging."}, nil, {Now: waits, Steps: []workflows.StepProgress{merged, compacted}}, {Now: waits, Steps: []workflows.StepProgress{merged, compacted}},
	}
	s.polls, s.far = len(far), far

	_, errs, exit := s.run(t, "retire", "x", "--wait")

	require.Zero(t, exit)
	require.Contains(t, errs, "  Merging.\n  merge_wal done: merged 3 generations\n  compact noop: nothing to compact\n  "+waits+"\n")
	require.Equal(t, 1, bytes.Count([]byte(errs), []byte(waits)))
	require.Equal(t, "GET /api/v1/maintenance/experiment%2Frollout:x/r?wait_secs=2", s.asked[1], "who looks on is told soon")

	s.polls, s.far = 2, far[2:]
	_, errs, exit = s.run(t, "retire", "x", "--wait", "--json")
	require.Zero(t, exit)
	require.Empty(t, errs)
}

func TestAHistorySaysEachThingOnceAndHowFarARunIs(t *testing.T) {
	entry := fleet.Action{At: time.Now().UnixMilli(), Kind: "retire", Outcome: "refused", Why: "finished: not retired: it moved", Error: "not retired: it moved"}
	h := web.History{ID: "rollout:x", Actions: []web.Done{{Action: entry}}, Running: &web.Running{
		Action: "retire", RunID: "r", StartedAt: time.Now().UnixMilli(),
		Progress: &workflows.MaintenanceProgress{Now: "Waiting until 12:03 UTC.", Steps: []workflows.StepProgress{{Action: "merge_wal", Outcome: "done", Sentence: "merged"}}},
	}}
	out, _, exit, _ := command(t, http.StatusOK, h, "history", "x")
	require.Zero(t, exit)
	require.Equal(t, 1, bytes.Count([]byte(out), []byte("it moved")), out)
	require.Contains(t, out, "  merge_wal done: merged\n  Waiting until 12:03 UTC.\n")
}
