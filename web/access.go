package web

import (
	"net/http"

	"github.com/labstack/echo/v4"
)

// Access is what a route asks of its caller.
type Access string

// The kinds of access.
const (
	Open    Access = "open"    // tells nothing about the fleet: health, static files
	Read    Access = "read"    // looks
	Operate Access = "operate" // starts, stops, changes
)

// Authorise decides whether a request may do what its route does. The error is
// answered with 403 unless it brings its own status.
type Authorise func(r *http.Request, a Access) error

// guard asks Authorise before any handler runs. A route that nobody classified is
// treated as one that changes something.
func (s *Server) guard(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		access, ok := s.access[c.Request().Method+" "+c.Path()]
		if !ok {
			access = Operate
		}
		if access == Open || s.authorise == nil {
			return next(c)
		}
		if err := s.authorise(c.Request(), access); err != nil {
			body := answerOf(err)
			if body.status == http.StatusInternalServerError {
				body = refuse(http.StatusForbidden, sentence(err))
			}
			return body
		}
		return next(c)
	}
}
