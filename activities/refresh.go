package activities

import (
	"context"
	"fmt"
	"slices"

	"go.temporal.io/sdk/activity"

	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/store"
	"lancefleet/workflows"
)

// RefreshRows observes some experiments in full, whatever their fingerprints say,
// and stores their rows. It never skips.
func (a *Scan) RefreshRows(ctx context.Context, args workflows.RefreshArgs) (workflows.RefreshResult, error) {
	result := workflows.RefreshResult{Failed: map[string]string{}}
	err := a.attempt(ctx, func(ctx context.Context, _ *lease) error {
		started := a.nowMS()
		rows, err := a.refreshed(ctx, args.IDs, result.Failed)
		if err != nil {
			return err
		}
		if result.Version, err = a.store(ctx, rows); err != nil {
			return err
		}
		info := activity.GetInfo(ctx).WorkflowExecution
		run := run{id: info.RunID, workflow: info.ID, by: args.By}
		if _, err := a.giveBack(ctx, rows, run, func(fleet.ID) string { return "written since it was retired" }); err != nil {
			return err
		}
		return a.journalRefresh(ctx, args, result, started)
	})
	return result, err
}

// refreshed observes the experiments that a source names. Why the others gave no
// row, or one that failed, goes to failed. A retired one only gets a row when it was
// written since: looking at it does not make it hot.
func (a *Scan) refreshed(ctx context.Context, ids []fleet.ID, failed map[string]string) ([]fleet.Row, error) {
	exps, err := a.named(ctx, ids, failed)
	if err != nil || len(exps) == 0 {
		return nil, err
	}
	latest, err := a.Stats.Latest(ctx)
	if err != nil {
		return nil, fmt.Errorf("read _stats: %w", err)
	}
	ledger, err := a.Ledger.Latest(ctx)
	if err != nil {
		return nil, fmt.Errorf("read _retired: %w", err)
	}
	var cold []retired
	exps = slices.DeleteFunc(exps, func(exp fleet.Experiment) bool {
		row, _ := latest.Row(exp.ID)
		entry := ledger.Get(exp.ID)
		if fleet.StateOf(row, entry) != fleet.Retired {
			return false
		}
		cold = append(cold, retired{exp, entry})
		return true
	})
	written, err := a.refreshRetired(ctx, cold, failed)
	if err != nil || len(exps) == 0 {
		return written, err
	}
	rows, err := a.observeHot(ctx, exps, latest, failed)
	return append(rows, written...), err
}

// refreshRetired looks at retired ones and returns the rows of those that are hot.
func (a *Scan) refreshRetired(ctx context.Context, cold []retired, failed map[string]string) ([]fleet.Row, error) {
	if len(cold) == 0 {
		return nil, nil
	}
	look, err := a.lookAt(ctx, cold, a.Config.Concurrency, deepProbe)
	if err != nil {
		return nil, err
	}
	for id, why := range look.failures {
		failed[id.String()] = why
	}
	return look.written, a.renew(ctx, look.renewed, activity.GetInfo(ctx).WorkflowExecution.RunID)
}

// observeHot observes in full, whatever the fingerprints say.
func (a *Scan) observeHot(ctx context.Context, exps []fleet.Experiment, latest *store.Snapshot, failed map[string]string) ([]fleet.Row, error) {
	targets := make([]lance.ObserveTarget, len(exps))
	for i, exp := range exps {
		row, _ := latest.Row(exp.ID)
		targets[i] = a.observeTarget(exp, row)
	}
	answers, err := a.Engine.Observe(ctx, targets, a.observeOptions(a.Config.Concurrency))
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("observe %d experiments: %w", len(targets), err)
	}
	rows := make([]fleet.Row, len(exps))
	for i, answer := range answers {
		row, _ := latest.Row(exps[i].ID)
		if answer.Err != nil {
			failed[exps[i].ID.String()] = answer.Err.Message
			rows[i] = a.failedRow(exps[i], row, answer.Err)
		} else {
			rows[i] = fleet.Observed(exps[i], row, *answer.Observation, a.nowMS())
		}
	}
	return rows, nil
}

func (a *Scan) named(ctx context.Context, ids []fleet.ID, failed map[string]string) ([]fleet.Experiment, error) {
	exps := make([]fleet.Experiment, 0, len(ids))
	for _, id := range ids {
		found, err := a.Sources.Lookup(ctx, fleet.Ref(id))
		if err != nil {
			return nil, fmt.Errorf("look up %s: %w", id, err)
		}
		if len(found) == 0 {
			failed[id.String()] = "no source names it"
			continue
		}
		exps = append(exps, found[0])
	}
	return exps, nil
}

// store commits the rows. Whatever a source names is hot until it is retired, so a
// missing row is added.
func (a *Scan) store(ctx context.Context, rows []fleet.Row) (*uint64, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	version, err := a.Writer.RefreshRows(ctx, rows, true)
	if err != nil {
		return nil, fmt.Errorf("store %d refreshed rows: %w", len(rows), err)
	}
	if version == 0 {
		return nil, nil
	}
	return &version, nil
}

func (a *Scan) journalRefresh(ctx context.Context, args workflows.RefreshArgs, result workflows.RefreshResult, started int64) error {
	if args.By == "" {
		return nil
	}
	entries := make([]fleet.Action, len(args.IDs))
	for i, id := range args.IDs {
		entries[i] = refreshEntry(ctx, id, args.By, result.Failed[id.String()])
		entries[i].At, entries[i].DurationMS = a.nowMS(), a.nowMS()-started
	}
	if err := a.Journal.Append(ctx, entries...); err != nil {
		return fmt.Errorf("journal %d refreshes: %w", len(entries), err)
	}
	return nil
}

func refreshEntry(ctx context.Context, id fleet.ID, by, failed string) fleet.Action {
	run := activity.GetInfo(ctx).WorkflowExecution
	entry := fleet.Action{
		ID:   actionID(run.RunID, id, fleet.ActRescan),
		Kind: fleet.ActRescan, Target: id.String(), Outcome: fleet.OutcomeDone, By: by, WorkflowID: run.ID, RunID: run.RunID,
	}
	if failed != "" {
		entry.Outcome, entry.Error = fleet.OutcomeFailed, failed
	}
	return entry
}
