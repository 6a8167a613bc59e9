package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"lancefleet/fleet"
	"lancefleet/web"
)

type statusCommand struct {
	clientFlags
}

// Run prints where the fleet stands.
func (c *statusCommand) Run(ctx context.Context, io streams) error {
	ops, err := c.operations(ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(io.out, ops)
	}
	printOperations(io.out, ops, time.Now())
	for _, what := range ops.Missing {
		fmt.Fprintln(io.err, "not to be had:", what)
	}
	if ops.Stale {
		fmt.Fprintln(io.err, "stale:", ops.StaleWhy)
	}
	return nil
}

type failuresCommand struct {
	clientFlags
}

// Run prints what fails now, by cause.
func (c *failuresCommand) Run(ctx context.Context, io streams) error {
	ops, err := c.operations(ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(io.out, ops.Failures)
	}
	printFailures(io.out, ops.Failures, time.Now())
	for _, what := range ops.Missing {
		fmt.Fprintln(io.err, "not to be had:", what)
	}
	return nil
}

func (c *clientFlags) operations(ctx context.Context) (web.Operations, error) {
	var ops web.Operations
	api, err := c.api()
	if err != nil {
		return ops, err
	}
	_, err = api.get(ctx, "/api/v1/operations", nil, &ops)
	return ops, err
}

func printOperations(w io.Writer, o web.Operations, now time.Time) {
	lines(w, func(line func(string, any)) {
		line("schedule", scheduleWords(o.Schedule, now))
		if len(o.RunningRounds) > 0 {
			line("round", "runs since "+ago(&o.RunningRounds[0].StartedAt, now))
		}
		if len(o.Rounds) > 0 {
			r := o.Rounds[0]
			line("last round", fmt.Sprintf("%s, took %.1f s: %d observed, %d skipped, %d failed", ago(&r.FinishedAt, now), r.DurationSeconds, r.Observed, r.Skipped, r.Failed))
		}
		line("maintenance", fmt.Sprintf("%d running", len(o.Running)))
		if p := o.Plan; p != nil {
			line("next round", fmt.Sprintf("%d to start, %d waiting, %d blocked, %d cooling down", len(p.Starts), p.WaitingAll, p.BlockedAll, p.CoolingDown))
			for _, c := range p.Causes {
				line("  blocked", fmt.Sprintf("%d: %s", c.Count, c.Says))
			}
		}
		if r := o.Retirement; r != nil {
			line("retirement", fmt.Sprintf("%d due, %d blocked, %d retired, %d returned lately", r.CandidatesAll, r.BlockedAll, r.RetiredAll, r.ReturnedAll))
		}
		line("failures", failureWords(o.Failures))
		if u := o.Upkeep; u != nil {
			line("upkeep", fmt.Sprintf("%d failures in a row, %d versions not removed yet", u.Failures, u.Unreclaimed))
		}
	})
}

func scheduleWords(s *web.Schedule, now time.Time) string {
	switch {
	case s == nil:
		return "unknown"
	case !s.Exists:
		return "not created yet: a worker creates it"
	case s.Paused:
		return fmt.Sprintf("paused by %s, %s: %s", orSomebody(s.By), ago(s.Since, now), s.Reason)
	case s.IntervalSecs == 0:
		return "off"
	}
	return fmt.Sprintf("every %d s", s.IntervalSecs)
}

func orSomebody(by string) string {
	if by == "" {
		return "another tool"
	}
	return by
}

// failureWords count causes by how much they ask of a person.
func failureWords(failures []web.Failure) string {
	if len(failures) == 0 {
		return "none"
	}
	by := map[string]int{}
	for _, f := range failures {
		by[f.Level]++
	}
	return fmt.Sprintf("%s: %d for somebody to mend, %d to look at, %d that pass (lancefleet failures)", fleet.Count(int64(len(failures)), "cause"), by["bad"], by["warn"], by["note"])
}

func printFailures(w io.Writer, failures []web.Failure, now time.Time) {
	if len(failures) == 0 {
		fmt.Fprintln(w, "nothing fails")
		return
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "LEVEL\tWHERE\tCLASS\tSTOPPED\tFAILURES\tFIRST\tLAST\tNEXT TRY\tNEWEST ONE'S WORDS")
	for _, f := range failures {
		next := "when it is wanted"
		if f.NextAt != nil {
			next = time.UnixMilli(*f.NextAt).UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%d\t%s\t%s\t%s\t%s\n", f.Level, f.Where, f.Class, f.Count, f.Attempts, ago(f.FirstAt, now), ago(f.LastAt, now), next, f.Sample)
	}
	_ = table.Flush()
}
