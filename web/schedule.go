package web

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"
)

type scheduleOutput struct {
	Body Schedule
}

// getSchedule asks Temporal itself: who steers wants to see what is.
func (s *Server) getSchedule(ctx context.Context, _ *struct{}) (*scheduleOutput, error) {
	if s.steer == nil {
		return nil, noTemporal()
	}
	schedule, err := s.readSchedule(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking for the schedule: %w", err)
	}
	return &scheduleOutput{Body: schedule}, nil
}

type pauseInput struct {
	Body PauseRequest
}

type resumeInput struct {
	Body *ResumeRequest `required:"false"`
}

func (s *Server) pauseSchedule(ctx context.Context, in *pauseInput) (*scheduleOutput, error) {
	schedule, err := s.setPaused(ctx, steerRequest{true, in.Body.By, in.Body.Reason})
	if err != nil {
		return nil, err
	}
	return &scheduleOutput{Body: schedule}, nil
}

func (s *Server) resumeSchedule(ctx context.Context, in *resumeInput) (*scheduleOutput, error) {
	request := steerRequest{}
	if in.Body != nil {
		request.by, request.reason = in.Body.By, in.Body.Reason
	}
	schedule, err := s.setPaused(ctx, request)
	if err != nil {
		return nil, err
	}
	return &scheduleOutput{Body: schedule}, nil
}

// steerRequest asks for rounds to stop, or to go on.
type steerRequest struct {
	paused     bool
	by, reason string
}

func (r steerRequest) doing() string {
	if r.paused {
		return "pausing rounds"
	}
	return "resuming rounds"
}

func (r steerRequest) checked(ctx context.Context) (steerRequest, error) {
	r.by, r.reason = author(ctx, r.by), line(r.reason)
	if r.paused && r.reason == "" {
		return r, refuse(http.StatusUnprocessableEntity, "reason: say why, it is shown on every page while rounds are paused")
	}
	if n := utf8.RuneCountInString(r.reason); n > formMost["reason"] {
		return r, refuse(http.StatusUnprocessableEntity, fmt.Sprintf("reason: %d characters; at most %d are kept", n, formMost["reason"]))
	}
	return r, nil
}

// setPaused stops or starts the schedule and answers its state afterwards, which
// the pages show from then on. What took effect is never told as failed: where the
// state can't be read back, the answer is what was asked for, with a warning.
func (s *Server) setPaused(ctx context.Context, r steerRequest) (Schedule, error) {
	r, err := r.checked(ctx)
	if err != nil {
		return Schedule{}, err
	}
	if s.steer == nil {
		return Schedule{}, noTemporal()
	}
	begun := s.now().UnixMilli()
	failed := s.changeSchedule(ctx, r)
	if failed != nil && !noAnswer(failed) {
		return Schedule{}, fmt.Errorf("%s: %w", r.doing(), failed)
	}
	schedule, unread := s.readSchedule(ctx)
	if failed != nil && (unread != nil || !r.shows(schedule, begun)) {
		return Schedule{}, uncertain(r.doing(), failed)
	}
	problem := ""
	if unread != nil {
		schedule, problem = s.assumed(r, begun), sentence(unread)
	}
	s.feed.update(func(m *moment) { m.schedule, m.temporalProblem, m.temporalAsked = &schedule, problem, true })
	told := schedule
	if unread != nil {
		told.Warning = "done, but the schedule could not be read afterwards: " + problem
	}
	return told, nil
}

func (s *Server) changeSchedule(ctx context.Context, r steerRequest) error {
	ctx, cancel := context.WithTimeout(ctx, temporalTimeout)
	defer cancel()
	if r.paused {
		return s.steer.Pause(ctx, r.by, r.reason)
	}
	return s.steer.Resume(ctx, r.by, r.reason)
}

func (s *Server) readSchedule(ctx context.Context) (Schedule, error) {
	ctx, cancel := context.WithTimeout(ctx, temporalTimeout)
	defer cancel()
	return s.steer.Schedule(ctx)
}

// shows says whether a schedule is what this request made of it.
func (r steerRequest) shows(s Schedule, begun int64) bool {
	return s.Paused == r.paused && s.By == r.by && s.Reason == r.reason && s.Since != nil && *s.Since >= begun
}

// assumed is what the schedule must look like after a change that took effect.
func (s *Server) assumed(r steerRequest, at int64) Schedule {
	schedule := Schedule{Exists: true}
	if known := s.feed.moment().schedule; known != nil {
		schedule = *known
	}
	schedule.Paused, schedule.By, schedule.Reason, schedule.Since, schedule.NextAt = r.paused, r.by, r.reason, &at, nil
	return schedule
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

// author is who asked: the name of the token where there is one, with what somebody
// typed behind it. Nobody said is said.
func author(ctx context.Context, by string) string {
	by = line(by)
	switch name := callerOf(ctx).name; {
	case name == "" && by == "":
		return "somebody over HTTP"
	case name != "" && (by == "" || by == name):
		return name
	case name != "":
		by = name + " (" + by + ")"
	}
	if len(by) > 100 {
		by = strings.ToValidUTF8(by[:100], "")
	}
	return by
}
