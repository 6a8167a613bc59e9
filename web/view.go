package web

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"lancefleet/fleet"
	"lancefleet/store"
)

// known is what a view is made from.
type known struct {
	Snapshot
	ledger    *store.LedgerView // nil = nothing is retired
	histories map[fleet.ID]fleet.History
	policies  fleet.Policies
}

// view is what is known made ready for serving: hot and retired experiments, found
// by id, sorted by any column, with the decision of each. It never changes once
// built, except that an order which the pages don't offer is worked out when it is
// first asked for.
type view struct {
	known
	Rows      []fleet.Row                  // hot and retired, by id
	retired   map[int32]*fleet.LedgerEntry // of the rows that are
	builtAt   int64                        // unix ms; decisions were made then
	doneLast  string                       // id of the journal's newest entry at that time
	byID      map[fleet.ID]int32
	lower     []string // lower-case name per row, for search
	decisions []fleet.Decision
	orders    []order // one per column
	totals    Totals
	facets    facets
}

// order holds the rows sorted by one column, ascending, ties by id. Rows that do
// not know the value come last whichever way the column is read.
type order struct {
	once  sync.Once
	index []int32
	known int
}

// facets counts hot rows for the filter chips, and the retired ones.
type facets struct {
	kinds   map[fleet.Kind]int64
	retired int64
	failing int64
	backlog int64
	unseen  int64
}

func newView(k known, now int64) *view {
	v := &view{known: k, builtAt: now, retired: map[int32]*fleet.LedgerEntry{}, totals: Totals{RowsExact: true},
		facets: facets{kinds: map[fleet.Kind]int64{}}, orders: make([]order, len(columns))}
	v.gather()
	v.byID = make(map[fleet.ID]int32, len(v.Rows))
	v.lower = make([]string, len(v.Rows))
	v.decisions = make([]fleet.Decision, len(v.Rows))
	for i := range v.Rows {
		v.take(int32(i), now)
	}
	for c := range columns { // here, where nobody waits for it
		if columns[c].title != "" {
			v.sorted(c)
		}
	}
	return v
}

// gather puts the rows of the table and those of the ledger together. Neither waits
// for the other: what both have is retired unless it was written since.
func (v *view) gather() {
	byID := func(a, b fleet.Row) int { return a.Compare(b.ID) }
	v.Rows = v.Snapshot.Rows
	own := false // the snapshot's rows are shared
	if !slices.IsSortedFunc(v.Rows, byID) {
		v.Rows, own = slices.Clone(v.Rows), true
		slices.SortFunc(v.Rows, byID)
	}
	if v.ledger == nil || len(v.ledger.Entries) == 0 {
		return
	}
	hot := v.Rows
	for i := range v.ledger.Entries {
		e := &v.ledger.Entries[i]
		if _, there := slices.BinarySearchFunc(hot, e.ID, func(r fleet.Row, id fleet.ID) int { return r.Compare(id) }); !there && e.Retired() {
			if !own {
				v.Rows, own = slices.Clone(v.Rows), true
			}
			v.Rows = append(v.Rows, e.Row())
		}
	}
	slices.SortFunc(v.Rows, byID)
}

// take works out what is shown of one row.
func (v *view) take(i int32, now int64) {
	row := &v.Rows[i]
	v.byID[row.ID] = i
	v.lower[i] = strings.ToLower(row.Name)
	if v.ledger != nil {
		if e := v.ledger.Get(row.ID); fleet.StateOf(row, e) == fleet.Retired {
			v.retired[i] = e
			v.decisions[i] = fleet.Decision{Action: fleet.DoNothing, Reason: retiredWords(e, now)}
			v.facets.retired++
			return
		}
	}
	policy, _ := v.policies.For(row.ID)
	v.decisions[i] = fleet.Decide(*row, policy, v.histories[row.ID], now)
	v.totals.add(row)
	v.facets.add(row)
}

// retiredWords is the reason of one at rest.
func retiredWords(e *fleet.LedgerEntry, now int64) string {
	words := "retired " + fleet.Ago(e.RetiredAt, now)
	if e.By != "" {
		words += " by " + e.By
	}
	return words + ", written " + fleet.Ago(e.LastWrite, now) + "; a write makes it hot again"
}

// state of a row. retiring are those whose retirement runs.
func (v *view) state(i int32, retiring map[fleet.ID]bool) State {
	switch {
	case v.retired[i] != nil:
		return Retired
	case retiring[v.Rows[i].ID]:
		return Retiring
	}
	return Hot
}

func (t *Totals) add(row *fleet.Row) {
	t.Experiments++
	if row.Failing() {
		t.Failing++
	}
	if !row.Known {
		t.Unknown++
		return
	}
	t.RowsExact = t.RowsExact && row.RowsExact
	t.Rows += max(row.RowCount, 0)
	t.Fragments += max(row.FragmentCount, 0)
	t.Pending += max(row.PendingWAL, 0)
	t.Bytes += max(row.Bytes, 0)
	if row.PendingWAL > 0 {
		t.Backlogged++
	}
}

func (f *facets) add(row *fleet.Row) {
	f.kinds[row.Kind]++
	if row.Failing() {
		f.failing++
	}
	if row.Known && row.PendingWAL > 0 {
		f.backlog++
	}
	if !row.Known {
		f.unseen++
	}
}

// sorted answers the order of one column.
func (v *view) sorted(c int) *order {
	o := &v.orders[c]
	o.once.Do(func() { o.build(v, &columns[c]) })
	return o
}

func (o *order) build(v *view, c *column) {
	if c.text != nil {
		o.buildText(v, c)
		return
	}
	type entry struct {
		key int64
		row int32
	}
	known := make([]entry, 0, len(v.Rows))
	var unknown []int32
	for i := range v.Rows {
		if key, ok := c.number(v, i); ok {
			known = append(known, entry{key, int32(i)})
		} else {
			unknown = append(unknown, int32(i))
		}
	}
	slices.SortFunc(known, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.row, b.row))
	})
	o.index = make([]int32, 0, len(v.Rows))
	for _, e := range known {
		o.index = append(o.index, e.row)
	}
	o.known = len(known)
	o.index = append(o.index, unknown...)
}

func (o *order) buildText(v *view, c *column) {
	keys := make([]string, len(v.Rows))
	o.index = make([]int32, len(v.Rows))
	for i := range v.Rows {
		keys[i] = c.text(v, i)
		o.index[i] = int32(i)
	}
	slices.SortFunc(o.index, func(a, b int32) int {
		return cmp.Or(cmp.Compare(keys[a], keys[b]), cmp.Compare(a, b))
	})
	o.known = len(o.index)
}

// each calls f with every row in order until it answers false.
func (o *order) each(descending bool, f func(row int32) bool) {
	for i := range o.index {
		at := i
		if descending && i < o.known {
			at = o.known - 1 - i
		}
		if !f(o.index[at]) {
			return
		}
	}
}
