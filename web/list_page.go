package web

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"lancefleet/fleet"
)

type listContent struct {
	chrome
	List     ExperimentList
	Query    Query
	Filtered bool
	Mistakes []Mistake
	Marked   []marked // the text with its mistakes, where there are any
	Headers  []sortHeader
	Rows     []listRow
	Chips    []chipGroup
	Pager    pager
	Hidden   []field // the view, as the search form keeps it
	Unsorted []field // the view, as the sort form keeps it
	Terms    []termHelp
	CSV      string
	JSON     string
	Curl     string
	Caption  string
}

// marked is a piece of the text.
type marked struct {
	Text  string
	Wrong bool
}

// termHelp is a line of the help about terms.
type termHelp struct{ Term, Doc string }

type field struct{ Name, Value string }

type sortHeader struct {
	Name, Title, Hint, Href string
	AriaSort, Arrow, Class  string
	On                      bool
}

type listRow struct {
	Summary
	Bare    string
	Href    string
	Badges  []badge
	Backlog string // level of the pending number
}

// IsStranded says whether entries are stranded, which wants a look.
func (r listRow) IsStranded() bool { return r.Stranded != nil && *r.Stranded > 0 }

type badge struct{ Text, Level, Title string }

type pager struct {
	Text                    string
	First, Prev, Next, Last string
	Sizes                   []chip
}

func (s *Server) listPage(c echo.Context) error {
	values, wrong := listParameters.check(c.Request().URL.RawQuery)
	query, mistakes := parseQuery(values)
	m := s.forSearch(c.Request().Context(), query)
	if m.view == nil {
		return notLoaded(m)
	}
	for _, w := range wrong {
		mistakes = append(mistakes, Mistake{Message: w})
	}
	content := newListContent(m, query, s.list(c.Request().Context(), m, query))
	content.chrome = s.chrome(c, m, "experiments", "Experiments")
	content.Mistakes, content.Marked = mistakes, mark(query.Text, mistakes)
	content.Curl = s.curl(c.Request(), query)
	return s.show(c, http.StatusOK, s.pages.list, content)
}

func newListContent(m moment, q Query, list ExperimentList) listContent {
	p := listContent{
		List: list, Query: q, Filtered: q.filtered(), Terms: termsHelp,
		Headers: sortHeaders(q), Chips: q.chips(m.view.facets), Pager: q.pager(list.Total),
		Hidden: fields(q, "q", "offset"), Unsorted: fields(q, "sort", "order", "offset"),
		CSV: q.all().href("/export.csv"), JSON: q.all().href("/export.json"),
	}
	for i := range list.Experiments {
		p.Rows = append(p.Rows, newListRow(list.Experiments[i]))
	}
	direction := "ascending"
	if q.Down {
		direction = "descending"
	}
	p.Caption = fmt.Sprintf("Experiments %d to %d of %d, by %s, %s", q.Offset+1, q.Offset+len(p.Rows), list.Total, columns[q.column].name, direction)
	return p
}

// mark cuts a text where its mistakes begin and end; nil without any of them in it.
func mark(text string, mistakes []Mistake) []marked {
	letters := []rune(text)
	at := 0
	var out []marked
	in := slices.DeleteFunc(slices.Clone(mistakes), func(m Mistake) bool { return m.Parameter != "q" || m.Length == 0 })
	slices.SortStableFunc(in, func(a, b Mistake) int { return cmp.Compare(a.At, b.At) })
	for _, m := range in {
		end := min(m.At+m.Length, len(letters))
		if m.At < at || end <= m.At {
			continue // of the same word
		}
		if m.At > at {
			out = append(out, marked{Text: string(letters[at:m.At])})
		}
		out = append(out, marked{Text: string(letters[m.At:end]), Wrong: true})
		at = end
	}
	if out != nil && at < len(letters) {
		out = append(out, marked{Text: string(letters[at:])})
	}
	return out
}

var plainHost = regexp.MustCompile(`^[A-Za-z0-9.:\[\]_-]+$`)

// curl is the command that asks the API for the same view.
func (s *Server) curl(r *http.Request, q Query) string {
	host, scheme := r.Host, "http"
	if !plainHost.MatchString(host) {
		host = s.config.Addr
	}
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		scheme = "https"
	}
	return "curl '" + scheme + "://" + host + q.href(apiPrefix+"/experiments") + "'" // Encode leaves no quote
}

// termsHelp is the help that stands under the text box.
var termsHelp = func() []termHelp {
	out := []termHelp{{"gsm8k grpo", "each is a part of the name, in any case"}, {`"last word"`, "in quotes: nothing but a part of the name"}, {"-kind:table", "a minus turns a term round"}}
	for _, q := range allQualifiers() {
		name := q.name
		if q.flag == nil {
			name += ":"
		}
		doc := q.doc
		switch {
		case q.number != nil && !q.bytes && q.flag == nil:
			doc += ", as 12, >=100, 10..20"
		case q.time != nil:
			doc += ", as <7d, >12h, >=2026-11-01, never"
		}
		out = append(out, termHelp{name, doc})
	}
	return out
}()

func newListRow(s Summary) listRow {
	return listRow{Summary: s, Bare: bareName(s), Href: experimentPath(s.ID), Badges: badgesOf(s), Backlog: backlogLevel(s)}
}

func bareName(s Summary) string {
	_, name, _ := strings.Cut(s.ID, ":")
	return name
}

// badgesOf says the state in words; colour only repeats it.
func badgesOf(s Summary) []badge {
	var out []badge
	switch {
	case !s.Stored && s.Failures > 0:
		out = append(out, badge{Text: or(s.ErrorClass, "no answer"), Level: "bad", Title: s.Error})
	case !s.Stored:
		out = append(out, badge{Text: "no row yet", Level: "note", Title: "Named by its source; no round has stored it. Nothing was stored for this page either"})
	case s.Failures > 0:
		out = append(out, badge{Text: "failing", Level: "bad", Title: or(s.ErrorClass, "no answer")})
	case s.RowCount == nil && s.ObservedAt == nil:
		out = append(out, badge{Text: "not observed", Level: "note"})
	}
	if s.MissingRounds > 0 {
		out = append(out, badge{Text: "missing", Level: "warn", Title: "No source named it in the last round"})
	}
	if len(out) == 0 || s.State != Hot {
		out = append(out, badge{Text: string(s.State), Level: string(s.State)})
	}
	return out
}

func backlogLevel(s Summary) string {
	switch {
	case s.PendingWAL == nil || *s.PendingWAL <= fleet.BacklogWarning:
		return ""
	case *s.PendingWAL > fleet.ReadCap:
		return "bad"
	default:
		return "warn"
	}
}

func sortHeaders(q Query) []sortHeader {
	var out []sortHeader
	for i, col := range columns {
		if col.title == "" {
			continue
		}
		next := q.by(i, col.down)
		h := sortHeader{Name: col.name, Title: col.title, Hint: col.hint, AriaSort: "none"}
		if col.number != nil && !col.time {
			h.Class = "num"
		}
		switch col.name {
		case "action":
			h.Class = "why"
		case "kind":
			h.Class = "kind"
		}
		if i == q.column {
			h.On, next.Down = true, !q.Down
			h.AriaSort, h.Arrow = "ascending", "▲"
			if q.Down {
				h.AriaSort, h.Arrow = "descending", "▼"
			}
		}
		h.Href = next.href("/")
		out = append(out, h)
	}
	return out
}

func (q Query) pager(total int) pager {
	at := func(offset int) string {
		next := q
		next.Offset = max(offset, 0)
		return next.href("/")
	}
	p := pager{First: at(0), Text: fmt.Sprintf("%s–%s of %s", count(int64(min(q.Offset+1, total))),
		count(int64(min(q.Offset+q.Limit, total))), count(int64(total)))}
	if q.Offset > 0 {
		p.Prev = at(q.Offset - q.Limit)
	}
	if q.Offset+q.Limit < total {
		p.Next = at(q.Offset + q.Limit)
		p.Last = at((total - 1) / q.Limit * q.Limit)
	}
	for _, n := range []int{50, 100, 500} {
		next := q
		next.Limit, next.Offset = n, q.Offset/n*n
		p.Sizes = append(p.Sizes, chip{Text: strconv.Itoa(n), Href: next.href("/"), On: q.Limit == n})
	}
	return p
}

// fields are the hidden inputs with which a form keeps the rest of the view.
func fields(q Query, without ...string) []field {
	v := q.values()
	for _, name := range without {
		v.Del(name)
	}
	var out []field
	for _, name := range slices.Sorted(keys(v)) {
		for _, value := range v[name] {
			out = append(out, field{name, value})
		}
	}
	return out
}

func keys(v url.Values) func(func(string) bool) {
	return func(yield func(string) bool) {
		for name := range v {
			if !yield(name) {
				return
			}
		}
	}
}

// all is the same view on one page.
func (q Query) all() Query {
	q.Limit, q.Offset = defaultLimit, 0
	return q
}
