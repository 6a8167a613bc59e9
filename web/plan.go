package web

import (
	"context"
	"strings"
	"time"

	"lancefleet/fleet"
)

type planInput struct {
	Limit int `query:"limit" default:"100" doc:"Of each list; clamped to 1..500"`
}

type planOutput struct {
	Body FleetPlan
}

// getPlan makes the plan that the next round would make from the same tables.
func (s *Server) getPlan(_ context.Context, in *planInput) (*planOutput, error) {
	m := s.feed.moment()
	if m.view == nil {
		return nil, notLoaded(m)
	}
	return &planOutput{Body: s.plan(m, min(max(in.Limit, 1), maxLimit))}, nil
}

// planMade is a plan and, by cause, what blocks the rest.
type planMade struct {
	fleet.PlanOutput
	causes []Cause
}

// planKept is how long a plan is good for while neither the tables nor what runs change.
const planKept = 10 * time.Second

// made answers the plan of a moment. It is shared: read only.
func (s *Server) made(m moment) planMade {
	now := s.now().UnixMilli()
	return m.view.plans.ask(runsIn(m), now, planKept.Milliseconds(), func() planMade {
		running := map[fleet.ID]bool{}
		for _, r := range m.running {
			running[r.ID] = true
		}
		rows, idle := m.view.wanting(running, now)
		made := fleet.Plan(fleet.PlanInput{
			Rows: rows, Policies: s.policies, Histories: m.view.histories, Running: running, Budgets: s.budgets, Now: now,
		})
		made.NotDue += idle
		return planMade{made, causesOf(made.Blocked)}
	})
}

// runsIn tells one list of running maintenance from another.
func runsIn(m moment) string {
	var runs strings.Builder
	for i := range m.running {
		r := &m.running[i]
		runs.WriteString(r.Action + " " + r.ID.String() + " " + r.RunID + "\n")
	}
	return runs.String()
}

func (s *Server) plan(m moment, limit int) FleetPlan {
	made := s.made(m)
	out := FleetPlan{
		Maintain: s.policies.Default.Maintain || len(made.Starts) > 0,
		Starts:   planned(made.Starts, len(made.Starts)), Waiting: planned(made.Waiting, limit), Blocked: []Planned{}, Running: []Running{},
		WaitingAll: len(made.Waiting), BlockedAll: len(made.Blocked), CoolingDown: made.CoolingDown, NotDue: made.NotDue,
		Causes: made.causes, Retired: int(m.view.facets.retired), Budgets: Budgets{s.budgets.Merge, s.budgets.Compact, s.budgets.Retire}, AsOf: timeOf(m.asOf()),
	}
	for _, b := range made.Blocked[:min(limit, len(made.Blocked))] {
		out.Blocked = append(out.Blocked, Planned{
			ID: b.String(), Action: string(b.Action), Wants: string(b.Wants), Reason: b.Reason, NotBefore: timeOf(b.NotBefore),
		})
	}
	for _, r := range m.running {
		out.Running = append(out.Running, s.running(r))
	}
	return out
}

func planned(starts []fleet.Start, limit int) []Planned {
	out := []Planned{}
	for _, start := range starts[:min(limit, len(starts))] {
		out = append(out, Planned{ID: start.String(), Action: string(start.Action), Wants: string(start.Action), Reason: start.Reason, Score: start.Score})
	}
	return out
}

// wanting are the hot rows of which a plan has to say something, or may by now; idle
// counts the others that nobody works on: nothing was due for them when the view was
// built, and until the time that they were given nothing can be.
func (v *view) wanting(running map[fleet.ID]bool, now int64) (rows []fleet.Row, idle int) {
	isIdle := func(i int32) bool {
		d := &v.decisions[i]
		return d.Action == fleet.DoNothing && d.Held == "" && (d.NotBefore == 0 || d.NotBefore > now)
	}
	for _, i := range v.hot {
		if isIdle(i) {
			idle++
		} else {
			rows = append(rows, *v.Rows[i])
		}
	}
	for id := range running {
		if at, ok := v.find(id); ok && v.retired[at] == nil && isIdle(at) {
			idle--
		}
	}
	return rows, idle
}
