package web

import (
	"context"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
)

type statusOutput struct {
	Body Status
}

func (s *Server) getStatus(context.Context, *struct{}) (*statusOutput, error) {
	return &statusOutput{Body: s.status(s.feed.moment())}, nil
}

func (s *Server) status(m moment) Status {
	now := s.now().UnixMilli()
	out := Status{
		Fleet: s.fleet, DataDir: s.dataDir, Build: s.build, Now: now,
		Loaded:          m.view != nil,
		AsOf:            timeOf(m.asOf()),
		StorageProblem:  m.storageProblem,
		TemporalProblem: m.temporalProblem,
		Schedule:        m.schedule,
	}
	out.Stale, out.StaleWhy = m.stale(now)
	if m.view != nil {
		version := m.view.Version
		out.StatsVersion, out.CommittedAt, out.Totals = &version, timeOf(m.view.CommittedAt), &m.view.totals
	}
	if len(m.rounds) > 0 {
		last := s.round(m.rounds[0], m.interval())
		out.LastRound = &last
	}
	return out
}

// serveReadiness is ready once the table is in memory. Temporal away is said, but
// the browser goes on working without it.
func (s *Server) serveReadiness(c echo.Context) error {
	r := readiness(s.feed.moment())
	if !callerOf(c.Request().Context()).role.may(Read) {
		r = r.neutral()
	}
	if !r.Ready {
		return c.JSON(http.StatusServiceUnavailable, r)
	}
	return c.JSON(http.StatusOK, r)
}

// neutral says what is missing and not why: the reasons name buckets and hosts.
func (r Readiness) neutral() Readiness {
	for i, missing := range r.Missing {
		what, _, _ := strings.Cut(missing, ":")
		r.Missing[i] = what + ": not available"
	}
	return r
}

func readiness(m moment) Readiness {
	r := Readiness{Snapshot: m.view != nil, Temporal: m.temporalAsked && m.temporalProblem == "", Missing: []string{}}
	if m.storageProblem != "" {
		r.Missing = append(r.Missing, "snapshot: "+m.storageProblem)
	} else if !r.Snapshot {
		r.Missing = append(r.Missing, "snapshot: not read yet")
	}
	switch {
	case !m.temporalAsked:
		r.Missing = append(r.Missing, "temporal: has not answered yet")
	case m.temporalProblem != "":
		r.Missing = append(r.Missing, "temporal: "+m.temporalProblem)
	case m.schedule != nil && !m.schedule.Exists:
		r.Missing = append(r.Missing, "schedule: no worker has created it yet")
	}
	r.Ready = r.Snapshot
	return r
}
