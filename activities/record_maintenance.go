package activities

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"

	"lancefleet/fleet"
	"lancefleet/workflows"
)

// RecordMaintenance writes what became of a run to the journal: one entry for each
// step that did something or found that there is nothing to do, and one for the run.
// Their ids are the run's, so an attempt after this adds none twice.
func (a *Maintenance) RecordMaintenance(ctx context.Context, in workflows.MaintenanceRecord) error {
	return a.light(ctx, in.Args.FleetID, func(ctx context.Context, l *lease) error {
		actions := maintenanceActions(ctx, in)
		if err := a.Journal.Append(ctx, actions...); err != nil {
			return fmt.Errorf("journal %s of %s: %w", in.Result.Action, in.Result.ID, err)
		}
		return l.once(ctx, func() { a.count(in, actions) })
	})
}

func (a *Maintenance) count(in workflows.MaintenanceRecord, actions []fleet.Action) {
	for _, action := range actions {
		a.Metrics.Journalled(action.Kind, action.Outcome, action.ErrorClass)
	}
	if in.Result.Action != workflows.ActionRetire {
		return
	}
	switch in.Result.Outcome {
	case workflows.OutcomeDone:
		a.Metrics.RetireTook(time.Duration(in.FinishedAt-in.StartedAt) * time.Millisecond)
	case workflows.OutcomeFailed:
		a.Metrics.RetireFailed()
	}
}

// journalled are the steps that have entries of their own; the others are told by
// the run's.
var journalled = map[string]bool{
	workflows.StepMergeWAL: true, workflows.StepCompact: true, workflows.StepCleanup: true, workflows.StepSweep: true,
}

// maintenanceActions are the journal's entries of one run. Each is later than the
// one before by a millisecond at least: what the journal remembers of an experiment
// is read from them in that order.
func maintenanceActions(ctx context.Context, in workflows.MaintenanceRecord) []fleet.Action {
	run := activity.GetInfo(ctx).WorkflowExecution
	entry := func(kind string) fleet.Action {
		return fleet.Action{
			ID: actionID(run.RunID, in.Args.ID, kind), Kind: kind, Target: in.Result.ID,
			By: in.Args.By, WorkflowID: run.ID, RunID: run.RunID,
		}
	}
	var actions []fleet.Action
	at := in.StartedAt
	for _, s := range in.Result.Steps {
		at += max(s.DurationMS, 1)
		if !journalled[s.Action] || s.Outcome == workflows.OutcomeNoop && s.After.NoOpVersion == s.Before.NoOpVersion {
			continue
		}
		action := entry(s.Action)
		action.At, action.DurationMS, action.Why = at, s.DurationMS, s.Sentence
		action.Outcome, action.ErrorClass, action.Error = journalOutcome(s.Outcome, s.ErrorClass, s.Sentence)
		action.Before, action.After = s.Before.Text(), s.After.Text()
		actions = append(actions, action)
	}
	whole := entry(in.Result.Action)
	whole.At, whole.DurationMS = max(in.FinishedAt, at+1), in.FinishedAt-in.StartedAt
	whole.Why = in.Result.Sentence
	if in.Args.Why != "" {
		whole.Why = in.Args.Why + ": " + whole.Why
	}
	whole.Outcome, whole.ErrorClass, whole.Error = journalOutcome(in.Result.Outcome, in.ErrorClass, in.Result.Sentence)
	if whole.Outcome == fleet.OutcomeRefused && len(in.Result.Steps) == 0 {
		whole.ErrorClass = fleet.ClassHeld
	}
	whole.Before, whole.After = in.Result.Before.Text(), in.Result.After.Text()
	return append(actions, whole)
}

// journalOutcome words an outcome as the journal has it. What was cancelled was not
// refused by anything that a next try would meet: it says so by its class.
func journalOutcome(outcome, class, sentence string) (string, string, string) {
	switch outcome {
	case workflows.OutcomeDone, workflows.OutcomeNoop:
		return outcome, "", ""
	case workflows.OutcomeRefused:
		return fleet.OutcomeRefused, "", sentence
	case workflows.OutcomeCancelled:
		return workflows.OutcomeCancelled, "cancelled", sentence
	}
	return fleet.OutcomeFailed, class, sentence
}
