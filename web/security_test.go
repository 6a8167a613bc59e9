package web

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
	"lancefleet/lance"
)

// everyRoute lists what is registered: a new route must be put here, with what it
// asks of its caller and whether another site's page may send it.
var everyRoute = []struct {
	method, path, example, body string
	access                      Access
}{
	{"GET", "/", "/", "", Read},
	{"GET", "/export.csv", "/export.csv", "", Read},
	{"GET", "/export.json", "/export.json", "", Read},
	{"GET", "/batch", "/batch?action=optimize&id=rollout:run-1", "", Read},
	{"POST", "/batch", "/batch", "action=optimize&id=rollout:run-1", Operate},
	{"GET", "/batches/:id", "/batches/b0123456789ab?done=batch", "", Read},
	{"POST", "/api/v1/batches", "/api/v1/batches", `{"action":"optimize","ids":["rollout:run-1"]}`, Operate},
	{"GET", "/api/v1/batches/:id", "/api/v1/batches/b0123456789ab", "", Read},
	{"GET", "/experiments/:name", "/experiments/rollout:run-1", "", Read},
	{"POST", "/experiments/:name/refresh", "/experiments/rollout:run-1/refresh", "", Operate},
	{"GET", "/experiments/:name/do/:action", "/experiments/rollout:run-1/do/retire", "", Read},
	{"POST", "/experiments/:name/do/:action", "/experiments/rollout:run-1/do/retire", "force=true", Operate},
	{"GET", "/experiments/:name/charts/:chart", "/experiments/rollout:run-1/charts/pending", "", Read},
	{"GET", "/operations", "/operations", "", Read},
	{"GET", "/operations/charts/:chart", "/operations/charts/backlog", "", Read},
	{"GET", "/runbook", "/runbook", "", Read},
	{"GET", "/rounds", "/rounds", "", Read},
	{"POST", "/rounds/pause", "/rounds/pause", "reason=x", Operate},
	{"POST", "/rounds/resume", "/rounds/resume", "", Operate},
	{"POST", "/rounds/start", "/rounds/start", "", Operate},
	{"GET", "/login", "/login", "", Open},
	{"POST", "/login", "/login", "token=" + lookSecret, Open},
	{"POST", "/logout", "/logout", "", Open},
	{"GET", "/static/:file", "/static/style.css", "", Open},
	{"GET", "/favicon.ico", "/favicon.ico", "", Open},
	{"GET", "/healthz", "/healthz", "", Open},
	{"GET", "/readyz", "/readyz", "", Open},
	{"GET", "/metrics", "/metrics", "", Read},
	{"GET", "/api/v1/metrics", "/api/v1/metrics", "", Read},
	{"GET", "/api/v1/openapi.json", "/api/v1/openapi.json", "", Open},
	{"GET", "/api/v1/experiments", "/api/v1/experiments", "", Read},
	{"GET", "/api/v1/experiments/:name", "/api/v1/experiments/run-1", "", Read},
	{"POST", "/api/v1/experiments/:name/rescan", "/api/v1/experiments/run-1/rescan", "", Operate},
	{"POST", "/api/v1/rescan", "/api/v1/rescan", "", Operate},
	{"POST", "/api/v1/events", "/api/v1/events", `{"name":"run-1"}`, Notify},
	{"GET", "/api/v1/rounds", "/api/v1/rounds", "", Read},
	{"GET", "/api/v1/rounds/:workflow_id/:run_id", "/api/v1/rounds/a/b", "", Read},
	{"GET", "/api/v1/schedule", "/api/v1/schedule", "", Read},
	{"POST", "/api/v1/schedule/pause", "/api/v1/schedule/pause", `{"reason":"x"}`, Operate},
	{"POST", "/api/v1/schedule/resume", "/api/v1/schedule/resume", "", Operate},
	{"GET", "/api/v1/status", "/api/v1/status", "", Read},
	{"GET", "/api/v1/operations", "/api/v1/operations", "", Read},
	{"GET", "/api/v1/series", "/api/v1/series", "", Read},
	{"GET", "/api/v1/experiments/:name/series", "/api/v1/experiments/run-1/series", "", Read},
	{"POST", "/api/v1/experiments/:name/retire", "/api/v1/experiments/run-1/retire", `{"force":true}`, Operate},
	{"POST", "/api/v1/experiments/:name/optimize", "/api/v1/experiments/run-1/optimize", "", Operate},
	{"POST", "/api/v1/experiments/:name/wake", "/api/v1/experiments/at-rest/wake", "", Operate},
	{"POST", "/api/v1/experiments/:name/seal", "/api/v1/experiments/run-1/seal", `{"shard":"02e81b29-f150-54b9-9a08-ce75944f6889"}`, Operate},
	{"GET", "/api/v1/experiments/:name/plan", "/api/v1/experiments/run-1/plan", "", Read},
	{"GET", "/api/v1/experiments/:name/history", "/api/v1/experiments/run-1/history", "", Read},
	{"GET", "/api/v1/experiments/:name/verify", "/api/v1/experiments/run-1/verify", "", Read},
	{"GET", "/api/v1/plan", "/api/v1/plan", "", Read},
	{"GET", "/api/v1/maintenance/:workflow_id/:run_id", "/api/v1/maintenance/a/b", "", Read},
	{"GET", "/api/v1/tasks", "/api/v1/tasks", "", Read},
	{"POST", "/api/v1/tasks", "/api/v1/tasks", `{"kind":"compact","target":"run-1"}`, Operate},
	{"GET", "/api/v1/tasks/:id", "/api/v1/tasks/r1", "", Read},
	{"POST", "/api/v1/experiments/:name/compact", "/api/v1/experiments/run-1/compact", "", Operate},
	{"POST", "/api/v1/experiments/:name/accept", "/api/v1/experiments/run-1/accept", `{"why":"on purpose","seen":"as it is"}`, Operate},
	{"GET", "/api/v1/experiments/:name/compact/status", "/api/v1/experiments/run-1/compact/status", "", Read},
}

func guarded(t testing.TB, options ...option) *bench {
	row := healthy(fleet.Rollout, "run-1", minutesAgo(120))
	row.PendingWAL = 1
	store := &fakeStore{
		snapshot: Snapshot{Version: 1, Rows: []fleet.Row{row}}, retired: []fleet.LedgerEntry{retiredOne(fleet.Table, "at-rest")},
		actions:  []fleet.Action{{ID: "a", At: minutesAgo(3), Kind: fleet.ActCompact, Target: "rollout:run-1", Outcome: "done", RunID: "r1"}},
		preview:  func(lance.PreviewSpec) (lance.Preview, error) { return lance.Preview{}, nil },
		evidence: func(string, bool) (fleet.Evidence, error) { return fleet.Evidence{}, nil },
	}
	b := newBench(t, store,
		append(options, func(_ *Config, p *parts) {
			p.metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/plain")
				_, _ = w.Write([]byte("m 1\n"))
			})
		})...)
	b.temporal.record = &fleet.RoundRecord{RoundID: "b"}
	return b
}

func contentType(path string) string {
	if strings.HasPrefix(path, "/api/") {
		return "application/json"
	}
	return "application/x-www-form-urlencoded"
}

func TestEveryRegisteredRouteIsListedHere(t *testing.T) {
	b := guarded(t)
	var listed, registered []string
	for _, r := range everyRoute {
		listed = append(listed, r.method+" "+r.path)
		require.Equal(t, r.access, b.access[r.method+" "+r.path], "%s %s", r.method, r.path)
		require.Equal(t, r.method == "POST" && r.path != "/login" && r.path != "/logout", r.access == Operate || r.access == Notify, "what changes something is a POST: %s", r.path)
	}
	for _, r := range b.echo.Routes() {
		registered = append(registered, r.Method+" "+r.Path)
	}
	slices.Sort(listed)
	slices.Sort(registered)
	require.Equal(t, listed, registered)
}

func TestEveryRouteAsksForAuthorisation(t *testing.T) {
	for _, r := range everyRoute {
		t.Run(r.method+" "+r.path, func(t *testing.T) {
			var asked []Access
			b := guarded(t, func(_ *Config, p *parts) {
				p.authorise = func(_ *http.Request, a Access) error {
					asked = append(asked, a)
					return errors.New("not you")
				}
			})
			w := b.do(r.method, r.example, r.body, "Content-Type", contentType(r.path))
			if r.access == Open {
				require.Less(t, w.Code, 400)
				require.Empty(t, asked)
				return
			}
			require.Equal(t, []Access{r.access}, asked)
			require.Equal(t, 403, w.Code)
			require.Contains(t, w.Body.String(), "not you")
			require.Empty(t, b.temporal.said())
		})
	}
}

func TestAnotherSiteCanPostNothing(t *testing.T) {
	for _, r := range everyRoute {
		for name, headers := range map[string][]string{
			"by fetch metadata":              {"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"},
			"by origin":                      {"Origin", "https://evil.example"},
			"from a sandbox":                 {"Origin", "null"},
			"same host, other scheme's port": {"Origin", "http://127.0.0.1:9999"},
		} {
			t.Run(r.method+" "+r.path+" "+name, func(t *testing.T) {
				b := guarded(t)
				w := b.do(r.method, r.example, r.body, append(headers, "Content-Type", contentType(r.path))...)
				if r.method == "GET" {
					require.Less(t, w.Code, 400, w.Body.String())
					require.Empty(t, w.Header().Get("Access-Control-Allow-Origin"), "another site cannot read it")
					return
				}
				requireError(t, w, 403, "another site")
				require.Empty(t, b.temporal.said())
			})
		}
	}
}

func TestOurOwnPagesAndProgramsCanPost(t *testing.T) {
	for _, r := range everyRoute {
		if r.access != Operate {
			continue
		}
		for _, headers := range [][]string{nil, {"Sec-Fetch-Site", "same-origin"}, {"Origin", "http://127.0.0.1:8090"}} {
			b := guarded(t)
			w := b.do(r.method, r.example, r.body, append(headers, "Content-Type", contentType(r.path))...)
			require.Less(t, w.Code, 400, "%s: %s", r.path, w.Body.String())
			require.NotEmpty(t, b.temporal.said())
		}
	}
}

func TestForeignHostNamesAreRefusedOnLoopback(t *testing.T) {
	try := func(b *bench, host string) int {
		r, _ := http.NewRequest(http.MethodGet, "/api/v1/status", nil)
		r.Host = host
		w := &recorder{header: http.Header{}}
		b.Handler().ServeHTTP(w, r)
		return w.status
	}
	b := guarded(t)
	for host, status := range map[string]int{
		"127.0.0.1:8090": 200, "localhost:8090": 200, "LOCALHOST": 200, "[::1]:8090": 200, "127.0.0.1": 200, "localhost:7000": 200,
		"evil.example": 403, "evil.example:8090": 403, "127.0.0.1.evil.example": 403, "localhost.evil.example:80": 403, "": 403,
		"10.0.0.7:8090": 403, "0.0.0.0:8090": 403,
	} {
		require.Equal(t, status, try(b, host), host)
	}
	proxied := guarded(t, func(c *Config, _ *parts) { c.AllowedHosts = []string{"fleet.example"} })
	require.Equal(t, 200, try(proxied, "fleet.example"))
	require.Equal(t, 403, try(proxied, "other.example"))
	open := guarded(t, func(c *Config, _ *parts) { c.Addr, c.Insecure = "0.0.0.0:8090", true })
	require.Equal(t, 200, try(open, "10.0.0.7:8090"))
}

type recorder struct {
	header http.Header
	status int
}

func (r *recorder) Header() http.Header { return r.header }
func (r *recorder) WriteHeader(s int)   { r.status = s }
func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = 200
	}
	return len(b), nil
}

func TestAnAddressOthersCanReachNeedsAnExplicitWord(t *testing.T) {
	for addr, fine := range map[string]bool{
		"127.0.0.1:8090": true, "localhost:0": true, "[::1]:8090": true, "127.9.9.9:1": true,
		"0.0.0.0:8090": false, ":8090": false, "[::]:8090": false, "10.0.0.1:80": false, "fleet.example:80": false,
	} {
		c := DefaultConfig()
		c.Addr = addr
		err := c.Validate()
		if fine {
			require.NoError(t, err, addr)
			continue
		}
		require.ErrorIs(t, err, ErrNotLoopback, addr)
		require.ErrorContains(t, err, addr)
		c.Insecure = true
		require.NoError(t, c.Validate())
	}
	c := DefaultConfig()
	c.Addr = "8090"
	require.ErrorContains(t, c.Validate(), "host:port")
}

func TestEveryAnswerCarriesItsProtection(t *testing.T) {
	b := guarded(t)
	for _, target := range []string{"/", "/rounds", "/api/v1/experiments", "/nothing", "/static/style.css", "/experiments/nobody", "/metrics"} {
		h := b.get(target).Header()
		require.Contains(t, h.Get("Content-Security-Policy"), "default-src 'none'; script-src 'self'", target)
		require.Contains(t, h.Get("Content-Security-Policy"), "frame-ancestors 'none'")
		require.NotContains(t, h.Get("Content-Security-Policy"), "unsafe")
		require.Equal(t, "nosniff", h.Get("X-Content-Type-Options"))
		require.Regexp(t, `^[0-9a-f]{16}$`, h.Get("X-Request-Id"))
		require.NotEmpty(t, h.Get("Content-Type"))
	}
	require.Equal(t, "abc-1", b.do("GET", "/healthz", "", "X-Request-Id", "abc-1").Header().Get("X-Request-Id"))
	require.NotEqual(t, "a<b", b.do("GET", "/healthz", "", "X-Request-Id", "a<b").Header().Get("X-Request-Id"))
}

// hostile is what a name, an error or a reason may hold when somebody means harm.
const hostile = `"><script>alert(1)</script><img src=x onerror=alert(1)>'` + "\u202e\x00`${7*7}{{.}}"

func TestHostileTextStaysText(t *testing.T) {
	row := healthy(fleet.Rollout, hostile, minutesAgo(1)) // as a foreign table could hold it
	row.URI, row.Error, row.ErrorClass, row.Failures = "javascript:"+hostile, hostile, hostile, 3
	row.Tags, row.Branches, row.Indexes = []string{hostile}, []string{hostile}, []string{hostile}
	row.Shards = []fleet.Shard{{ShardMark: fleet.ShardMark{ID: hostile}, Status: hostile}}
	seen := healthy(fleet.Rollout, "run-1", minutesAgo(2))
	seen.URI, seen.Error, seen.ErrorClass, seen.Failures, seen.Tags, seen.Shards = row.URI, hostile, hostile, 3, row.Tags, row.Shards
	store := &fakeStore{snapshot: Snapshot{Rows: []fleet.Row{row, seen}}, rounds: []fleet.RoundRecord{{By: hostile, WorkflowID: hostile, RoundID: hostile}}}
	b := newBench(t, store)
	b.temporal.setPaused(true, hostile, hostile)
	b.renew(t)
	for _, target := range []string{"/", "/?search=%22%3E%3Cscript%3Ealert(1)", "/?sort=%3Cscript%3Ealert(1)", "/rounds", "/experiments/run-1",
		"/experiments/rollout:run-1", "/experiments/%22%3E%3Cscript%3Ealert(1)%3C%2Fscript%3E", "/%3Cscript%3Ealert(1)"} {
		w := b.get(target)
		body := w.Body.String()
		require.NotContains(t, body, "ZgotmplZ", target)
		requireQuiet(t, body)
	}
	for _, target := range []string{"/api/v1/experiments", "/api/v1/experiments/run-1", "/export.json"} {
		w := b.get(target)
		require.Equal(t, "application/json", w.Header().Get("Content-Type"))
		require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
	}
}

func TestAPathCannotLeaveTheStaticFiles(t *testing.T) {
	b := guarded(t)
	for _, p := range []string{"/static/../server.go", "/static/..%2fserver.go", "/static/%2e%2e%2f%2e%2e%2fgo.mod", "/static/", "/static/none.css"} {
		require.Equal(t, 404, b.get(p).Code, p)
	}
	css := b.get("/static/style.css")
	require.Equal(t, "text/css; charset=utf-8", css.Header().Get("Content-Type"))
	require.Equal(t, "no-cache", css.Header().Get("Cache-Control"))
	hashed := b.get("/static/style.css?v=" + b.pages.files["style.css"].hash)
	require.Contains(t, hashed.Header().Get("Cache-Control"), "immutable")
}

func TestLargeBodiesAreRefused(t *testing.T) {
	b := guarded(t)
	big := `{"reason":"` + strings.Repeat("x", 100<<10) + `"}`
	require.Equal(t, 413, b.do("POST", "/api/v1/schedule/pause", big).Code)
	r, _ := http.NewRequest(http.MethodPost, "/api/v1/schedule/pause", unsized{strings.NewReader(big)})
	r.Host, r.ContentLength = "localhost", -1
	w := &recorder{header: http.Header{}}
	b.Handler().ServeHTTP(w, r)
	require.Equal(t, 413, w.status, "also when it does not say how large it is")
	require.Equal(t, 422, b.postForm("/rounds/pause", "reason="+strings.Repeat("x", 600)).Code)
	require.Empty(t, b.temporal.said())
}

type unsized struct{ *strings.Reader }

func TestAPanicIsOneNeutralAnswer(t *testing.T) {
	b := newBench(t, demoStore(10))
	b.store.observe = func(fleet.Experiment) (fleet.Observation, error) { panic("secret detail") } //nolint:forbidigo // the bug that the test is about
	w := b.get("/api/v1/experiments/" + b.feed.moment().view.Rows[3].String() + "?fresh=true")
	requireError(t, w, 500, w.Header().Get("X-Request-Id"))
	require.NotContains(t, w.Body.String(), "secret")
	require.Equal(t, 200, b.get("/").Code)
}

func TestALinkCannotPutWordsIntoAPage(t *testing.T) {
	b := guarded(t)
	require.NotContains(t, b.get("/rounds?done=Your+account+is+locked").Body.String(), "locked")
	require.Contains(t, b.get("/rounds?done=paused").Body.String(), "Rounds are paused.")
}

func TestASpreadsheetReadsNoFormulas(t *testing.T) {
	row := healthy(fleet.Rollout, "run-1", 1)
	row.URI = `=HYPERLINK("http://evil.example")`
	b := newBench(t, &fakeStore{snapshot: Snapshot{Rows: []fleet.Row{row}}})
	body := b.get("/export.csv").Body.String()
	require.Contains(t, body, `'=HYPERLINK`)
	require.Contains(t, body, "rollout:run-1,rollout,run-1,hot")
}

func TestUnknownAddressesAndMethods(t *testing.T) {
	b := guarded(t)
	requireError(t, b.get("/api/v1/nothing"), 404, "nothing at this address")
	requireError(t, b.do("DELETE", "/api/v1/experiments/run-1", ""), 405, "method")
	require.Contains(t, b.get("/nothing").Body.String(), "nothing at this address")
}
