package web

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"lancefleet/control"
	"lancefleet/fleet"
)

// A page's plan leaves out what is not due; the round's own looks at every row.
func TestThePlanOfAPageIsTheOneThatARoundMakes(t *testing.T) {
	k := largeFleet(3000, 200, 10)
	rnd := rand.New(rand.NewPCG(1, 2))
	k.histories = map[fleet.ID]fleet.History{}
	for i := range k.Rows {
		r := &k.Rows[i]
		switch rnd.IntN(12) {
		case 0:
			r.LastWrite = minutesAgo(8 * daysOfMinutes) // cold
		case 1:
			r.LastWrite = minutesAgo(7*daysOfMinutes - 30) // soon
		case 2:
			r.SmallFragments, r.FragmentCount = 40, 44
		case 3:
			r.Known = false
		case 4:
			r.MissingRounds = 1
		case 5:
			r.SmallFragments, r.FragmentCount = 40, 44
			k.histories[r.ID] = fleet.History{Compact: fleet.Tries{Failures: 30, LastAt: minutesAgo(3)}}
		}
	}
	k.policies.Overrides = []fleet.Override{{Pattern: "*gsm8k*", Paused: ptr("quarter end")}}
	v := newView(k, nil, testNow.UnixMilli())
	m := moment{view: v, running: []control.Running{{ID: v.Rows[5].ID}, {ID: v.Rows[6].ID}, {ID: fleet.ID{Kind: fleet.Rollout, Name: "nobody"}}}}
	for _, later := range []int64{0, 20, 45, 3 * 60} { // minutes; the view is not built anew meanwhile
		now := testNow.UnixMilli() + later*60_000
		running := map[fleet.ID]bool{}
		for _, r := range m.running {
			running[r.ID] = true
		}
		want := fleet.Plan(fleet.PlanInput{
			Rows: k.Rows, Policies: k.policies, Histories: k.histories, Running: running, Retired: k.ledger.Retired(), Budgets: fleet.DefaultBudgets(), Now: now,
		})
		rows, idle := v.wanting(running, now)
		got := fleet.Plan(fleet.PlanInput{Rows: rows, Policies: k.policies, Histories: k.histories, Running: running, Budgets: fleet.DefaultBudgets(), Now: now})
		got.NotDue += idle
		got.Running = want.Running // those that are idle are left out; the page does not tell the number
		require.Equal(t, want, got, "%d min later", later)
		require.NotEmpty(t, got.Starts)
		require.NotEmpty(t, got.Blocked)
		require.Positive(t, got.CoolingDown)
		require.Less(t, len(rows), len(k.Rows)*3/4, "what is not due is left out")
	}
}

func TestTheNewestOfManyAreKeptInOrder(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	all := make([]*fleet.LedgerEntry, 3*maxLimit)
	var l latest
	for i := range all {
		e := retiredOne(fleet.Rollout, fmt.Sprintf("old-%05d", i))
		e.RetiredAt = minutesAgo(rnd.Int64N(900)) // many at one time: the name decides
		all[i] = &e
		l.put(&e, func(e *fleet.LedgerEntry) int64 { return e.RetiredAt })
	}
	slices.SortFunc(all, func(a, b *fleet.LedgerEntry) int {
		if a.RetiredAt != b.RetiredAt {
			return int(b.RetiredAt - a.RetiredAt)
		}
		return a.Compare(b.ID)
	})
	require.Equal(t, 3*maxLimit, l.all)
	require.Equal(t, all[:maxLimit], l.entries)
}

func TestTheOperationsPageIsWorkedOutOnceForOneStateOfTheFleet(t *testing.T) {
	b := newBench(t, busyStore())
	m := b.feed.moment()
	d, err := b.journalled(t.Context())
	require.NoError(t, err)
	first := b.partsOf(m, d)
	require.NotEmpty(t, first.failures)
	require.NotEmpty(t, first.operations)
	again := b.partsOf(m, d)
	require.Same(t, &first.operations[0], &again.operations[0], "the same answer")

	m.running = append(slices.Clone(m.running), control.Running{ID: m.view.Rows[0].ID, RunID: "another", Action: "optimize"})
	require.Equal(t, "another", b.partsOf(m, d).operations[0].running.RunID, "a run that began")
	m.view = newView(m.view.known, m.view, testNow.UnixMilli())
	other := b.partsOf(m, d)
	d.actions, d.operations = slices.Clone(d.actions), d.operations[1:]
	require.Len(t, b.partsOf(m, d).operations, len(other.operations)-1, "an entry of the journal")
}

func TestAPageOfWorkIsThatOfAllThatMatch(t *testing.T) {
	b := newBench(t, busyStore())
	d, err := b.journalled(t.Context())
	require.NoError(t, err)
	parts := b.partsOf(b.feed.moment(), d)
	kinds, outcomes := map[string]bool{"": true, "nothing": true}, map[string]bool{"": true, fleet.OutcomeFailed: true, "nothing": true}
	for i := range parts.operations {
		kinds[parts.operations[i].kind()], outcomes[parts.operations[i].outcome()] = true, true
	}
	require.Greater(t, len(kinds), 4)
	require.Greater(t, len(outcomes), 4)
	for kind := range kinds {
		for outcome := range outcomes {
			var all []Operation
			ofKind := map[string]int{}
			for i := range parts.operations {
				o := &parts.operations[i]
				if kind != "" && o.kind() != kind {
					continue
				}
				ofKind[o.outcome()]++
				if outcome == "" || o.outcome() == outcome {
					all = append(all, b.operation(o))
				}
			}
			for _, offset := range []int{0, 1, 3, len(all), 1000} {
				got := b.work(parts.operations, parts.counts, workQuery{Kind: kind, Outcome: outcome, Limit: 3, Offset: offset})
				require.Equal(t, len(all), got.Total, "%s %s", kind, outcome)
				require.Equal(t, ofKind, got.Outcomes)
				require.ElementsMatch(t, all[min(offset, len(all)):min(offset+3, len(all))], got.Operations)
			}
		}
	}
}
