package web

import (
	"slices"
	"strings"

	"lancefleet/fleet"
)

// asking is what a test of a term knows beside the experiment.
type asking struct {
	moment
	now int64
}

// test says of an experiment of the view whether a term fits it.
type test func(a *asking, i int32) bool

// qualifier is what may stand before the colon of a term, or alone if it is a flag.
// Exactly one of the functions is set.
type qualifier struct {
	name    string
	aliases []string
	doc     string
	allowed []string // of one that lists

	flag   test
	lists  func(a *asking, i int32) string      // one of the allowed
	number func(v *view, i int32) (int64, bool) // false = unknown
	bytes  bool                                 // of number: sizes
	time   func(v *view, i int32) int64         // unix ms; 0 and less = never or unknown
	text   func(a *asking, i int32) string
}

func ofRow(get func(*fleet.Row) int64) func(*view, int32) (int64, bool) { return numberIn(get) }

// qualifiers are all there are, in the order of the help.
func allQualifiers() []qualifier {
	return []qualifier{
		{name: "state", doc: "hot, retiring, retired; any", allowed: []string{"hot", "retiring", "retired", "any"},
			lists: func(a *asking, i int32) string { return string(a.view.state(i, a.retiring)) }},
		{name: "kind", doc: "rollout, generic, datagen, table", allowed: []string{"rollout", "generic", "datagen", "table"},
			lists: func(a *asking, i int32) string { return string(a.view.experiment(i).Kind) }},
		{name: "next", aliases: []string{"action"}, doc: "what maintenance would do next: none, merge, compact, retire",
			allowed: []string{"none", "merge", "compact", "retire"},
			lists:   func(a *asking, i int32) string { return string(a.view.decision(i, a.now).Action) }},
		{name: "failing", doc: "the last observation failed", flag: func(a *asking, i int32) bool { return a.view.row(i).Failing() }},
		{name: "backlog", doc: "has pending generations", flag: some(func(r *fleet.Row) int64 { return r.PendingWAL })},
		{name: "stranded", doc: "has stranded WAL entries; also as a number", flag: some(func(r *fleet.Row) int64 { return r.StrandedEntries }),
			number: ofRow(func(r *fleet.Row) int64 { return r.StrandedEntries })},
		{name: "unseen", doc: "never observed, those included that only a source names", flag: func(a *asking, i int32) bool { return !a.view.row(i).Known }},
		{name: "missing", doc: "no source named it in the last round", flag: func(a *asking, i int32) bool { return a.view.row(i).MissingRounds > 0 }},
		{name: "running", doc: "is being worked on", flag: func(a *asking, i int32) bool { return a.runningOf(a.view.experiment(i).ID) != nil }},
		{name: "paused", doc: "maintenance is off or paused for it by policy", flag: pausedByPolicy},

		{name: "pending", aliases: []string{"pending-wal-generations"}, doc: "generations not in the base table yet", number: ofRow(func(r *fleet.Row) int64 { return r.PendingWAL })},
		{name: "fragments", aliases: []string{"fragment-count"}, doc: "of the base table", number: ofRow(func(r *fleet.Row) int64 { return r.FragmentCount })},
		{name: "small", aliases: []string{"small-fragments"}, doc: "small fragments", number: ofRow(func(r *fleet.Row) int64 { return r.SmallFragments })},
		{name: "rows", aliases: []string{"row-count"}, doc: "rows", number: ofRow(func(r *fleet.Row) int64 { return r.RowCount })},
		{name: "size", aliases: []string{"bytes"}, doc: "bytes, as 500MB or 1GiB", bytes: true, number: ofRow(func(r *fleet.Row) int64 { return r.Bytes })},
		{name: "unflushed", aliases: []string{"tail", "tail-entries"}, doc: "WAL entries that no generation holds yet", number: ofRow(func(r *fleet.Row) int64 { return r.TailEntries })},
		{name: "shards", doc: "MemWAL shards", number: ofRow(func(r *fleet.Row) int64 { return int64(len(r.Shards)) })},
		{name: "deleted", aliases: []string{"deleted-rows"}, doc: "rows hidden by deletion files", number: ofRow(func(r *fleet.Row) int64 { return r.DeletedRows })},
		{name: "version", doc: "of the base table", number: ofRow(func(r *fleet.Row) int64 { return r.Version })},
		{name: "failures", doc: "observations that failed in a row", number: func(v *view, i int32) (int64, bool) { return v.row(i).Failures, true }},

		{name: "last-write", aliases: []string{"written", "last-updated"}, doc: "when rows last arrived", time: timeOfRow(func(r *fleet.Row) int64 { return r.LastWrite })},
		{name: "last-maintenance", aliases: []string{"maintained"}, doc: "newest maintenance commit seen", time: timeOfRow(func(r *fleet.Row) int64 { return r.LastMaintenance })},
		{name: "observed", aliases: []string{"observed-at"}, doc: "last full observation", time: timeOfRow(func(r *fleet.Row) int64 { return r.ObservedAt })},
		{name: "retired-at", doc: "when it retired", time: func(v *view, i int32) int64 {
			if e := v.entry(i); e != nil {
				return e.RetiredAt
			}
			return 0
		}},

		{name: "name", doc: "part of the name", text: func(a *asking, i int32) string { return a.view.experiment(i).Name }},
		{name: "uri", doc: "part of the address", text: func(a *asking, i int32) string { return a.view.experiment(i).URI }},
		{name: "why", aliases: []string{"reason"}, doc: "part of the reason", text: func(a *asking, i int32) string { return a.view.decision(i, a.now).Reason }},
		{name: "error", aliases: []string{"error-class"}, doc: "part of the error's class or sentence", text: func(a *asking, i int32) string {
			return a.view.row(i).ErrorClass + " " + a.view.row(i).Error
		}},
		{name: "tag", doc: "part of a tag's name", text: func(a *asking, i int32) string { return strings.Join(a.view.row(i).Tags, "\n") }},
	}
}

// older and newer are Gmail's words for last-write.
const (
	olderThan = "older-than"
	newerThan = "newer-than"
)

var (
	qualifiers = byQualifierName()
	flags      = flagsByName()
)

func byQualifierName() map[string]*qualifier {
	all := allQualifiers()
	out := map[string]*qualifier{}
	for i := range all {
		out[all[i].name] = &all[i]
		for _, a := range all[i].aliases {
			out[a] = &all[i]
		}
	}
	return out
}

func flagsByName() map[string]*qualifier {
	out := map[string]*qualifier{}
	for name, q := range qualifiers {
		if q.flag != nil {
			out[name] = q
		}
	}
	return out
}

// qualifierNames are what may stand before a colon.
func qualifierNames() []string {
	var names []string
	for _, q := range allQualifiers() {
		names = append(names, q.name)
	}
	return names
}

// some is a flag for a number above zero.
func some(get func(*fleet.Row) int64) test {
	return func(a *asking, i int32) bool {
		row := a.view.row(i)
		return row.Known && get(row) > 0
	}
}

func timeOfRow(get func(*fleet.Row) int64) func(*view, int32) int64 {
	return func(v *view, i int32) int64 { return get(v.row(i)) }
}

func pausedByPolicy(a *asking, i int32) bool {
	policy, _ := a.view.policies.For(a.view.experiment(i).ID)
	return !policy.Maintain || policy.Paused != ""
}

// compile makes the test of a term, or says what is wrong with it.
func (t *term) compile() *Mistake {
	if t.key == "" {
		t.q = nil
		if q := flags[t.value]; q != nil && !t.quoted {
			t.q, t.flag, t.test = q, true, q.flag
			return nil
		}
		return t.compileWord(t.value)
	}
	if slices.Contains(fleet.Kinds(), fleet.Kind(t.key)) { // as URLs and commands name an experiment
		return t.compileWord(t.key + ":" + t.value)
	}
	switch t.key {
	case "is":
		return t.compileIs()
	case olderThan, newerThan:
		return t.compileThan()
	}
	q := qualifiers[t.key]
	switch {
	case q == nil:
		return t.wrong("there is no such term%s. A name with a colon goes in quotes", meant(t.key))
	case t.value == "":
		return t.wrong("nothing stands behind the colon: %s", q.wanted())
	case q.lists != nil:
		return t.compileList(q)
	case q.number != nil:
		return t.compileNumber(q)
	case q.time != nil:
		return t.compileTime(q, t.value)
	case q.text != nil:
		return t.compileText(q)
	}
	return t.wrong("it stands alone, without a colon: %s", q.name)
}

func (t *term) compileWord(word string) *Mistake {
	needle := strings.ToLower(word)
	if needle == "" {
		t.test = func(*asking, int32) bool { return true }
		return nil
	}
	whole := strings.Contains(needle, ":")
	if !whole {
		t.needle = needle
	}
	t.test = func(a *asking, i int32) bool {
		return strings.Contains(a.view.lower[i], needle) ||
			whole && strings.Contains(string(a.view.experiment(i).Kind)+":"+a.view.lower[i], needle)
	}
	return nil
}

// compileIs reads GitHub's is:, for states and flags.
func (t *term) compileIs() *Mistake {
	word := strings.ToLower(t.value)
	if q := flags[word]; q != nil {
		t.q, t.flag, t.test = q, true, q.flag
		return nil
	}
	if slices.Contains(qualifiers["state"].allowed, word) {
		return t.compileList(qualifiers["state"])
	}
	return t.wrong("is: takes a state (hot, retiring, retired) or one of %s", strings.Join(sortedKeys(flags), ", "))
}

func (t *term) compileList(q *qualifier) *Mistake {
	for _, v := range strings.Split(strings.ToLower(t.value), ",") {
		if v = strings.TrimSpace(v); !slices.Contains(q.allowed, v) {
			return t.wrong("%s is none; allowed: %s", quoted(v), strings.Join(q.allowed, ", "))
		}
		t.values = append(t.values, v)
	}
	t.q = q
	values := t.values
	t.test = func(a *asking, i int32) bool { return slices.Contains(values, q.lists(a, i)) }
	return nil
}

func (t *term) compileText(q *qualifier) *Mistake {
	t.q = q
	needle := strings.ToLower(t.value)
	t.test = func(a *asking, i int32) bool { return strings.Contains(strings.ToLower(q.text(a, i)), needle) }
	return nil
}

// wanted says what may stand behind the colon.
func (q *qualifier) wanted() string {
	switch {
	case q.lists != nil:
		return strings.Join(q.allowed, ", ")
	case q.bytes:
		return "a size, as >1GiB, <=500MB or 1MiB..1GiB"
	case q.number != nil:
		return "a number, as 12, >=100 or 10..20"
	case q.time != nil:
		return "an age or a date, as <7d, >12h, >=2026-11-01 or never"
	}
	return "a part of it"
}
