package main

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// page is the report for people: Markdown whose tables line up as plain text too.
func (r *Report) page() string {
	var p strings.Builder
	fmt.Fprintf(&p, "# Benchmarks\n\nWritten by `./task bench` (%s).\n\n", r.StartedAt.Format("2006-01-02 15:04 UTC"))
	r.pageMachine(&p)
	p.WriteString("## Aims\n")
	aims := table{{"aim", "measured", ""}}
	for _, a := range r.aims() {
		aims = append(aims, []string{a.Words, a.Measured, a.Verdict})
	}
	aims.write(&p)
	r.pageLocal(&p)
	r.pageRemote(&p)
	r.pageSoak(&p)
	for _, n := range r.NotRun {
		fmt.Fprintf(&p, "Not run: %s: %s\n\n", n.What, n.Why)
	}
	p.WriteString(strings.TrimLeft(method, "\n"))
	return p.String()
}

func (r *Report) pageMachine(p *strings.Builder) {
	m := r.Machine
	fmt.Fprintf(p, "%d cores (%s), %s of memory, %s, kernel %s. Load average %s before, %s after, on %d cores; the run took %.0f min.\n",
		m.Cores, m.CPU, gigabytes(m.Memory), m.Platform, m.Kernel, r.LoadBefore, r.LoadAfter, m.Cores, r.FinishedAt.Sub(r.StartedAt).Minutes())
	fmt.Fprintf(p, "%s at %s; native library: %s build. %s.", m.Lancefleet, m.Revision, m.Library, m.Temporal)
	for _, other := range []string{m.S3Server, m.Pylance} {
		if other != "" {
			fmt.Fprintf(p, " %s.", other)
		}
	}
	p.WriteString("\n\n")
}

var spreadHead = []string{"seconds: min", "median", "max", "experiments/s", "requests per experiment"}

func spreadCells(seconds []float64, experiments int, requests string) []string {
	s := spreadOf(seconds)
	return []string{
		fmt.Sprintf("%.2f", s.Min), fmt.Sprintf("%.2f", s.Median), fmt.Sprintf("%.2f", s.Max),
		thousands(int(perSecond(experiments, s.Median))), requests,
	}
}

func roundCells(rounds []Round, experiments int) []string {
	return spreadCells(secondsOf(rounds), experiments, fmt.Sprintf("%.2f", requestsEach(rounds, experiments)))
}

func (r *Report) pageLocal(p *strings.Builder) {
	if len(r.Local) == 0 {
		return
	}
	p.WriteString("## Local disk\n")
	rows := table{append(append([]string{"experiments", "what"}, spreadHead...), "peak memory")}
	add := func(l Local, what string, cells []string, peak int64) {
		rows = append(rows, append(append([]string{thousands(l.Experiments), what}, cells...), megabytes(peak)))
	}
	for _, l := range r.Local {
		add(l, "first round (all observed)", roundCells([]Round{l.First}, l.Experiments), l.First.Memory.Peak)
		add(l, "round, nothing changed", roundCells(l.Unchanged, l.Experiments), lastPeak(l.Unchanged))
		add(l, fmt.Sprintf("round, %d changed", changed(l.Experiments)), roundCells(l.Changed, l.Experiments), lastPeak(l.Changed))
		for _, s := range l.Scripts {
			add(l, scriptName(s.Poll), spreadCells(s.Poll.Seconds, l.Experiments, ""), s.Poll.PeakBytes)
		}
	}
	rows.write(p)
	r.pageTrials(p)
}

func scriptName(p Poll) string {
	return fmt.Sprintf("script %s, concurrency %d", said(p.Look), p.Concurrency)
}

func (r *Report) pageTrials(p *strings.Builder) {
	head := []string{"script on a sample, best seconds"}
	for _, c := range concurrencies {
		head = append(head, fmt.Sprintf("concurrency %d", c))
	}
	rows := table{head}
	for _, l := range r.Local {
		for _, s := range l.Scripts {
			cells := []string{said(s.Poll.Look) + " " + thousands(s.Trials[0].Experiments) + " of " + thousands(l.Experiments)}
			for _, trial := range s.Trials {
				cells = append(cells, fmt.Sprintf("%.2f", spreadOf(trial.Seconds).Min))
			}
			rows = append(rows, cells)
		}
	}
	if len(rows) > 1 {
		rows.write(p)
	}
}

func (r *Report) pageRemote(p *strings.Builder) {
	remote := r.Remote
	if remote == nil {
		return
	}
	n := remote.Experiments
	fmt.Fprintf(p, "## S3 with %d ms of latency\n%s experiments.\n\n", remote.LatencyMS, thousands(n))
	rows := table{append(append([]string{"what"}, spreadHead...), "peak memory")}
	add := func(what string, cells []string, peak int64) {
		rows = append(rows, append(append([]string{what}, cells...), megabytes(peak)))
	}
	add("first round (all observed)", roundCells([]Round{remote.First}, n), remote.First.Memory.Peak)
	add("round, nothing changed", roundCells(remote.Unchanged, n), lastPeak(remote.Unchanged))
	add(fmt.Sprintf("round, %d changed", changed(n)), roundCells(remote.Changed, n), lastPeak(remote.Changed))
	for _, poll := range remote.Polls {
		each := float64(poll.Requests) / float64(max(1, len(poll.Seconds)*n))
		add(scriptName(poll), spreadCells(poll.Seconds, n, fmt.Sprintf("%.2f", each)), poll.PeakBytes)
	}
	rows.write(p)
	c, rounds := remote.Counted, len(remote.Unchanged)
	each := float64(max(1, rounds*n))
	if remote.Bare > 0 {
		fmt.Fprintf(p, "As many HEAD requests as an unchanged round makes, sent by a client that does nothing else and refused by the server without a look at storage, take %.2f s through the same proxy: less than that no round can take on this machine.\n\n", remote.Bare)
	}
	fmt.Fprintf(p, "Counted at the server over %d unchanged rounds, with everything that our own tables and the web server asked: %.2f requests per experiment and round (%.2f HEAD, %.2f LIST, %.2f GET, %.2f PUT).\n\n",
		rounds, float64(c.Total())/each, float64(c.Head)/each, float64(c.List)/each, float64(c.Get)/each, float64(c.Put)/each)
}

func (r *Report) pageSoak(p *strings.Builder) {
	if r.Soak == nil {
		return
	}
	s := r.Soak
	fmt.Fprintf(p, "## Memory over many rounds\n%s experiments, one worker, %d rounds of warm-up. Resident memory at the end of each round; growth is the median of the slopes between all pairs of rounds.\n\n", thousands(s.Experiments), len(s.Warmup))
	rows := table{{"rounds", "first", "last", "peak", fmt.Sprintf("growth in %d rounds", slopeOver), "seconds: median"}}
	for _, part := range []struct {
		what   string
		rounds []Round
	}{{"nothing changed", s.Unchanged}, {"1 % changed", s.Changed}} {
		if n := len(part.rounds); n > 0 {
			first, last := part.rounds[0].Memory, part.rounds[n-1].Memory
			rows = append(rows, []string{
				fmt.Sprintf("%d, %s", n, part.what), megabytes(first.Resident), megabytes(last.Resident), megabytes(last.Peak),
				fmt.Sprintf("%+.2f MB", growth(part.rounds)/1e6), fmt.Sprintf("%.2f", median(secondsOf(part.rounds))),
			})
		}
	}
	rows.write(p)
}

func lastPeak(rounds []Round) int64 {
	if len(rounds) == 0 {
		return 0
	}
	return rounds[len(rounds)-1].Memory.Peak
}

// table is rows of cells, the head first.
type table [][]string

func (t table) write(p *strings.Builder) {
	widths := make([]int, len(t[0]))
	for _, row := range t {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell), 3)
		}
	}
	line := func(row []string) {
		for i, width := range widths {
			cell := "" // a row may end early
			if i < len(row) {
				cell = row[i]
			}
			fmt.Fprintf(p, "| %s%s ", cell, strings.Repeat(" ", width-utf8.RuneCountInString(cell)))
		}
		p.WriteString("|\n")
	}
	line(t[0])
	rule := make([]string, len(widths))
	for i, width := range widths {
		rule[i] = strings.Repeat("-", width)
	}
	line(rule)
	for _, row := range t[1:] {
		line(row)
	}
	p.WriteString("\n")
}

func megabytes(bytes int64) string { return fmt.Sprintf("%.0f MB", float64(bytes)/1e6) }

func gigabytes(bytes int64) string { return fmt.Sprintf("%.1f GB", float64(bytes)/1e9) }

// thousands writes 30000 as 30,000.
func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// method is how all of it was measured.
const method = `
## How this is measured
- A fleet is made by ` + "`lancefleet make-fleet --shards 1 --generations 3`" + `: rollout stores with one MemWAL shard, three flushed generations that wait for their merge, one fragment in the base table.
- A round is ` + "`lancefleet scan --wait --json`" + ` from start to exit: command, web server, Temporal (its development server with a database on disk), worker, commit, and the answer back. Worker, web server and Temporal are processes of
  their own on the same machine. Scheduled rounds are off. A round that did not look at every experiment, or did not find exactly what was written, ends the run.
- "Changed" means that real writers flushed a generation in 1 % of the experiments before each round, others each time: the base version does not move.
- The script is [bench/poll.py](../bench/poll.py): it opens every dataset with pylance in threads and reads version, rows and number of fragments; in a second form it also lists the files of the write-ahead log. Both do less than a
  round: they read no shard manifests, so they know neither pending generations nor the last write, and they keep nothing. Their best concurrency is sought on a sample; ours keeps its defaults. Our programs are ended while the script
  runs. The time to start Python and to import is not counted.
- Everything lies in the page cache, for both.
- Latency is added by toxiproxy to each answer of the S3 server (versitygw), which runs on the same machine; fleets are made and written without it.
- The S3 server and the proxy share the two cores with the worker: an unchanged round there is bound by CPU, not by waiting. Sampled over eight rounds (2026-11-30), the S3 server used 38 % of the CPU time, the worker 35 %, the proxy 15 %, Temporal 12 %.
- Requests per experiment are those of the round's own record, our tables included; local disk counts file operations the same way. For the script on S3 they are counted at the server.
- Peak memory is the worker's largest resident set: in the first round, then from there on.
`
