package web

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"
)

type loginContent struct {
	chrome
	Next string // where the browser wanted to go
}

// loginPage asks for a token.
func (s *Server) loginPage(c echo.Context) error {
	next := localPath(c.QueryParam("next"))
	if !s.gate.shut() || callerOf(c.Request().Context()).role != "" {
		return c.Redirect(http.StatusSeeOther, next)
	}
	return s.showLogin(c, http.StatusOK, next, "")
}

func (s *Server) showLogin(c echo.Context, status int, next, problem string) error {
	p := loginContent{chrome: s.chrome(c, s.feed.moment(), "login", "Log in"), Next: next}
	p.Problem = problem
	return s.show(c, status, s.pages.login, p)
}

// loginForm begins a session. A client that has guessed too often is not even
// compared: the right token must not be found by trying.
func (s *Server) loginForm(c echo.Context) error {
	next := localPath(c.FormValue("next"))
	if !s.gate.shut() {
		return c.Redirect(http.StatusSeeOther, next)
	}
	who := callerOf(c.Request().Context())
	if wait, spent := s.gate.failures.spent(who.client); spent {
		e := tooMany("too many tokens that did not fit", wait)
		c.Response().Header().Set("Retry-After", e.header.Get("Retry-After"))
		return s.showLogin(c, e.status, next, e.Message)
	}
	token, ok := s.gate.known().find(strings.TrimSpace(c.FormValue("token")))
	if !ok {
		s.gate.failures.take(who.client)
		s.log.Warn("a login failed", "client", who.client, "request_id", requestID(c.Request().Context()))
		return s.showLogin(c, http.StatusUnauthorized, next, "That is not one of this server's tokens.")
	}
	c.SetCookie(s.gate.begin(c.Request(), token))
	s.log.Info("logged in", "who", token.Name, "role", string(token.Role), "client", who.client)
	return c.Redirect(http.StatusSeeOther, next)
}

// logoutForm ends the session.
func (s *Server) logoutForm(c echo.Context) error {
	who := callerOf(c.Request().Context())
	c.SetCookie(s.gate.end(c.Request(), who.session))
	return c.Redirect(http.StatusSeeOther, "/login")
}

// localPath is an address on this server: a link to the login must not lead
// elsewhere afterwards.
func localPath(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || !strings.HasPrefix(next, "/") ||
		strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\t\r\n") || strings.HasPrefix(u.Path, "/login") {
		return "/"
	}
	return next
}

// toLogin answers a request of nobody known: a browser is led to the login, a
// program is told what is missing.
func (s *Server) toLogin(c echo.Context, who caller) error {
	r := c.Request()
	if who.wrong {
		return refuse(http.StatusUnauthorized, "that is not one of this server's tokens").
			with("WWW-Authenticate", `Bearer realm="lancefleet", error="invalid_token"`)
	}
	if !isAPI(r.URL.Path) && strings.Contains(r.Header.Get("Accept"), "text/html") {
		return c.Redirect(http.StatusSeeOther, "/login?next="+url.QueryEscape(wanted(r)))
	}
	return refuse(http.StatusUnauthorized, "this server wants to know who asks: send a token as Authorization: Bearer …").
		with("WWW-Authenticate", `Bearer realm="lancefleet"`)
}

// wanted is where a browser goes after the login. A form that came too late leads
// back to the page that had it.
func wanted(r *http.Request) string {
	if r.Method == http.MethodGet {
		return r.URL.RequestURI()
	}
	page, err := url.Parse(r.Referer())
	if err != nil || page.Host != r.Host {
		return "/"
	}
	return page.RequestURI()
}
