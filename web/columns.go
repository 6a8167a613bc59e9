package web

import (
	"fmt"
	"strings"

	"lancefleet/fleet"
)

// column is something a list can be sorted by. Exactly one of number and text is set.
type column struct {
	name    string   // as in the JSON
	aliases []string // short words people type
	title   string   // in the page's list; "" = not a column there
	hint    string
	down    bool // sorts descending at the first click
	time    bool
	byName  bool // nothing but the experiment's id goes in
	number  func(v *view, i int32) (int64, bool)
	text    func(v *view, i int32) string
}

const defaultSort = "last_write"

// numberIn reads a number of which -1 means unknown.
func numberIn(get func(*fleet.Row) int64) func(*view, int32) (int64, bool) {
	return func(v *view, i int32) (int64, bool) {
		row := v.row(i)
		n := get(row)
		return n, row.Known && n >= 0
	}
}

// instant reads a time of which 0 and -1 mean never or unknown.
func instant(get func(*fleet.Row) int64) func(*view, int32) (int64, bool) {
	return func(v *view, i int32) (int64, bool) {
		n := get(v.row(i))
		return n, n > 0
	}
}

var columns = []column{
	{name: "name", title: "Name", byName: true, text: func(v *view, i int32) string { return v.experiment(i).Name }},
	{name: "kind", title: "Kind", byName: true, text: func(v *view, i int32) string { return string(v.experiment(i).Kind) }},
	{name: "state", title: "State", text: func(v *view, i int32) string { return v.condition(i) },
		hint: "Failing and never observed ones first, then hot, then retired"},
	{name: "last_write", aliases: []string{"last_updated"}, title: "Last write", down: true, time: true,
		hint:   "When rows last arrived by any path. Maintenance never moves it",
		number: instant(func(r *fleet.Row) int64 { return r.LastWrite })},
	{name: "row_count", aliases: []string{"rows"}, title: "Rows", down: true,
		hint:   "Base and pending rows; ≈ is an upper bound, as keys may repeat between them",
		number: numberIn(func(r *fleet.Row) int64 { return r.RowCount })},
	{name: "fragment_count", aliases: []string{"fragments"}, title: "Fragments", down: true,
		hint:   "Of the base table",
		number: numberIn(func(r *fleet.Row) int64 { return r.FragmentCount })},
	{name: "pending_wal_generations", aliases: []string{"pending"}, title: "Pending", down: true,
		hint:   "Flushed MemWAL generations that are not in the base table yet",
		number: numberIn(func(r *fleet.Row) int64 { return r.PendingWAL })},
	{name: "stranded_entries", aliases: []string{"stranded"}, title: "Stranded", down: true,
		hint:   "WAL entries proven to be in no generation and not in the base table",
		number: numberIn(func(r *fleet.Row) int64 { return r.StrandedEntries })},
	{name: "bytes", aliases: []string{"size"}, title: "Size", down: true,
		number: numberIn(func(r *fleet.Row) int64 { return r.Bytes })},
	{name: "last_maintenance", title: "Maintained", down: true, time: true,
		hint:   "Newest commit that only rearranged rows, by anybody",
		number: instant(func(r *fleet.Row) int64 { return r.LastMaintenance })},
	{name: "action", aliases: []string{"reason", "next"}, title: "Next action and why", text: (*view).next},
	{name: "scanned_at", down: true, time: true, number: instant(func(r *fleet.Row) int64 { return r.ScannedAt })},
	{name: "last_compaction", down: true, number: instant(func(r *fleet.Row) int64 { return r.LastCompaction })},
	{name: "total_compactions", down: true, number: numberIn(func(r *fleet.Row) int64 { return r.TotalCompactions })},
	{name: "observed_at", down: true, number: instant(func(r *fleet.Row) int64 { return r.ObservedAt })},
	{name: "pending_rows", down: true, number: numberIn(func(r *fleet.Row) int64 { return r.PendingRows })},
	{name: "small_fragments", down: true, number: numberIn(func(r *fleet.Row) int64 { return r.SmallFragments })},
	{name: "deleted_rows", down: true, number: numberIn(func(r *fleet.Row) int64 { return r.DeletedRows })},
	{name: "tail_entries", down: true, number: numberIn(func(r *fleet.Row) int64 { return r.TailEntries })},
	{name: "shards", down: true, number: numberIn(func(r *fleet.Row) int64 { return int64(len(r.Shards)) })},
	{name: "version", down: true, number: numberIn(func(r *fleet.Row) int64 { return r.Version })},
	{name: "failures", aliases: []string{"failing"}, down: true,
		number: func(v *view, i int32) (int64, bool) { return v.row(i).Failures, !v.isCold(i) }},
	{name: "uri", text: func(v *view, i int32) string { return v.experiment(i).URI }},
}

// next is the decision as the page's column sorts it.
func (v *view) next(i int32) string {
	switch {
	case v.isCold(i):
		return string(fleet.DoNothing) + "\x00" + neverReached
	case v.retired[i] != nil:
		return string(fleet.DoNothing) + "\x00retired"
	}
	return string(v.decisions[i].Action) + "\x00" + v.decisions[i].Reason
}

// condition is the state as the page's column sorts it: what needs a look first.
func (v *view) condition(i int32) string {
	r := v.row(i)
	switch {
	case v.entry(i) != nil:
		return "5 retired"
	case r.Failing():
		return "1 failing"
	case !r.Known:
		return "2 never observed"
	case r.MissingRounds > 0:
		return "3 missing"
	default:
		return "4 hot"
	}
}

// findColumn answers the place of a column, -1 if there is none of that name.
func findColumn(name string) int {
	for i := range columns {
		if columns[i].name == name {
			return i
		}
		for _, a := range columns[i].aliases {
			if a == name {
				return i
			}
		}
	}
	return -1
}

func columnNames() string {
	names := make([]string, len(columns))
	for i := range columns {
		names[i] = columns[i].name
	}
	return strings.Join(names, ", ")
}

func unknownColumn(name string) string {
	return fmt.Sprintf("%s is not a column; allowed: %s", quoted(name), columnNames())
}
