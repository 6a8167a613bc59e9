package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
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
	Overrides   string // where its policy comes from
	Acts        []string
}

func (s *Server) experimentPage(c echo.Context) error {
	fresh := c.QueryParam("fresh") == "true"
	d, err := s.experiment(c.Request().Context(), c.Param("name"), fresh)
	if err != nil {
		return err
	}
	if !fresh && c.Param("name") != d.ID {
		return c.Redirect(http.StatusFound, experimentPath(d.ID)) // one address per experiment
	}
	return s.showExperiment(c, http.StatusOK, d, "")
}

// historyShown is how many entries of the journal a page shows.
const historyShown = 50

// tellHistory reads the journal for the page: one that can't be read costs its
// section, not the page.
func (s *Server) tellHistory(c echo.Context, p *experimentContent) {
	id, err := fleet.ParseStatsName(p.D.ID)
	if err == nil {
		t := target{exp: fleet.Experiment{ID: id}}
		p.History, err = s.history(c.Request().Context(), s.feed.moment(), t, historyShown)
	}
	if err != nil {
		p.HistoryLost = sentence(err)
	}
}

func (s *Server) showExperiment(c echo.Context, status int, d Detail, problem string) error {
	p, err := newExperimentContent(d)
	if err != nil {
		return err
	}
	p.chrome = s.chrome(c, s.feed.moment(), "experiments", d.ID)
	p.Problem = problem
	p.Temporal = s.workflowsOf(d.ID)
	s.tellHistory(c, &p)
	return s.show(c, status, s.pages.experiment, p)
}

func newExperimentContent(d Detail) (experimentContent, error) {
	raw, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return experimentContent{}, fmt.Errorf("writing %s as json: %w", d.ID, err)
	}
	p := experimentContent{
		D: d, Bare: bareName(d.Summary), Badges: badgesOf(d.Summary), Backlog: backlogLevel(d.Summary),
		KnownShards: d.WALShards != nil, Href: experimentPath(d.ID),
		Acts: offered(d), JSON: apiPrefix + experimentPath(d.ID), Raw: string(raw), Level: "ok",
	}
	for _, n := range d.Policy.From {
		p.Overrides += fmt.Sprintf(" override %d", n)
	}
	switch {
	case d.State == Retired:
		p.Level = "rest"
	case d.Failures > 0 || p.Backlog == "bad":
		p.Level = "bad"
	case p.Backlog == "warn" || d.MissingRounds > 0 || d.Stranded != nil && *d.Stranded > 0:
		p.Level = "warn"
	case d.RowCount == nil:
		p.Level = "note"
	}
	return p, nil
}

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
