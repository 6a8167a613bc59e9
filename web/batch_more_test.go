package web

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"lancefleet/control"
	"lancefleet/fleet"
)

func batchPlanned(t *testing.T, b *bench, body string) BatchPlan {
	t.Helper()
	return decode[BatchPlan](t, b.do("POST", "/api/v1/batches?dry_run=true", body, "Content-Type", "application/json"), 200)
}

func TestABatchLeavesAloneWhatIsBeingWorkedOn(t *testing.T) {
	b := newBench(t, batchStore(3))
	b.temporal.maintaining = []control.Running{{ID: fleet.ID{Kind: fleet.Table, Name: "many-0001"}, Action: "optimize"}}
	b.renew(t)
	plan := batchPlanned(t, b, `{"action":"optimize","q":"many"}`)
	require.Equal(t, []int{3, 2, 1, 0}, []int{plan.Asked, plan.Start, plan.Running, plan.Refused})
	require.ElementsMatch(t, []string{"table:many-0000", "table:many-0002"}, plan.Sample)
	requireError(t, b.do("POST", "/api/v1/batches", `{"action":"optimize","ids":["table:many-0001"]}`, "Content-Type", "application/json"), 409, "1 are being worked on")
	require.Empty(t, b.temporal.said())
}

func TestABatchOfWhichSomethingElseBeganAllMeanwhileIsNone(t *testing.T) {
	b := newBench(t, batchStore(3))
	b.temporal.running = true
	w := b.do("POST", "/api/v1/batches", `{"action":"optimize","q":"many"}`, "Content-Type", "application/json")
	requireError(t, w, 409, "nothing was started; 3 are being worked on already")
	require.Empty(t, w.Header().Get("Location"))
}

func TestABatchOfTwentyNeedsNoConfirmationAndOneOfTwentyOneDoes(t *testing.T) {
	for n, status := range map[int]int{batchConfirm: 202, batchConfirm + 1: 409} {
		b := newBench(t, batchStore(n))
		require.Equal(t, n > batchConfirm, batchPlanned(t, b, `{"action":"optimize","q":"many"}`).Confirm)
		require.Equal(t, status, b.do("POST", "/api/v1/batches", `{"action":"optimize","q":"many"}`, "Content-Type", "application/json").Code)
	}
}

func TestABatchThatIsConfirmedForMoreThanWouldStartIsRefused(t *testing.T) {
	b := newBench(t, batchStore(30))
	requireError(t, b.do("POST", "/api/v1/batches", `{"action":"optimize","q":"many","confirm":31}`, "Content-Type", "application/json"), 409, "confirm=30")
	require.Empty(t, b.temporal.said())
}

func TestABatchTellsEachCauseOnceWithHowOftenAndSomeNames(t *testing.T) {
	s := batchStore(0)
	for i := range 7 { // as if they were written at different times
		s.snapshot.Rows = append(s.snapshot.Rows, healthy(fleet.Table, fmt.Sprintf("young-%d", i), minutesAgo(int64(3+5*i))))
	}
	b := newBench(t, s)
	plan := batchPlanned(t, b, `{"action":"retire","ids":["table:nobody","`+strings.Join(namesOf("table:young-", 7), `","`)+`"]}`)
	require.Equal(t, 8, plan.Refused)
	require.Len(t, plan.Causes, 2, "%v", plan.Causes)
	require.Equal(t, 7, plan.Causes[0].Count, "the most frequent one first")
	require.Contains(t, plan.Causes[0].Reason, "written … min ago")
	require.Len(t, plan.Causes[0].Sample, batchSample)
	require.Equal(t, []string{"table:nobody"}, plan.Causes[1].Sample)
	require.Contains(t, plan.Causes[1].Reason, "it has no row")
}

func namesOf(prefix string, n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("%s%d", prefix, i))
	}
	return out
}

func TestACauseOfABatchKeepsTheNumbersThatHoldForAll(t *testing.T) {
	c := causeCounter{}
	c.add("4 fragments, 2 of them small, below 16", "table:a")
	c.add("9 fragments, 2 of them small, below 16", "table:b")
	c.add("unreachable since 07:55: observe s3://bucket/exp: reset", "table:exp")
	sorted := c.sorted()
	require.Len(t, sorted, 2)
	require.Equal(t, "… fragments, 2 of them small, below 16", sorted[0].Reason)
	require.Equal(t, 2, sorted[0].Count)
	require.Equal(t, "unreachable since 07:55: observe …: reset", sorted[1].Reason)
}

func asksForABatch(b *bench, body string) *httptest.ResponseRecorder {
	return b.do("POST", "/api/v1/batches", body, "Content-Type", "application/json")
}

func TestABatchTellsWhatOnlyASourceNamesApart(t *testing.T) {
	b := newBench(t, coldStore(2))
	plan := batchPlanned(t, b, `{"action":"optimize","q":" run-cold "}`)
	require.Equal(t, []int{2, 0, 2}, []int{plan.Asked, plan.Start, plan.Refused})
	require.Contains(t, plan.Causes[0].Reason, "no round has reached it")
	require.Equal(t, []string{"generic:run-cold-00000", "generic:run-cold-00001"}, plan.Causes[0].Sample)
}

func TestABatchAboutNothingSaysSo(t *testing.T) {
	b := newBench(t, batchStore(3))
	refused := decode[ErrorBody](t, asksForABatch(b, `{"action":"optimize","q":"nothing-like-it"}`), 409)
	require.Equal(t, "nothing would be started: it is about no experiment", refused.Message)
	requireError(t, b.do("POST", "/api/v1/batches?dry_run=true", `{"action":"optimize"}`, "Content-Type", "application/json"), 422, "one of them")
}

func TestABatchOfAFormIsOneOfTheTwoKindsToo(t *testing.T) {
	b := newBench(t, batchStore(3))
	for _, w := range []*httptest.ResponseRecorder{b.get("/batch?action=burn&all=1&q=many"), b.postForm("/batch", "action=burn&all=1&q=many")} {
		require.Equal(t, 422, w.Code)
		require.Contains(t, w.Body.String(), "allowed: optimize, retire")
	}
	require.Empty(t, b.temporal.said())
}

func TestABatchOfAFormKeepsWhoAskedAndWhy(t *testing.T) {
	b := newBench(t, batchStore(30))
	w := b.postForm("/batch", "action=optimize&all=1&q=many&confirm=+30+&by=ada&why=tidy+up")
	require.Equal(t, http.StatusSeeOther, w.Code)
	require.Contains(t, b.temporal.said()[0], "by ada: batch b")
	require.Contains(t, b.temporal.said()[0], ": tidy up")
	require.Equal(t, 409, newBench(t, batchStore(30)).postForm("/batch", "action=optimize&all=1&q=many&confirm=thirty").Code)
}

func TestABatchNeedsATableAndATemporal(t *testing.T) {
	unread := newBench(t, &fakeStore{err: unreadable()})
	for _, path := range []string{"/api/v1/batches", "/api/v1/batches?dry_run=true"} {
		requireError(t, unread.do("POST", path, `{"action":"optimize","q":""}`, "Content-Type", "application/json"), 503, "not been read yet")
	}
	require.Equal(t, 503, unread.get("/batch?action=optimize&all=1&q=").Code)
	alone := newBench(t, batchStore(3), func(_ *Config, p *parts) { p.steer = nil })
	requireError(t, asksForABatch(alone, `{"action":"optimize","q":"many"}`), 503, "no connection to Temporal")
	require.Equal(t, 3, batchPlanned(t, alone, `{"action":"optimize","q":"many"}`).Start, "what it would do can be told")
}

func TestWhatOfABatchCouldNotBeStartedIsToldBesideWhatWas(t *testing.T) {
	b := newBench(t, batchStore(3))
	b.temporal.failing = func(id fleet.ID) error {
		if id.Name == "many-0001" {
			return unreachable()
		}
		return nil
	}
	started := decode[BatchStarted](t, asksForABatch(b, `{"action":"optimize","q":"many"}`), 202)
	require.Equal(t, 2, started.Started)
	require.Equal(t, []string{"table:many-0001"}, started.Failed[0].Sample)
	require.Regexp(t, `\?done=batch-partly$`, b.postForm("/batch", "action=optimize&all=1&q=many").Header().Get("Location"))
}

func TestABatchWhoseRequestIsOverTriesNoMore(t *testing.T) {
	b := newBench(t, batchStore(3))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	text := "many"
	out, err := b.startBatch(ctx, BatchRequest{Action: "optimize", Q: &text})
	require.NoError(t, err)
	require.Equal(t, 3, out.Failed[0].Count)
	require.Empty(t, b.temporal.said())
}

func TestCausesComeByHowOftenAndThenByName(t *testing.T) {
	causes := causeCounter{}
	for _, reason := range []string{"b", "c", "c", "a"} {
		causes.add(reason, "x")
	}
	var sorted []string
	for _, c := range causes.sorted() {
		sorted = append(sorted, c.Reason)
	}
	require.Equal(t, []string{"c", "a", "b"}, sorted)
}

func TestAnEntryIsOfTheBatchThatItNamesAndOfNoLongerOne(t *testing.T) {
	for why, of := range map[string]bool{
		"batch b1": true, "batch b1: tidy up": true, "batch b1; 40 fragments became 2": true, "batch b1 as asked": true,
		"batch b12": false, "batch b": false, "b1": false, "": false, "not batch b1": false,
	} {
		assert.Equal(t, of, ofBatch(why, "b1"), why)
	}
	require.Equal(t, "batch b1", batchWhy("b1", "  "))
}

func TestThePageOfABatchKeepsWhatItIsAbout(t *testing.T) {
	b := newBench(t, batchStore(30))
	all := b.get("/batch?action=optimize&all=1&q=many").Body.String()
	require.Contains(t, all, `name="all" value="1"`)
	require.Contains(t, all, `name="q" value="many"`)
	require.Contains(t, all, `href="/?q=many"`, "back to the list as it was")
	some := b.get("/batch?action=optimize&id=table:many-0000&q=many").Body.String()
	require.Contains(t, some, `name="id" value="table:many-0000"`)
	require.NotContains(t, some, `name="all"`)
	require.Contains(t, b.get("/batch?action=optimize").Body.String(), "nothing is selected")
	require.Equal(t, 400, b.postForm("/batch", "action=%zz").Code)
}

func TestWhatBecameOfABatchIsNotToldFromAJournalThatCannotBeRead(t *testing.T) {
	store := &fakeStore{err: unreadable()}
	b := newBench(t, store)
	require.GreaterOrEqual(t, b.get("/api/v1/batches/b0123456789ab").Code, 500)
	require.GreaterOrEqual(t, b.get("/batches/b0123456789ab").Code, 500)
}
