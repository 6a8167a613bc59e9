package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"lancefleet/fleet"
)

type experimentContent struct {
	chrome
	D           Detail
	Bare        string
	Badges      []badge
	Level       string // of the health sentence
	Backlog     string
	KnownShards bool
	Href        string
	JSON        string
	Raw         string
	Temporal    string // its workflows there
	History     History
	HistoryLost string // why there is none to show
	Policy      []policyRow
	Acts        []string
	Came        *cameOf // of what was asked for on this page
	Series      Series
	Pictures    []picture
	SeriesLost  string
	Unobserved  string // why only what its source says is shown
}

// cameOf says what became of a run.
type cameOf struct {
	RunID   string
	Outcome string // running, done, ...; "" = not heard of yet
	Own     Done
	Steps   []Done
	Since   *int64
	Link    string
}

func (s *Server) experimentPage(c echo.Context) error {
	fresh := c.QueryParam("fresh") == "true"
	d, err := s.experiment(c.Request().Context(), c.Param("name"), fresh)
	if err != nil {
		return s.unobserved(c, err)
	}
	if !fresh && c.Param("name") != d.ID {
		return c.Redirect(http.StatusFound, experimentPath(d.ID)) // one address per experiment
	}
	return s.showExperiment(c, http.StatusOK, d, "")
}

// unobserved shows what is known of one that exists and can't be looked at now: its
// row, or what its source says. Other errors stay what they are.
func (s *Server) unobserved(c echo.Context, failed error) error {
	var told *ErrorBody
	m := s.feed.moment()
	if m.view == nil || errors.As(failed, &told) && told.status != http.StatusServiceUnavailable {
		return failed
	}
	t, err := s.resolve(c.Request().Context(), m.view, c.Param("name"))
	if err != nil {
		return failed
	}
	why := s.explain(c.Request().Context(), failed).Message
	if t.row != nil {
		return s.showExperiment(c, http.StatusOK, s.stored(m, t), "Looking at it now did not work: "+why)
	}
	row := fleet.UnknownRow(t.exp)
	d := describe(shown{row: &row, state: Hot, decision: fleet.Decision{Action: fleet.DoNothing, Reason: "no round has observed it yet"}}, s.now().UnixMilli())
	d.Health = "Named by its source; it could not be observed just now."
	s.surround(&d, m, &row)
	p, err := s.experimentContent(c, m, d)
	if err != nil {
		return err
	}
	p.Unobserved = why
	return s.show(c, http.StatusOK, s.pages.experiment, p)
}

// historyShown is how many entries of the journal a page shows.
const historyShown = 50

// tellHistory reads journal and samples for the page: what can't be read costs its
// section, not the page.
func (s *Server) tellHistory(ctx context.Context, m moment, p *experimentContent, days int, runID string) {
	id, err := fleet.ParseStatsName(p.D.ID)
	if err != nil {
		p.HistoryLost, p.SeriesLost = sentence(err), sentence(err)
		return
	}
	if p.History, err = s.history(ctx, m, target{exp: fleet.Experiment{ID: id}}, historyShown); err != nil {
		p.HistoryLost = sentence(err)
	}
	if p.Series, err = s.series(ctx, m, id, days); err != nil {
		p.SeriesLost = sentence(err)
	}
	p.Pictures = p.Series.pictures()
	slices.Reverse(p.Series.Points) // the table is newest first
	if runID != "" && sensibleID.MatchString(runID) {
		p.Came = cameOfRun(p.History, runID)
	}
}

// cameOfRun looks for a run in the journal, and among what runs.
func cameOfRun(h History, runID string) *cameOf {
	out := &cameOf{RunID: runID}
	if h.Running != nil && h.Running.RunID == runID {
		out.Outcome, out.Since, out.Link = outcomeRunning, &h.Running.StartedAt, h.Running.Link
	}
	for _, a := range h.Actions {
		switch {
		case a.RunID != runID:
		case isStep(a.Kind):
			out.Steps = append(out.Steps, a)
		default:
			out.Outcome, out.Own, out.Link = a.Outcome, a, a.Link
		}
	}
	slices.Reverse(out.Steps) // in the order in which they were done
	return out
}

func (s *Server) showExperiment(c echo.Context, status int, d Detail, problem string) error {
	p, err := s.experimentContent(c, s.feed.moment(), d)
	if err != nil {
		return err
	}
	p.Problem = problem
	return s.show(c, status, s.pages.experiment, p)
}

func (s *Server) experimentContent(c echo.Context, m moment, d Detail) (experimentContent, error) {
	p, err := newExperimentContent(d)
	if err != nil {
		return p, err
	}
	p.chrome = s.chrome(c, m, "experiments", d.ID)
	p.Temporal = s.workflowsOf(d.ID)
	s.tellHistory(c.Request().Context(), m, &p, daysAsked(c.QueryParam("days")), c.QueryParam("run"))
	return p, nil
}

func newExperimentContent(d Detail) (experimentContent, error) {
	raw, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return experimentContent{}, fmt.Errorf("writing %s as json: %w", d.ID, err)
	}
	p := experimentContent{
		D: d, Bare: bareName(d.Summary), Badges: badgesOf(d.Summary), Backlog: backlogLevel(d.Summary),
		KnownShards: d.WALShards != nil, Href: experimentPath(d.ID), Policy: policyRows(d.Policy),
		Acts: offered(d), JSON: apiPrefix + experimentPath(d.ID), Raw: string(raw), Level: levelOK,
	}
	switch {
	case d.State == Retired:
		p.Level = "rest"
	case d.Failures > 0 || p.Backlog == levelBad:
		p.Level = levelBad
	case p.Backlog == levelWarn || d.MissingRounds > 0 || d.Stranded != nil && *d.Stranded > 0:
		p.Level = levelWarn
	case d.RowCount == nil:
		p.Level = levelNote
	}
	return p, nil
}

// Runbook is where to read about the class of its failure.
func (p experimentContent) Runbook() string { return runbookPath(p.D.ErrorClass, p.D.Error) }

// DayLinks offer how far back the charts go.
func (p experimentContent) DayLinks() []workChip { return dayLinks(p.Href, "time", p.Series.Days) }

// Numbers are the newest points of the series.
func (p experimentContent) Numbers() []Point { return cut(p.Series.Points, 100) }

// workflowsOf links to what Temporal has of one experiment.
func (s *Server) workflowsOf(id string) string {
	if s.config.TemporalUI == "" {
		return ""
	}
	return s.temporalNamespace() + "/workflows?query=" + url.QueryEscape(`LfExperiment="`+id+`"`)
}

func (s *Server) temporalNamespace() string {
	return strings.TrimSuffix(s.config.TemporalUI, "/") + "/namespaces/" + url.PathEscape(s.config.TemporalNamespace)
}

func (s *Server) refreshForm(c echo.Context) error {
	name := c.Param("name")
	out, err := s.rescanOne(c.Request().Context(), name, c.FormValue("by"))
	if err == nil {
		return c.Redirect(http.StatusSeeOther, experimentPath(out.ID)+"?done=refreshed")
	}
	body := s.explain(c.Request().Context(), err)
	m := s.feed.moment()
	if m.view == nil {
		return body
	}
	t, lost := s.resolve(c.Request().Context(), m.view, name)
	if lost != nil || t.row == nil {
		return body
	}
	return s.showExperiment(c, body.status, s.stored(m, t), body.Message)
}
