package web

import (
	"context"
	"fmt"
	"net/http"

	"lancefleet/lance"
	"lancefleet/workflows"
)

type acceptInput struct {
	Name   string         `path:"name" doc:"kind:name, or bare"`
	DryRun bool           `query:"dry_run" doc:"Say what would be decided about and what comes of it, and do nothing"`
	Body   *AcceptRequest `required:"false"`
}

// accept starts what an operator decided about what merges refuse.
func (s *Server) accept(ctx context.Context, in *acceptInput) (*maintenanceOutput, error) {
	r := asked{action: workflows.ActionAccept}
	if b := in.Body; b != nil {
		r.By, r.Why, r.LeaveOut, r.Seen = b.By, line(b.Why), b.LeaveOut, line(b.Seen)
	}
	if !in.DryRun {
		if err := r.complete(); err != nil {
			return nil, err
		}
	}
	return s.maintain(ctx, in.Name, r, in.DryRun)
}

// checkDecision refuses a decision that says not why, or not about what.
func checkDecision(why, seen string) error {
	switch "" {
	case why:
		return refuse(http.StatusUnprocessableEntity, "why: must be given: the journal keeps why it was decided so")
	case seen:
		return refuse(http.StatusUnprocessableEntity, "seen: must be given: accept.seen of a dry run, so that it is decided about what was looked at")
	}
	return nil
}

// acceptPlan says what a decision would be about, by the marks that the journal
// remembers.
func (s *Server) acceptPlan(ctx context.Context, plan MaintenancePlan, m moment, t target, r asked) (MaintenancePlan, error) {
	accepted, err := s.inspect.PreviewAccept(ctx, lance.AcceptSpec{
		URI: t.exp.URI, RememberedMarks: m.view.histories[t.exp.ID].Marks(t.row), LeaveOut: r.LeaveOut,
	})
	if err != nil {
		return plan, fmt.Errorf("looking at %s: %w", t.exp.ID, err)
	}
	plan.Accept = &accepted
	for _, shard := range accepted.Shards {
		plan.Generations += shard.Generations
	}
	if accepted.Refused != nil {
		plan.Start, plan.Reason = false, accepted.Refused.Sentence
		plan.Blocking = append(plan.Blocking, accepted.Refused.Sentence)
	}
	return plan, nil
}
