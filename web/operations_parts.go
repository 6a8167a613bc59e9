package web

import (
	"strings"
	"sync"
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
	failures   []Failure
	retirement Retirement
}

// partsMemory keeps the newest parts: many look at the page at once, and it refreshes
// itself.
type partsMemory struct {
	mu     sync.Mutex
	of     partsOf
	madeAt int64 // unix ms
	parts  fleetParts
}

// partsOf is all that parts are made from, but the clock.
type partsOf struct {
	view    *view
	newest  *fleet.Action // of this reading of the journal
	actions int
	running string // ids of runs
}

// partsOf answers parts that are shared by all who ask: read only, and lists have as
// much as anybody may ask for. While they are worked out, who asks waits.
func (s *Server) partsOf(m moment, d digest) fleetParts {
	runs := make([]string, len(m.running))
	for i := range m.running {
		runs[i] = m.running[i].RunID
	}
	of, now := partsOf{view: m.view, actions: len(d.actions), running: strings.Join(runs, " ")}, s.now().UnixMilli()
	if of.actions > 0 {
		of.newest = &d.actions[0]
	}
	p := &s.parts
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == of && now-p.madeAt < partsKept.Milliseconds() && p.madeAt <= now && p.madeAt > 0 {
		return p.parts
	}
	ops := withRunning(d.operations, m.running)
	parts := fleetParts{operations: ops, failures: failuresOf(m.view, ops)}
	if m.view != nil {
		parts.retirement = s.retirement(m, ops, maxLimit)
	}
	p.of, p.madeAt, p.parts = of, now, parts
	return parts
}

// cut shortens lists that are shared.
func (r Retirement) cut(limit int) *Retirement {
	r.Candidates, r.Blocked = cut(r.Candidates, limit), cut(r.Blocked, limit)
	r.Retired, r.Returned = cut(r.Retired, limit), cut(r.Returned, limit)
	return &r
}
