package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"lancefleet/fleet"
	"lancefleet/web"
	"lancefleet/workflows"
)

// lines aligns what belongs to names.
func lines(w io.Writer, say func(line func(name string, value any))) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	say(func(name string, value any) { fmt.Fprintf(table, "%s\t%v\n", name, value) })
	_ = table.Flush()
}

func printPlan(w io.Writer, p web.MaintenancePlan) {
	would := "would start: "
	if !p.Start {
		would = "would not start: "
	}
	fmt.Fprintf(w, "%s %s: %s%s\n", p.Action, p.ID, would, p.Reason)
	lines(w, func(line func(string, any)) {
		if p.NotBefore != nil && !p.Start {
			line("due", time.UnixMilli(*p.NotBefore).UTC().Format(time.RFC3339))
		}
		switch {
		case p.Seal != nil:
			sealLines(p, line)
		case p.Accept != nil:
			acceptLines(p, line)
		default:
			previewLines(p, line)
		}
		for _, sentence := range p.Clears {
			line("cleared by the run", sentence)
		}
		for _, sentence := range p.Blocking {
			line("in the way", sentence)
		}
	})
}

func previewLines(p web.MaintenancePlan, line func(string, any)) {
	line("merge", orNothing(p.Generations, "%s, %s rows at most, %s bytes", fleet.Count(p.Generations, "generation"), count(p.MergedRows), count(p.MergedBytes)))
	line("compact", orNothing(p.FragmentsIn, "%s into %d, %s bytes", fleet.Count(p.FragmentsIn, "fragment"), p.FragmentsOut, count(p.CompactBytes)))
	line("versions", fmt.Sprintf("%d old ones would go, %d bytes", p.Versions, p.VersionsBytes))
	if p.Preview == nil {
		return
	}
	for _, held := range p.Preview.Versions.Held {
		line("held", fmt.Sprintf("version %d by %s", held.Version, held.By))
	}
}

// orNothing words what would be done with n things.
func orNothing(n int64, format string, words ...any) string {
	if n == 0 {
		return "nothing"
	}
	return fmt.Sprintf(format, words...)
}

func acceptLines(p web.MaintenancePlan, line func(string, any)) {
	for _, shard := range p.Accept.Shards {
		for _, sentence := range shard.Sentences {
			line("shard "+shard.Shard, sentence)
		}
	}
}

func sealLines(p web.MaintenancePlan, line func(string, any)) {
	line("replay", fmt.Sprintf("%d entries of shard %s, %d rows", len(p.Seal.Entries), p.Seal.Shard, p.Seal.Rows))
	for _, e := range p.Seal.Entries {
		line("entry", fmt.Sprintf("position %d, %d rows, %s, %s", e.Position, e.Rows, e.State, time.UnixMilli(e.Time).UTC().Format(time.RFC3339)))
	}
}

func printEnded(w io.Writer, e web.MaintenanceEnded) {
	fmt.Fprintf(w, "%s %s: %s: %s\n", e.Action, e.ID, e.Outcome, e.Sentence)
	lines(w, func(line func(string, any)) {
		for _, step := range e.Steps {
			line(step.Action, fmt.Sprintf("%s: %s", step.Outcome, step.Sentence))
		}
		changed := func(name string, before, after int64) {
			if e.Outcome != workflows.OutcomeNoop && (before >= 0 || after >= 0) { // what did nothing changed no number
				line(name, change(before, after))
			}
		}
		changed("fragments", e.Before.Fragments, e.After.Fragments)
		changed("pending generations", e.Before.Pending, e.After.Pending)
		changed("version", e.Before.Version, e.After.Version)
		changed("bytes", e.Before.Bytes, e.After.Bytes)
		if e.Link != "" {
			line("temporal", e.Link)
		}
	})
}

// change words two numbers; one that stayed is told once.
func change(before, after int64) string {
	if before == after {
		return orUnknown(after)
	}
	return orUnknown(before) + " -> " + orUnknown(after)
}

func orUnknown(n int64) string {
	if n < 0 {
		return "?"
	}
	return strconv.FormatInt(n, 10)
}

func printVerification(w io.Writer, v web.Verification) {
	lines(w, func(line func(string, any)) {
		line("experiment", v.ID)
		line("state", v.State)
		line("rows", v.Rows)
		line("fragments", v.Fragments)
		line("pending generations", v.Pending)
		line("stranded entries", v.Stranded-v.Unflushed)
		if v.Unflushed > 0 {
			line("not flushed yet", fmt.Sprintf("%d entries of writers that may live", v.Unflushed))
		}
		line("unknown entries", v.Unknown)
		if v.Deep {
			line("distinct keys", orUnknown(v.DistinctKeys))
		}
		for _, s := range v.Shards {
			line("shard "+s.ID, fmt.Sprintf("mark %d, %d pending, %d stranded, %d unknown", s.Mark, s.Pending, s.Stranded, s.Unknown))
		}
		if v.AgainstLedger != "" {
			line("ledger", v.AgainstLedger)
		}
		for _, sentence := range v.Blocking {
			line("blocking", sentence)
		}
	})
}

func printFleetPlan(w io.Writer, p web.FleetPlan) {
	if !p.Maintain {
		fmt.Fprintln(w, "maintenance is off: nothing is started")
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(what string, all []web.Planned) {
		for _, one := range all {
			action := one.Action
			if action == string(fleet.DoNothing) {
				action = one.Wants
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", what, action, one.ID, one.Reason)
		}
	}
	for _, r := range p.Running {
		fmt.Fprintf(table, "running\t%s\t%s\trun %s\n", r.Action, r.ID, r.RunID)
	}
	row("start", p.Starts)
	row("waiting", p.Waiting)
	row("blocked", p.Blocked)
	_ = table.Flush()
	fmt.Fprintf(w, "%d to start, %d waiting for a later round, %d blocked, %d cooling down, %d with nothing to do, %d running, %d retired\n",
		len(p.Starts), p.WaitingAll, p.BlockedAll, p.CoolingDown, p.NotDue, len(p.Running), p.Retired)
}

func printHistory(w io.Writer, h web.History, now time.Time) {
	if h.Running != nil {
		fmt.Fprintf(w, "%s runs since %s (run %s)\n", h.Running.Action, ago(&h.Running.StartedAt, now), h.Running.RunID)
		if p := h.Running.Progress; p != nil {
			(&progress{to: w}).told(*p)
		}
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "WHEN\tWHAT\tOUTCOME\tFRAGMENTS\tPENDING\tBY\tWHY")
	for _, a := range h.Actions {
		fragments, pending := "", ""
		if a.Before != nil && a.After != nil && a.Outcome != fleet.OutcomeNoOp {
			fragments, pending = change(a.Before.Fragments, a.After.Fragments), change(a.Before.Pending, a.After.Pending)
		}
		by := a.By
		if by == "" {
			by = "a round"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", time.UnixMilli(a.At).UTC().Format(time.RFC3339), a.Kind, a.Outcome, fragments, pending, by,
			strings.Join(strings.Fields(a.Words()), " "))
	}
	_ = table.Flush()
}
