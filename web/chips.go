package web

import (
	"slices"
	"strings"

	"lancefleet/fleet"
)

type chipGroup struct {
	Label string
	Chips []chip
}

type chip struct {
	Text, Href string
	Count      int64
	Counted    bool
	On         bool
}

// chips offers terms with their counts over the whole fleet, and the usual questions
// in one click. A click edits the text.
func (q Query) chips(f facets) []chipGroup {
	kinds := chipGroup{Label: "Kind"}
	for _, k := range fleet.Kinds() {
		if f.kinds[k] > 0 || q.asksFor("kind", string(k)) {
			kinds.Chips = append(kinds.Chips, q.chip(string(k), f.kinds[k], "kind", string(k)))
		}
	}
	states := chipGroup{Label: "State", Chips: []chip{
		q.chip("hot", f.hot, "state", "hot"), q.chip("retired", f.retired, "state", "retired"),
	}}
	needs := chipGroup{Label: "Needs a look"}
	for _, c := range []struct {
		text, flag string
		n          int64
		always     bool
	}{
		{"failing", "failing", f.failing, true}, {"pending", "backlog", f.backlog, true},
		{"stranded", "stranded", f.stranded, true}, {"not observed", "unseen", f.unseen, false},
	} {
		if c.always || c.n > 0 || q.asksFor(c.flag, "") {
			needs.Chips = append(needs.Chips, q.chip(c.text, c.n, c.flag, ""))
		}
	}
	views := chipGroup{Label: "Sorted by"}
	for _, v := range []struct{ text, sort string }{
		{"newest write", "last_write"}, {"worst backlog", "pending_wal_generations"}, {"most fragments", "fragment_count"}, {"largest", "bytes"},
	} {
		views.Chips = append(views.Chips, chip{Text: v.text, Href: q.by(findColumn(v.sort), true).href("/"), On: q.Sort == v.sort && q.Down})
	}
	return []chipGroup{kinds, states, needs, views}
}

func (q Query) chip(text string, n int64, name, value string) chip {
	return chip{Text: text, Href: q.toggled(name, value).href("/"), Count: n, Counted: true, On: q.asksFor(name, value)}
}

// toggled is the query with a term more or less in its text.
func (q Query) toggled(name, value string) Query {
	term := name
	if value != "" {
		term += ":" + value
	}
	if !q.asksFor(name, value) {
		return q.with(strings.TrimSpace(q.Text + " " + term))
	}
	var kept []string
	for _, t := range q.terms {
		if !t.asks(name, value) {
			kept = append(kept, t.raw)
			continue
		}
		others := slices.DeleteFunc(slices.Clone(t.values), func(v string) bool { return v == value })
		if len(others) > 0 {
			kept = append(kept, name+":"+strings.Join(others, ","))
		}
	}
	return q.with(strings.Join(kept, " "))
}
