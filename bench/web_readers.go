package main

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"lancefleet/fleet"
	"lancefleet/store"
)

// ReadersPart is one fleet treated twice in the same way: alone, and while many read.
type ReadersPart struct {
	Experiments int       `json:"experiments"`
	Count       int       `json:"readers"`
	Alone       Treatment `json:"alone"`
	Beside      Treatment `json:"beside"`
	Differences []string  `json:"differences"` // what readers changed
}

// Treatment is what was done with a fleet, and what came of it.
type Treatment struct {
	Rounds         []Round   `json:"rounds"` // first, unchanged, and after writes
	Maintained     float64   `json:"maintained_seconds"`
	Retired        int       `json:"retired"`
	Optimized      int       `json:"optimized"` // merges and compactions of hot ones
	Answers        []Answers `json:"answers"`   // during rounds, and during maintenance
	WebMemory      Memory    `json:"web_memory"`
	before, after  map[string]string
	retiredAs      map[string]string
	countsOfRounds []string
}

const (
	readersCold  = "0.3" // share of experiments that turn cold
	readersWaits = 10    // generations of each: worth a merge
	// All readers of the load tool have one address: its share of looks at storage is
	// not what two hundred people have.
	manyClients = "STORAGE_READS_PER_MINUTE=0"
)

func (b *bench) readers(ctx context.Context, s webSettings) (*ReadersPart, error) {
	part := &ReadersPart{Experiments: s.Experiments, Count: s.Readers}
	var err error
	if part.Alone, err = b.treat(ctx, s, "alone", 0); err != nil {
		return nil, fmt.Errorf("alone: %w", err)
	}
	if part.Beside, err = b.treat(ctx, s, "beside", s.Readers); err != nil {
		return nil, fmt.Errorf("beside readers: %w", err)
	}
	part.Differences = part.Alone.differences(&part.Beside)
	b.say("%d readers: %d differences, %d errors in %d answers", s.Readers, len(part.Differences), part.errors(), part.answers())
	return part, nil
}

func (b *bench) treat(ctx context.Context, s webSettings, name string, readers int) (Treatment, error) {
	var t Treatment
	g := &ground{bench: b, name: name, engine: b.engine}
	g.dataDir = filepath.Join(b.dir, g.name)
	defer g.end()
	if err := g.fill(ctx, s.Experiments, "--generations", strconv.Itoa(readersWaits), "--cold-share", readersCold); err != nil {
		return t, err
	}
	if err := t.scan(ctx, g, readers); err != nil {
		return t, err
	}
	b.say("%s: rounds %.2f s", name, secondsOf(t.Rounds))
	if err := t.maintain(ctx, g, readers, s.Patience); err != nil {
		return t, err
	}
	b.say("%s: %d retired and %d optimized in %.0f s", name, t.Retired, t.Optimized, t.Maintained)
	return t, nil
}

// scan runs rounds: all is new, nothing is, 1 % is, twice.
func (t *Treatment) scan(ctx context.Context, g *ground, readers int) error {
	if err := g.serve(ctx, manyClients); err != nil {
		return err
	}
	defer g.end()
	if err := g.untilServing(ctx); err != nil {
		return err
	}
	err := t.read(ctx, g, readers, "during rounds", func() error {
		for _, round := range []func(context.Context) (Round, error){g.first, g.unchanged, g.touched, g.touched} {
			r, err := round(ctx)
			if err != nil {
				return err
			}
			t.Rounds = append(t.Rounds, r)
			t.countsOfRounds = append(t.countsOfRounds, fmt.Sprintf("observed %d, skipped %d, failed %d, hot %d", r.Record.Observed, r.Record.Skipped, r.Record.Failed, r.Record.Hot))
		}
		return nil
	})
	if err != nil {
		return err
	}
	t.before, err = g.rowsAsWords(ctx)
	return err
}

// maintain lets rounds start what is due until nothing is.
func (t *Treatment) maintain(ctx context.Context, g *ground, readers int, patience time.Duration) error {
	if err := g.serve(ctx, "SCAN_INTERVAL="+busyEvery, "MAINTENANCE=on", "GENERATION_GRACE=5s", manyClients); err != nil {
		return err
	}
	defer g.end()
	if err := g.untilServing(ctx); err != nil {
		return err
	}
	err := t.read(ctx, g, readers, "during maintenance", func() error {
		begun := time.Now()
		if err := g.untilNothingIsDue(ctx, patience); err != nil {
			return err
		}
		t.Maintained = time.Since(begun).Seconds()
		return nil
	})
	if err != nil {
		return err
	}
	return t.outcome(ctx, g)
}

// outcome reads what maintenance left, after one more round.
func (t *Treatment) outcome(ctx context.Context, g *ground) error {
	if _, err := output(ctx, time.Minute, nil, "", g.bench.tools.lancefleet, "pause", "--reason", "bench compares", "--server", g.server); err != nil {
		return err
	}
	if _, err := g.round(ctx); err != nil {
		return err
	}
	ledger, err := store.NewLedger(g.engine.Reader, g.dataDir).Latest(ctx)
	if err != nil {
		return err
	}
	t.retiredAs = map[string]string{}
	for i := range ledger.Entries {
		if e := &ledger.Entries[i]; e.Retired() {
			t.retiredAs[e.ID.String()] = fmt.Sprintf("%d rows in %d fragments of version %d, %d shards, clean %t", e.Evidence.Rows, e.Evidence.Fragments, e.Evidence.Fingerprint.Version, len(e.Evidence.Shards), e.Evidence.Clean())
		}
	}
	t.Retired = len(t.retiredAs)
	actions, err := store.NewJournal(g.engine.Reader, g.dataDir).Latest(ctx, 100_000)
	if err != nil {
		return err
	}
	for _, a := range actions {
		if a.Kind == fleet.ActOptimize && a.Outcome == fleet.OutcomeDone {
			t.Optimized++
		}
	}
	t.after, err = g.rowsAsWords(ctx)
	return err
}

// read has so many read until the work is done.
func (t *Treatment) read(ctx context.Context, g *ground, readers int, what string, work func() error) error {
	if readers == 0 {
		return work()
	}
	one := g.experiments[0].ID.String()
	q := question{what, []string{
		"/", list(), list("sort", "pending_wal_generations", "order", "desc"), list("q", "pending:>=3 kind:rollout"), list("q", "state:retired"), list("q", "swe"),
		"/operations", "/api/v1/operations", "/api/v1/status", "/api/v1/rounds", "/experiments/" + one, "/api/v1/experiments/" + one,
	}}
	many := strconv.Itoa(readers)
	load, err := g.bench.startAttack(g.server, q, "-rate=0", "-workers="+many, "-max-workers="+many, "-connections="+many, "-duration=0", "-max-body=0")
	if err != nil {
		return err
	}
	defer load.process.stop()
	if err := work(); err != nil {
		return err
	}
	answers, err := load.end(ctx, true)
	if err != nil {
		return err
	}
	t.Answers = append(t.Answers, answers)
	t.WebMemory, err = memoryOf(g.web.PID())
	return err
}

// untilServing waits for the first look at the table: before it there is nothing to read.
func (g *ground) untilServing(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	return untilServed(ctx, g.server+"/readyz")
}

// untilNothingIsDue asks until rounds find nothing to start and nothing runs.
func (g *ground) untilNothingIsDue(ctx context.Context, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var o struct {
		Plan struct {
			Starts  []any `json:"starts"`
			Waiting int   `json:"waiting_total"`
			Cooling int   `json:"cooling_down"`
			Retired int   `json:"retired"`
		} `json:"plan"`
		Running []any `json:"running"`
	}
	rested, retired := 0, -1
	for rested < 3 { // a round between: it starts what became due
		if err := wait(ctx, 5*time.Second); err != nil {
			return fmt.Errorf("%d retired, %d to start, %d waiting, %d cooling down, %d running: %w", o.Plan.Retired, len(o.Plan.Starts), o.Plan.Waiting, o.Plan.Cooling, len(o.Running), err)
		}
		o.Running, o.Plan.Starts = nil, nil
		if err := ask(ctx, http.MethodGet, g.server+"/api/v1/operations", nil, &o); err != nil {
			return err
		}
		rested++
		if len(o.Plan.Starts)+o.Plan.Waiting+o.Plan.Cooling+len(o.Running) > 0 || o.Plan.Retired != retired {
			rested, retired = 0, o.Plan.Retired
		}
	}
	return nil
}

// rowsAsWords is the table without what two fleets of one seed need not share:
// times, addresses, and sizes of files that name them.
func (g *ground) rowsAsWords(ctx context.Context) (map[string]string, error) {
	snapshot, err := store.NewStats(g.engine.Reader, g.dataDir).Latest(ctx)
	if err != nil {
		return nil, err
	}
	words := map[string]string{}
	for i := range snapshot.Rows {
		r := &snapshot.Rows[i]
		words[r.ID.String()] = fmt.Sprintf("%d rows (exact %t), %d fragments, %d pending with %d rows, version %d, %d deleted, %d in the log, %d shards, %d failures",
			r.RowCount, r.RowsExact, r.FragmentCount, r.PendingWAL, r.PendingRows, r.Version, r.DeletedRows, r.TailEntries, len(r.Shards), r.Failures)
	}
	return words, nil
}

// differences are what came out otherwise.
func (t *Treatment) differences(o *Treatment) []string {
	all := []string{}
	for i := range t.countsOfRounds {
		if a, b := t.countsOfRounds[i], o.countsOfRounds[i]; a != b {
			all = append(all, fmt.Sprintf("round %d: %s; beside readers: %s", i+1, a, b))
		}
	}
	for _, part := range []struct {
		what          string
		alone, beside map[string]string
	}{{"row before maintenance", t.before, o.before}, {"row after it", t.after, o.after}, {"retirement", t.retiredAs, o.retiredAs}} {
		all = append(all, unlike(part.what, part.alone, part.beside)...)
	}
	return all
}

func unlike(what string, alone, beside map[string]string) []string {
	names := map[string]bool{}
	for name := range alone {
		names[name] = true
	}
	for name := range beside {
		names[name] = true
	}
	var all []string
	for name := range names {
		if alone[name] != beside[name] {
			all = append(all, fmt.Sprintf("%s of %s: %q; beside readers: %q", what, name, alone[name], beside[name]))
		}
	}
	slices.Sort(all)
	return all
}

func (r *ReadersPart) errors() int { return errorsOf(r.Beside.Answers) }

func (r *ReadersPart) answers() (n int) {
	for _, a := range r.Beside.Answers {
		n += a.Requests
	}
	return n
}

func (r *ReadersPart) page(p *strings.Builder) {
	fmt.Fprintf(p, "## Rounds and maintenance beside readers\n%s experiments with %d pending generations each, %s of them cold; %d readers, always that many requests in flight.\n\n",
		thousands(r.Experiments), readersWaits, readersCold, r.Count)
	rows := table{{"what", "first round", "nothing changed", "1 % changed", "again", "maintenance", "retired", "optimized"}}
	for _, part := range []struct {
		what string
		t    *Treatment
	}{{"alone", &r.Alone}, {"beside readers", &r.Beside}} {
		cells := []string{part.what}
		for _, seconds := range secondsOf(part.t.Rounds) {
			cells = append(cells, fmt.Sprintf("%.2f s", seconds))
		}
		rows = append(rows, append(cells, fmt.Sprintf("%.0f s", part.t.Maintained), strconv.Itoa(part.t.Retired), strconv.Itoa(part.t.Optimized)))
	}
	rows.write(p)
	answersTable(r.Beside.Answers).write(p)
	fmt.Fprintf(p, "The web server's memory beside them: %s, %s at most.\n\n", megabytes(r.Beside.WebMemory.Resident), megabytes(r.Beside.WebMemory.Peak))
	if len(r.Differences) == 0 {
		fmt.Fprintf(p, "Counts of rounds, %d rows before and %d after maintenance and %d retirements are the same with and without readers.\n\n", len(r.Alone.before), len(r.Alone.after), r.Alone.Retired)
		return
	}
	p.WriteString("What came out otherwise:\n")
	for _, d := range r.Differences[:min(len(r.Differences), 20)] {
		fmt.Fprintf(p, "- %s\n", d)
	}
	p.WriteString("\n")
}
