package web

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"lancefleet/fleet"
)

type listContent struct {
	chrome
	List     ExperimentList
	Query    Query
	Filtered bool
	Mistakes []string
	Headers  []sortHeader
	Rows     []listRow
	Chips    []chipGroup
	Pager    pager
	Hidden   []field // the view, as the search form keeps it
	Unsorted []field // the view, as the sort form keeps it
	CSV      string
	JSON     string
	Caption  string
}

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

type badge struct{ Text, Level, Title string }

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

type pager struct {
	Text                    string
	First, Prev, Next, Last string
	Sizes                   []chip
}

func (s *Server) listPage(c echo.Context) error {
	m := s.feed.moment()
	if m.view == nil {
		return notLoaded(m)
	}
	values, wrong := listParameters.check(c.Request().URL.RawQuery)
	query, mistakes := parseQuery(values)
	mistakes = append(wrong, mistakes...)
	content := newListContent(m, query, s.now().UnixMilli())
	content.chrome = s.chrome(c, m, "experiments", "Experiments")
	content.Mistakes = mistakes
	return s.show(c, http.StatusOK, s.pages.list, content)
}

func newListContent(m moment, q Query, now int64) listContent {
	list := m.list(q, now)
	p := listContent{
		List: list, Query: q, Filtered: q.filtered(),
		Headers: sortHeaders(q), Chips: q.chips(m.view.facets), Pager: q.pager(list.Total),
		Hidden: fields(q, "search", "offset"), Unsorted: fields(q, "sort", "order", "offset"),
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
		next := q
		next.Sort, next.column, next.Offset, next.Down = col.name, i, 0, col.down
		h := sortHeader{Name: col.name, Title: col.title, Hint: col.hint, AriaSort: "none"}
		if col.number != nil && !col.time {
			h.Class = "num"
		}
		if col.name == "action" {
			h.Class = "why"
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

// chips offers filters with their counts, and the usual questions in one click.
func (q Query) chips(f facets) []chipGroup {
	var all int64
	for _, n := range f.kinds {
		all += n
	}
	kinds := chipGroup{Label: "Kind"}
	every := q
	every.Kinds, every.Offset = nil, 0
	kinds.Chips = append(kinds.Chips, chip{Text: "all kinds", Href: every.href("/"), Count: all, Counted: true, On: len(q.Kinds) == 0})
	for _, k := range fleet.Kinds() {
		next, on := q, slices.Contains(q.Kinds, k)
		if f.kinds[k] == 0 && !on {
			continue
		}
		next.Kinds, next.Offset = toggled(q.Kinds, k), 0
		kinds.Chips = append(kinds.Chips, chip{Text: string(k), Href: next.href("/"), Count: f.kinds[k], Counted: true, On: on})
	}
	states := chipGroup{Label: "State"}
	states.Chips = append(states.Chips, q.stateChip(Hot, all), q.stateChip(Retired, f.retired),
		q.switchChip("failing", f.failing, func(q *Query) *bool { return &q.Failing }),
		q.switchChip("pending", f.backlog, func(q *Query) *bool { return &q.Backlog }))
	if f.unseen > 0 || q.Unseen {
		states.Chips = append(states.Chips, q.switchChip("not observed", f.unseen, func(q *Query) *bool { return &q.Unseen }))
	}
	views := chipGroup{Label: "Sorted by"}
	for _, v := range []struct{ text, sort string }{
		{"newest write", "last_write"}, {"worst backlog", "pending_wal_generations"}, {"most fragments", "fragment_count"},
	} {
		next := q
		next.Sort, next.column, next.Down, next.Offset = v.sort, findColumn(v.sort), true, 0
		views.Chips = append(views.Chips, chip{Text: v.text, Href: next.href("/"), On: q.Sort == v.sort && q.Down})
	}
	return []chipGroup{kinds, states, views}
}

func (q Query) stateChip(state State, n int64) chip {
	next := q
	next.States, next.Offset = toggled(q.States, state), 0
	return chip{Text: string(state), Href: next.href("/"), Count: n, Counted: true, On: slices.Contains(q.States, state)}
}

func (q Query) switchChip(text string, n int64, of func(*Query) *bool) chip {
	on := *of(&q)
	next := q
	*of(&next), next.Offset = !on, 0
	return chip{Text: text, Href: next.href("/"), Count: n, Counted: true, On: on}
}

func toggled[T comparable](in []T, v T) []T {
	if i := slices.Index(in, v); i >= 0 {
		return slices.Delete(slices.Clone(in), i, i+1)
	}
	return append(slices.Clone(in), v)
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

// exportCSV writes every experiment of the view.
func (s *Server) exportCSV(c echo.Context) error {
	list, err := s.export(c)
	if err != nil {
		return err
	}
	h := c.Response().Header()
	h.Set("Content-Type", "text/csv; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="experiments.csv"`)
	c.Response().WriteHeader(http.StatusOK)
	w := csv.NewWriter(c.Response())
	_ = w.Write(csvHeader) // a client that went away is no error of ours
	for i := range list.Experiments {
		_ = w.Write(csvRecord(&list.Experiments[i]))
	}
	w.Flush()
	return nil
}

func (s *Server) exportJSON(c echo.Context) error {
	list, err := s.export(c)
	if err != nil {
		return err
	}
	c.Response().Header().Set("Content-Disposition", `attachment; filename="experiments.json"`)
	c.Response().Header().Set("Content-Type", "application/json")
	return json.NewEncoder(c.Response()).Encode(list)
}

func (s *Server) export(c echo.Context) (ExperimentList, error) {
	m := s.feed.moment()
	if m.view == nil {
		return ExperimentList{}, notLoaded(m)
	}
	q, mistakes := parseQuery(c.QueryParams())
	if len(mistakes) > 0 {
		return ExperimentList{}, refuse(http.StatusUnprocessableEntity, strings.Join(mistakes, "; "))
	}
	q.Limit, q.Offset = -1, 0
	list := m.list(q, s.now().UnixMilli())
	list.Limit = list.Total
	return list, nil
}

var csvHeader = []string{"id", "kind", "name", "state", "last_write", "row_count", "rows_exact", "fragment_count", "pending_wal_generations",
	"bytes", "last_maintenance", "scanned_at", "failures", "error_class", "action", "reason", "uri"}

func csvRecord(s *Summary) []string {
	exact := ""
	if s.RowsExact != nil {
		exact = strconv.FormatBool(*s.RowsExact)
	}
	return []string{s.ID, string(s.Kind), cell(bareName(*s)), string(s.State), csvTime(s.LastWrite), csvNumber(s.RowCount), exact,
		csvNumber(s.FragmentCount), csvNumber(s.PendingWAL), csvNumber(s.Bytes), csvTime(s.LastMaintenance), csvTime(s.ScannedAt),
		strconv.FormatInt(s.Failures, 10), cell(s.ErrorClass), s.Action, cell(s.Reason), cell(s.URI)}
}

func csvNumber(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}

func csvTime(ms *int64) string {
	if ms == nil {
		return ""
	}
	return time.UnixMilli(*ms).UTC().Format(time.RFC3339)
}

// cell keeps spreadsheets from reading text as a formula.
func cell(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return "'" + s
	}
	return s
}
