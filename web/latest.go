package web

import (
	"cmp"
	"slices"

	"lancefleet/fleet"
)

// latest are the newest of many entries of the ledger: as many as anybody may ask for.
type latest struct {
	entries []*fleet.LedgerEntry // newest first
	all     int                  // that there are
}

// put takes in one that became what it is at a time (unix ms).
func (l *latest) put(e *fleet.LedgerEntry, at func(*fleet.LedgerEntry) int64) {
	l.all++
	order := func(a, b *fleet.LedgerEntry) int { return cmp.Or(cmp.Compare(at(b), at(a)), a.Compare(b.ID)) }
	full := len(l.entries) == maxLimit
	if full && order(l.entries[maxLimit-1], e) < 0 {
		return
	}
	if full {
		l.entries = l.entries[:maxLimit-1]
	}
	place, _ := slices.BinarySearchFunc(l.entries, e, order)
	l.entries = slices.Insert(l.entries, place, e)
}

// recall finds the newest retirements and returns.
func (v *view) recall() {
	for _, e := range v.retired {
		if e != nil {
			v.atRest.put(e, func(e *fleet.LedgerEntry) int64 { return e.RetiredAt })
		}
	}
	if v.ledger == nil {
		return
	}
	for i := range v.ledger.Entries {
		if e := &v.ledger.Entries[i]; e.State == fleet.LedgerReturned {
			v.returned.put(e, func(e *fleet.LedgerEntry) int64 { return e.At })
		}
	}
}
