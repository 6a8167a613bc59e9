package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/store"
)

// RetiredPart holds rounds over hot experiments alone against rounds over the same
// ones with many retired beside them.
type RetiredPart struct {
	Hot             int     `json:"hot"`
	Retired         int     `json:"retired"`
	IntervalSeconds float64 `json:"interval_seconds"` // between the rounds beside retired ones
	Alone           []Round `json:"alone"`
	Beside          []Round `json:"beside"`
}

// retired measures on local disk. Retirements are written into the ledger, each with
// the evidence that a check of its own gave: to run 30,000 of them would take hours.
func (b *bench) retired(ctx context.Context, s maintenanceSettings) (*RetiredPart, error) {
	part := &RetiredPart{Hot: s.Hot, Retired: s.Retired, IntervalSeconds: s.Interval.Seconds()}
	g := &ground{bench: b, name: "retired", engine: b.engine}
	g.dataDir = filepath.Join(b.dir, g.name)
	defer g.end()
	if _, err := g.make(ctx, s.Hot); err != nil {
		return nil, err
	}
	if err := g.serve(ctx); err != nil {
		return nil, err
	}
	if _, err := g.first(ctx); err != nil {
		return nil, err
	}
	var err error
	if part.Alone, err = several(ctx, s.Rounds, g.unchanged); err != nil {
		return nil, err
	}
	g.end()
	b.say("%d hot alone: median %.2f s", s.Hot, median(secondsOf(part.Alone)))
	if err := g.retire(ctx, s.Hot+s.Retired); err != nil {
		return nil, err
	}
	b.say("%d retired", s.Retired)
	// A schedule tells rounds how much of an hour each stands for; paused, it starts
	// none that would not be measured.
	if err := g.serve(ctx, "SCAN_INTERVAL="+s.Interval.String()); err != nil {
		return nil, err
	}
	if _, err := output(ctx, time.Minute, nil, "", b.tools.lancefleet, "pause", "--reason", "bench asks for rounds", "--server", g.server); err != nil {
		return nil, err
	}
	if _, err := g.round(ctx); err != nil { // from here on the interval counts
		return nil, err
	}
	for range s.Rounds {
		if err := wait(ctx, s.Interval); err != nil {
			return nil, err
		}
		r, err := g.round(ctx)
		if err != nil {
			return nil, err
		}
		if err := verify(r.Record, s.Hot, 0); err != nil {
			return nil, err
		}
		if r.Record.Hot != int64(s.Hot) {
			return nil, fmt.Errorf("%d of %d hot experiments are left: retired ones came back", r.Record.Hot, s.Hot)
		}
		part.Beside = append(part.Beside, r)
	}
	b.say("with %d retired beside them: median %.2f s", s.Retired, median(secondsOf(part.Beside)))
	return part, nil
}

// retire fills the fleet up to so many with experiments at rest, and tells the
// ledger of them.
func (g *ground) retire(ctx context.Context, upTo int) error {
	known := make(map[fleet.ID]bool, len(g.experiments))
	for _, exp := range g.experiments {
		known[exp.ID] = true
	}
	if err := g.fill(ctx, upTo, "--generations", "0", "--cold-share", "1"); err != nil {
		return err
	}
	var fresh []fleet.Experiment
	for _, exp := range g.experiments {
		if !known[exp.ID] {
			fresh = append(fresh, exp)
		}
	}
	entries, err := g.verified(ctx, fresh)
	if err != nil {
		return err
	}
	ledger := store.NewLedgerWriter(g.engine, store.NewLedger(g.engine, g.dataDir))
	return ledger.Append(ctx, entries...)
}

// verified checks each experiment as VerifyZeroPending does.
func (g *ground) verified(ctx context.Context, exps []fleet.Experiment) ([]fleet.LedgerEntry, error) {
	entries, errs := make([]fleet.LedgerEntry, len(exps)), make([]error, len(exps))
	now := time.Now().UnixMilli()
	places := make(chan int)
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			for i := range places {
				evidence, err := g.engine.Verify(ctx, exps[i].URI, lance.VerifyOptions{})
				if err == nil && !evidence.Clean() {
					err = fmt.Errorf("%s is not at rest: %s", exps[i].ID, strings.Join(evidence.Blocking, "; "))
				}
				row := fleet.UnknownRow(exps[i])
				row.LastWrite = now - (8 * 24 * time.Hour).Milliseconds()
				entries[i], errs[i] = fleet.NewRetirement(row, evidence, nil, now), err
				entries[i].RunID = "bench"
			}
		})
	}
	for i := range exps {
		places <- i
	}
	close(places)
	running.Wait()
	return entries, errors.Join(errs...)
}

// wait is for rounds that stand for a time of their own: nothing happens meanwhile.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *RetiredPart) page(p *strings.Builder) {
	fmt.Fprintf(p, "## Rounds beside retired experiments\nLocal disk. Rounds beside retired ones are %.0f s apart, and look at those whose turn of the hour came meanwhile. Retirements were written into the ledger, each with the evidence of a check of its own.\n\n", r.IntervalSeconds)
	rows := table{{"what", "seconds: min", "median", "max", "requests", "peak memory"}}
	for _, part := range []struct {
		what   string
		rounds []Round
	}{
		{thousands(r.Hot) + " hot alone", r.Alone},
		{fmt.Sprintf("%s hot, %s retired", thousands(r.Hot), thousands(r.Retired)), r.Beside},
	} {
		s := spreadOf(secondsOf(part.rounds))
		rows = append(rows, []string{
			part.what, fmt.Sprintf("%.2f", s.Min), fmt.Sprintf("%.2f", s.Median), fmt.Sprintf("%.2f", s.Max),
			thousands(int(requestsEach(part.rounds, 1))), megabytes(lastPeak(part.rounds)),
		})
	}
	rows.write(p)
	share := r.IntervalSeconds / time.Hour.Seconds()
	fmt.Fprintf(p, "A slice is %.0f experiments here. To look at all %s in each round as at hot ones would cost %s requests.\n\n",
		share*float64(r.Retired), thousands(r.Hot+r.Retired), thousands(int(requestsEach(r.Alone, r.Hot)*float64(r.Hot+r.Retired))))
}
