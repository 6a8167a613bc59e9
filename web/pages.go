package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"lancefleet/fleet"
)

//go:embed templates/*.html
var templateFiles embed.FS

//go:embed static
var staticFiles embed.FS

// pages holds the parsed templates and the files they load.
type pages struct {
	list, experiment, act, batch, rounds, operations, runbook, login, failure *template.Template
	files                                                                     map[string]asset
}

type asset struct {
	body []byte
	mime string
	hash string
}

func loadPages() (*pages, error) {
	p := &pages{files: map[string]asset{}}
	if err := p.loadFiles(); err != nil {
		return nil, err
	}
	for name, into := range map[string]**template.Template{
		"list": &p.list, "experiment": &p.experiment, "act": &p.act, "batch": &p.batch, "rounds": &p.rounds,
		"operations": &p.operations, "runbook": &p.runbook, "login": &p.login, "error": &p.failure,
	} {
		t, err := template.New("layout").Funcs(p.functions()).ParseFS(templateFiles, "templates/layout.html", "templates/"+name+".html")
		if err != nil {
			return nil, fmt.Errorf("page %s: %w", name, err)
		}
		*into = t
	}
	return p, nil
}

func (p *pages) loadFiles() error {
	mimes := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
	return fs.WalkDir(staticFiles, "static", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := staticFiles.ReadFile(name)
		sum := sha256.Sum256(body)
		p.files[path.Base(name)] = asset{body: body, mime: mimes[path.Ext(name)], hash: hex.EncodeToString(sum[:6])}
		return err
	})
}

// functions for templates. Those that answer HTML put nothing into it but numbers
// and times they formatted themselves.
func (p *pages) functions() template.FuncMap {
	return template.FuncMap{
		"asset":      func(name string) string { return "/static/" + name + "?v=" + p.files[name].hash },
		"count64":    func(n int) string { return count(int64(n)) },
		"count":      count,
		"tally":      func(n int) string { return count(int64(n)) },
		"plural":     plural,
		"short":      short,
		"size":       size,
		"seconds":    seconds,
		"ago":        ago,
		"due":        due,
		"since":      func(ms, now int64) template.HTML { return ago(&ms, now, "") },
		"stamp":      stamp,
		"numeral":    numeral,
		"bytes":      sizeOf,
		"rows":       rowsOf,
		"known":      func(n int64) template.HTML { return numeral(numberOf(true, n)) },
		"knownsize":  func(n int64) template.HTML { return sizeOf(numberOf(true, n)) },
		"deref":      known0,
		"took":       func(ms int64) string { return seconds(float64(ms) / 1000) },
		"every":      every,
		"interval":   func(secs int64) string { return interval(time.Duration(secs) * time.Second) },
		"price":      priceOf,
		"sum":        fleet.Requests.Total,
		"requests":   requestsOf,
		"experiment": experimentPath,
		"link":       func(r Round) string { return r.link },
		"roundsAt":   func(r []Round, now int64) roundsAt { return roundsAt{r, now} },
		"unknown":    func() template.HTML { return unknown },
		"total":      func(n int) string { return count(int64(n)) },
		"exact":      exact,
		"outcome":    outcomeTitle,
		"lasting":    lasting,
		"shard":      shortShard,
	}
}

// every is a length of time of which 0 means never.
func every(secs int64) string {
	if secs <= 0 {
		return "never"
	}
	return span(time.Duration(secs) * time.Second)
}

// roundsAt is a table of rounds, seen from now.
type roundsAt struct {
	Rounds []Round
	Now    int64
}

// lasting says for how long something has been so.
func lasting(ms *int64, now int64) string {
	if ms == nil || *ms <= 0 {
		return ""
	}
	return span(time.Duration(now-*ms) * time.Millisecond)
}

// shortShard is the part of a shard's id that tells it from the others.
func shortShard(id string) string {
	if len(id) > 13 {
		return id[:13] + "…"
	}
	return id
}

const unknown = template.HTML(`<span class="muted" title="Unknown">–</span>`)

// ago shows a time relative to now, with the exact one on hover.
func ago(ms *int64, now int64, never string) template.HTML {
	if ms == nil || *ms <= 0 {
		return template.HTML(`<span class="muted">` + template.HTMLEscapeString(never) + `</span>`)
	}
	return timeAt(*ms, now, "")
}

// due is the time of what comes next. What Temporal said a moment ago may be past
// by now: then it is due. data-due says so to the script that keeps times current.
func due(ms *int64, now int64, none string) template.HTML {
	if ms == nil || *ms <= 0 {
		return ago(nil, now, none)
	}
	return timeAt(max(*ms, now), now, " data-due")
}

func timeAt(ms, now int64, attribute string) template.HTML {
	return template.HTML(`<time datetime="` + machine(ms) + `" title="` + exact(ms) + `"` + attribute + `>` + relative(ms, now) + `</time>`)
}

func stamp(ms *int64) string {
	if ms == nil || *ms <= 0 {
		return ""
	}
	return exact(*ms)
}

func numeral(n *int64) template.HTML {
	if n == nil {
		return unknown
	}
	return template.HTML(count(*n))
}

func sizeOf(n *int64) template.HTML {
	if n == nil {
		return unknown
	}
	return template.HTML(`<span title="` + count(*n) + ` bytes">` + size(*n) + `</span>`)
}

// rowsOf marks an upper bound as one.
func rowsOf(s Summary) template.HTML {
	if s.RowCount == nil {
		return unknown
	}
	if s.RowsExact != nil && !*s.RowsExact {
		return template.HTML(`<span title="Upper bound: keys may repeat between base and pending generations">≈ ` + count(*s.RowCount) + `</span>`)
	}
	return template.HTML(count(*s.RowCount))
}

func priceOf(p *float64) template.HTML {
	if p == nil {
		return template.HTML(`<span class="muted" title="Local disk, or no interval known">–</span>`)
	}
	return template.HTML(template.HTMLEscapeString(dollars(*p)))
}

func requestsOf(r fleet.Requests) string {
	return fmt.Sprintf("list %s, head %s, get %s, put %s, delete %s", count(r.List), count(r.Head), count(r.Get), count(r.Put), count(r.Delete))
}

// short keeps large sums readable: 12,345,678 -> "12.3 M".
func short(n int64) string {
	switch {
	case n < 100_000:
		return count(n)
	case n < 1_000_000:
		return fmt.Sprintf("%.0f k", float64(n)/1e3)
	case n < 1_000_000_000:
		return fmt.Sprintf("%.1f M", float64(n)/1e6)
	default:
		return fmt.Sprintf("%.1f G", float64(n)/1e9)
	}
}

// chrome is what every page shows around its content.
type chrome struct {
	Title      string
	Page       string // which one is current
	Fleet      string
	DataDir    string
	Build      string
	TemporalUI string
	RequestID  string
	Now        int64
	Status     Status
	Banners    []banner
	Done       string // what a form just did
	Problem    string // what a form could not do
	Shut       bool   // whoever sends this is not known: the page says nothing of the fleet
	Who        string // logged in or by token; "" = tokens are not asked for
	Role       Role
	Leave      bool // a session, which can be ended
	CanOperate bool // buttons that change something would be obeyed
}

type banner struct {
	Level string // warn, bad, note
	Title string
	Text  string
	Href  string
	Link  string
}

func (s *Server) chrome(c echo.Context, m moment, page, title string) chrome {
	who := callerOf(c.Request().Context())
	if !who.role.may(Read) {
		return chrome{Title: title, Page: page, Shut: true, RequestID: requestID(c.Request().Context()), Now: s.now().UnixMilli()}
	}
	status := s.status(m)
	return chrome{
		Who: who.name, Role: who.role, Leave: who.session != nil, CanOperate: who.role.may(Operate),
		Title: title, Page: page, Fleet: s.fleet, DataDir: s.dataDir, Build: s.build, TemporalUI: s.config.TemporalUI,
		RequestID: requestID(c.Request().Context()), Now: status.Now, Status: status,
		Banners: banners(m, status), Done: done[c.QueryParam("done")],
	}
}

// done are the sentences a form's answer may ask for; a link can show no others.
var done = map[string]string{
	"refreshed":      "Refreshed: a worker has observed it in full and stored what it saw.",
	"paused":         "Rounds are paused.",
	"resumed":        "Rounds run again.",
	"paused-unread":  "Rounds are paused. Temporal could not be asked for the schedule afterwards.",
	"resumed-unread": "Rounds run again. Temporal could not be asked for the schedule afterwards.",
	"asked":          "It has been started. What becomes of it stands below.",
	"busy":           "It is being worked on already. What becomes of that stands below.",
	"batch":          "The batch has been started. This page follows it.",
	"batch-partly":   "The batch has been started, but not all of it: Temporal gave no answer for some. Those are not in the list below; ask again for them.",
	"started":        "A round has been started.",
	"joined":         "A round was already running; it will do.",
}

// banners say on every page what makes the page less than true.
func banners(m moment, status Status) []banner {
	var out []banner
	if sch := status.Schedule; sch != nil && sch.Paused {
		text := "by " + or(sch.By, "another tool")
		if sch.Since != nil {
			text += " " + relative(*sch.Since, status.Now)
		}
		if sch.Reason != "" {
			text += ": " + sch.Reason
		}
		out = append(out, banner{Level: "warn", Title: "Rounds are paused", Text: text + ".", Href: "/operations", Link: "Resume"})
	}
	if m.view != nil && status.Stale && (status.Schedule == nil || !status.Schedule.Paused) {
		text := status.StaleWhy + "."
		if status.AsOf != nil {
			text += " Data as of " + exact(*status.AsOf) + " (" + relative(*status.AsOf, status.Now) + ")."
		}
		out = append(out, banner{Level: "warn", Title: "Old data", Text: text, Href: "/runbook#overdue", Link: "What to do"})
	}
	if m.view != nil && m.storageProblem != "" && !status.Stale {
		out = append(out, banner{Level: "warn", Title: "Storage does not answer", Text: m.storageProblem + ". What was read before is shown."})
	}
	if m.temporalProblem != "" {
		out = append(out, banner{Level: "bad", Title: "Temporal does not answer", Text: m.temporalProblem + ". Looking works; rounds and buttons don't."})
	}
	return out
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func interval(d time.Duration) string {
	if d%time.Minute == 0 && d >= time.Minute {
		return plural(int64(d/time.Minute), "minute")
	}
	return plural(int64(d/time.Second), "second")
}

// show renders to a buffer first: a page that fails half way is an error page.
func (s *Server) show(c echo.Context, status int, t *template.Template, content any) error {
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, "layout", content); err != nil {
		return fmt.Errorf("rendering %s: %w", c.Path(), err)
	}
	return c.HTMLBlob(status, b.Bytes())
}

// routePages registers pages, their forms and their files.
func (s *Server) routePages() {
	s.get(Read, "/", s.listPage)
	s.get(Read, "/export.csv", s.exportCSV)
	s.get(Read, "/export.json", s.exportJSON)
	s.strict["GET /export.csv"], s.strict["GET /export.json"] = listParameters, listParameters
	s.get(Read, "/batch", s.batchPreview)
	s.post("/batch", s.batchForm)
	s.get(Read, "/batches/:id", s.batchPage)
	s.get(Read, "/experiments/:name", s.experimentPage)
	s.post("/experiments/:name/refresh", s.refreshForm)
	s.get(Read, "/experiments/:name/do/:action", s.actPage)
	s.post("/experiments/:name/do/:action", s.actForm)
	s.get(Read, "/experiments/:name/charts/:chart", s.experimentChart)
	s.get(Read, "/operations", s.operationsPage)
	s.get(Read, "/operations/charts/:chart", s.fleetChart)
	s.get(Read, "/runbook", s.runbookPage)
	s.get(Read, "/rounds", s.roundsPage)
	s.post("/rounds/pause", s.pauseForm)
	s.post("/rounds/resume", s.resumeForm)
	s.post("/rounds/start", s.startForm)
	s.get(Open, "/login", s.loginPage)
	s.open("/login", s.loginForm)
	s.open("/logout", s.logoutForm)
	s.get(Open, "/static/:file", s.serveFile)
	s.get(Open, "/favicon.ico", func(c echo.Context) error { return c.Redirect(http.StatusMovedPermanently, "/static/favicon.svg") })
}

// serveFile lets a browser keep a file for good: its address has its hash.
func (s *Server) serveFile(c echo.Context) error {
	f, ok := s.pages.files[c.Param("file")]
	if !ok {
		return refuse(http.StatusNotFound, "there is nothing at this address")
	}
	if c.QueryParam("v") == f.hash {
		c.Response().Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	return c.Blob(http.StatusOK, f.mime, f.body)
}

type failurePage struct {
	chrome
	Heading    string
	Message    string
	Candidates []string
}

// errorPage never fails: if the page does, plain text remains.
func (s *Server) errorPage(c echo.Context, e *ErrorBody) {
	headings := map[int]string{
		http.StatusNotFound: "Not found", http.StatusConflict: "Which one?", http.StatusServiceUnavailable: "Not available now",
		http.StatusBadRequest: "Not a name", http.StatusForbidden: "Refused", http.StatusUnauthorized: "Who is there?",
		http.StatusTooManyRequests: "Too often",
	}
	p := failurePage{
		chrome:  s.chrome(c, s.feed.moment(), "", or(headings[e.status], "Error")),
		Heading: or(headings[e.status], "Error"), Message: e.Message, Candidates: e.Candidates,
	}
	if err := s.show(c, e.status, s.pages.failure, p); err != nil {
		s.log.Error("error page", "error", err)
		_ = c.String(e.status, e.Message) // the client may be gone
	}
}

// experimentPath is the address of an experiment's page. A kind:name needs no
// escaping; anything else gets it.
func experimentPath(id string) string {
	return "/experiments/" + strings.ReplaceAll(template.URLQueryEscaper(id), "%3A", ":")
}
