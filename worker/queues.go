package worker

import (
	"context"
	"fmt"
	"sync"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"lancefleet/activities"
	"lancefleet/control"
	"lancefleet/fleet"
	"lancefleet/lance/subprocess"
	"lancefleet/store"
	"lancefleet/workflows"
)

const (
	lightSlots  = 16 // maintenance steps that read or commit something small
	tablesSlots = 1

	// NativeExec is the argument with which this program is the child process that
	// carries out heavy steps.
	NativeExec = "native-exec"
)

// queue is one task queue of this worker.
type queue struct {
	name       string
	slots      int // activities at once
	workflows  map[string]any
	activities map[string]any
}

// group is everything that the queues need.
type group struct {
	scan        *activities.Scan
	starts      *activities.Starts
	maintenance *activities.Maintenance
	tables      *activities.Tables
}

func (w *Worker) group(fleetID string) (group, error) {
	scan, err := w.scanActivities(fleetID)
	if err != nil {
		return group{}, err
	}
	policies, paused := w.config.policies(), w.paused
	return group{
		scan: scan,
		starts: &activities.Starts{
			Scan: scan, Journal: w.journal, Policies: policies, Budgets: w.config.Budgets, Paused: paused,
			Starter: starter{w.control, fleetID}, TablesEvery: int64(w.config.MaintenanceEveryNScans), Maintain: w.config.Maintenance,
		},
		maintenance: &activities.Maintenance{
			Scan: scan, Ledger: w.ledger, Journal: w.journal, StartHeavy: w.startHeavy(), Policies: policies, Paused: paused,
			Metrics: w.deps.Metrics, Config: w.config.maintenance(),
		},
		tables: &activities.Tables{
			Scan: scan, Keeper: store.NewKeeper(w.deps.Engine, w.deps.Engine.Maintainer(), w.config.DataDir),
			Journal: w.journal, Options: w.config.upkeep(), Metrics: w.deps.Metrics, Log: w.deps.Log,
		},
	}, nil
}

// queues lists what this worker serves. The heavy ones are only served where
// maintenance is on: nothing is ever put there else.
func (w *Worker) queues(g group) []queue {
	names, slots := w.config.names(), w.config.HeavySlots
	m := g.maintenance
	all := []queue{
		{names.ScanQueue(), w.config.ActivitySlots, map[string]any{
			workflows.ScanWorkflowName:    workflows.ScanWorkflow,
			workflows.RefreshWorkflowName: workflows.RefreshWorkflow,
			workflows.RecordWorkflowName:  workflows.RecordWorkflow,
			workflows.HintWorkflowName:    workflows.HintWorkflow,
		}, map[string]any{
			workflows.BeginRoundName:       g.scan.BeginRound,
			workflows.ObserveName:          g.scan.ObserveActivity,
			workflows.CommitRoundName:      g.scan.CommitRound,
			workflows.RecordRoundName:      g.scan.RecordRound,
			workflows.RefreshRowsName:      g.scan.RefreshRows,
			workflows.RecordActionName:     g.scan.RecordAction,
			workflows.TakeHintsName:        g.scan.TakeHints,
			workflows.StartMaintenanceName: g.starts.StartMaintenance,
		}},
		{names.MaintenanceQueue(), lightSlots, map[string]any{
			workflows.OptimizeWorkflowName: workflows.OptimizeWorkflow,
			workflows.RetireWorkflowName:   workflows.RetireWorkflow,
			workflows.SealWorkflowName:     workflows.SealWorkflow,
			workflows.AcceptWorkflowName:   workflows.AcceptWorkflow,
			workflows.WakeWorkflowName:     workflows.WakeWorkflow,
			workflows.TablesWorkflowName:   workflows.TablesWorkflow,
		}, map[string]any{
			workflows.PrepareName:           m.PrepareMaintenance,
			workflows.DropRowName:           m.DropRow,
			workflows.WakeName:              m.WakeExperiment,
			workflows.RefreshRowName:        m.RefreshRow,
			workflows.RecordMaintenanceName: m.RecordMaintenance,
			workflows.RecordUpkeepName:      g.tables.RecordUpkeep,
		}},
		{names.TablesQueue(), tablesSlots, nil, map[string]any{workflows.UpkeepName: g.tables.UpkeepTables}},
	}
	if !w.config.Maintenance {
		return all
	}
	return append(all,
		queue{names.MergeQueue(), slots, nil, map[string]any{workflows.MergeWALName: m.MergeWAL, workflows.SealShardName: m.SealShard, workflows.AcceptShardsName: m.AcceptShards}},
		queue{names.CompactQueue(), slots, nil, map[string]any{workflows.CompactName: m.Compact, workflows.CleanupVersionsName: m.CleanupVersions}},
		queue{names.CheckQueue(), slots, nil, map[string]any{workflows.VerifyName: m.VerifyZeroPending, workflows.SweepGenerationsName: m.SweepGenerations}},
	)
}

// temporalWorkers are the workers of all queues, as one.
type temporalWorkers []worker.Worker

// start begins to take work from every queue. Those that could not start are never
// started again: the next try makes new ones.
func (w *Worker) start(fleetID string) (temporalWorkers, error) {
	g, err := w.group(fleetID)
	if err != nil {
		return nil, err
	}
	var started temporalWorkers
	for _, q := range w.queues(g) {
		tw := w.temporalWorker(q)
		if err := tw.Start(); err != nil {
			started.Stop()
			return nil, fmt.Errorf("start worker on %s: %w", q.name, err)
		}
		started = append(started, tw)
	}
	return started, nil
}

// Stop stops all at once, so that none waits for another's activities.
func (t temporalWorkers) Stop() {
	var all sync.WaitGroup
	for _, tw := range t {
		all.Go(tw.Stop)
	}
	all.Wait()
}

func (w *Worker) temporalWorker(q queue) worker.Worker {
	tw := worker.New(w.deps.Client, q.name, worker.Options{
		MaxConcurrentActivityExecutionSize: q.slots,
		WorkerStopTimeout:                  w.config.StopTimeout,
		MaxHeartbeatThrottleInterval:       heartbeatThrottle,
		DisableWorkflowWorker:              len(q.workflows) == 0,
	})
	for name, wf := range q.workflows {
		tw.RegisterWorkflowWithOptions(wf, workflow.RegisterOptions{Name: name})
	}
	for name, a := range q.activities {
		tw.RegisterActivityWithOptions(a, activity.RegisterOptions{Name: name})
	}
	return tw
}

// startHeavy starts a child process of this program, unless a test brings its own.
func (w *Worker) startHeavy() activities.StartHeavy {
	if w.deps.StartHeavy != nil {
		return w.deps.StartHeavy
	}
	return func(ctx context.Context) (activities.Heavy, error) {
		return subprocess.Start(ctx, subprocess.Options{Args: []string{NativeExec}, Ceiling: w.config.ChildMemory})
	}
}

// paused says why nothing new may be started.
func (w *Worker) paused(ctx context.Context) (string, error) {
	s, err := w.control.Schedule(ctx)
	switch {
	case err != nil:
		return "", err
	case !s.Exists:
		return "the schedule is missing; a worker brings it back", nil
	case !s.Paused:
		return "", nil
	case s.Reason == "":
		return "the schedule is paused", nil
	}
	return s.Reason, nil
}

// starter starts workflows of this fleet.
type starter struct {
	control *control.Control
	fleetID string
}

// Start implements activities.Starter.
func (s starter) Start(ctx context.Context, what fleet.Start) (bool, error) {
	started, err := s.control.StartPlanned(ctx, s.fleetID, what)
	return started.AlreadyRunning, err
}

// StartTables implements activities.Starter.
func (s starter) StartTables(ctx context.Context) (bool, error) {
	started, err := s.control.StartTables(ctx, s.fleetID, "")
	return started.AlreadyRunning, err
}

// Running implements activities.Starter.
func (s starter) Running(ctx context.Context) (map[fleet.ID]fleet.Todo, error) {
	list, err := s.control.RunningMaintenance(ctx)
	if err != nil {
		return nil, err
	}
	running := make(map[fleet.ID]fleet.Todo, len(list))
	for _, r := range list {
		switch {
		case r.Action == workflows.ActionWake: // it rewrites nothing
		case r.Waiting:
			running[r.ID] = fleet.DoNothing
		default:
			running[r.ID] = fleet.Todo(r.Wanted)
		}
	}
	return running, nil
}
