package web

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
)

// hostileNames are what somebody may send as a name, and a foreign table may hold.
var hostileNames = map[string]string{
	"percent": "100%", "an escape that is none": "%zz%", "underscores": "a_b__", "a quote": `it's`, "quotes": `"both" 'of' ` + "`them`",
	"a parent folder": "../../etc/passwd", "a folder": "a/b", "a backslash": `..\..\x`, "10 kB": strings.Repeat("long-", 2048), "unicode": "実験-é-🦀",
	"from right to left": "abc\u202efdp.exe", "a script": "<script>alert(1)</script>", "an attribute": `x" onmouseover="alert(1)`, "a template": "{{.Fleet}}${7*7}",
	"nothing": "\x00", "a new line": "a\nlevel=ERROR msg=forged", "colours": "\x1b[31mred", "a formula": "=1+1", "a sum": "+SUM(A1)", "a minus": "-2+3", "at": "@SUM(1)",
	"a tab before a formula": "\t=1", "not unicode": "\xff\xfe", "a query": "a?b=c&d", "a fragment": "a#b", "a colon": "rollout:rollout:x", "a space": " ", "dots": "..",
}

// hostileRows is a table that somebody else has written.
func hostileRows() []fleet.Row {
	rows := []fleet.Row{healthy(fleet.Rollout, "run-1", minutesAgo(120))}
	for _, name := range hostileNames {
		if !utf8.ValidString(name) {
			continue // no table can hold it
		}
		row := healthy(fleet.Generic, name, minutesAgo(3))
		row.URI, row.Error, row.ErrorClass, row.Failures = name, name, name, 1
		rows = append(rows, row)
	}
	return rows
}

func TestHostileNamesInAddressesAndQueriesAreOrdinaryText(t *testing.T) {
	b := guarded(t)
	b.store.set(func(f *fakeStore) { f.snapshot = Snapshot{Version: 7, Rows: hostileRows()} })
	b.renew(t)
	for what, name := range hostileNames {
		path, query := url.PathEscape(name), url.QueryEscape(name)
		if name == ".." {
			path = "%2E%2E"
		}
		for _, target := range []string{
			"/api/v1/experiments/" + path, "/api/v1/experiments/generic:" + path, "/api/v1/experiments/" + path + "/plan", "/api/v1/experiments/" + path + "/history",
			"/api/v1/tasks/" + path, "/api/v1/maintenance/" + path + "/" + path, "/api/v1/experiments?search=" + query, "/api/v1/experiments?sort=" + query,
			"/experiments/" + path, "/experiments/generic:" + path, "/?search=" + query, "/?kind=" + query, "/login?next=" + query, "/rounds?done=" + query, "/export.json?search=" + query,
		} {
			w := b.get(target)
			told := what + ": " + target[:min(len(target), 100)] + ": " + w.Body.String()[:min(w.Body.Len(), 300)]
			require.Less(t, w.Code, 500, told)
			require.True(t, utf8.Valid(w.Body.Bytes()), told)
			if strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
				requireQuiet(t, w.Body.String())
			} else if w.Code != 304 && w.Body.Len() > 0 {
				require.True(t, json.Valid(w.Body.Bytes()), told)
			}
			for name, values := range w.Header() {
				require.NotContains(t, strings.Join(values, ""), "\n", name)
			}
		}
		if !strings.Contains(name, "/") { // what is not a name is a mistake, not a search
			require.Contains(t, []int{200, 400, 404, 409}, b.get("/api/v1/experiments/"+path).Code, what)
		}
	}
}

func TestHostileNamesInATableAreExportedAsText(t *testing.T) {
	b := guarded(t)
	b.store.set(func(f *fakeStore) { f.snapshot = Snapshot{Version: 7, Rows: hostileRows()} })
	b.renew(t)
	records, err := csv.NewReader(b.get("/export.csv").Body).ReadAll()
	require.NoError(t, err)
	require.Len(t, records, len(hostileNames)+1)
	for _, record := range records {
		for _, field := range record {
			if field != "" {
				require.NotContains(t, "=+-@\t\r\n", field[:1], "a spreadsheet would calculate %q", field)
			}
		}
	}
	exported := b.get("/export.json").Body.String()
	var list ExperimentList
	require.NoError(t, json.Unmarshal([]byte(exported), &list), exported[:300])
	require.Len(t, list.Experiments, len(hostileNames))
	requireQuiet(t, b.get("/?limit=500").Body.String())
}

func TestHostileWordsInTheJournalAndTheLogAreOneLineOfText(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		var log bytes.Buffer
		b := guarded(t, func(_ *Config, p *parts) {
			options := &slog.HandlerOptions{Level: slog.LevelDebug}
			p.log = slog.New(slog.NewTextHandler(&log, options))
			if format == "json" {
				p.log = slog.New(slog.NewJSONHandler(&log, options))
			}
		})
		for what, words := range hostileNames {
			body, err := json.Marshal(PauseRequest{Reason: "x " + words, By: words})
			require.NoError(t, err)
			b.do("POST", "/api/v1/schedule/pause", string(body), "Content-Type", "application/json")
			b.postForm("/experiments/run-1/do/optimize", "why="+url.QueryEscape(words)+"&by="+url.QueryEscape(words))
			b.do("POST", "/api/v1/experiments/"+url.PathEscape(words)+"/rescan?by="+url.QueryEscape(words), "", "X-Request-Id", "a")
			requireQuiet(t, b.get("/").Body.String())
			for _, said := range b.temporal.said() {
				require.NotContains(t, said, "\n", what)
				require.Equal(t, -1, strings.IndexFunc(said, unicode.IsControl), "%s: %q", what, said)
			}
			for _, row := range strings.Split(strings.TrimSuffix(log.String(), "\n"), "\n") {
				if format == "json" {
					require.True(t, json.Valid([]byte(row)), row)
					continue
				}
				require.True(t, row == "" || strings.HasPrefix(row, "time="), "%s: a line of its own: %q", what, row)
				require.Equal(t, -1, strings.IndexFunc(row, unicode.IsControl), "%s: %q", what, row)
			}
			log.Reset()
		}
	}
}

func TestFormsHoldNoLongerTextsThanTheAPI(t *testing.T) {
	b := newBench(t, oneRow(120))
	row := b.feed.moment().view.Rows[0].String()
	for path, field := range map[string]string{
		"/rounds/pause": "reason", "/rounds/resume": "reason", "/rounds/start": "by", "/batch": "why",
		"/experiments/" + row + "/refresh": "by", "/experiments/" + row + "/do/optimize": "why",
	} {
		w := b.postForm(path, url.Values{field: {strings.Repeat("ü", formMost[field]+1)}}.Encode())
		require.Equal(t, 422, w.Code, path)
		require.Contains(t, w.Body.String(), fmt.Sprintf("%s: %d characters; at most %d are kept", field, formMost[field]+1, formMost[field]), path)
	}
	require.Empty(t, b.temporal.said())
	require.Equal(t, 303, b.postForm("/rounds/pause", url.Values{"reason": {strings.Repeat("ü", formMost["reason"])}}.Encode()).Code)

	type schema struct {
		Properties map[string]struct{ MaxLength int }
	}
	doc := decode[struct {
		Components struct{ Schemas map[string]schema }
	}](t, b.get("/api/v1/openapi.json"), 200)
	seen := 0
	for name, body := range doc.Components.Schemas {
		for field, most := range formMost {
			if longest := body.Properties[field].MaxLength; longest > 0 {
				require.Equal(t, most, longest, "%s.%s", name, field)
				seen++
			}
		}
	}
	require.Greater(t, seen, 10)
}
