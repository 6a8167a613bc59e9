package web

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/labstack/echo/v4"
)

type roundsContent struct {
	chrome
	List         RoundList
	Steer        steerContent
	Newer, Older string
	Unread       string // why there is no list
}

const roundsPerPage = 50

func (s *Server) roundsPage(c echo.Context) error {
	return s.showRounds(c, http.StatusOK, "", "")
}

func (s *Server) showRounds(c echo.Context, status int, problem, reason string) error {
	offset, _ := strconv.Atoi(c.QueryParam("offset")) // nonsense is the first page
	m := s.feed.moment()
	p := roundsContent{chrome: s.chrome(c, m, "rounds", "Rounds")}
	p.Steer = p.steering(m, reason)
	list, err := s.roundPage(c.Request().Context(), roundsPerPage, offset)
	if err != nil { // the schedule can be steered all the same
		p.Unread = s.explain(c.Request().Context(), err).Message
	}
	p.List, p.Problem = list, problem
	if list.Offset > 0 {
		p.Newer = "/rounds?offset=" + strconv.Itoa(max(list.Offset-roundsPerPage, 0))
	}
	if list.More {
		p.Older = "/rounds?offset=" + strconv.Itoa(list.Offset+roundsPerPage)
	}
	for i := range p.List.Rounds {
		p.List.Rounds[i].link = s.workflowPath(p.List.Rounds[i].WorkflowID, p.List.Rounds[i].RoundID)
	}
	return s.show(c, status, s.pages.rounds, p)
}

// workflowPath is where Temporal's UI shows one run.
func (s *Server) workflowPath(workflowID, runID string) string {
	if s.config.TemporalUI == "" || workflowID == "" {
		return ""
	}
	return s.temporalNamespace() + "/workflows/" + url.PathEscape(workflowID) + "/" + url.PathEscape(runID) + "/history"
}

func (s *Server) pauseForm(c echo.Context) error {
	return s.steerForm(c, steerRequest{true, c.FormValue("by"), c.FormValue("reason")}, "paused")
}

func (s *Server) resumeForm(c echo.Context) error {
	return s.steerForm(c, steerRequest{false, c.FormValue("by"), c.FormValue("reason")}, "resumed")
}

func (s *Server) steerForm(c echo.Context, r steerRequest, said string) error {
	schedule, err := s.setPaused(c.Request().Context(), r)
	if schedule.Warning != "" {
		said += "-unread"
	}
	return s.steered(c, err, said, r.reason)
}

func (s *Server) startForm(c echo.Context) error {
	started, err := s.scan(c.Request().Context(), RescanRequest{Full: c.FormValue("full") == "true", By: c.FormValue("by")})
	said := "started"
	if started.AlreadyRunning {
		said = "joined"
	}
	return s.steered(c, err, said, "")
}

// steered goes back to the page that the form stands on, or shows it with what went
// wrong.
func (s *Server) steered(c echo.Context, err error, said, reason string) error {
	show, address := s.showRounds, "/rounds"
	if c.FormValue("back") == "operations" {
		show, address = s.showOperations, "/operations"
	}
	if err == nil {
		return c.Redirect(http.StatusSeeOther, address+"?done="+said)
	}
	body := s.explain(c.Request().Context(), err)
	return show(c, body.status, body.Message, reason)
}
