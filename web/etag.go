package web

import (
	"fmt"
	"hash/fnv"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"lancefleet/fleet"
)

// tag names what an answer is made from. It is weak: ages in it may differ.
func (m moment) tag(now int64) string {
	stale, _ := m.stale(now)
	return fmt.Sprintf(`W/"%d-%d-%d-%t"`, m.view.Version, m.view.builtAt, m.asOf(), stale)
}

// tagOf also counts what Temporal says, and the address: an answer of one address is
// never taken for that of another.
func (m moment) tagOf(address string, now int64) string {
	h := fnv.New64a()
	fmt.Fprintln(h, m.tag(now), address, m.temporalProblem)
	for _, r := range m.running {
		fmt.Fprintln(h, r.ID, r.Action, r.RunID)
	}
	if sch := m.schedule; sch != nil {
		fmt.Fprintln(h, sch.Exists, sch.Paused, sch.Reason, sch.By, sch.IntervalSecs)
	}
	return fmt.Sprintf(`W/"%d-%016x"`, m.view.Version, h.Sum64())
}

// tagged are routes whose answers are made from memory alone.
var tagged = map[string]bool{
	"GET /export.csv":               true,
	"GET /export.json":              true,
	"GET /api/v1/plan":              true,
	"GET /api/v1/experiments/:name": true,
}

// unchanged answers 304 where the client has what would be sent. What is made from a
// look at storage, rather than from the table, has no tag.
func (s *Server) unchanged(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		m := s.feed.moment()
		if !tagged[r.Method+" "+c.Path()] || m.view == nil || !s.fromTable(c, m) {
			return next(c)
		}
		tag := m.tagOf(r.URL.RequestURI(), s.now().UnixMilli())
		// A tag of this address was given with an answer, so the request is a good one;
		// `*` says nothing of it, and is not looked at here.
		if have := r.Header.Get("If-None-Match"); strings.TrimSpace(have) != "*" && matches(have, tag) {
			c.Response().Header().Set("Etag", tag)
			return c.NoContent(http.StatusNotModified)
		}
		c.Response().Before(func() {
			if c.Response().Status == http.StatusOK {
				c.Response().Header().Set("Etag", tag)
			}
		})
		return next(c)
	}
}

// fromTable is false for an experiment that is looked at for the answer.
func (s *Server) fromTable(c echo.Context, m moment) bool {
	name := c.Param("name")
	if name == "" {
		return true
	}
	ref, err := fleet.ParseRef(name)
	return err == nil && c.QueryParam("fresh") == "" && len(m.view.matches(ref)) > 0
}

// matches compares as RFC 9110 says for If-None-Match: weakly, with any of a list.
func matches(header, tag string) bool {
	for one := range strings.SplitSeq(header, ",") {
		one = strings.TrimSpace(one)
		if one == "*" || one != "" && strings.TrimPrefix(one, "W/") == strings.TrimPrefix(tag, "W/") {
			return true
		}
	}
	return false
}
