package web

import (
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
	names     *naming // what the sources name; nil = not read yet
}

// view is what is known made ready for serving: hot and retired experiments, sorted
// by any column, with the decision of each, and after them those that a source names
// and neither table has. It never changes once built, except that an order which the
// pages don't offer is worked out when it is first asked for.
//
// Experiments are numbered: first the rows, by id, then the cold ones, by id.
type view struct {
	known
	Rows      []*fleet.Row         // hot and retired; shared, read only
	retired   []*fleet.LedgerEntry // by row; nil = not retired
	hot       []int32              // the numbers of all that are not
	rested    []fleet.Row          // what the ledger has of the retired that have no row
	cold      []fleet.Experiment   // named by a source, in neither table
	builtAt   int64                // unix ms; decisions were made then
	doneLast  string               // id of the journal's newest entry at that time
	lower     []string             // lower-case name by number, for search
	grams     *grams               // of these
	decisions []fleet.Decision     // by row; empty of retired ones, see decision
	orders    []order              // one per column
	totals    Totals
	facets    facets
	found     findings
	atRest    latest // of the retired ones, the newest by their retirement
	returned  latest // entries of the ledger that say so

	plans      renewed[string, planMade]
	parts      renewed[partsOf, fleetParts]
	placesOnce sync.Once
	placed     *places // for events; see places
}

// facets counts hot experiments for the filter chips, and the retired and cold ones.
type facets struct {
	kinds    map[fleet.Kind]int64
	hot      int64
	retired  int64
	failing  int64
	backlog  int64
	stranded int64
	unseen   int64
}

// newView makes what is known ready. before is the view that it replaces, whose parts
// it takes over where they are the same: most rounds change few of many rows.
func newView(k known, before *view, now int64) *view {
	v := &view{known: k, builtAt: now, totals: Totals{RowsExact: true},
		facets: facets{kinds: map[fleet.Kind]int64{}}, orders: make([]order, len(columns))}
	v.gather(before)
	v.decisions = make([]fleet.Decision, len(v.Rows))
	for i := range v.Rows {
		v.take(int32(i), now)
	}
	v.facets.unseen += int64(len(v.cold))
	same := v.sameNames(before)
	if same {
		v.lower, v.grams = before.lower, before.grams
	} else {
		v.lowerNames()
	}
	v.sortAhead(before, same)
	v.recall()
	return v
}

// gather puts the rows of the table, those of the ledger and the names of the sources
// together. None waits for the others: what table and ledger both have is retired
// unless it was written since.
func (v *view) gather(before *view) {
	rows := pointers(v.Snapshot.Rows)
	if !slices.IsSortedFunc(rows, byID) {
		slices.SortFunc(rows, byID)
	}
	v.rest(before)
	var entries []fleet.LedgerEntry
	if v.ledger != nil {
		entries = v.ledger.Entries
	}
	v.Rows = make([]*fleet.Row, 0, len(rows)+len(v.rested))
	v.retired = make([]*fleet.LedgerEntry, 0, len(rows)+len(v.rested))
	rested := v.rested
	for i := range entries {
		e := &entries[i]
		for len(rows) > 0 && rows[0].Compare(e.ID) < 0 {
			v.put(rows[0], nil)
			rows = rows[1:]
		}
		row := (*fleet.Row)(nil)
		if e.Retired() {
			row, rested = &rested[0], rested[1:]
		}
		switch {
		case len(rows) > 0 && rows[0].ID == e.ID:
			v.put(rows[0], e)
			rows = rows[1:]
		case row != nil:
			v.put(row, e)
		}
	}
	for _, r := range rows {
		v.put(r, nil)
	}
	v.findCold()
}

func byID(a, b *fleet.Row) int { return a.Compare(b.ID) }

func pointers(rows []fleet.Row) []*fleet.Row {
	out := make([]*fleet.Row, len(rows))
	for i := range rows {
		out[i] = &rows[i]
	}
	return out
}

func (v *view) put(r *fleet.Row, e *fleet.LedgerEntry) {
	if e != nil && fleet.StateOf(r, e) != fleet.Retired {
		e = nil
	}
	v.Rows, v.retired = append(v.Rows, r), append(v.retired, e)
}

// rest makes a row of each entry in force, once for each version of the ledger.
func (v *view) rest(before *view) {
	switch {
	case v.ledger == nil:
	case before != nil && sameLedger(before.ledger, v.ledger):
		v.rested = before.rested
	default:
		n := 0
		for i := range v.ledger.Entries {
			if v.ledger.Entries[i].Retired() {
				n++
			}
		}
		v.rested = make([]fleet.Row, 0, n)
		for i := range v.ledger.Entries {
			if v.ledger.Entries[i].Retired() {
				v.rested = append(v.rested, v.ledger.Entries[i].Row())
			}
		}
	}
}

func sameLedger(a, b *store.LedgerView) bool {
	return a != nil && a.Version == b.Version && len(a.Entries) == len(b.Entries) && (len(a.Entries) == 0 || &a.Entries[0] == &b.Entries[0])
}

// findCold finds what the sources name and no table has.
func (v *view) findCold() {
	if v.names == nil {
		return
	}
	at := 0
	for i := range v.names.Experiments {
		e := &v.names.Experiments[i]
		for at < len(v.Rows) && v.Rows[at].Compare(e.ID) < 0 {
			at++
		}
		if at == len(v.Rows) || v.Rows[at].ID != e.ID {
			v.cold = append(v.cold, *e)
		}
	}
}

// take works out what is shown of one row.
func (v *view) take(i int32, now int64) {
	if v.retired[i] != nil {
		v.facets.retired++
		return
	}
	v.hot = append(v.hot, i)
	row := v.Rows[i]
	policy, _ := v.policies.For(row.ID)
	v.decisions[i] = fleet.Decide(*row, policy, v.histories[row.ID], now)
	v.totals.add(row)
	v.facets.add(row)
}

// sameNames says whether the experiments are those of another view, one by one.
func (v *view) sameNames(o *view) bool {
	if o == nil || len(v.Rows) != len(o.Rows) || len(v.cold) != len(o.cold) {
		return false
	}
	for i := range v.Rows {
		if v.Rows[i] != o.Rows[i] && v.Rows[i].ID != o.Rows[i].ID {
			return false
		}
	}
	for i := range v.cold {
		if v.cold[i].ID != o.cold[i].ID {
			return false
		}
	}
	return true
}

func (v *view) lowerNames() {
	v.lower = make([]string, v.count())
	for i := range v.lower {
		v.lower[i] = strings.ToLower(v.experiment(int32(i)).Name)
	}
	v.grams = newGrams(v.lower)
}

// count is how many experiments there are, cold ones included.
func (v *view) count() int { return len(v.Rows) + len(v.cold) }

// isCold says whether an experiment is in neither table.
func (v *view) isCold(i int32) bool { return int(i) >= len(v.Rows) }

// unknownRow stands for the row of a cold one wherever only its numbers matter.
var unknownRow = fleet.UnknownRow(fleet.Experiment{})

// row of an experiment; of a cold one all is unknown, its name too.
func (v *view) row(i int32) *fleet.Row {
	if v.isCold(i) {
		return &unknownRow
	}
	return v.Rows[i]
}

func (v *view) experiment(i int32) *fleet.Experiment {
	if v.isCold(i) {
		return &v.cold[int(i)-len(v.Rows)]
	}
	return &v.Rows[i].Experiment
}

// entry is the ledger's, of a retired one.
func (v *view) entry(i int32) *fleet.LedgerEntry {
	if v.isCold(i) {
		return nil
	}
	return v.retired[i]
}

// find answers the number of the row of an experiment.
func (v *view) find(id fleet.ID) (int32, bool) {
	at, ok := slices.BinarySearchFunc(v.Rows, id, func(r *fleet.Row, id fleet.ID) int { return r.Compare(id) })
	return int32(at), ok
}

// neverReached is the reason of a cold one.
const neverReached = "named by its source; no round has reached it yet"

// decision about one experiment. Of retired ones it is worded when somebody looks:
// there are many, and their age is in the words.
func (v *view) decision(i int32, now int64) fleet.Decision {
	switch {
	case v.isCold(i):
		return fleet.Decision{Action: fleet.DoNothing, Reason: neverReached}
	case v.retired[i] != nil:
		return fleet.Decision{Action: fleet.DoNothing, Reason: retiredWords(v.retired[i], now)}
	}
	return v.decisions[i]
}

// retiredWords is the reason of one at rest.
func retiredWords(e *fleet.LedgerEntry, now int64) string {
	words := "retired " + fleet.Ago(e.RetiredAt, now)
	if e.By != "" {
		words += " by " + e.By
	}
	return words + ", written " + fleet.Ago(e.LastWrite, now) + "; a write makes it hot again"
}

// state of an experiment. retiring are those whose retirement runs.
func (v *view) state(i int32, retiring map[fleet.ID]bool) State {
	switch {
	case v.isCold(i):
		return Hot
	case v.retired[i] != nil:
		return Retired
	case len(retiring) > 0 && retiring[v.Rows[i].ID]:
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
	t.Stranded += max(row.StrandedEntries, 0)
	t.Bytes += max(row.Bytes, 0)
	if row.PendingWAL > 0 {
		t.Backlogged++
	}
}

func (f *facets) add(row *fleet.Row) {
	f.hot++
	f.kinds[row.Kind]++
	if row.Failing() {
		f.failing++
	}
	if row.Known && row.PendingWAL > 0 {
		f.backlog++
	}
	if row.Known && row.StrandedEntries > 0 {
		f.stranded++
	}
	if !row.Known {
		f.unseen++
	}
}
