package web

import (
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"lancefleet/fleet"
)

const (
	defaultLimit = 50
	maxLimit     = 500
	maxSearch    = 200 // bytes
)

// Query is the view somebody asks for; all of it is in the URL.
type Query struct {
	Search  string
	Kinds   []fleet.Kind
	States  []State
	Failing bool
	Backlog bool // only with pending generations
	Unseen  bool // only never observed
	Sort    string
	Down    bool
	Limit   int
	Offset  int

	column int
}

// parseQuery reads a query and says what it did not understand, word by word.
// What it did not understand is left at its default.
func parseQuery(in url.Values) (Query, []string) {
	q := Query{Search: strings.TrimSpace(in.Get("search"))}
	var mistakes []string
	miss := func(s string) { mistakes = append(mistakes, s) }

	if len(q.Search) > maxSearch {
		miss("search: longer than " + strconv.Itoa(maxSearch) + " bytes")
		q.Search = strings.ToValidUTF8(q.Search[:maxSearch], "")
	}
	for _, word := range words(in["kind"]) {
		if k := fleet.Kind(word); slices.Contains(fleet.Kinds(), k) {
			q.Kinds = append(q.Kinds, k)
		} else {
			miss("kind: " + strconv.Quote(word) + " is none; allowed: rollout, generic, datagen, table")
		}
	}
	for _, word := range words(in["state"]) {
		if s := State(word); s == Hot || s == Retiring || s == Retired {
			q.States = append(q.States, s)
		} else {
			miss("state: " + strconv.Quote(word) + " is none; allowed: hot, retiring, retired")
		}
	}
	q.Failing = flag(in, "failing", miss)
	q.Backlog = flag(in, "backlog", miss)
	q.Unseen = flag(in, "unseen", miss)
	q.readOrder(in, miss)
	q.Limit = min(max(number(in, "limit", defaultLimit, miss), 1), maxLimit)
	q.Offset = max(number(in, "offset", 0, miss), 0)
	return q, mistakes
}

func (q *Query) readOrder(in url.Values, miss func(string)) {
	q.Sort = defaultSort
	if word := in.Get("sort"); word != "" {
		if findColumn(word) < 0 {
			miss(unknownColumn(word))
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
		miss("order: " + strconv.Quote(word) + " is none; allowed: asc, desc")
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

func flag(in url.Values, name string, miss func(string)) bool {
	switch v := in.Get(name); v {
	case "", "false", "0":
		return false
	case "true", "1", "on":
		return true
	default:
		miss(name + ": " + strconv.Quote(v) + " is neither true nor false")
		return false
	}
}

// number clamps what is too large for an int instead of refusing it.
func number(in url.Values, name string, unset int, miss func(string)) int {
	v := in.Get(name)
	if v == "" {
		return unset
	}
	n, err := strconv.ParseInt(v, 10, 32)
	if err != nil && !isRange(err) {
		miss(name + ": " + strconv.Quote(v) + " is not a whole number")
		return unset
	}
	return int(n)
}

func isRange(err error) bool {
	return errors.Is(err, strconv.ErrRange)
}

// order is the word for the URL and the JSON.
func (q Query) order() string {
	if q.Down {
		return "desc"
	}
	return "asc"
}

// filtered is true if the query shows less than the whole fleet.
func (q Query) filtered() bool {
	return q.Search != "" || len(q.Kinds) > 0 || len(q.States) > 0 || q.Failing || q.Backlog || q.Unseen
}

// values writes the query back, without what is default.
func (q Query) values() url.Values {
	out := url.Values{}
	if q.Search != "" {
		out.Set("search", q.Search)
	}
	for _, k := range q.Kinds {
		out.Add("kind", string(k))
	}
	for _, s := range q.States {
		out.Add("state", string(s))
	}
	for name, on := range map[string]bool{"failing": q.Failing, "backlog": q.Backlog, "unseen": q.Unseen} {
		if on {
			out.Set(name, "true")
		}
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

// states are those that the query shows: a search finds all of them, a list
// without one the hot, unless it says otherwise.
func (q Query) states() []State {
	switch {
	case len(q.States) > 0:
		return q.States
	case q.Search != "":
		return []State{Hot, Retiring, Retired}
	}
	return []State{Hot, Retiring}
}

// matcher answers a test for one row of the view.
func (q Query) matcher(v *view, retiring map[fleet.ID]bool) func(i int32) bool {
	states := q.states()
	needle := strings.ToLower(q.Search)
	qualified := strings.Contains(needle, ":")
	return func(i int32) bool {
		row := &v.Rows[i]
		switch {
		case q.Failing && !row.Failing(),
			q.Backlog && (!row.Known || row.PendingWAL <= 0),
			q.Unseen && row.Known,
			len(q.Kinds) > 0 && !slices.Contains(q.Kinds, row.Kind),
			!slices.Contains(states, v.state(i, retiring)):
			return false
		case needle == "" || strings.Contains(v.lower[i], needle):
			return true
		default:
			return qualified && strings.Contains(string(row.Kind)+":"+v.lower[i], needle)
		}
	}
}

// selection is what a query finds: the rows of one page, and the truth about all.
type selection struct {
	rows   []int32
	total  int
	totals Totals
}

// run answers the page [offset, offset+limit); a limit below 0 means everything.
func (q Query) run(v *view, retiring map[fleet.ID]bool) selection {
	order := v.sorted(q.column)
	if !q.filtered() && len(v.retired) == 0 {
		return q.runAll(v, order)
	}
	match := q.matcher(v, retiring)
	s := selection{totals: Totals{RowsExact: true}}
	order.each(q.Down, func(i int32) bool {
		if !match(i) {
			return true
		}
		if s.total >= q.Offset && (q.Limit < 0 || len(s.rows) < q.Limit) {
			s.rows = append(s.rows, i)
		}
		s.total++
		s.totals.add(&v.Rows[i])
		return true
	})
	return s
}

// runAll reads no more rows than it shows: the sums of the fleet are known.
func (q Query) runAll(v *view, order *order) selection {
	s := selection{total: len(v.Rows), totals: v.totals}
	seen := 0
	order.each(q.Down, func(i int32) bool {
		if seen++; seen > q.Offset {
			s.rows = append(s.rows, i)
		}
		return q.Limit < 0 || len(s.rows) < q.Limit
	})
	return s
}
