package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	failure "go.temporal.io/sdk/temporal"

	"lancefleet/control"
	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/store"
	"lancefleet/workflows"
)

// Deps is what a Server is made of in production.
type Deps struct {
	Config    Config
	Browser   *store.Browser
	Reader    *lance.Reader // for observations on demand
	Control   Control       // nil = no Temporal: only looking works
	Metrics   Metrics       // nil = none kept
	Version   string        // of this build
	DataDir   string
	Fleet     string
	Policies  fleet.Policies    // in force: where maintenance is off they say so
	Origins   map[string]string // where the default policy's values come from, by their names in Policy's JSON; unset: not told
	Budgets   fleet.Budgets
	Authorise Authorise        // nil = whoever reaches the address may do everything
	Now       func() time.Time // nil = the clock
	Log       *slog.Logger     // nil = the default one
}

// Control is the part of control.Control that this package needs.
type Control interface {
	Schedule(ctx context.Context) (control.ScheduleState, error)
	Pause(ctx context.Context, by, reason string) error
	Resume(ctx context.Context, by, reason string) error
	StartScan(ctx context.Context, full bool, by string) (control.Started, error)
	StartScanAfterNow(ctx context.Context, full bool, by string) (control.Started, error)
	Round(ctx context.Context, workflowID, runID string) (*fleet.RoundRecord, error)
	WaitRound(ctx context.Context, s control.Started) (fleet.RoundRecord, error)
	Refresh(ctx context.Context, id fleet.ID, by string) (workflows.RefreshResult, error)
	Retire(ctx context.Context, r control.MaintenanceRequest) (control.Started, error)
	Optimize(ctx context.Context, r control.MaintenanceRequest) (control.Started, error)
	Seal(ctx context.Context, r control.MaintenanceRequest) (control.Started, error)
	Accept(ctx context.Context, r control.MaintenanceRequest) (control.Started, error)
	Wake(ctx context.Context, r control.MaintenanceRequest) (control.Started, error)
	AwaitMaintenance(ctx context.Context, workflowID, runID string) (workflows.MaintenanceResult, error)
	Hint(ctx context.Context, ids []fleet.ID) (control.Started, error)
	MaintenanceProgress(ctx context.Context, workflowID, runID string) (workflows.MaintenanceProgress, error)
	RunningMaintenance(ctx context.Context) ([]control.Running, error)
	RunningRounds(ctx context.Context) ([]control.RunningRound, error)
}

// New makes a Server. Its data is empty until Serve or Run renews it.
func New(d Deps) (*Server, error) {
	if d.Now == nil {
		d.Now = time.Now
	}
	if d.Log == nil {
		d.Log = slog.Default()
	}
	p := parts{
		snapshots: statsTable{d.Browser.Stats}, lookup: d.Browser.Sources, names: d.Browser.Sources, rounds: d.Browser.Rounds,
		ledger: d.Browser.Ledger, journal: d.Browser.Journal, samples: d.Browser.Samples,
		policies: d.Policies, origins: d.Origins, budgets: d.Budgets, fleet: d.Fleet, dataDir: d.DataDir, build: d.Version, now: d.Now, log: d.Log, authorise: d.Authorise,
	}
	if d.Reader != nil {
		p.observer, p.inspect = demand{d.Reader, d.Policies.Default.TargetRows}, d.Reader
	}
	if d.Control != nil {
		p.steer = temporal{d.Control}
	}
	if d.Metrics != nil {
		p.metrics, p.measured, p.events = d.Metrics.Handler(), d.Metrics.ObserveHTTP, d.Metrics
	}
	return newServer(d.Config, p)
}

type statsTable struct{ stats *store.Stats }

func (t statsTable) Latest(ctx context.Context) (Snapshot, error) {
	s, err := t.stats.Latest(ctx)
	if err != nil {
		return Snapshot{}, err
	}
	return Snapshot{Version: s.Version, ETag: s.ETag, CommittedAt: s.CommittedAt, Rows: s.Rows}, nil
}

// demand observes through a handle that cannot write.
type demand struct {
	reader     *lance.Reader
	targetRows int64
}

func (d demand) Observe(ctx context.Context, exp fleet.Experiment, prev *fleet.Row) (fleet.Observation, error) {
	target := lance.ObserveTarget{URI: exp.URI, TargetRows: d.targetRows}
	if prev != nil && prev.Known && prev.URI == exp.URI {
		target.KnownVersion = prev.Fingerprint.Version
	}
	options := lance.ObserveOptions{
		BatchOptions: lance.BatchOptions{Concurrency: 1, Timeout: observeTimeout},
		WalkPast:     fleet.MaintenanceWalk(),
	}
	found, err := d.reader.Observe(ctx, []lance.ObserveTarget{target}, options)
	if err != nil {
		return fleet.Observation{}, err
	}
	if len(found) != 1 {
		return fleet.Observation{}, fmt.Errorf("observe %s: %d answers to one question", exp.URI, len(found))
	}
	if found[0].Err != nil {
		return fleet.Observation{}, found[0].Err
	}
	return *found[0].Observation, nil
}

// temporal makes control.Control fit what the handlers want.
type temporal struct{ Control }

func (t temporal) Schedule(ctx context.Context) (Schedule, error) {
	s, err := t.Control.Schedule(ctx)
	if err != nil {
		return Schedule{}, err
	}
	return Schedule{
		Exists: s.Exists, Paused: s.Paused, Reason: s.Reason, By: s.By,
		Since: timeOf(s.Since), NextAt: timeOf(s.NextAt), LastAt: timeOf(s.LastAt),
		IntervalSecs: s.IntervalSecs, SkippedOverlap: s.SkippedOverlap, MissedCatchup: s.MissedCatchup,
	}, nil
}

func (t temporal) Scan(ctx context.Context, full, next bool, by string) (Started, error) {
	start := t.StartScan
	if next {
		start = t.StartScanAfterNow
	}
	s, err := start(ctx, full, by)
	return Started{WorkflowID: s.WorkflowID, RunID: s.RunID, AlreadyRunning: s.AlreadyRunning}, err
}

func (t temporal) Round(ctx context.Context, workflowID, runID string, wait time.Duration) (*fleet.RoundRecord, error) {
	record, err := t.Control.Round(ctx, workflowID, runID)
	if record != nil || err != nil || wait <= 0 {
		return record, err
	}
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	ended, err := t.WaitRound(waiting, control.Started{WorkflowID: workflowID, RunID: runID})
	switch {
	case err == nil:
		return &ended, nil
	case waiting.Err() != nil && errors.Is(waiting.Err(), context.DeadlineExceeded):
		return nil, nil // still running
	default:
		return nil, err
	}
}

// Maintain asks for one kind of maintenance.
func (t temporal) Maintain(ctx context.Context, action string, r control.MaintenanceRequest) (control.Started, error) {
	switch action {
	case workflows.ActionRetire:
		return t.Retire(ctx, r)
	case workflows.ActionOptimize:
		return t.Optimize(ctx, r)
	case workflows.ActionSeal:
		return t.Seal(ctx, r)
	case workflows.ActionAccept:
		return t.Accept(ctx, r)
	case workflows.ActionWake:
		return t.Wake(ctx, r)
	}
	return control.Started{}, fmt.Errorf("maintenance %q: retire, optimize, seal, accept and wake are allowed", action)
}

// shortestWait tells a run that has ended from one that runs.
const shortestWait = 2 * time.Second

func (t temporal) Maintenance(ctx context.Context, workflowID, runID string, wait time.Duration) (*workflows.MaintenanceResult, error) {
	waiting, cancel := context.WithTimeout(ctx, max(wait, shortestWait))
	defer cancel()
	result, err := t.AwaitMaintenance(waiting, workflowID, runID)
	var ended *failure.WorkflowExecutionError
	switch {
	case err == nil:
		return &result, nil
	case errors.As(err, &ended): // it ran, and this is what became of it
		result.Outcome, result.Sentence, result.Steps = workflows.OutcomeFailed, sentence(err), []workflows.StepResult{}
		result.Before, result.After = fleet.UnknownFacts(), fleet.UnknownFacts()
		return &result, nil
	case errors.Is(waiting.Err(), context.DeadlineExceeded) && ctx.Err() == nil:
		return nil, nil // still running
	default:
		return nil, err
	}
}

func (t temporal) Hint(ctx context.Context, ids []fleet.ID) (bool, error) {
	started, err := t.Control.Hint(ctx, ids)
	return err == nil && !started.AlreadyRunning, err
}

func (t temporal) Progress(ctx context.Context, workflowID, runID string) (workflows.MaintenanceProgress, error) {
	return t.MaintenanceProgress(ctx, workflowID, runID)
}

func (t temporal) Running(ctx context.Context) ([]control.Running, error) {
	return t.RunningMaintenance(ctx)
}

// Metrics counts requests and serves what the process counts.
type Metrics interface {
	EventMetrics
	Handler() http.Handler
	ObserveHTTP(method, route string, status int, took time.Duration)
}
