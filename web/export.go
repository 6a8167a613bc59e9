package web

import (
	"encoding/csv"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
)

// exported is what a query finds, to be written one by one: a fleet's worth of
// answers at once would be a fleet's worth of memory.
type exported struct {
	moment
	list  ExperimentList // without its experiments
	rows  []int32
	nowMS int64
}

func (e exported) at(i int) Summary {
	return summarise(e.view.shown(e.rows[i], e.retiring, e.nowMS), e.nowMS)
}

// export reads the query. Those that only a source names are told as they are known:
// not at all.
func (s *Server) export(c echo.Context) (exported, error) {
	q, mistakes := parseQuery(c.QueryParams())
	if len(mistakes) > 0 {
		return exported{}, refuseQuery(mistakes)
	}
	m := s.forSearch(c.Request().Context(), q)
	if m.view == nil {
		return exported{}, notLoaded(m)
	}
	now := s.now().UnixMilli()
	q.Limit, q.Offset = 1, 0 // 0 would be all of them
	list, _ := m.list(q, now)
	list.Experiments = []Summary{}
	q.Limit = -1
	list.Limit = list.Total
	return exported{m, list, q.run(&asking{m, now}).rows, now}, nil
}

// refuseQuery names all that was not understood.
func refuseQuery(mistakes []Mistake) *ErrorBody {
	said := make([]string, len(mistakes))
	for i, m := range mistakes {
		said[i] = m.Error()
	}
	body := refuse(http.StatusUnprocessableEntity, strings.Join(said, "; "))
	body.Mistakes = mistakes
	return body
}

// exportCSV writes every experiment of the view.
func (s *Server) exportCSV(c echo.Context) error {
	e, err := s.export(c)
	if err != nil {
		return err
	}
	h := c.Response().Header()
	h.Set("Content-Type", "text/csv; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="experiments.csv"`)
	c.Response().WriteHeader(http.StatusOK)
	w := csv.NewWriter(c.Response())
	_ = w.Write(csvHeader) // a client that went away is no error of ours
	for i := range e.rows {
		one := e.at(i)
		_ = w.Write(csvRecord(&one))
	}
	w.Flush()
	return nil
}

// exportJSON writes the list of the API with all its experiments.
func (s *Server) exportJSON(c echo.Context) error {
	e, err := s.export(c)
	if err != nil {
		return err
	}
	frame, err := json.Marshal(e.list)
	if err != nil {
		return err
	}
	before, after, _ := strings.Cut(string(frame), "[]")
	h := c.Response().Header()
	h.Set("Content-Disposition", `attachment; filename="experiments.json"`)
	h.Set("Content-Type", "application/json")
	w := c.Response()
	_, _ = w.Write([]byte(before + "["))
	for i := range e.rows {
		one, err := json.Marshal(e.at(i))
		if err != nil {
			return err
		}
		if i > 0 {
			one = append([]byte(",\n"), one...)
		}
		if _, err := w.Write(one); err != nil {
			return nil //nolint:nilerr // a client that went away is no error of ours
		}
	}
	_, _ = w.Write([]byte("]" + after + "\n"))
	return nil
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
	if s != "" && strings.ContainsRune("=+-@\t\r\n", rune(s[0])) {
		return "'" + s
	}
	return s
}
