package web

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
)

// order holds the experiments sorted by one column, ascending, ties by number. Those
// that do not know the value come last whichever way the column is read.
type order struct {
	once  sync.Once
	index []int32
	known int
	asked atomic.Bool
}

// sortAhead sorts by what people look at, here, where nobody waits for it: the
// columns of the page, and others that were asked for before.
func (v *view) sortAhead(before *view, sameNames bool) {
	for c := range columns {
		asked := before != nil && before.orders[c].asked.Load()
		if columns[c].byName && sameNames && (asked || columns[c].title != "") {
			v.orders[c].adopt(before.sorted(c))
		}
		if columns[c].title != "" || asked {
			v.sorted(c)
		}
	}
}

// adopt takes the order of another view of the same experiments.
func (o *order) adopt(of *order) {
	o.once.Do(func() { o.index, o.known = of.index, of.known })
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
		at  int32
	}
	known := make([]entry, 0, len(v.Rows))
	unknown := make([]int32, 0, len(v.cold))
	for i := range int32(v.count()) {
		if key, ok := c.number(v, i); ok {
			known = append(known, entry{key, i})
		} else {
			unknown = append(unknown, i)
		}
	}
	slices.SortFunc(known, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.at, b.at))
	})
	o.index = make([]int32, 0, v.count())
	for _, e := range known {
		o.index = append(o.index, e.at)
	}
	o.known = len(known)
	o.index = append(o.index, unknown...)
}

func (o *order) buildText(v *view, c *column) {
	type entry struct {
		key string
		at  int32
	}
	keys := make([]entry, v.count())
	for i := range keys {
		keys[i] = entry{c.text(v, int32(i)), int32(i)}
	}
	slices.SortFunc(keys, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.at, b.at))
	})
	o.index = make([]int32, len(keys))
	for i := range keys {
		o.index[i] = keys[i].at
	}
	o.known = len(o.index)
}

// each calls f with every experiment in order until it answers false.
func (o *order) each(descending bool, f func(at int32) bool) {
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
