package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"lancefleet/e2e/s3test"
	"lancefleet/lance"
)

// Remote is one fleet on an S3 server with latency.
type Remote struct {
	Experiments int             `json:"experiments"`
	LatencyMS   int             `json:"latency_ms"`
	MakeSeconds float64         `json:"make_seconds"` // without latency
	First       Round           `json:"first"`
	Unchanged   []Round         `json:"unchanged"`
	Counted     s3test.Requests `json:"counted"` // in all unchanged rounds, by the server's log: those of web and of our own tables too
	Bare        float64         `json:"bare"`    // seconds of as many requests as an unchanged round makes, sent by a client that does nothing else
	Changed     []Round         `json:"changed"`
	Polls       []Poll          `json:"polls"` // empty = not run
}

const (
	bucket       = "bench"
	aimedAgainst = 8 // concurrency of the script that the aim names
	deepEvery    = 4 // rounds: a quarter of the fleet is probed deep in each
)

// remotePolls are what the script is tried with behind latency: waiting costs
// little, so more at once may help.
var remotePolls = []pollWork{
	{look: lookOpen, concurrency: aimedAgainst}, {look: lookOpen, concurrency: 32},
	{look: lookWAL, concurrency: aimedAgainst}, {look: lookWAL, concurrency: 32},
}

func (b *bench) remote(ctx context.Context) (*Remote, error) {
	dir := filepath.Join(b.dir, "s3")
	if err := os.MkdirAll(filepath.Join(dir, "buckets", bucket), 0o755); err != nil {
		return nil, err
	}
	server, err := s3test.Launch(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer server.Stop()
	proxy, err := startProxy(ctx, b, server.Endpoint, b.settings.LatencyMS)
	if err != nil {
		return nil, err
	}
	defer proxy.stop()
	// Fleets are made and written without latency, rounds and script have it.
	engine, err := lance.Open(lance.Options{Library: b.tools.native, StorageOptions: server.StorageOptions()})
	if err != nil {
		return nil, err
	}
	defer engine.Close()
	r := &remoteRun{
		bench: b, server: server, endpoint: proxy.endpoint,
		out:    &Remote{Experiments: b.settings.S3Experiments, LatencyMS: b.settings.LatencyMS},
		ground: &ground{bench: b, name: "s3", engine: engine, dataDir: "s3://" + bucket + "/fleet", env: server.Environment()},
	}
	defer r.ground.end()
	return r.out, r.run(ctx)
}

type remoteRun struct {
	bench    *bench
	server   *s3test.Server
	endpoint string // of the proxy
	ground   *ground
	out      *Remote
}

func (r *remoteRun) run(ctx context.Context) (err error) {
	g := r.ground
	if r.out.MakeSeconds, err = g.make(ctx, r.out.Experiments); err != nil {
		return err
	}
	r.bench.say("s3: made in %.1f s", r.out.MakeSeconds)
	g.env = s3test.EnvironmentFor(r.endpoint)
	if err := g.serve(ctx); err != nil {
		return err
	}
	if r.out.First, err = g.first(ctx); err != nil {
		return err
	}
	r.bench.say("s3: first round %.2f s", r.out.First.Seconds)
	if err := resetPeak(g.worker.PID()); err != nil {
		return fmt.Errorf("reset the peak memory of the worker: %w", err)
	}
	before, err := r.server.Requests("")
	if err != nil {
		return err
	}
	if r.out.Unchanged, err = several(ctx, r.rounds(), g.unchanged); err != nil {
		return err
	}
	after, err := r.server.Requests("")
	if err != nil {
		return err
	}
	r.out.Counted = after.Since(before)
	r.bench.say("s3: unchanged, median %.2f s", median(secondsOf(r.out.Unchanged)))
	if r.out.Bare, err = bare(ctx, r.endpoint, int(requestsEach(r.out.Unchanged, 1))); err != nil {
		return err
	}
	r.bench.say("s3: as many bare requests %.2f s", r.out.Bare)
	if r.out.Changed, err = several(ctx, r.rounds(), g.touched); err != nil {
		return err
	}
	r.bench.say("s3: 1 %% changed, median %.2f s", median(secondsOf(r.out.Changed)))
	g.end()
	return r.polls(ctx)
}

// rounds makes whole cycles, so that light and deep probes have their usual shares.
func (r *remoteRun) rounds() int {
	return (r.bench.settings.Rounds + deepEvery - 1) / deepEvery * deepEvery
}

func (r *remoteRun) polls(ctx context.Context) error {
	if r.bench.tools.python == "" {
		return nil
	}
	for _, w := range remotePolls {
		w.rounds, w.experiments, w.options = r.bench.settings.Rounds, r.ground.experiments, s3test.OptionsFor(r.endpoint)
		before, err := r.server.Requests("")
		if err != nil {
			return err
		}
		p, err := r.bench.poll(ctx, w)
		if err != nil {
			return err
		}
		after, err := r.server.Requests("")
		if err != nil {
			return err
		}
		r.bench.say("s3: script %s, concurrency %d, median %.2f s", said(w.look), w.concurrency, median(p.Seconds))
		p.Requests = after.Since(before).Total()
		r.out.Polls = append(r.out.Polls, p)
	}
	return nil
}

// missing says what S3 can't be measured without.
func (b *bench) missingForRemote() error {
	_, err := s3test.Binary()
	if b.tools.toxiproxy == "" {
		err = errors.Join(err, errors.New("no toxiproxy; ./task setup makes it"))
	}
	return err
}
