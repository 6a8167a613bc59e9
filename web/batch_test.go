package web

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lancefleet/control"
	"lancefleet/fleet"
)

// batchStore has n experiments with many fragments, one that has nothing to do, and
// a retired one.
func batchStore(n int) *fakeStore {
	f := &fakeStore{snapshot: Snapshot{Version: 1, CommittedAt: minutesAgo(1)}, retired: []fleet.LedgerEntry{retiredOne(fleet.Table, "at-rest")}}
	for i := range n {
		r := healthy(fleet.Table, fmt.Sprintf("many-%04d", i), minutesAgo(3))
		r.FragmentCount, r.SmallFragments = 40, 40
		f.snapshot.Rows = append(f.snapshot.Rows, r)
	}
	f.snapshot.Rows = append(f.snapshot.Rows, healthy(fleet.Table, "tidy", minutesAgo(3)))
	f.snapshot.Rows[n].FragmentCount, f.snapshot.Rows[n].SmallFragments = 1, 0
	return f
}

func TestABatchSaysWhatItWouldDoAndThenDoesThat(t *testing.T) {
	b := newBench(t, batchStore(3))
	ask := `{"action":"optimize","ids":["table:many-0000","table:many-0001","table:many-0001","table:tidy","table:at-rest","table:nobody"],"why":"before the demo","by":"ada"}`
	plan := decode[BatchPlan](t, b.do("POST", "/api/v1/batches?dry_run=true", ask, "Content-Type", "application/json"), 200)
	require.Equal(t, 5, plan.Asked, "one was named twice")
	require.Equal(t, 2, plan.Start)
	require.Equal(t, 3, plan.Refused)
	require.False(t, plan.Confirm)
	require.Len(t, plan.Causes, 3)
	require.Empty(t, b.temporal.said(), "a dry run starts nothing")

	started := decode[BatchStarted](t, b.do("POST", "/api/v1/batches", ask, "Content-Type", "application/json"), 202)
	require.Equal(t, 2, started.Started)
	require.Regexp(t, `^b[0-9a-f]{12}$`, started.ID)
	require.Equal(t, "/api/v1/batches/"+started.ID, started.Location)
	said := strings.Join(b.temporal.said(), "\n")
	require.Equal(t, 2, strings.Count(said, "optimize table:many-"))
	require.Contains(t, said, "by ada: batch "+started.ID+": before the demo")
}

func TestABatchIsFollowedByItsID(t *testing.T) {
	s := batchStore(3)
	s.actions = []fleet.Action{
		{ID: "1", At: minutesAgo(1), Kind: fleet.ActOptimize, Target: "table:many-0000", Outcome: "done", By: "ada", Why: "batch b0123456789ab: tidy up: 40 fragments became 2"},
		{ID: "2", At: minutesAgo(1), Kind: fleet.ActOptimize, Target: "table:many-0001", Outcome: "failed", Why: "batch b0123456789ab"},
		{ID: "3", At: minutesAgo(1), Kind: fleet.ActOptimize, Target: "table:many-0002", Outcome: "done", Why: "batch b0123456789abc: another"},
	}
	b := newBench(t, s)
	b.temporal.maintaining = []control.Running{{ID: fleet.ID{Kind: fleet.Table, Name: "tidy"}, Action: "optimize", Batch: "b0123456789ab"}, {ID: fleet.ID{Kind: fleet.Table, Name: "x"}}}
	b.renew(t)
	out := decode[Batch](t, b.get("/api/v1/batches/b0123456789ab"), 200)
	require.True(t, out.Found)
	require.Len(t, out.Running, 1)
	require.Equal(t, map[string]int{"done": 1, "failed": 1}, out.Outcomes)
	require.Equal(t, "ada", out.By)
	page := b.get("/batches/b0123456789ab").Body.String()
	require.Contains(t, page, "1 running or waiting for a slot, 2 ended")
	require.Contains(t, page, "Batch b0123456789ab")
	require.False(t, decode[Batch](t, b.get("/api/v1/batches/bffffffffffff"), 200).Found)
	require.Contains(t, b.get("/batches/bffffffffffff").Body.String(), "No run of it is known")
}

func TestAManyExperimentBatchMustBeConfirmed(t *testing.T) {
	b := newBench(t, batchStore(30))
	post := func(body string) int {
		return b.do("POST", "/api/v1/batches", body, "Content-Type", "application/json").Code
	}
	require.Equal(t, 409, post(`{"action":"optimize","q":"many"}`))
	require.Equal(t, 409, post(`{"action":"optimize","q":"many","confirm":29}`), "another number than would start")
	require.Empty(t, b.temporal.said())
	require.Equal(t, 202, post(`{"action":"optimize","q":"many","confirm":30}`))
	require.Len(t, b.temporal.said(), 30)
}

func TestABatchHasNoMoreRunsThanItMay(t *testing.T) {
	b := newBench(t, batchStore(batchMost+20))
	plan := decode[BatchPlan](t, b.do("POST", "/api/v1/batches?dry_run=true", `{"action":"optimize","q":"many"}`, "Content-Type", "application/json"), 200)
	require.Equal(t, batchMost, plan.Start)
	require.Equal(t, 20, plan.Left)
}

func TestABatchThatMakesNoSenseIsRefused(t *testing.T) {
	b := newBench(t, batchStore(3))
	for body, want := range map[string]struct {
		status int
		says   string
	}{
		`{"action":"burn","q":"many"}`:                       {422, "optimize"},
		`{"action":"optimize"}`:                              {422, "one of them"},
		`{"action":"optimize","q":"a","ids":["table:tidy"]}`: {422, "one of them"},
		`{"action":"optimize","q":"colour:blue"}`:            {422, "there is no such term"},
		`{"action":"optimize","ids":["../etc"]}`:             {422, "ids"},
		`{"action":"optimize","ids":["table:tidy"]}`:         {409, "nothing would be started"},
		`{"action":"retire","q":"many"}`:                     {409, "written"},
	} {
		requireError(t, b.do("POST", "/api/v1/batches", body, "Content-Type", "application/json"), want.status, want.says)
	}
	b.temporal.setPaused(true, "ada", "moving")
	b.renew(t)
	requireError(t, b.do("POST", "/api/v1/batches", `{"action":"optimize","q":"many"}`, "Content-Type", "application/json"), 409, "the fleet is paused")
	require.Empty(t, b.temporal.said())
}

func TestABatchWithoutTemporalIsNotToldAsStarted(t *testing.T) {
	b := newBench(t, batchStore(3))
	b.temporal.err = unreachable()
	started := decode[BatchStarted](t, b.do("POST", "/api/v1/batches", `{"action":"optimize","q":"many"}`, "Content-Type", "application/json"), 202)
	require.Zero(t, started.Started)
	require.Equal(t, 3, started.Failed[0].Count)
	require.Contains(t, started.Failed[0].Reason, "whether it took effect is not known")
	w := b.postForm("/batch", "action=optimize&all=1&q=many")
	require.Equal(t, 503, w.Code)
	require.Contains(t, w.Body.String(), "nothing was started; 3: ")
}

func TestABatchThatCameSecondIsToldThatAllAreBeingWorkedOn(t *testing.T) {
	b := newBench(t, batchStore(3))
	b.temporal.running = true // which this server has not been told yet
	w := b.postForm("/batch", "action=optimize&all=1&q=many")
	require.Equal(t, 409, w.Code)
	require.Contains(t, w.Body.String(), "nothing was started; 3 are being worked on already")
}

func TestRowsOfTheListBecomeABatch(t *testing.T) {
	b := newBench(t, batchStore(30))
	require.Contains(t, b.get("/?q=many").Body.String(), `name="id" value="table:many-0000"`)
	preview := b.get("/batch?action=optimize&id=table:many-0000&id=table:tidy&q=many").Body.String()
	require.Contains(t, preview, "Those that were selected")
	require.Contains(t, preview, "Optimize 1</button>")
	all := b.get("/batch?action=optimize&all=1&id=table:tidy&q=" + url.QueryEscape("many")).Body.String()
	require.Contains(t, all, "Type 30 to confirm")
	require.Equal(t, 422, b.get("/batch?action=optimize&q=many").Code, "nothing is selected")
	require.Empty(t, b.temporal.said())

	require.Equal(t, 409, b.postForm("/batch", "action=optimize&all=1&q=many").Code)
	w := b.postForm("/batch", "action=optimize&all=1&q=many&confirm=30")
	require.Equal(t, 303, w.Code)
	require.Regexp(t, `^/batches/b[0-9a-f]{12}\?done=batch$`, w.Header().Get("Location"))
	require.Len(t, b.temporal.said(), 30)
}
