package web

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"lancefleet/fleet"
)

// view is one snapshot made ready for serving: found by id, sorted by any column,
// with the decision of each row. It never changes once built, except that an order
// which the pages don't offer is worked out when it is first asked for.
type view struct {
	Snapshot
	builtAt   int64 // unix ms; decisions were made then
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

// facets counts rows for the filter chips.
type facets struct {
	kinds   map[fleet.Kind]int64
	failing int64
	backlog int64
	unseen  int64
}

func newView(s Snapshot, policy fleet.Policy, now int64) *view {
	byID := func(a, b fleet.Row) int { return a.Compare(b.ID) }
	if !slices.IsSortedFunc(s.Rows, byID) {
		s.Rows = slices.Clone(s.Rows)
		slices.SortFunc(s.Rows, byID)
	}
	v := &view{
		Snapshot:  s,
		builtAt:   now,
		byID:      make(map[fleet.ID]int32, len(s.Rows)),
		lower:     make([]string, len(s.Rows)),
		decisions: make([]fleet.Decision, len(s.Rows)),
		orders:    make([]order, len(columns)),
		totals:    Totals{RowsExact: true},
		facets:    facets{kinds: map[fleet.Kind]int64{}},
	}
	for i := range s.Rows {
		row := &s.Rows[i]
		v.byID[row.ID] = int32(i)
		v.lower[i] = strings.ToLower(row.Name)
		v.decisions[i] = fleet.Decide(*row, policy, fleet.History{}, now)
		v.totals.add(row)
		v.facets.add(row)
	}
	for c := range columns { // here, where nobody waits for it
		if columns[c].title != "" {
			v.sorted(c)
		}
	}
	return v
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
