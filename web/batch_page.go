package web

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"lancefleet/workflows"
)

// batchContent is the page that says what a batch would do, before it is done, and
// the one that follows it.
type batchContent struct {
	chrome
	Request BatchRequest
	Plan    *BatchPlan
	Batch   *Batch
	Verb    string
	Explain string
	Text    string // of the query
	All     bool   // all that match
	Back    string
}

// batchRequestOf reads a form: `id` several times, or `all` and `q`.
func batchRequestOf(form url.Values) BatchRequest {
	r := BatchRequest{Action: form.Get("action"), By: form.Get("by"), Why: form.Get("why")}
	r.Confirm, _ = strconv.Atoi(strings.TrimSpace(form.Get("confirm"))) // no number is none
	if form.Get("all") == "" && len(form["id"]) > 0 {
		r.IDs = form["id"]
	} else if form.Get("all") != "" {
		text := form.Get("q")
		r.Q = &text
	}
	return r
}

func (s *Server) batchPreview(c echo.Context) error {
	return s.showBatchPlan(c, http.StatusOK, c.QueryParams(), "")
}

func (s *Server) showBatchPlan(c echo.Context, status int, form url.Values, problem string) error {
	m := s.feed.moment()
	if m.view == nil {
		return notLoaded(m)
	}
	r := batchRequestOf(form)
	p := batchContent{Request: r, Explain: acts[r.Action], Text: form.Get("q"), All: r.Q != nil, Back: "/"}
	back, _ := parseQuery(url.Values{"q": {p.Text}})
	p.Back = back.href("/")
	if r.Q == nil && len(r.IDs) == 0 {
		return refuse(http.StatusUnprocessableEntity, "nothing is selected: tick rows, or choose all that match")
	}
	plan, err := s.planBatch(c.Request().Context(), m, r)
	if err != nil {
		return err
	}
	p.Plan, p.Verb = &plan, map[string]string{workflows.ActionOptimize: "Optimize", workflows.ActionRetire: "Retire"}[r.Action]
	p.chrome = s.chrome(c, m, "experiments", p.Verb+" many")
	p.Problem = problem
	return s.show(c, status, s.pages.batch, p)
}

// batchForm does what the preview has shown.
func (s *Server) batchForm(c echo.Context) error {
	form, err := c.FormParams()
	if err != nil {
		return refuse(http.StatusBadRequest, "the form can't be read")
	}
	started, err := s.startBatch(c.Request().Context(), batchRequestOf(form))
	if err != nil {
		body := s.explain(c.Request().Context(), err)
		return s.showBatchPlan(c, body.status, form, body.Message)
	}
	if started.Started == 0 {
		status, words := started.nothing()
		return s.showBatchPlan(c, status, form, words)
	}
	said := "batch"
	if len(started.Failed) > 0 {
		said = "batch-partly"
	}
	return c.Redirect(http.StatusSeeOther, "/batches/"+started.ID+"?done="+said)
}

// nothing says why a batch has started nothing. A button that is pressed twice is no
// failure: each has a run already.
func (b BatchStarted) nothing() (status int, words string) {
	status, said := http.StatusConflict, []string{"nothing was started"}
	if b.Already > 0 {
		said = append(said, strconv.Itoa(b.Already)+" are being worked on already")
	}
	for _, f := range b.Failed {
		status = http.StatusServiceUnavailable
		said = append(said, strconv.Itoa(f.Count)+": "+f.Reason)
	}
	return status, strings.Join(said, "; ")
}

func (s *Server) batchPage(c echo.Context) error {
	b, err := s.batch(c.Request().Context(), c.Param("id"))
	if err != nil {
		return err
	}
	p := batchContent{Batch: &b, Back: "/"}
	p.chrome = s.chrome(c, s.feed.moment(), "experiments", "Batch "+b.ID)
	return s.show(c, http.StatusOK, s.pages.batch, p)
}
