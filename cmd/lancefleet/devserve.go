package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"lancefleet/control"
	"lancefleet/lance"
	"lancefleet/metrics"
	"lancefleet/web"
	"lancefleet/worker"
	"lancefleet/workflows"
)

// devStop is how long a round may take to end when dev stops: nothing is lost when
// it is cut off.
const devStop = 3 * time.Second

// usualStart is how long the server usually takes to answer: nobody need be told.
const usualStart = 10 * time.Second

// serve runs worker and web against the Temporal server that dev has started, and
// says ready after the first round.
func (d *devFleet) serve(ctx context.Context, engine *lance.Engine) error {
	measured := metrics.New()
	client, err := d.connect(ctx, measured)
	if err != nil {
		return err
	}
	defer client.Close()
	config := d.rounds
	config.StopTimeout = min(config.StopTimeout, devStop)
	w, err := worker.New(config, worker.Deps{Engine: engine, Client: client, Metrics: measured, Log: d.log})
	if err != nil {
		return err
	}
	pages, err := newWebServer(webParts{d.servedConfig(), d.rounds, d.origins, engine.ReadOnly(), client, measured, d.log})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return w.Run(ctx) })
	group.Go(func() error { return pages.Serve(ctx, d.web) })
	group.Go(func() error { return d.firstRound(ctx, control.New(client, workflows.Names{Fleet: d.Fleet}), pages) })
	return group.Wait()
}

// data are the settings that worker and web share. The demo has tables, which no
// registry names.
func (c *devCommand) data(place devPlace) dataFlags {
	data := dataFlags{DataDir: place.dataDir, fleetFlags: c.fleetFlags}
	if place.demo && data.Sources == "" {
		data.Sources = "registry,folder"
	}
	return data
}

func (d *devFleet) servedConfig() web.Config {
	config := d.pages
	config.Addr, config.TemporalUI, config.RefreshEvery = d.web.Addr().String(), "http://"+d.ui.String(), time.Second
	return config
}

// connect waits until the server that was just started answers.
func (d *devFleet) connect(ctx context.Context, m *metrics.Metrics) (client.Client, error) {
	handler, err := m.TemporalHandler(d.log)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, temporalStart)
	defer cancel()
	return dial(ctx, client.Options{HostPort: d.temporal.String(), Logger: temporalLogger(d.log), MetricsHandler: handler}, usualStart, d.log)
}

// firstRound runs a round at once, also when the schedule is paused, and says so
// when it is done. A round that fails is told and tried again: the data may be
// mended while dev runs.
func (d *devFleet) firstRound(ctx context.Context, steer *control.Control, pages *web.Server) error {
	for {
		err := oneRound(ctx, steer, pages)
		switch {
		case err == nil:
			_, err = fmt.Fprintf(d.io.out, "ready: http://%s\n", d.web.Addr())
			return err
		case ctx.Err() != nil:
			return nil //nolint:nilerr // stopped before it was ready
		case errors.Is(err, control.ErrNoSchedule): // the worker is about to make it
		case control.ClassOf(err) == control.ClassUnreachable:
			d.log.Warn("the first round is late", "error", err)
		default:
			d.log.Error("the first round", "error", err)
		}
		if pause(ctx, redial) != nil {
			return nil //nolint:nilerr // stopped before it was ready
		}
	}
}

// oneRound ends when the pages show what it found.
func oneRound(ctx context.Context, steer *control.Control, pages *web.Server) error {
	started, err := steer.StartScanAfterNow(ctx, false, "lancefleet dev")
	if err != nil {
		return err
	}
	if _, err := steer.WaitRound(ctx, started); err != nil {
		return err
	}
	pages.AwaitShown(ctx)
	return ctx.Err()
}
