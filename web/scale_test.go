package web

import (
	"fmt"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/control"
	"lancefleet/fleet"
	"lancefleet/store"
)

// largeFleet is what a large fleet's tables hold: hot rows, retired ones, and names
// that only a source has.
func largeFleet(hot, retired, cold int) known {
	k := known{Snapshot: Snapshot{Version: 1, CommittedAt: minutesAgo(1), Rows: demoRows(hot)}, policies: fleet.Policies{Default: fleet.DefaultPolicy()}}
	slices.SortFunc(k.Rows, func(a, b fleet.Row) int { return a.Compare(b.ID) })
	entries := make([]fleet.LedgerEntry, retired)
	for i := range entries {
		entries[i] = retiredOne(fleet.Rollout, fmt.Sprintf("old-gsm8k-run-%06d", i))
	}
	k.ledger = &store.LedgerView{Version: 1, Entries: entries}
	named := make([]fleet.Experiment, cold)
	for i := range named {
		named[i] = experiment(fleet.Table, fmt.Sprintf("zz-named-%06d", i))
	}
	k.names = &naming{Experiments: named}
	return k
}

// allocations of one answer; they stand for the work that grows with what is touched.
func allocations(b *bench, target string) float64 {
	return testing.AllocsPerRun(5, func() { b.get(target) })
}

func TestAnswersCostTheSameHoweverLargeTheFleet(t *testing.T) {
	small, large := newBench(t, demoStore(1000)), newBench(t, demoStore(20_000))
	for _, target := range []string{"/api/v1/experiments", "/api/v1/experiments?sort=pending&offset=300", "/api/v1/experiments?q=kind:rollout+pending:>0+gsm8k",
		"/api/v1/experiments?q=failing", "/?q=fragments:>16+-kind:table", "/api/v1/operations", "/operations"} {
		require.Less(t, allocations(large, target), 1.3*allocations(small, target)+100, target)
	}
}

// counting says how many experiments a query looked at.
func counting(q Query, a *asking) int {
	looked := 0
	q.terms = append(slices.Clone(q.terms), term{q: &qualifier{name: "running"}, test: func(*asking, int32) bool { looked++; return true }})
	q.run(a)
	return looked
}

func TestAListWithoutTermsReadsNoMoreThanItShows(t *testing.T) {
	v := newView(largeFleet(2000, 4000, 1000), nil, testNow.UnixMilli())
	q := queryOf(t, "")
	a := &asking{moment{view: v}, testNow.UnixMilli()}
	visited := 0
	v.sorted(q.column).each(true, func(i int32) bool { visited++; return visited < 50 })
	require.Len(t, q.run(a).rows, 50)
	require.Equal(t, 50, visited)
	require.Equal(t, 2000, q.run(a).total)
	require.LessOrEqual(t, counting(queryOf(t, "pending:>0"), a), 2000, "neither retired nor cold ones are tested")
	require.LessOrEqual(t, counting(queryOf(t, "gsm8k"), a), v.count())
}

func TestPagesAndOrdersOfOneTextAskEachExperimentOnce(t *testing.T) {
	v := newView(largeFleet(2000, 100, 100), nil, testNow.UnixMilli())
	a := &asking{moment{view: v}, testNow.UnixMilli()}
	asked := 0
	q := queryOf(t, "gsm8k")
	own := q.terms[0].test
	q.terms[0].test = func(a *asking, i int32) bool { asked++; return own(a, i) }
	first := q.run(a)
	once := asked
	require.Positive(t, once)
	require.Less(t, once, v.count(), "names without a part of the word are not read")
	q.Offset = 50
	second := q.by(findColumn("bytes"), true).run(a)
	require.Equal(t, once, asked)
	require.Equal(t, first.total, second.total)
	require.Equal(t, first.totals, second.totals)

	for i := range 3 * findingsKept {
		queryOf(t, fmt.Sprint("x", i)).run(a)
	}
	require.LessOrEqual(t, len(v.found.kept), findingsKept, "what is remembered is bounded")
}

func TestAViewTakesOverWhatDidNotChange(t *testing.T) {
	k := largeFleet(2000, 4000, 1000)
	before := newView(k, nil, testNow.UnixMilli())
	k.Rows = slices.Clone(k.Rows)
	k.Rows[700].PendingWAL = 99_999
	k.Version++
	v := newView(k, before, testNow.UnixMilli())
	name := findColumn("name")
	require.Same(t, &before.lower[0], &v.lower[0], "the names")
	require.Same(t, &before.rested[0], &v.rested[0], "the rows of the retired")
	require.Same(t, &before.orders[name].index[0], &v.orders[name].index[0], "the order by name")
	page := queryOf(t, "").by(findColumn("pending"), true)
	page.Limit = 1
	require.Equal(t, k.Rows[700].ID, v.experiment(page.run(&asking{moment{view: v}, 0}).rows[0]).ID, "what changed is seen")

	k.Rows = append(slices.Clone(k.Rows), healthy(fleet.Table, "zzz-brand-new", minutesAgo(1)))
	k.Version++
	v = newView(k, before, testNow.UnixMilli())
	require.Equal(t, 1, func() int { q := queryOf(t, "zzz-brand-new"); return q.run(&asking{moment{view: v}, 0}).total }())
}

// BenchmarkNewView is what a commit costs in the background: 50,000 hot and 100,000
// retired, one row changed.
func BenchmarkNewView(b *testing.B) {
	k := largeFleet(50_000, 100_000, 0)
	before := newView(k, nil, testNow.UnixMilli())
	for name, from := range map[string]*view{"first": nil, "one row changed": before} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				newView(k, from, testNow.UnixMilli())
			}
		})
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.Logf("heap with one view: %d MiB", m.HeapAlloc>>20)
	runtime.KeepAlive(before)
}

func BenchmarkQueryAtAHundredAndFiftyThousand(b *testing.B) {
	v := newView(largeFleet(50_000, 100_000, 100_000), nil, testNow.UnixMilli())
	a := &asking{moment{view: v}, testNow.UnixMilli()}
	for _, text := range []string{"", "gsm8k", "pending:>=3 kind:rollout", "failing", "state:retired", "why:below", "zz-named-09"} {
		b.Run(url.QueryEscape(text), func(b *testing.B) {
			q, _ := parseQuery(url.Values{"q": {text}})
			for b.Loop() {
				q.run(a)
			}
		})
	}
}

func TestAPlanIsMadeOnceForWhatItIsMadeFrom(t *testing.T) {
	now := testNow
	b := newBench(t, demoStore(200), func(_ *Config, p *parts) { p.now = func() time.Time { return now } })
	m := b.feed.moment()
	made := b.made(m)
	require.Same(t, &made.Starts[0], &b.made(m).Starts[0], "it is kept")
	first := made.Starts[0].ID
	m.runs([]control.Running{{ID: first, Action: "optimize"}})
	again := b.made(m)
	require.Equal(t, made.NotDue, again.NotDue)
	require.Equal(t, 1, again.Running, "something runs now")
	now = now.Add(oldest * planKept)
	require.NotSame(t, &again.Starts[0], &b.made(m).Starts[0], "it ages with the clock")
}

// BenchmarkOperations is what everybody who has the operations page open costs.
func BenchmarkOperations(b *testing.B) {
	store := busyStore()
	k := largeFleet(50_000, 100_000, 0)
	store.snapshot, store.retired = k.Snapshot, k.ledger.Entries
	for i := range 100_000 {
		store.actions = append(store.actions, fleet.Action{ID: fmt.Sprint("old-", i), At: minutesAgo(int64(1000 + i/4)), Kind: fleet.ActCompact, Outcome: fleet.OutcomeDone,
			Target: k.Rows[i%len(k.Rows)].ID.String(), RunID: fmt.Sprint("r", i), After: fleet.FactsOf(&k.Rows[i%len(k.Rows)]).Text()})
		store.samples = append(store.samples, fleet.Sample{ID: k.Rows[i%len(k.Rows)].ID, At: minutesAgo(int64(60 * (i / 1000))), Pending: int64(i % 9)})
	}
	bench := newBench(b, store)
	for _, target := range []string{"/operations", "/operations/charts/backlog", "/api/v1/plan", "/api/v1/tasks?limit=1", "/api/v1/tasks/r99999", "/experiments/rollout:" + k.Rows[0].Name} {
		b.Run(strings.ReplaceAll(target[1:], "/", " "), func(b *testing.B) {
			for b.Loop() {
				bench.get(target)
			}
		})
	}
}
