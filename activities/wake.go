package activities

import (
	"context"
	"fmt"

	"go.temporal.io/sdk/activity"

	"lancefleet/fleet"
	"lancefleet/workflows"
)

// WakeExperiment looks at a retired experiment now. One that was written since is
// hot again when it returns; one that was not stays retired, whoever asks.
func (a *Maintenance) WakeExperiment(ctx context.Context, args workflows.MaintenanceArgs) (workflows.WakeResult, error) {
	result := workflows.WakeResult{Facts: fleet.UnknownFacts()}
	err := a.prompt(ctx, args.FleetID, func(ctx context.Context, _ *lease) error {
		exp, err := a.experiment(ctx, args.ID)
		if err != nil {
			return err
		}
		if exp == nil {
			result.Outcome, result.Sentence = workflows.OutcomeRefused, "no source names it"
			return nil
		}
		return a.wake(ctx, *exp, args, &result)
	})
	return result, err
}

func (a *Maintenance) wake(ctx context.Context, exp fleet.Experiment, args workflows.MaintenanceArgs, result *workflows.WakeResult) error {
	stats, err := a.Scan.Stats.Latest(ctx)
	if err != nil {
		return fmt.Errorf("read _stats: %w", err)
	}
	ledger, err := a.Ledger.Latest(ctx)
	if err != nil {
		return fmt.Errorf("read _retired: %w", err)
	}
	row, _ := stats.Row(exp.ID)
	entry := ledger.Get(exp.ID)
	if fleet.StateOf(row, entry) != fleet.Retired {
		result.Outcome, result.Sentence, result.Facts = workflows.OutcomeNoop, "it is not retired", fleet.FactsOf(row)
		return nil
	}
	look, err := a.Scan.lookAt(ctx, []retired{{exp, entry}}, 1, deepProbe)
	if err != nil {
		return err
	}
	return a.woken(ctx, exp.ID, look, args, result)
}

// woken stores what looking at it told, and words it.
func (a *Maintenance) woken(ctx context.Context, id fleet.ID, look *lookAtRetired, args workflows.MaintenanceArgs, result *workflows.WakeResult) error {
	info := activity.GetInfo(ctx).WorkflowExecution
	if why, failed := look.failures[id]; failed {
		result.Outcome, result.Sentence = workflows.OutcomeRefused, "it gave no answer: "+why
		return nil
	}
	if err := a.Scan.renew(ctx, look.renewed, info.RunID); err != nil {
		return err
	}
	result.Renewed = len(look.renewed) > 0
	if len(look.written) == 0 {
		result.Outcome, result.Sentence = workflows.OutcomeNoop, "nothing was written since it was retired: it stays so"
		return nil
	}
	if _, err := a.Scan.store(ctx, look.written); err != nil {
		return err
	}
	run := run{id: info.RunID, workflow: info.ID, by: args.By}
	if _, err := a.Scan.giveBack(ctx, look.written, run, func(id fleet.ID) string { return look.whys[id] }); err != nil {
		return err
	}
	result.Outcome, result.Sentence = workflows.OutcomeDone, "hot again: "+look.whys[id]
	result.Facts = fleet.FactsOf(&look.written[0])
	return nil
}

// RefreshRow stores the row of an experiment that a run has just rewritten. One that
// is retired by now has none.
func (a *Maintenance) RefreshRow(ctx context.Context, t workflows.Target) (workflows.RefreshRowResult, error) {
	result := workflows.RefreshRowResult{Facts: fleet.UnknownFacts()}
	err := a.light(ctx, t.FleetID, func(ctx context.Context, _ *lease) error {
		exp, err := a.experiment(ctx, t.ID)
		if err != nil || exp == nil {
			return err
		}
		was, err := a.look(ctx, *exp)
		if err != nil {
			return err
		}
		result.Facts = fleet.FactsOf(&was.row)
		if fleet.StateOf(&was.row, was.entry) == fleet.Retired {
			return nil
		}
		_, err = a.Scan.store(ctx, []fleet.Row{was.row})
		return err
	})
	return result, err
}
