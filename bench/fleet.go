package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/store"
)

const (
	makeLimit  = 40 * time.Minute // for the largest fleet
	roundLimit = 20 * time.Minute
)

// ground is a fleet that is measured: a data directory and programs that serve it.
type ground struct {
	bench   *bench
	name    string // of the fleet, and of its folder with logs
	dataDir string
	env     []string // where its storage is
	engine  *lance.Engine

	experiments []fleet.Experiment
	writes      int64 // batches so far: each has rows of its own
	worker, web *program
	server      string  // address of web
	ready       float64 // seconds until web showed all, where that was waited for
}

// Round is one round, from the command to its answer.
type Round struct {
	Seconds float64           `json:"seconds"` // of `lancefleet scan --wait --json`
	Record  fleet.RoundRecord `json:"record"`
	Memory  Memory            `json:"memory"` // of the worker, right after it
}

// make fills the data directory as docs/benchmarks.md describes it.
func (g *ground) make(ctx context.Context, experiments int) (seconds float64, err error) {
	begun := time.Now()
	err = g.fill(ctx, experiments, "--generations", strconv.Itoa(generations))
	seconds = time.Since(begun).Seconds()
	if err == nil && len(g.experiments) != experiments {
		err = fmt.Errorf("fleet %s has %d experiments instead of %d", g.name, len(g.experiments), experiments)
	}
	return seconds, err
}

// fill makes what is not there yet of a fleet, and lists all of it.
func (g *ground) fill(ctx context.Context, experiments int, flags ...string) error {
	args := append([]string{"make-fleet", "--data-dir", g.dataDir, "--experiments", strconv.Itoa(experiments), "--shards", "1"}, flags...)
	if _, err := output(ctx, makeLimit, g.programEnv(), "", g.bench.tools.lancefleet, args...); err != nil {
		return err
	}
	listing, err := store.NewSources(g.engine.Reader, g.dataDir, store.SourcesAuto).List(ctx)
	if err != nil {
		return fmt.Errorf("list %s: %w", g.name, err)
	}
	g.experiments = listing.Experiments
	return nil
}

// generations wait for their merge in each experiment.
const generations = 3

func (g *ground) programEnv() []string {
	return append([]string{"LANCEFLEET_NATIVE=" + g.bench.tools.native}, g.env...)
}

// serve starts worker and web without scheduled rounds, unless the settings say
// otherwise: only those that bench asks for run.
func (g *ground) serve(ctx context.Context, settings ...string) error {
	env := append(g.programEnv(), "DATA_DIR="+g.dataDir, "FLEET="+g.name, "TEMPORAL_ADDRESS="+g.bench.temporal.address, "SCAN_INTERVAL=0", "LOG_FORMAT=json")
	env = append(env, settings...) // the last of a name counts
	program := g.bench.tools.lancefleet
	var err error
	if g.worker, err = startProgram("worker of "+g.name, g.log("worker"), env, program, "worker"); err != nil {
		return err
	}
	if _, err := g.worker.await(ctx, "worker runs"); err != nil {
		return err
	}
	if g.web, err = startProgram("web of "+g.name, g.log("web"), env, program, "web", "--http-addr", "127.0.0.1:0"); err != nil {
		return err
	}
	line, err := g.web.await(ctx, `"serving"`)
	if err != nil {
		return err
	}
	var said struct{ Address string }
	if err := json.Unmarshal([]byte(line), &said); err != nil || said.Address == "" {
		return errors.Join(fmt.Errorf("web of %s did not say its address: %s", g.name, line), err)
	}
	g.server = said.Address
	return nil
}

func (g *ground) log(program string) string {
	return filepath.Join(g.bench.dir, g.name+"."+program+".log")
}

// end stops the programs. Ending twice does nothing.
func (g *ground) end() {
	for _, c := range []*program{g.web, g.worker} {
		if c != nil {
			c.stop()
		}
	}
	g.web, g.worker = nil, nil
}

// round runs one round end to end.
func (g *ground) round(ctx context.Context) (Round, error) {
	var r Round
	begun := time.Now()
	text, err := output(ctx, roundLimit, nil, "", g.bench.tools.lancefleet, "scan", "--wait", "--json", "--by", "bench", "--server", g.server)
	if err != nil {
		return r, err
	}
	r.Seconds = time.Since(begun).Seconds()
	if err := json.Unmarshal(text, &r.Record); err != nil {
		return r, fmt.Errorf("read the round of %s: %w: %s", g.name, err, text)
	}
	r.Memory, err = memoryOf(g.worker.PID())
	return r, err
}

// first is the round that knows nothing yet.
func (g *ground) first(ctx context.Context) (Round, error) { return g.check(ctx, len(g.experiments)) }

// unchanged is a round after which nobody wrote.
func (g *ground) unchanged(ctx context.Context) (Round, error) { return g.check(ctx, 0) }

// touched is a round after 1 % of the experiments were written.
func (g *ground) touched(ctx context.Context) (Round, error) {
	n, err := g.write(ctx)
	if err != nil {
		return Round{}, err
	}
	return g.check(ctx, n)
}

// check refuses a round that did not do the work that is measured.
func (g *ground) check(ctx context.Context, observed int) (Round, error) {
	r, err := g.round(ctx)
	if err != nil {
		return r, err
	}
	if err := verify(r.Record, len(g.experiments), observed); err != nil {
		return r, fmt.Errorf("round %s of %s: %w", r.Record.RoundID, g.name, err)
	}
	return r, nil
}

func verify(got fleet.RoundRecord, experiments, observed int) error {
	skipped := experiments - observed
	if got.Observed != int64(observed) || got.Skipped != int64(skipped) || got.Failed != 0 {
		return fmt.Errorf("observed %d, skipped %d and failed %d experiments; expected were %d, %d and none",
			got.Observed, got.Skipped, got.Failed, observed, skipped)
	}
	if observed > 0 && got.CommittedVersion == nil {
		return fmt.Errorf("observed %d experiments and committed nothing", observed)
	}
	return nil
}

// several runs rounds of one kind.
func several(ctx context.Context, n int, round func(context.Context) (Round, error)) ([]Round, error) {
	var rounds []Round
	for range n {
		r, err := round(ctx)
		if err != nil {
			return nil, err
		}
		rounds = append(rounds, r)
	}
	return rounds, nil
}

func secondsOf(rounds []Round) []float64 {
	var seconds []float64
	for _, r := range rounds {
		seconds = append(seconds, r.Seconds)
	}
	return seconds
}

// requestsEach is the mean of storage requests per round and experiment.
func requestsEach(rounds []Round, experiments int) float64 {
	var total int64
	for _, r := range rounds {
		total += r.Record.StorageRequests.Total()
	}
	return float64(total) / float64(max(1, len(rounds)*experiments))
}
