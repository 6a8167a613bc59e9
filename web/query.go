package web

import (
	"errors"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const (
	defaultLimit = 50
	maxLimit     = 500
	maxSearch    = 200 // bytes
	maxText      = 1000
)

// Query is the view somebody asks for; all of it is in the URL.
type Query struct {
	Text   string // words and qualifiers, see terms.go
	Sort   string
	Down   bool
	Limit  int
	Offset int

	terms  []term // of the text, those that were not understood included
	column int
}

// listParams are the parameters that were there before there was a text. They go
// into the text, so that there is one place that says what is asked for.
var listParams = map[string]func(q *Query, in url.Values, miss complain){
	"kind":    func(q *Query, in url.Values, miss complain) { q.addList("kind", in, miss) },
	"state":   func(q *Query, in url.Values, miss complain) { q.addList("state", in, miss) },
	"failing": func(q *Query, in url.Values, miss complain) { q.addFlag("failing", in, miss) },
	"backlog": func(q *Query, in url.Values, miss complain) { q.addFlag("backlog", in, miss) },
	"unseen":  func(q *Query, in url.Values, miss complain) { q.addFlag("unseen", in, miss) },
}

// complain notes a value of a parameter that was not understood.
type complain func(parameter, word, message string)

// parseQuery reads a query and says what it did not understand, word by word.
// What it did not understand is left out.
func parseQuery(in url.Values) (Query, []Mistake) {
	var q Query
	var mistakes []Mistake
	miss := func(parameter, word, message string) {
		mistakes = append(mistakes, Mistake{Parameter: parameter, Word: word, Message: message})
	}
	text := in.Get("q")
	if len(text) > maxText {
		miss("q", "", "longer than "+strconv.Itoa(maxText)+" bytes")
		text = strings.ToValidUTF8(text[:maxText], "")
	}
	mistakes = append(mistakes, q.read(strings.TrimSpace(text))...)
	q.addSearch(in.Get("search"), miss)
	for _, name := range []string{"kind", "state", "failing", "backlog", "unseen"} {
		listParams[name](&q, in, miss)
	}
	q.readOrder(in, miss)
	q.Limit = min(max(number(in, "limit", defaultLimit, miss), 1), maxLimit)
	q.Offset = max(number(in, "offset", 0, miss), 0)
	return q, mistakes
}

// read takes a text as the query's.
func (q *Query) read(text string) []Mistake {
	terms, mistakes := split(text)
	for i := range terms {
		if m := terms[i].compile(); m != nil {
			mistakes = append(mistakes, *m)
		}
	}
	q.Text, q.terms = text, terms
	return mistakes
}

// with is the query with another text, from its first page.
func (q Query) with(text string) Query {
	q.read(text)
	q.Offset = 0
	return q
}

// add puts terms at the end of the text, where they are not in it yet.
func (q *Query) add(raw string) {
	for _, t := range q.terms {
		if t.raw == raw {
			return
		}
	}
	q.read(strings.TrimSpace(q.Text + " " + raw))
}

// addSearch is the parameter `search`: one literal part of the name.
func (q *Query) addSearch(word string, miss complain) {
	word = strings.TrimSpace(word)
	if len(word) > maxSearch {
		miss("search", "", "longer than "+strconv.Itoa(maxSearch)+" bytes")
		word = strings.ToValidUTF8(word[:maxSearch], "")
	}
	if word != "" {
		q.add(literal(strings.ToValidUTF8(word, "\uFFFD")))
	}
}

func (q *Query) addList(name string, in url.Values, miss complain) {
	var good []string
	for _, word := range words(in[name]) {
		if allowed := qualifiers[name].allowed; slices.Contains(allowed, word) {
			good = append(good, word)
		} else {
			miss(name, word, quoted(word)+" is none; allowed: "+strings.Join(allowed, ", "))
		}
	}
	if len(good) > 0 {
		q.add(name + ":" + strings.Join(good, ","))
	}
}

func (q *Query) addFlag(name string, in url.Values, miss complain) {
	switch v := in.Get(name); v {
	case "", "false", "0":
	case "true", "1", "on":
		q.add(name)
	default:
		miss(name, v, quoted(v)+" is neither true nor false")
	}
}

func (q *Query) readOrder(in url.Values, miss complain) {
	q.Sort = defaultSort
	if word := in.Get("sort"); word != "" {
		if findColumn(word) < 0 {
			miss("sort", word, unknownColumn(word))
		} else {
			q.Sort = word
		}
	}
	q.column = findColumn(q.Sort)
	q.Sort = columns[q.column].name
	q.Down = columns[q.column].down
	switch word := in.Get("order"); word {
	case "":
	case "asc", "desc":
		q.Down = word == "desc"
	default:
		miss("order", word, quoted(word)+" is none; allowed: asc, desc")
	}
}

// words splits repeated and comma separated values.
func words(values []string) []string {
	var out []string
	for _, v := range values {
		for w := range strings.SplitSeq(v, ",") {
			if w = strings.TrimSpace(w); w != "" && !slices.Contains(out, w) {
				out = append(out, w)
			}
		}
	}
	return out
}

// number clamps what is too large for an int32 instead of refusing it.
func number(in url.Values, name string, unset int, miss complain) int {
	v := in.Get(name)
	if v == "" {
		return unset
	}
	n, err := strconv.ParseInt(v, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		miss(name, v, quoted(v)+" has more than 64 bits")
		return unset
	case err != nil:
		miss(name, v, quoted(v)+" is not a whole number")
		return unset
	}
	return int(min(max(n, math.MinInt32), math.MaxInt32))
}

// order is the word for the URL and the JSON.
func (q Query) order() string {
	if q.Down {
		return "desc"
	}
	return "asc"
}

// by is the query sorted by another column.
func (q Query) by(column int, down bool) Query {
	q.Sort, q.column, q.Down, q.Offset = columns[column].name, column, down, 0
	return q
}

// filtered is true if the query shows less than the whole fleet.
func (q Query) filtered() bool { return len(q.terms) > 0 }

// values writes the query back, without what is default.
func (q Query) values() url.Values {
	out := url.Values{}
	if q.Text != "" {
		out.Set("q", q.Text)
	}
	if q.Sort != defaultSort || q.Down != columns[q.column].down {
		out.Set("sort", q.Sort)
		out.Set("order", q.order())
	}
	if q.Limit != defaultLimit {
		out.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.Offset != 0 {
		out.Set("offset", strconv.Itoa(q.Offset))
	}
	return out
}

// href is a link to a page that shows this query.
func (q Query) href(path string) string {
	if v := q.values().Encode(); v != "" {
		return path + "?" + v
	}
	return path
}

// searches says whether a part of a name is asked for: then the retired are found
// too, and what only a source names.
func (q Query) searches() bool {
	return slices.ContainsFunc(q.terms, func(t term) bool { return t.isWord() && !t.not })
}

// asksFor says whether a term of the text asks for a value of a qualifier that lists,
// or, with no value, for a flag.
func (q Query) asksFor(name, value string) bool {
	return slices.ContainsFunc(q.terms, func(t term) bool { return t.asks(name, value) })
}

// wantsCold says whether those count that only a source names.
func (q Query) wantsCold() bool { return q.searches() || q.asksFor("unseen", "") }

// states are those that the query shows: a search finds all of them, a list without
// one the hot, unless it says otherwise.
func (q Query) states() []State {
	all := []State{Hot, Retiring, Retired}
	var wanted []State
	excludes := false
	for _, t := range q.terms {
		if t.q == nil || t.q.name != "state" || t.test == nil {
			continue
		}
		for _, v := range t.values {
			switch {
			case v == "any" && !t.not:
				return all
			case t.not:
				excludes = true
			default:
				wanted = append(wanted, State(v))
			}
		}
	}
	switch {
	case len(wanted) > 0:
		return wanted
	case excludes || q.searches() || slices.ContainsFunc(q.terms, func(t term) bool { return t.q != nil && t.q.name == "retired-at" }):
		return all
	}
	return []State{Hot, Retiring}
}

// matcher answers a test for one experiment of the view.
func (q Query) matcher(a *asking) func(i int32) bool {
	states, cold := q.states(), q.wantsCold()
	hot, retired := slices.Contains(states, Hot), slices.Contains(states, Retired)
	each, oneOf := q.tests()
	groups := slices.Collect(maps.Values(oneOf)) // quicker to walk, once for each experiment
	return func(i int32) bool {
		switch {
		case a.view.isCold(i):
			if !cold || !hot {
				return false
			}
		case a.view.retired[i] != nil:
			if !retired {
				return false
			}
		case len(a.retiring) == 0:
			if !hot {
				return false
			}
		case !slices.Contains(states, a.view.state(i, a.retiring)):
			return false
		}
		for k := range each {
			if each[k].test(a, i) == each[k].not {
				return false
			}
		}
		for _, group := range groups {
			if !slices.ContainsFunc(group, func(t term) bool { return t.test(a, i) }) {
				return false
			}
		}
		return true
	}
}

// tests are the terms of which each must fit, and the groups of which one must:
// `kind:table kind:generic` is either. What the states say is left out.
func (q Query) tests() (each []term, oneOf map[string][]term) {
	oneOf = map[string][]term{}
	for _, t := range q.terms {
		switch {
		case t.test == nil, t.q != nil && t.q.name == "state" && !t.not:
		case t.q != nil && t.q.lists != nil && !t.not:
			oneOf[t.q.name] = append(oneOf[t.q.name], t)
		default:
			each = append(each, t)
		}
	}
	return each, oneOf
}

// selection is what a query finds: the experiments of one page by their number, and
// the truth about all.
type selection struct {
	rows   []int32
	total  int
	totals Totals
}

// run answers the page [offset, offset+limit); a limit below 0 means everything.
func (q Query) run(a *asking) selection {
	order := a.view.sorted(q.column)
	a.view.orders[q.column].asked.Store(true)
	if !q.filtered() {
		return q.runAll(a, order)
	}
	f := q.find(a)
	s := selection{total: f.total, totals: f.totals}
	seen := 0
	order.each(q.Down, func(i int32) bool {
		if !f.has(i) {
			return true
		}
		if seen++; seen > q.Offset && (q.Limit < 0 || len(s.rows) < q.Limit) {
			s.rows = append(s.rows, i)
		}
		return seen < s.total && (q.Limit < 0 || len(s.rows) < q.Limit)
	})
	return s
}

// runAll reads no more than it shows: the sums of the hot are known.
func (q Query) runAll(a *asking, order *order) selection {
	s := selection{total: int(a.view.facets.hot), totals: a.view.totals}
	seen := 0
	order.each(q.Down, func(i int32) bool {
		if a.view.isCold(i) || a.view.retired[i] != nil {
			return true
		}
		if seen++; seen > q.Offset {
			s.rows = append(s.rows, i)
		}
		return seen < s.total && (q.Limit < 0 || len(s.rows) < q.Limit)
	})
	return s
}
