package web

import (
	"context"
	"fmt"
)

type historyInput struct {
	Name  string `path:"name" doc:"kind:name, or bare"`
	Limit int    `query:"limit" default:"50" doc:"Clamped to 1..500"`
}

type historyOutput struct {
	Body History
}

func (s *Server) getHistory(ctx context.Context, in *historyInput) (*historyOutput, error) {
	m := s.feed.moment()
	if m.view == nil {
		return nil, notLoaded(m)
	}
	t, err := s.resolve(ctx, m.view, in.Name)
	if err != nil {
		return nil, err
	}
	out, err := s.history(ctx, m, t, min(max(in.Limit, 1), maxLimit))
	if err != nil {
		return nil, err
	}
	return &historyOutput{Body: out}, nil
}

// history is what the journal keeps of one experiment, and what runs.
func (s *Server) history(ctx context.Context, m moment, t target, n int) (History, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	actions, err := s.journal.Of(ctx, t.exp.ID, n)
	if err != nil {
		return History{}, fmt.Errorf("reading the journal: %w", err)
	}
	out := History{ID: t.exp.String(), Actions: []Done{}}
	for _, a := range actions {
		out.Actions = append(out.Actions, s.done(a))
	}
	if r := m.runningOf(t.exp.ID); r != nil {
		running := s.running(*r)
		running.Progress = s.progress(ctx, r.WorkflowID, r.RunID)
		out.Running = &running
	}
	return out, nil
}
