package activities

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"golang.org/x/sync/errgroup"

	"lancefleet/fleet"
	"lancefleet/workflows"
)

// Starts starts maintenance after a round.
type Starts struct {
	Scan        *Scan
	Journal     HistoryJournal
	Policies    fleet.Policies
	Budgets     fleet.Budgets
	Paused      Paused
	Starter     Starter
	TablesEvery int64 // rounds between upkeep of our own tables; 0 = never
	Maintain    bool  // false: nothing is ever rewritten but our own tables
	Log         *slog.Logger
}

// Starter starts workflows; package worker makes one from control.Control.
type Starter interface {
	// Start starts the workflow that does what a plan wants, unless one that rewrites
	// the same experiment runs already.
	Start(ctx context.Context, s fleet.Start) (alreadyRunning bool, err error)
	StartTables(ctx context.Context) (alreadyRunning bool, err error)
	// Running says of which experiments maintenance runs, and what was wanted; nothing
	// of those that only wait for a grace. It may lag behind by some seconds.
	Running(ctx context.Context) (map[fleet.ID]fleet.Todo, error)
}

// A round may start a budget's worth of each kind, as long as no more than so many
// times that run. What Temporal queues would be old news when its turn comes, while
// a later round's plan begins with what is worst then. Those that only wait for a grace
// take nobody's slot: they count against what Temporal is asked to hold, no more.
const (
	openPerBudget = 4
	mostOpen      = 5000
)

// StartMaintenance plans from what the round has committed and starts what is due,
// worst first. A workflow that runs already is the normal case, and so is starting
// one twice: each looks again and finds nothing to do.
func (a *Starts) StartMaintenance(ctx context.Context, in workflows.StartMaintenanceInput) (workflows.StartMaintenanceResult, error) {
	var result workflows.StartMaintenanceResult
	err := a.Scan.attempt(ctx, func(ctx context.Context, l *lease) error {
		if err := a.Scan.checkFleet(in.FleetID); err != nil {
			return err
		}
		result = workflows.StartMaintenanceResult{}
		return a.start(ctx, in, l, &result)
	})
	return result, err
}

func (a *Starts) start(ctx context.Context, in workflows.StartMaintenanceInput, l *lease, result *workflows.StartMaintenanceResult) error {
	why, err := a.Paused(ctx)
	if err != nil {
		return fmt.Errorf("ask whether the fleet is paused: %w", err)
	}
	if why != "" {
		result.Nothing = "paused: " + why
		return nil
	}
	if err := a.tables(ctx, in.Round.Number, result); err != nil {
		return err
	}
	if !a.Maintain {
		result.Nothing = "maintenance is off: observe only"
		return nil
	}
	plan, err := a.plan(ctx)
	if err != nil {
		return err
	}
	result.Waiting, result.Blocked, result.CoolingDown = len(plan.Waiting), len(plan.Blocked), plan.CoolingDown
	return a.startAll(ctx, plan.Starts, l, result)
}

// startsAtOnce keeps a round short where Temporal takes its time: the next one waits
// for this one's end.
const startsAtOnce = 8

func (a *Starts) startAll(ctx context.Context, starts []fleet.Start, l *lease, result *workflows.StartMaintenanceResult) error {
	var counting sync.Mutex
	done := 0
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(startsAtOnce)
	for _, s := range starts {
		group.Go(func() error {
			already, err := a.Starter.Start(ctx, s)
			if err != nil {
				return fmt.Errorf("start the %s of %s: %w", s.Action, s.ID, err)
			}
			counting.Lock()
			defer counting.Unlock()
			done++
			l.report(Progress{Step: "start", Done: done, Of: len(starts)})
			count(s.Action, already, result)
			return nil
		})
	}
	return group.Wait()
}

func (a *Starts) tables(ctx context.Context, round int64, result *workflows.StartMaintenanceResult) error {
	if a.TablesEvery <= 0 || round%a.TablesEvery != 0 {
		return nil
	}
	already, err := a.Starter.StartTables(ctx)
	if err != nil {
		return fmt.Errorf("start the upkeep of our own tables: %w", err)
	}
	result.Tables = !already
	return nil
}

func (a *Starts) plan(ctx context.Context) (fleet.PlanOutput, error) {
	var none fleet.PlanOutput
	running, err := a.Starter.Running(ctx)
	if err != nil {
		return none, fmt.Errorf("list running maintenance: %w", err)
	}
	snapshot, err := a.Scan.Stats.Latest(ctx)
	if err != nil {
		return none, fmt.Errorf("read _stats: %w", err)
	}
	ledger, err := a.Scan.Ledger.Latest(ctx)
	if err != nil {
		return none, fmt.Errorf("read _retired: %w", err)
	}
	histories, err := a.Journal.History(ctx)
	if err != nil {
		return none, fmt.Errorf("read the journal: %w", err)
	}
	runs := make(map[fleet.ID]bool, len(running))
	for id := range running {
		runs[id] = true
	}
	return fleet.Plan(fleet.PlanInput{
		Rows: snapshot.Rows, Policies: a.Policies, Histories: histories, Running: runs, Retired: ledger.Retired(),
		Budgets: left(a.Budgets, running), Now: a.Scan.nowMS(),
	}), nil
}

// left is what may be started beside what runs.
func left(b fleet.Budgets, running map[fleet.ID]fleet.Todo) fleet.Budgets {
	open := map[fleet.Todo]int{}
	for _, kind := range running {
		open[kind]++
	}
	room := func(budget int, kind fleet.Todo) int {
		return max(0, min(budget, openPerBudget*budget-open[kind], mostOpen-len(running)))
	}
	return fleet.Budgets{
		Merge: room(b.Merge, fleet.DoMerge), Compact: room(b.Compact, fleet.DoCompact), Retire: room(b.Retire, fleet.DoRetire),
	}
}

func count(action fleet.Todo, already bool, result *workflows.StartMaintenanceResult) {
	switch {
	case already:
		result.AlreadyRunning++
	case action == fleet.DoMerge:
		result.Merges++
	case action == fleet.DoCompact:
		result.Compactions++
	case action == fleet.DoRetire:
		result.Retirements++
	}
}
