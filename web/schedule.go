package web

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"unicode"
)

type scheduleOutput struct {
	Body Schedule
}

// getSchedule asks Temporal itself: who steers wants to see what is.
func (s *Server) getSchedule(ctx context.Context, _ *struct{}) (*scheduleOutput, error) {
	if s.steer == nil {
		return nil, noTemporal()
	}
	ctx, cancel := context.WithTimeout(ctx, temporalTimeout)
	defer cancel()
	schedule, err := s.steer.Schedule(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking for the schedule: %w", err)
	}
	return &scheduleOutput{Body: schedule}, nil
}

type pauseInput struct {
	Body PauseRequest
}

type resumeInput struct {
	Body *PauseRequest `required:"false"`
}

func (s *Server) pauseSchedule(ctx context.Context, in *pauseInput) (*scheduleOutput, error) {
	schedule, err := s.setPaused(ctx, true, in.Body)
	if err != nil {
		return nil, err
	}
	return &scheduleOutput{Body: schedule}, nil
}

func (s *Server) resumeSchedule(ctx context.Context, in *resumeInput) (*scheduleOutput, error) {
	request := PauseRequest{}
	if in.Body != nil {
		request = *in.Body
	}
	schedule, err := s.setPaused(ctx, false, request)
	if err != nil {
		return nil, err
	}
	return &scheduleOutput{Body: schedule}, nil
}

// setPaused stops or starts the schedule and answers its state afterwards, which
// the pages show from then on.
func (s *Server) setPaused(ctx context.Context, paused bool, request PauseRequest) (Schedule, error) {
	reason := line(request.Reason)
	if paused && reason == "" {
		return Schedule{}, refuse(http.StatusUnprocessableEntity, "reason: say why, it is shown on every page while rounds are paused")
	}
	if len(reason) > 500 {
		return Schedule{}, refuse(http.StatusUnprocessableEntity, "reason: at most 500 bytes")
	}
	if s.steer == nil {
		return Schedule{}, noTemporal()
	}
	ctx, cancel := context.WithTimeout(ctx, 2*temporalTimeout)
	defer cancel()
	doing, change := "resuming rounds", s.steer.Resume
	if paused {
		doing, change = "pausing rounds", s.steer.Pause
	}
	if err := change(ctx, author(request.By), reason); err != nil {
		return Schedule{}, fmt.Errorf("%s: %w", doing, err)
	}
	schedule, err := s.steer.Schedule(ctx)
	if err != nil {
		return Schedule{}, fmt.Errorf("asking for the schedule after %s: %w", doing, err)
	}
	s.feed.update(func(m *moment) { m.schedule, m.temporalProblem, m.temporalAsked = &schedule, "", true })
	return schedule, nil
}

// line makes what somebody typed one line of printable text.
func line(s string) string {
	clean := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	return strings.Join(strings.Fields(clean), " ")
}

// author is who asked; nobody said is said.
func author(by string) string {
	by = line(by)
	if by == "" {
		return "somebody over HTTP"
	}
	if len(by) > 100 {
		by = strings.ToValidUTF8(by[:100], "")
	}
	return by
}
