package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"lancefleet/store"
)

// APIPart is what answers cost over one large fleet.
type APIPart struct {
	Hot         int        `json:"hot"`
	Retired     int        `json:"retired"`
	Actions     int        `json:"actions"`
	Rate        int        `json:"rate"`
	Seconds     int        `json:"seconds"`
	Ready       float64    `json:"ready_seconds"` // from the web server's first word to its first full list
	Answers     []Answers  `json:"answers"`
	Scripts     []Answered `json:"scripts"` // empty = not run
	Memory      Memory     `json:"memory"`  // of the web server before it was asked
	MemoryAfter Memory     `json:"memory_after"`
}

// Answers are those to one kind of question.
type Answers struct {
	What     string         `json:"what"`
	Requests int            `json:"requests"`
	Errors   int            `json:"errors"` // answers other than 2xx, and none
	P50      float64        `json:"p50"`    // seconds
	P99      float64        `json:"p99"`
	Max      float64        `json:"max"`
	Bytes    float64        `json:"bytes"` // of one answer, as sent
	Codes    map[string]int `json:"codes"`
	Said     []string       `json:"said"` // errors
}

// Answered is how long a script took that does without the server.
type Answered struct {
	What    string    `json:"what"`
	Seconds []float64 `json:"seconds"`
}

// question is one kind, asked at different addresses in turn.
type question struct {
	what    string
	targets []string
}

// variants are more than the server remembers of texts that it looked for.
const variants = 150

func addresses(n int, target func(i int) string) []string {
	targets := make([]string, n)
	for i := range targets {
		targets[i] = target(i)
	}
	return targets
}

func list(query ...string) string {
	values := url.Values{}
	for i := 0; i+1 < len(query); i += 2 {
		values.Set(query[i], query[i+1])
	}
	return "/api/v1/experiments?" + values.Encode()
}

var sortable = []string{
	"name", "kind", "state", "last_write", "row_count", "fragment_count", "pending_wal_generations", "stranded_entries", "bytes", "last_maintenance", "action",
}

func questions(s webSettings, names []string) []question {
	deep := func(i int) string { return strconv.Itoa(i * max(s.Hot/variants, 1)) }
	sorts := addresses(2*len(sortable), func(i int) string { return list("sort", sortable[i/2], "order", []string{"asc", "desc"}[i%2]) })
	return []question{
		{"list", []string{"/api/v1/experiments"}},
		{"list, sorted by each column", sorts},
		{"filtered by terms", addresses(variants, func(i int) string {
			return list("q", fmt.Sprintf("kind:rollout pending:>=%d fragments:<%d", i%7, 4+i/7))
		})},
		{"words in names", addresses(variants, func(i int) string {
			return list("q", toldModels[i%len(toldModels)]+" "+toldTasks[i%len(toldTasks)]+" 0"+strconv.Itoa(i))
		})},
		{"words, sorted, a page far behind", addresses(variants, func(i int) string {
			return list("q", fmt.Sprintf("%s pending:>%d", toldTasks[i%len(toldTasks)], i%5), "sort", sortable[i%len(sortable)], "offset", strconv.Itoa(50*i))
		})},
		{"far behind in the list", addresses(variants, func(i int) string { return list("offset", deep(i)) })},
		{"retired ones", addresses(variants, func(i int) string { return list("q", fmt.Sprintf("state:retired %04d", i)) })},
		{"one experiment", addresses(min(variants, len(names)), func(i int) string {
			return "/api/v1/experiments/" + url.PathEscape(names[i*len(names)/min(variants, len(names))])
		})},
		{"operations", []string{"/api/v1/operations"}},
		{"status", []string{"/api/v1/status"}},
		{"page: list", addresses(variants, func(i int) string { return "/?offset=" + deep(i) })},
		{"page: search", addresses(variants, func(i int) string { return "/?q=" + toldTasks[i%len(toldTasks)] + "+0" + strconv.Itoa(i) })},
		{"page: operations", []string{"/operations"}},
	}
}

// untilRead waits until the web server shows all that it was told of.
func (g *ground) untilRead(ctx context.Context, s webSettings) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	begun := time.Now()
	for {
		var hot, cold struct{ Total int }
		err := ask(ctx, http.MethodGet, g.server+list("limit", "1"), nil, &hot)
		if err == nil && hot.Total == s.Hot {
			// Past the end: nothing is looked at for it.
			if err = ask(ctx, http.MethodGet, g.server+list("limit", "1", "q", "unseen", "offset", "1000000"), nil, &cold); err == nil && cold.Total == max(s.Cold, 1) {
				g.ready = time.Since(begun).Seconds()
				return nil
			}
		}
		if wait(ctx, 50*time.Millisecond) != nil {
			return fmt.Errorf("the web server shows %d of %d rows and %d of %d names without one: %w", hot.Total, s.Hot, cold.Total, max(s.Cold, 1), err)
		}
	}
}

func (b *bench) askAPI(ctx context.Context, g *ground, s webSettings) (*APIPart, error) {
	part := &APIPart{Hot: s.Hot, Retired: s.Retired, Actions: s.Actions, Rate: s.Rate, Seconds: s.Seconds, Ready: g.ready}
	var err error
	if part.Memory, err = memoryOf(g.web.PID()); err != nil {
		return nil, err
	}
	snapshot, err := store.NewStats(g.engine.Reader, g.dataDir).Latest(ctx)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(snapshot.Rows))
	for i := range snapshot.Rows {
		names = append(names, snapshot.Rows[i].ID.String())
	}
	for _, q := range questions(s, names) {
		answers, err := b.attack(ctx, g.server, q, s.Rate, s.Seconds)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", q.what, err)
		}
		b.say("%s: p50 %s, p99 %s, %d errors", q.what, milliseconds(answers.P50), milliseconds(answers.P99), answers.Errors)
		part.Answers = append(part.Answers, answers)
	}
	beside, err := b.besideCommits(ctx, g, snapshot, s)
	if err != nil {
		return nil, fmt.Errorf("beside commits: %w", err)
	}
	part.Answers = append(part.Answers, beside)
	part.Scripts, err = b.tableScript(ctx, g)
	return part, err
}

// besideCommits asks for the list while rounds change 1 % of the table, far more
// often than they do.
func (b *bench) besideCommits(ctx context.Context, g *ground, snapshot *store.Snapshot, s webSettings) (Answers, error) {
	const every = 5 * time.Second
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	commits, done := 0, make(chan error, 1)
	go func() {
		stats := store.NewStats(g.engine.Reader, g.dataDir)
		writer := store.NewStatsWriter(g.engine, stats)
		rows := slices.Clone(snapshot.Rows)
		for ctx.Err() == nil {
			for _, i := range chosen(len(rows), changed(len(rows)), int64(commits*changed(len(rows)))) {
				rows[i].PendingWAL++
				rows[i].ScannedAt = time.Now().UnixMilli()
			}
			latest, err := stats.Latest(ctx)
			if err == nil {
				_, err = writer.Commit(ctx, latest, rows, nil)
			}
			if err != nil && ctx.Err() == nil {
				done <- err
				return
			}
			commits++
			_ = wait(ctx, every) // its end is the loop's
		}
		done <- nil
	}()
	answers, err := b.attack(ctx, g.server, question{"list, a commit every 5 s", addresses(variants, func(i int) string { return list("offset", strconv.Itoa(50*i)) })}, s.Rate, s.Seconds)
	cancel()
	if failed := <-done; failed != nil {
		return answers, failed
	}
	b.say("%s: p50 %s, p99 %s, %d errors, %d commits", answers.What, milliseconds(answers.P50), milliseconds(answers.P99), answers.Errors, commits)
	return answers, err
}

// attack asks at a fixed rate, whether answers come or not.
func (b *bench) attack(ctx context.Context, server string, q question, rate, seconds int) (Answers, error) {
	a, err := b.startAttack(server, q, "-rate="+strconv.Itoa(rate), fmt.Sprintf("-duration=%ds", seconds))
	if err != nil {
		return Answers{}, err
	}
	return a.end(ctx, false)
}

// attacking is a load tool at work.
type attacking struct {
	bench   *bench
	what    string
	process *program
	results string
}

func (b *bench) startAttack(server string, q question, flags ...string) (*attacking, error) {
	b.attacks++
	base := filepath.Join(b.dir, fmt.Sprintf("attack-%03d", b.attacks))
	var targets strings.Builder
	for _, t := range q.targets {
		targets.WriteString("GET " + server + t + "\n")
	}
	if err := os.WriteFile(base+".targets", []byte(targets.String()), 0o600); err != nil {
		return nil, err
	}
	args := append([]string{"attack", "-targets=" + base + ".targets", "-output=" + base + ".results", "-header=Accept-Encoding: gzip", "-timeout=60s"}, flags...)
	process, err := startProgram("vegeta", base+".log", nil, b.tools.vegeta, args...)
	return &attacking{b, q.what, process, base + ".results"}, err
}

// end waits for the load to end, or ends it, and says what came of it.
func (a *attacking) end(ctx context.Context, now bool) (Answers, error) {
	if now {
		if err := syscall.Kill(a.process.PID(), syscall.SIGINT); err != nil {
			return Answers{}, err
		}
	}
	select {
	case <-a.process.Done():
	case <-ctx.Done():
		a.process.stop()
		return Answers{}, ctx.Err()
	}
	if said := a.process.Ended(); said != "exit status 0" {
		return Answers{}, fmt.Errorf("vegeta: %s: %s", said, a.process.said.tail())
	}
	text, err := output(ctx, time.Minute, nil, "", a.bench.tools.vegeta, "report", "-type=json", a.results)
	if err != nil {
		return Answers{}, err
	}
	return parseAttack(a.what, text)
}

// parseAttack reads a report of vegeta, whose times are nanoseconds.
func parseAttack(what string, text []byte) (Answers, error) {
	var r struct {
		Latencies struct {
			P50 float64 `json:"50th"`
			P99 float64 `json:"99th"`
			Max float64 `json:"max"`
		} `json:"latencies"`
		BytesIn struct {
			Mean float64 `json:"mean"`
		} `json:"bytes_in"`
		Requests int            `json:"requests"`
		Codes    map[string]int `json:"status_codes"`
		Errors   []string       `json:"errors"`
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return Answers{}, fmt.Errorf("read what the load tool measured: %w: %s", err, text)
	}
	if r.Requests == 0 {
		return Answers{}, fmt.Errorf("nothing was asked: %s", text)
	}
	answers := Answers{
		What: what, Requests: r.Requests, Errors: r.Requests, P50: r.Latencies.P50 / 1e9, P99: r.Latencies.P99 / 1e9, Max: r.Latencies.Max / 1e9,
		Bytes: r.BytesIn.Mean, Codes: r.Codes, Said: r.Errors,
	}
	for code, n := range r.Codes {
		if strings.HasPrefix(code, "2") {
			answers.Errors -= n
		}
	}
	return answers, nil
}

// worst is the slowest kind of question to the API. Pages have an aim of their own: first
// paint.
func (a *APIPart) worst() Answers {
	ofAPI := slices.DeleteFunc(slices.Clone(a.Answers), func(x Answers) bool { return strings.HasPrefix(x.What, "page: ") })
	return slices.MaxFunc(ofAPI, func(x, y Answers) int { return int(1e6 * (x.P99 - y.P99)) })
}

func (a *APIPart) errors() int { return errorsOf(a.Answers) }

func errorsOf(answers []Answers) (n int) {
	for _, a := range answers {
		n += a.Errors
	}
	return n
}

func (a *APIPart) page(p *strings.Builder) {
	fmt.Fprintf(p, "## Answers over a large fleet\n%s hot rows, %s retired ones, all of them named by registries too; %s entries in the journal. %d questions a second of each kind, for %d s.\n\n",
		thousands(a.Hot), thousands(a.Retired), thousands(a.Actions), a.Rate, a.Seconds)
	answersTable(a.Answers).write(p)
	if len(a.Scripts) > 0 {
		rows := table{{"as a script", "seconds: min", "median", "max"}}
		for _, s := range a.Scripts {
			spread := spreadOf(s.Seconds)
			rows = append(rows, []string{s.What, fmt.Sprintf("%.3f", spread.Min), fmt.Sprintf("%.3f", spread.Median), fmt.Sprintf("%.3f", spread.Max)})
		}
		rows.write(p)
	}
	fmt.Fprintf(p, "The web server showed all of it %.1f s after it began to serve. Its memory: %s then, %s after all questions, %s at most.\n\n",
		a.Ready, megabytes(a.Memory.Resident), megabytes(a.MemoryAfter.Resident), megabytes(a.MemoryAfter.Peak))
}

func answersTable(answers []Answers) table {
	rows := table{{"question", "p50", "p99", "max", "kB sent", "answers", "errors"}}
	for _, x := range answers {
		rows = append(rows, []string{x.What, milliseconds(x.P50), milliseconds(x.P99), milliseconds(x.Max), fmt.Sprintf("%.1f", x.Bytes/1000), thousands(x.Requests), strconv.Itoa(x.Errors)})
	}
	return rows
}
