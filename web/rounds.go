package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"lancefleet/fleet"
)

// deepest is how many rounds back a list goes: the table keeps 30 days.
const deepest = 10_000

type roundsInput struct {
	Limit  int `query:"limit" default:"50" doc:"Clamped to 1..500"`
	Offset int `query:"offset" default:"0"`
}

type roundsOutput struct {
	Body RoundList
}

func (s *Server) listRounds(ctx context.Context, in *roundsInput) (*roundsOutput, error) {
	list, err := s.roundPage(ctx, in.Limit, in.Offset)
	if err != nil {
		return nil, err
	}
	return &roundsOutput{Body: list}, nil
}

// roundPage answers from memory, and from the table when older ones are asked for.
func (s *Server) roundPage(ctx context.Context, limit, offset int) (RoundList, error) {
	limit = min(max(limit, 1), maxLimit)
	offset = min(max(offset, 0), deepest)
	m := s.feed.moment()
	if m.view == nil {
		return RoundList{}, notLoaded(m)
	}
	recent := m.rounds
	if offset+limit >= keptRounds && len(recent) >= keptRounds {
		ctx, cancel := context.WithTimeout(ctx, readTimeout)
		defer cancel()
		var err error
		if recent, err = s.rounds.Latest(ctx, offset+limit+1); err != nil {
			return RoundList{}, fmt.Errorf("reading the rounds: %w", err)
		}
	}
	out := RoundList{Rounds: []Round{}, Limit: limit, Offset: offset}
	for i := offset; i < len(recent) && i < offset+limit; i++ {
		out.Rounds = append(out.Rounds, s.round(recent[i], m.interval()))
	}
	out.More = len(recent) > offset+limit
	return out, nil
}

// round adds the price of its requests: those of one round, every round of a day.
func (s *Server) round(r fleet.RoundRecord, intervalSecs int64) Round {
	out := Round{RoundRecord: r}
	if OnObjectStore(s.dataDir) && intervalSecs > 0 {
		price := s.config.Prices.PricePerDay(r.StorageRequests, intervalSecs)
		out.PricePerDay = &price
	}
	return out
}

// OnObjectStore says whether requests to a data directory cost money; on local disk they do not.
func OnObjectStore(dir string) bool {
	return strings.Contains(dir, "://") && !strings.HasPrefix(dir, "file://")
}

type roundInput struct {
	WorkflowID string `path:"workflow_id"`
	RunID      string `path:"run_id"`
	WaitSecs   int    `query:"wait_secs" default:"0" doc:"Wait so long for it to end; at most 60"`
}

type roundOutput struct {
	Status int
	Body   any
}

// getRound answers 200 with the record, or 202 while the round runs.
func (s *Server) getRound(ctx context.Context, in *roundInput) (*roundOutput, error) {
	if s.steer == nil {
		return nil, noTemporal()
	}
	wait := min(max(time.Duration(in.WaitSecs)*time.Second, 0), longestPoll)
	record, err := s.steer.Round(ctx, in.WorkflowID, in.RunID, wait)
	if err != nil {
		return nil, fmt.Errorf("asking for round %s of %s: %w", in.RunID, in.WorkflowID, err)
	}
	if record == nil {
		return &roundOutput{Status: http.StatusAccepted, Body: RunningRound{WorkflowID: in.WorkflowID, RunID: in.RunID, Running: true}}, nil
	}
	m := s.feed.moment()
	if !m.shows(record) {
		m = s.untilLooked(ctx)
	}
	return &roundOutput{Status: http.StatusOK, Body: s.round(*record, m.interval())}, nil
}

// shows says whether what a round and those before it have stored is shown. One that
// committed nothing does not say what that is: then a look must have begun after its
// record was there.
func (m moment) shows(record *fleet.RoundRecord) bool {
	switch {
	case m.view == nil:
		return false
	case record.CommittedVersion != nil:
		return m.view.Version >= *record.CommittedVersion
	}
	return slices.ContainsFunc(m.roundsBefore, func(r fleet.RoundRecord) bool { return r.RoundID == record.RoundID })
}

// longestShow bounds how long an answer waits for this server to show what it tells.
const longestShow = 5 * time.Second

// AwaitShown waits until the pages show what is stored now. Storage that does not
// answer holds up nothing.
func (s *Server) AwaitShown(ctx context.Context) { s.untilLooked(ctx) }

// untilLooked looks at storage again, so that what is asked for after the answer
// shows what a run did. Where storage does not answer, the answer goes out anyway.
func (s *Server) untilLooked(ctx context.Context) moment {
	ctx, cancel := context.WithTimeout(ctx, longestShow)
	defer cancel()
	return s.feed.lookAgain(ctx)
}

type rescanInput struct {
	Body *RescanRequest `required:"false"`
}

type startedOutput struct {
	Location string `header:"Location"`
	Body     Started
}

func (s *Server) startRound(ctx context.Context, in *rescanInput) (*startedOutput, error) {
	request := RescanRequest{}
	if in.Body != nil {
		request = *in.Body
	}
	started, err := s.scan(ctx, request)
	if err != nil {
		return nil, err
	}
	return &startedOutput{Location: started.Location, Body: started}, nil
}

func (s *Server) scan(ctx context.Context, request RescanRequest) (Started, error) {
	if s.steer == nil {
		return Started{}, noTemporal()
	}
	limit := 2 * temporalTimeout
	if request.Next {
		limit = longestPoll // one that runs is waited for
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	started, err := s.steer.Scan(ctx, request.Full, request.Next, author(ctx, request.By))
	if err != nil {
		return Started{}, uncertain("starting a round", err)
	}
	started.Location = apiPrefix + "/rounds/" + url.PathEscape(started.WorkflowID) + "/" + url.PathEscape(started.RunID)
	return started, nil
}
