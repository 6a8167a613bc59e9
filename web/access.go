package web

import (
	"net/http"

	"github.com/labstack/echo/v4"
)

// Access is what a route asks of its caller.
type Access string

// The kinds of access.
const (
	Open    Access = "open"    // tells nothing about the fleet: health, static files, the login
	Read    Access = "read"    // looks
	Operate Access = "operate" // starts, stops, changes
	Notify  Access = "notify"  // says that something was written: operators, and whoever may do only this
)

// Authorise decides whether a request may do what its route does, after the tokens
// have. The error is answered with 403 unless it brings its own status.
type Authorise func(r *http.Request, a Access) error

// guard asks for the token's role, and Authorise, before any handler runs. A route
// that nobody classified is treated as one that changes something.
func (s *Server) guard(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		access, ok := s.access[c.Request().Method+" "+c.Path()]
		switch {
		case ok:
		case c.Path() == "":
			access = Read // there is nothing: whoever may look is told so
		default:
			access = Operate
		}
		who := callerOf(c.Request().Context())
		switch {
		case access == Open:
			return next(c)
		case who.role == "":
			return s.toLogin(c, who)
		case !who.role.may(access):
			return refuse(http.StatusForbidden, who.name+" may "+who.role.words())
		}
		if err := s.alsoAsk(c.Request(), access); err != nil {
			return err
		}
		if access == Operate {
			defer s.noteDown(c, who)
		}
		return next(c)
	}
}

func (s *Server) alsoAsk(r *http.Request, access Access) error {
	if s.authorise == nil {
		return nil
	}
	err := s.authorise(r, access)
	if err == nil {
		return nil
	}
	body := answerOf(err)
	if body.status == http.StatusInternalServerError {
		body = refuse(http.StatusForbidden, sentence(err))
	}
	return body
}

// noteDown logs what somebody asked for. What became of it is in the journal.
func (s *Server) noteDown(c echo.Context, who caller) {
	r := c.Request()
	s.log.Info("asked to act", "who", author(r.Context(), ""), "client", who.client, "path", r.URL.Path, "request_id", requestID(r.Context()))
}
