package web

import (
	"context"
	"time"

	"lancefleet/fleet"
)

// partsKept is how long parts of the operations page stand although time goes on:
// their words tell ages.
const partsKept = 5 * time.Second

// fleetParts are what the operations page says that takes a walk through the whole
// fleet and the whole journal.
type fleetParts struct {
	operations []operation // the running ones first
	counts     workCounts  // of them
	failures   []Failure
	retirement Retirement
}

// partsOf is all that the parts of a view are made from, but the clock.
type partsOf struct {
	newest  *fleet.Action // of this reading of the journal
	actions int
	running string
}

// partsOf answers parts that are shared by all who ask: read only, and lists have as
// much as anybody may ask for.
func (s *Server) partsOf(m moment, d digest) fleetParts {
	if m.view == nil {
		ops := withRunning(d.operations, m.running)
		return fleetParts{operations: ops, counts: countsOf(ops), failures: failuresOf(nil, ops)}
	}
	of := partsOf{actions: len(d.actions), running: runsIn(m)}
	if of.actions > 0 {
		of.newest = &d.actions[0]
	}
	return m.view.parts.ask(of, s.now().UnixMilli(), partsKept.Milliseconds(), func() fleetParts {
		ops := withRunning(d.operations, m.running)
		return fleetParts{operations: ops, counts: countsOf(ops), failures: failuresOf(m.view, ops), retirement: s.retirement(m, ops, maxLimit)}
	})
}

// prepare works out what the operations page says of a view that is about to be shown,
// so that nobody who asks has to wait for it. What goes wrong here is told by the
// request that asks: the view is shown all the same.
func (s *Server) prepare(ctx context.Context, m moment) {
	attempt(func() fleetParts {
		s.made(m)
		d, err := s.journalled(ctx)
		if err != nil {
			s.log.WarnContext(ctx, "the operations page is not prepared", "error", err)
			return fleetParts{}
		}
		return s.partsOf(m, d)
	})
}

// warm sums up what the pictures of the operations page show, which reads a whole table.
func (s *Server) warm(ctx context.Context, m moment) {
	attempt(func() FleetSeries { // what goes wrong is told by the request that asks
		series, err := s.fleetSeries(ctx, m, daysAsked(""))
		if err != nil {
			s.log.WarnContext(ctx, "the pictures of the operations page are not prepared", "error", err)
		}
		return series
	})
}

// cut shortens lists that are shared.
func (r Retirement) cut(limit int) *Retirement {
	r.Candidates, r.Blocked = cut(r.Candidates, limit), cut(r.Blocked, limit)
	r.Retired, r.Returned = cut(r.Retired, limit), cut(r.Returned, limit)
	return &r
}
