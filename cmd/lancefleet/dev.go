package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os/exec"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"lancefleet/cmd/internal/makefleet"
	"lancefleet/internal/child"
	"lancefleet/lance"
	"lancefleet/web"
	"lancefleet/worker"
)

type devCommand struct {
	DataDir         string  `help:"Your own data: it is looked at and never written, except for lancefleet's own tables beside it. Unset: a demo fleet." env:"DATA_DIR"`
	NoDemo          bool    `help:"No demo fleet and no writers; wants --data-dir."`
	DemoExperiments int     `help:"Size of the demo fleet." default:"60"`
	Maintain        *bool   `help:"Merge, compact and retire what is in --data-dir. The demo fleet is maintained unless told otherwise." negatable:""`
	TemporalAddr    string  `help:"Address of the Temporal server that this starts." default:"127.0.0.1:7233"`
	TemporalUIAddr  string  `name:"temporal-ui-addr" help:"Address of Temporal's web UI." default:"127.0.0.1:8233"`
	ScanInterval    seconds `help:"Between rounds." default:"5s" env:"SCAN_INTERVAL,STATS_SCAN_INTERVAL_SECS"`
	StateDir        string  `help:"Where Temporal's database and the demo fleet are kept between runs. Default: lancefleet/dev in XDG_STATE_HOME." env:"LANCEFLEET_STATE_DIR"`
	Temporal        string  `help:"Program that serves Temporal (the temporal CLI). Default: LANCEFLEET_TEMPORAL, the one that ./task built, PATH." env:"LANCEFLEET_TEMPORAL" placeholder:"FILE"`
	fleetFlags
	scanFlags
	httpFlags
	policyFlags
	maintenanceFlags
}

// temporalStart bounds how long the Temporal server may take to answer; the first
// start makes its database.
const temporalStart = 90 * time.Second

// stopGrace is how long the Temporal server may take to close its database.
const stopGrace = 10 * time.Second

// Run runs everything until the context ends.
func (c *devCommand) Run(ctx context.Context, io streams, log *slog.Logger, given givenFlags) error {
	place, err := c.place()
	if err != nil {
		return err
	}
	rounds, err := c.settings(place)
	if err != nil {
		return err
	}
	plan := demoPlan(c.DemoExperiments)
	if err := plan.Validate(); err != nil {
		return usageError{fmt.Errorf("--demo-%w", err)}
	}
	server, err := findTemporal(c.Temporal)
	if err != nil {
		return err
	}
	config, err := c.webConfig()
	if err != nil {
		return err
	}
	listener, err := listen("http-addr", config.Addr)
	if err != nil {
		return err
	}
	defer listener.Close()
	ports, err := reserve(
		struct{ flag, address string }{"temporal-addr", c.TemporalAddr},
		struct{ flag, address string }{"temporal-ui-addr", c.TemporalUIAddr})
	if err != nil {
		return err
	}
	unlock, err := place.lock()
	if err != nil {
		return err
	}
	defer unlock()
	dev := &devFleet{devCommand: c, origins: policyOrigins(given), place: place, plan: plan, io: io, log: log, web: listener, pages: config, rounds: rounds, temporal: ports[0], ui: ports[1]}
	return dev.run(ctx, server)
}

// maintains says whether dev rewrites experiments: its own demo, and somebody's data
// only when told so on the command line.
func (c *devCommand) maintains(place devPlace) bool {
	if c.Maintain != nil {
		return *c.Maintain
	}
	return place.demo
}

// Graces of the demo: nobody waits minutes to see a retirement.
const (
	demoGrace  = 5 * time.Second
	demoSilent = 30 * time.Second
)

// settings are the worker's. The demo is hurried up.
func (c *devCommand) settings(place devPlace) (worker.Config, error) {
	return c.config(c.data(place), c.ScanInterval, func(config *worker.Config) error {
		err := c.into(config, c.policyFlags, c.maintains(place))
		if place.demo {
			live := &config.Policies.Default.LiveWithin
			config.GenerationGrace, *live = min(config.GenerationGrace, demoGrace), min(*live, demoSilent)
		}
		return err
	})
}

// devFleet is one run of `dev`.
type devFleet struct {
	*devCommand
	origins      map[string]string // of the policy's values
	place        devPlace
	plan         makefleet.Plan
	io           streams
	log          *slog.Logger
	web          net.Listener
	pages        web.Config
	rounds       worker.Config
	temporal, ui hostPort
}

func (d *devFleet) run(ctx context.Context, server string) (err error) {
	engine, err := lance.Open(lance.Options{})
	if err != nil {
		return err
	}
	defer engine.Close()
	if d.place.demo {
		if err := d.makeDemo(ctx, engine); err != nil {
			return interrupted(ctx, err)
		}
	}
	process, err := child.StartLogged(d.place.file("temporal.log"), server, d.serverArgs()...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, process.Stop(context.WithoutCancel(ctx), stopGrace)) }()
	fmt.Fprintf(d.io.err, "temporal: %s, its pages: http://%s\n", d.temporal, d.ui)

	running, cancel := context.WithCancel(ctx)
	defer cancel()
	group, running := errgroup.WithContext(running)
	group.Go(func() error { return watchServer(running, process) })
	group.Go(func() error { return d.serve(running, engine) })
	if d.place.demo {
		group.Go(func() error { return makefleet.Live(running, engine, d.place.dataDir, d.plan, d.log) })
	}
	return interrupted(ctx, group.Wait())
}

// interrupted makes an end that was asked for a success: Ctrl-C is how this is left.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // what fails while everything stops is no failure
	}
	return err
}

// watchServer returns when the context ends, or with an error when the Temporal
// server ends first. Ctrl-C reaches both at the same moment, so it waits a little
// for the context.
func watchServer(ctx context.Context, process *child.Logged) error {
	select {
	case <-ctx.Done():
		return nil
	case <-process.Done():
	}
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(time.Second):
		return process.Err()
	}
}

func (d *devFleet) serverArgs() []string {
	return []string{
		"server", "start-dev", "--db-filename", d.place.file("temporal.db"), "--log-level", "warn",
		// One write to disk for many transactions: its default, one for each, is what rounds
		// beside much maintenance would wait for.
		"--sqlite-pragma", "journal_mode=WAL", "--sqlite-pragma", "synchronous=NORMAL",
		"--ip", d.temporal.host, "--port", strconv.Itoa(d.temporal.port),
		"--ui-ip", d.ui.host, "--ui-port", strconv.Itoa(d.ui.port),
	}
}

func (d *devFleet) makeDemo(ctx context.Context, engine *lance.Engine) error {
	if err := d.place.markDemo(); err != nil {
		return err
	}
	made, err := makefleet.Make(ctx, engine, d.place.dataDir, d.plan, time.Now())
	if err != nil {
		return fmt.Errorf("demo fleet in %s: %w", d.place.dataDir, err)
	}
	fmt.Fprintf(d.io.err, "demo fleet: %d experiments in %s, some are written all the time\n", made.Made+made.Existing, d.place.dataDir)
	return nil
}

// findTemporal looks for the Temporal CLI: named, built by ./task, or on PATH.
func findTemporal(named string) (string, error) {
	if named != "" {
		found, err := exec.LookPath(named)
		if err != nil {
			return "", usageError{fmt.Errorf("--temporal (LANCEFLEET_TEMPORAL): a program is allowed, the temporal CLI: %w", err)}
		}
		return found, nil
	}
	if built := cacheDir() + "/bin/temporal"; isFile(built) {
		return built, nil
	}
	if found, ok := onPath("temporal"); ok {
		return found, nil
	}
	return "", errors.New("no Temporal server: run ./task dev, which builds one, or name the temporal CLI with --temporal")
}
