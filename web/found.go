package web

import (
	"slices"
	"sync"
)

// found are the experiments of a view that a text finds: sorting and paging them
// doesn't ask again.
type found struct {
	bits   []uint64 // by number
	total  int
	totals Totals
}

func (f *found) has(i int32) bool { return f.bits[i/64]&(1<<(i%64)) != 0 }

// findings remembers what texts found in one view: people page through a list, and
// pages refresh themselves. One of them takes a bit for each experiment.
type findings struct {
	mu   sync.Mutex
	kept map[string]*found
}

const findingsKept = 64

// find tests every experiment, or remembers what that found.
func (q Query) find(a *asking) *found {
	lasting := len(a.retiring) == 0 && !slices.ContainsFunc(q.terms, func(t term) bool { return t.passing() })
	if lasting {
		if f := a.view.found.get(q.Text); f != nil {
			return f
		}
	}
	match := q.matcher(a)
	n := int32(a.view.count())
	f := &found{bits: make([]uint64, n/64+1), totals: Totals{RowsExact: true}}
	take := func(i int32) {
		if match(i) {
			f.bits[i/64] |= 1 << (i % 64)
			f.total++
			f.totals.add(a.view.row(i))
		}
	}
	if few, all := q.candidates(a.view); all {
		for i := range n {
			take(i)
		}
	} else {
		for _, i := range few {
			take(i)
		}
	}
	if lasting {
		a.view.found.put(q.Text, f)
	}
	return f
}

// passing says whether the answer of a term changes while the view does not: with the
// clock, or with what runs.
func (t term) passing() bool {
	return t.q != nil && (t.q.time != nil || t.q.name == "running")
}

func (k *findings) get(text string) *found {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.kept[text]
}

// put forgets all when there are too many: who still looks at one finds it again.
func (k *findings) put(text string, f *found) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kept == nil || len(k.kept) >= findingsKept {
		k.kept = map[string]*found{}
	}
	k.kept[text] = f
}
