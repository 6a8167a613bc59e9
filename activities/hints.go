package activities

import (
	"context"
	"fmt"
	"slices"

	"go.temporal.io/sdk/activity"

	"lancefleet/fleet"
	"lancefleet/store"
	"lancefleet/workflows"
)

// TakeHints takes in what events named. Retired ones are looked at now, all in one
// batch and one commit: those that were written are hot again when it returns. The
// others wait for the next round, whatever their back-off says.
func (a *Scan) TakeHints(ctx context.Context, args workflows.HintArgs) (workflows.HintResult, error) {
	var result workflows.HintResult
	err := a.attempt(ctx, func(ctx context.Context, l *lease) error {
		if err := a.checkFleet(args.FleetID); err != nil {
			return err
		}
		hot, cold, err := a.sortHints(ctx, args.IDs)
		if err != nil {
			return err
		}
		result = workflows.HintResult{Retired: len(cold), Unknown: len(args.IDs) - len(hot) - len(cold)}
		l.report(Progress{Step: "probe retired", Of: len(cold)})
		look, err := a.lookAt(ctx, cold, a.Config.Concurrency, deepProbe)
		if err != nil {
			return err
		}
		for _, r := range cold { // without an answer: the round asks again
			if _, failed := look.failures[r.exp.ID]; failed {
				hot = append(hot, r.exp.ID)
			}
		}
		if result.Waiting = len(hot); len(hot) > 0 {
			if err := a.Staging.PutHints(ctx, activity.GetInfo(ctx).WorkflowExecution.RunID, hot); err != nil {
				return err
			}
		}
		a.Metrics.RetiredChecked(len(cold))
		a.Metrics.Hinted(len(hot) + len(cold) - len(look.failures))
		result.Returned, err = a.returned(ctx, look)
		return err
	})
	return result, err
}

// sortHints parts retired ones from the rest. Names that no source knows are left
// out: whatever an event says, nobody may make the fleet look elsewhere. Those with a
// row were named by a source, and the round asks the sources again: for them alone, as
// most events are, no source is listed.
func (a *Scan) sortHints(ctx context.Context, ids []fleet.ID) (hot []fleet.ID, cold []retired, err error) {
	stats, err := a.Stats.Latest(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("read _stats: %w", err)
	}
	ledger, err := a.Ledger.Latest(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("read _retired: %w", err)
	}
	isHot := func(id fleet.ID) bool {
		row, stored := stats.Row(id)
		return stored && fleet.StateOf(row, ledger.Get(id)) != fleet.Retired
	}
	if !slices.ContainsFunc(ids, func(id fleet.ID) bool { return !isHot(id) }) {
		return ids, nil, nil
	}
	listing, err := a.Sources.ListKnowing(ctx, stats.Rows)
	if err != nil {
		return nil, nil, fmt.Errorf("list experiments: %w", err)
	}
	for _, id := range ids {
		at, listed := findExperiment(listing.Experiments, id)
		if !listed {
			continue
		}
		row, _ := stats.Row(id)
		if entry := ledger.Get(id); fleet.StateOf(row, entry) == fleet.Retired {
			cold = append(cold, retired{listing.Experiments[at], entry})
			continue
		}
		hot = append(hot, id)
	}
	return hot, cold, nil
}

func findExperiment(sorted []fleet.Experiment, id fleet.ID) (int, bool) {
	return slices.BinarySearchFunc(sorted, id, func(e fleet.Experiment, id fleet.ID) int { return e.Compare(id) })
}

// returned stores what looking at retired ones told: those that were written are hot.
func (a *Scan) returned(ctx context.Context, look *lookAtRetired) (int, error) {
	info := activity.GetInfo(ctx).WorkflowExecution
	if err := a.renew(ctx, look.renewed, info.RunID); err != nil || len(look.written) == 0 {
		return 0, err
	}
	if _, err := a.store(ctx, look.written); err != nil {
		return 0, err
	}
	run := run{id: info.RunID, workflow: info.ID, by: "event"}
	return a.giveBack(ctx, look.written, run, func(id fleet.ID) string { return look.whys[id] })
}

// takeHints gives a round what events named since the last one, and which of its
// pages come first. Without them a round finds the same, only later: so what goes
// wrong here only warns.
func (a *Scan) takeHints(ctx context.Context, round *workflows.Round, listing store.Listing, pageSize int) {
	key, ids, err := a.Staging.TakeHints(ctx, round.ID)
	if err != nil {
		a.Log.WarnContext(ctx, "take what events named", "error", err)
	}
	round.Hints = key
	for _, id := range ids {
		at, listed := findExperiment(listing.Experiments, id)
		if page := at / max(pageSize, 1); listed && len(round.First) < firstPages && !slices.Contains(round.First, page) {
			round.First = append(round.First, page)
		}
	}
}

// firstPages bounds what travels through Temporal.
const firstPages = 256
