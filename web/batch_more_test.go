package web

import (
	"fmt"
	"strings"
	"testing"

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
