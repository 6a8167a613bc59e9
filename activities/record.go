package activities

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"lancefleet/fleet"
)

// RecordRound writes the round's row of `_rounds`, journals who asked for it if
// somebody did, and removes the pages that the round staged: side by side, as on
// object storage each takes a dozen requests in a row.
func (a *Scan) RecordRound(ctx context.Context, r fleet.RoundRecord) error {
	defer a.first.ends()()
	return a.attempt(ctx, func(ctx context.Context, _ *lease) error {
		var all errgroup.Group // without its context: each does its part whatever becomes of the others
		all.Go(func() error {
			if err := a.Rounds.Append(ctx, r); err != nil {
				return fmt.Errorf("append round %d to _rounds: %w", r.Number, err)
			}
			return nil
		})
		all.Go(func() error { return a.journalRound(ctx, r) })
		all.Go(func() error {
			a.sample(ctx, r)
			return nil
		})
		all.Go(func() error {
			if _, err := a.Staging.RemovePages(ctx, r.RoundID); err != nil {
				a.Log.WarnContext(ctx, "remove staged pages", "round", r.RoundID, "error", err) // the next sweep finds them
			}
			return nil
		})
		if err := all.Wait(); err != nil {
			return err
		}
		a.Metrics.RoundFinished(r)
		return nil
	})
}

func (a *Scan) journalRound(ctx context.Context, r fleet.RoundRecord) error {
	if r.By == "" {
		return nil
	}
	if err := a.Journal.Append(ctx, roundEntry(r)); err != nil {
		return fmt.Errorf("journal round %d: %w", r.Number, err)
	}
	return nil
}

// sample keeps the numbers of what the round observed, for charts. A gap in a chart
// is no reason for a round to fail.
func (a *Scan) sample(ctx context.Context, r fleet.RoundRecord) {
	if r.Observed == 0 {
		return
	}
	stats, err := a.Stats.Latest(ctx)
	if err == nil {
		if samples := fleet.Samples(stats.Rows, r.StartedAt-1, r.FinishedAt); len(samples) > 0 {
			err = a.Samples.Append(ctx, samples...)
		}
	}
	if err != nil {
		a.Log.WarnContext(ctx, "append to _samples", "round", r.RoundID, "error", err)
	}
}

// RecordAction appends an operator's action to the journal.
func (a *Scan) RecordAction(ctx context.Context, entry fleet.Action) error {
	return a.attempt(ctx, func(ctx context.Context, _ *lease) error {
		if err := a.Journal.Append(ctx, entry); err != nil {
			return fmt.Errorf("journal %s %s: %w", entry.Kind, entry.ID, err)
		}
		return nil
	})
}

func roundEntry(r fleet.RoundRecord) fleet.Action {
	return fleet.Action{
		ID: r.RoundID, At: r.FinishedAt, Kind: "scan", Outcome: "done", By: r.By,
		DurationMS: r.FinishedAt - r.StartedAt, WorkflowID: r.WorkflowID, RunID: r.RoundID,
	}
}
