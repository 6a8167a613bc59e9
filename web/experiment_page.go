package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"
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

func (s *Server) showExperiment(c echo.Context, status int, d Detail, problem string) error {
	p, err := newExperimentContent(d)
	if err != nil {
		return err
	}
	p.chrome = s.chrome(c, s.feed.moment(), "experiments", d.ID)
	p.Problem = problem
	p.Temporal = s.workflowsOf(d.ID)
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
		JSON: apiPrefix + experimentPath(d.ID), Raw: string(raw), Level: "ok",
	}
	switch {
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
