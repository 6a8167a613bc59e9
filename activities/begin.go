package activities

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"golang.org/x/sync/errgroup"

	"lancefleet/store"
	"lancefleet/workflows"
)

// BeginRound pins what the round looks at: the listing of the fleet, staged under
// its hash, and the version of `_stats`. A source that can't be read fails it.
func (a *Scan) BeginRound(ctx context.Context, args workflows.ScanArgs) (workflows.Round, error) {
	interval := time.Duration(args.IntervalSecs) * time.Second
	if args.By != "" {
		interval = 0 // asked for: says nothing about when the next one comes
	}
	defer a.first.begins(interval)()
	var round workflows.Round
	err := a.attempt(ctx, func(ctx context.Context, _ *lease) (err error) {
		round, err = a.begin(ctx, args)
		return err
	})
	return round, err
}

func (a *Scan) begin(ctx context.Context, args workflows.ScanArgs) (workflows.Round, error) {
	if err := a.checkFleet(args.FleetID); err != nil {
		return workflows.Round{}, err
	}
	round := workflows.Round{
		ID:        activity.GetInfo(ctx).WorkflowExecution.RunID,
		StartedAt: a.nowMS(), // before anything is read: what changes later belongs to the next round
		Full:      args.Full,

		IntervalSecs: args.IntervalSecs,
	}
	before := a.requests(ctx)
	var listing store.Listing
	group, reading := errgroup.WithContext(ctx)
	group.Go(func() error { return a.number(reading, &round) })
	group.Go(func() (err error) {
		listing, err = a.list(reading, &round)
		return err
	})
	if err := group.Wait(); err != nil {
		return round, err
	}
	a.takeHints(ctx, &round, listing, args.PageSize)
	a.sweep(ctx, round)
	round.Observed = a.spent(ctx, before)
	return round, nil
}

// list pins `_stats` and what the sources name.
func (a *Scan) list(ctx context.Context, round *workflows.Round) (store.Listing, error) {
	snapshot, err := a.Stats.Latest(ctx)
	if err != nil {
		return store.Listing{}, fmt.Errorf("read _stats: %w", err)
	}
	round.StatsVersion = snapshot.Version
	listing, err := a.Sources.ListKnowing(ctx, snapshot.Rows)
	if err != nil {
		return listing, fmt.Errorf("list experiments: %w", err)
	}
	a.tellProblems(ctx, listing.Problems)
	a.Metrics.SourceProblems(len(listing.Problems))
	round.Experiments = len(listing.Experiments)
	if round.Listing, err = a.Staging.PutListing(ctx, listing); err != nil {
		return listing, fmt.Errorf("stage the listing: %w", err)
	}
	return listing, nil
}

// number continues the count of rounds, which staggers deep probes. Two rounds that
// race get the same number, which is harmless: the count still climbs.
func (a *Scan) number(ctx context.Context, round *workflows.Round) error {
	last, err := a.Rounds.Latest(ctx, 1)
	if err != nil {
		return fmt.Errorf("read _rounds: %w", err)
	}
	round.Number = 1
	if len(last) > 0 {
		round.Number = last[0].Number + 1
		round.LastRoundAt = last[0].StartedAt
	}
	return nil
}

// sweep removes staged objects of rounds that never ended, now and then. What it
// misses costs space and is found next time: so it only warns.
func (a *Scan) sweep(ctx context.Context, round workflows.Round) {
	if a.Config.SweepEvery <= 0 || round.Number%a.Config.SweepEvery != 0 {
		return
	}
	swept, err := a.Staging.Sweep(ctx, round.Listing, a.nowMS())
	if err != nil {
		a.Log.WarnContext(ctx, "sweep staged objects", "error", err)
	} else if swept > 0 {
		a.Log.InfoContext(ctx, "swept staged objects of rounds that never ended", "objects", swept)
	}
}
