package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"

	"lancefleet/control"
	"lancefleet/fleet"
	"lancefleet/workflows"
)

type retireInput struct {
	Name   string         `path:"name" doc:"kind:name, or bare"`
	DryRun bool           `query:"dry_run" doc:"Say what it would do, and do nothing"`
	Body   *RetireRequest `required:"false"`
}

type optimizeInput struct {
	Name   string              `path:"name" doc:"kind:name, or bare"`
	DryRun bool                `query:"dry_run" doc:"Say what it would do, and do nothing"`
	Body   *MaintenanceRequest `required:"false"`
}

type wakeInput struct {
	Name string              `path:"name" doc:"kind:name, or bare"`
	Body *MaintenanceRequest `required:"false"`
}

type sealInput struct {
	Name   string `path:"name" doc:"kind:name, or bare"`
	DryRun bool   `query:"dry_run" doc:"Say what it would replay, and do nothing"`
	Body   SealRequest
}

// maintenanceOutput is a plan (200), or what was started (202).
type maintenanceOutput struct {
	Status   int
	Location string `header:"Location"`
	Body     any
}

func (s *Server) retire(ctx context.Context, in *retireInput) (*maintenanceOutput, error) {
	r := asked{action: workflows.ActionRetire}
	if b := in.Body; b != nil {
		r.By, r.Why, r.Force = b.By, b.Why, b.Force
	}
	return s.maintain(ctx, in.Name, r, in.DryRun)
}

func (s *Server) optimize(ctx context.Context, in *optimizeInput) (*maintenanceOutput, error) {
	r := asked{action: workflows.ActionOptimize}
	if b := in.Body; b != nil {
		r.By, r.Why = b.By, b.Why
	}
	return s.maintain(ctx, in.Name, r, in.DryRun)
}

func (s *Server) wake(ctx context.Context, in *wakeInput) (*maintenanceOutput, error) {
	r := asked{action: workflows.ActionWake}
	if b := in.Body; b != nil {
		r.By, r.Why = b.By, b.Why
	}
	return s.maintain(ctx, in.Name, r, false)
}

func (s *Server) seal(ctx context.Context, in *sealInput) (*maintenanceOutput, error) {
	r := asked{action: workflows.ActionSeal}
	r.By, r.Why, r.Shard, r.AllowUnknown = in.Body.By, in.Body.Why, line(in.Body.Shard), in.Body.AllowUnknown
	if err := r.complete(); err != nil {
		return nil, err
	}
	return s.maintain(ctx, in.Name, r, in.DryRun)
}

// checkShard refuses what names no shard before anybody looks for it.
func checkShard(id string) error {
	switch _, err := uuid.Parse(id); {
	case id == "":
		return refuse(http.StatusUnprocessableEntity, "shard: must be given: the id of the shard to seal")
	case err != nil || len(id) != len(uuid.Nil.String()):
		return refuse(http.StatusUnprocessableEntity, "shard: "+quoted(id)+" is not the id of a shard: a UUID, as verify tells it")
	}
	return nil
}

// asked is what a person asks to be done with one experiment.
type asked struct {
	action string
	control.MaintenanceRequest
}

// complete refuses what leaves out something that its action can't do without.
func (r asked) complete() error {
	switch r.action {
	case workflows.ActionSeal:
		return checkShard(r.Shard)
	case workflows.ActionAccept:
		return checkDecision(line(r.Why), r.Seen)
	}
	return nil
}

func (s *Server) maintain(ctx context.Context, name string, r asked, dry bool) (*maintenanceOutput, error) {
	if dry {
		plan, err := s.dryRun(ctx, name, r)
		if err != nil {
			return nil, err
		}
		return &maintenanceOutput{Status: http.StatusOK, Body: plan}, nil
	}
	started, err := s.start(ctx, name, r)
	if err != nil {
		return nil, err
	}
	return &maintenanceOutput{Status: http.StatusAccepted, Location: started.Location, Body: started}, nil
}

// start starts what was asked for, or refuses with what stands in its way. The
// worker looks again before it touches anything.
func (s *Server) start(ctx context.Context, name string, r asked) (MaintenanceStarted, error) {
	m := s.feed.moment()
	if m.view == nil {
		return MaintenanceStarted{}, notLoaded(m)
	}
	t, err := s.resolve(ctx, m.view, name)
	if err != nil {
		return MaintenanceStarted{}, err
	}
	if s.steer == nil {
		return MaintenanceStarted{}, noTemporal()
	}
	v := s.verdict(m, t, r)
	if !v.start {
		return MaintenanceStarted{}, refuse(http.StatusConflict, refusedWords(r.action, t.exp.ID, v, s.now().UnixMilli()))
	}
	r.ID, r.By, r.Why = t.exp.ID, author(ctx, r.By), line(r.Why)
	ctx, cancel := context.WithTimeout(ctx, 2*temporalTimeout)
	defer cancel()
	started, err := s.steer.Maintain(ctx, r.action, r.MaintenanceRequest)
	if err != nil {
		return MaintenanceStarted{}, uncertain("starting to "+r.action+" "+t.exp.String(), err)
	}
	poke(s.feed.reschedule)
	return MaintenanceStarted{
		ID: t.exp.String(), Action: r.action, WorkflowID: started.WorkflowID, RunID: started.RunID, AlreadyRunning: started.AlreadyRunning,
		Reason: v.reason, Link: s.workflowPath(started.WorkflowID, started.RunID),
		Location: apiPrefix + "/maintenance/" + url.PathEscape(started.WorkflowID) + "/" + url.PathEscape(started.RunID),
	}, nil
}

// refusedWords says why nothing was started and, where waiting is all it takes,
// when it would be due.
func refusedWords(action string, id fleet.ID, v verdict, now int64) string {
	words := fmt.Sprintf("%s %s: not started: %s", action, id, v.reason)
	if v.notBefore > now {
		words += fmt.Sprintf("; due %s (%s)", relative(v.notBefore, now), exact(v.notBefore))
	}
	if v.forceable {
		words += "; force overlooks its age"
	}
	return words
}

// verdict says whether what was asked for would be started, by what is known of
// the experiment.
type verdict struct {
	start     bool
	reason    string
	notBefore int64 // unix ms; 0 = waiting changes nothing
	forceable bool
}

// verdict of the tables: what the worker will decide after a look of its own, by
// the same rules.
func (s *Server) verdict(m moment, t target, r asked) verdict {
	policy, _ := s.policies.For(t.exp.ID)
	retired := t.row != nil && m.view.retired[t.at] != nil
	switch {
	case r.action == workflows.ActionWake && !retired:
		return verdict{reason: "it is not retired"}
	case r.action == workflows.ActionWake:
		return verdict{start: true, reason: "retired; looking whether it was written since"}
	case retired:
		return verdict{reason: m.view.decision(t.at, s.now().UnixMilli()).Reason + "; wake looks at it now"}
	case !policy.Maintain:
		return verdict{reason: "maintenance is off for it: by MAINTENANCE, dev without --maintain, or an override"}
	case m.schedule != nil && m.schedule.Paused:
		return verdict{reason: "the fleet is paused: " + m.schedule.Reason}
	case policy.Paused != "":
		return verdict{reason: "paused: " + policy.Paused}
	case t.row == nil:
		return verdict{reason: "no round has observed it yet: rescan it first"}
	case r.action == workflows.ActionSeal:
		return verdict{start: true, reason: "shard " + r.Shard}
	case r.action == workflows.ActionAccept:
		return verdict{start: true, reason: "decided by an operator, if all is as it was looked at"}
	}
	d := s.decide(m, t, r)
	v := verdict{start: d.Action != fleet.DoNothing, reason: d.Reason, notBefore: d.NotBefore}
	if r.action == workflows.ActionRetire && !v.start && !r.Force {
		forced := r
		forced.Force = true
		v.forceable = s.decide(m, t, forced).Action != fleet.DoNothing
	}
	return v
}

// decide is the decision about what a person asked for: the worker's.
func (s *Server) decide(m moment, t target, r asked) fleet.Decision {
	policy, _ := s.policies.For(t.exp.ID)
	_, d := fleet.DecideAsked(r.asks(), *t.row, policy, m.view.histories[t.exp.ID], s.now().UnixMilli())
	return d
}

func (r asked) asks() fleet.Asked {
	return fleet.Asked{Action: r.action, Shard: r.Shard, Force: r.Force, ByHand: true}
}

type maintenanceInput struct {
	WorkflowID string `path:"workflow_id"`
	RunID      string `path:"run_id"`
	WaitSecs   int    `query:"wait_secs" default:"0" doc:"Wait so long for it to end; at most 60"`
}

// getMaintenance answers 200 with what became of a run, or 202 while it runs.
func (s *Server) getMaintenance(ctx context.Context, in *maintenanceInput) (*roundOutput, error) {
	if s.steer == nil {
		return nil, noTemporal()
	}
	wait := min(max(time.Duration(in.WaitSecs)*time.Second, 0), longestPoll)
	result, err := s.steer.Maintenance(ctx, in.WorkflowID, in.RunID, wait)
	if err != nil {
		return nil, fmt.Errorf("asking for run %s of %s: %w", in.RunID, in.WorkflowID, err)
	}
	if result == nil {
		return &roundOutput{Status: http.StatusAccepted, Body: MaintenanceRunning{
			RunningRound{WorkflowID: in.WorkflowID, RunID: in.RunID, Running: true}, s.progress(ctx, in.WorkflowID, in.RunID),
		}}, nil
	}
	s.feed.ended(in.RunID)
	s.untilLooked(ctx)
	return &roundOutput{Status: http.StatusOK, Body: MaintenanceEnded{
		MaintenanceResult: *result, WorkflowID: in.WorkflowID, RunID: in.RunID, Link: s.workflowPath(in.WorkflowID, in.RunID),
	}}, nil
}

// progressTimeout bounds a question to a worker that may be busy, or away.
const progressTimeout = 3 * time.Second

// progress of a run, nil if no worker tells.
func (s *Server) progress(ctx context.Context, workflowID, runID string) *workflows.MaintenanceProgress {
	ctx, cancel := context.WithTimeout(ctx, progressTimeout)
	defer cancel()
	p, err := s.steer.Progress(ctx, workflowID, runID)
	if err != nil {
		return nil
	}
	return &p
}
