package web

import (
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"lancefleet/workflows"
)

// actContent is the page that says what an action would do, before it is done.
type actContent struct {
	chrome
	Plan     MaintenancePlan
	Bare     string
	Kind     string
	Href     string // of the experiment
	Verb     string
	Explain  string
	Force    bool // overlooks the age
	CanForce bool // that is all that stands in the way
	Unseen   string
}

// acts are the actions that pages offer, and what each does in general.
var acts = map[string]string{
	workflows.ActionRetire:   "Merges what is pending, compacts, verifies that nothing is left behind, and takes it out of the hot table. Nothing is deleted that a reader could miss; a write makes it hot again.",
	workflows.ActionOptimize: "Merges what is pending into the base table and rewrites small fragments into larger ones. No row changes.",
	workflows.ActionWake:     "Looks whether it was written since it retired. If so it is hot again, else nothing changes.",
}

// actPage shows a dry run, and the button that does it.
func (s *Server) actPage(c echo.Context) error {
	return s.showAct(c, http.StatusOK, "")
}

func (s *Server) showAct(c echo.Context, status int, problem string) error {
	action := c.Param("action")
	if acts[action] == "" {
		return refuse(http.StatusNotFound, "there is nothing at this address")
	}
	r := asked{action: action}
	r.Force = c.QueryParam("force") == "true" || c.FormValue("force") == "true"
	m := s.feed.moment()
	if m.view == nil {
		return notLoaded(m)
	}
	t, err := s.resolve(c.Request().Context(), m.view, c.Param("name"))
	if err != nil {
		return err
	}
	v := s.verdict(m, t, r)
	p := actContent{
		Plan: MaintenancePlan{ID: t.exp.String(), Action: action, Start: v.start, Reason: v.reason, NotBefore: timeOf(v.notBefore), Blocking: []string{}},
		Bare: t.exp.Name, Kind: string(t.exp.Kind), Href: experimentPath(t.exp.String()),
		Verb: strings.ToUpper(action[:1]) + action[1:], Explain: acts[action], Force: r.Force, CanForce: v.forceable,
	}
	if action != workflows.ActionWake {
		if plan, err := s.dryRun(c.Request().Context(), p.Plan.ID, r); err != nil {
			p.Unseen = s.explain(c.Request().Context(), err).Message
		} else {
			p.Plan = plan
		}
	}
	p.chrome = s.chrome(c, m, "experiments", p.Verb+" "+p.Plan.ID)
	p.Problem = problem
	return s.show(c, status, s.pages.act, p)
}

// actForm does what the page has shown.
func (s *Server) actForm(c echo.Context) error {
	action := c.Param("action")
	if acts[action] == "" {
		return refuse(http.StatusNotFound, "there is nothing at this address")
	}
	r := asked{action: action}
	r.By, r.Why, r.Force = c.FormValue("by"), c.FormValue("why"), c.FormValue("force") == "true"
	started, err := s.start(c.Request().Context(), c.Param("name"), r)
	if err != nil {
		body := s.explain(c.Request().Context(), err)
		return s.showAct(c, body.status, body.Message)
	}
	said := "asked"
	if started.AlreadyRunning {
		said = "busy"
	}
	return c.Redirect(http.StatusSeeOther, experimentPath(started.ID)+"?done="+said)
}

// offered are the actions that fit an experiment's state.
func offered(d Detail) []string {
	switch {
	case d.State == Retired:
		return []string{workflows.ActionWake}
	case d.State == Retiring, d.Running != nil:
		return nil
	}
	return slices.Clone([]string{workflows.ActionOptimize, workflows.ActionRetire})
}
