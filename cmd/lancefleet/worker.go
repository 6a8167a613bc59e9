package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"lancefleet/lance"
	"lancefleet/metrics"
	"lancefleet/worker"
)

type workerCommand struct {
	dataFlags
	temporalFlags
	ScanInterval seconds `help:"Between rounds; 0 = only when asked." default:"5m" env:"SCAN_INTERVAL,STATS_SCAN_INTERVAL_SECS"`
	MetricsAddr  string  `help:"host:port where /metrics of this worker is served; unset: nowhere." env:"METRICS_ADDR"`
	scanFlags
	maintainFlag
	policyFlags
	maintenanceFlags
}

// Run runs rounds until the context ends.
func (c *workerCommand) Run(ctx context.Context, log *slog.Logger) error {
	config, err := c.config(c.dataFlags, c.ScanInterval, func(config *worker.Config) error {
		return c.into(config, c.policyFlags, c.on())
	})
	if err != nil {
		return err
	}
	if err := noFile(config.DataDir); err != nil {
		return err
	}
	warnWithoutEffect(log)
	var served net.Listener
	if c.MetricsAddr != "" {
		if served, err = listen("metrics-addr", c.MetricsAddr); err != nil {
			return err
		}
		defer served.Close()
	}
	measured := metrics.New()
	handler, err := measured.TemporalHandler(log)
	if err != nil {
		return err
	}
	options, err := c.options(log, handler)
	if err != nil {
		return err
	}
	engine, err := lance.Open(lance.Options{})
	if err != nil {
		return err
	}
	defer engine.Close()
	client, err := dial(ctx, options, 0, log)
	if err != nil {
		return interrupted(ctx, err)
	}
	defer client.Close()
	w, err := worker.New(config, worker.Deps{Engine: engine, Client: client, Namespace: options.Namespace, Metrics: measured, Log: log})
	if err != nil {
		return err
	}
	if err := measured.RegisterShared(w.Shared(), metrics.SharedOptions{Log: log}); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return w.Run(ctx) })
	if served != nil {
		group.Go(func() error { return serveMetrics(ctx, served, measured, log) })
	}
	return group.Wait()
}

// serveMetrics answers /metrics until the context ends.
func serveMetrics(ctx context.Context, listener net.Listener, m *metrics.Metrics, log *slog.Logger) error {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", m.Handler())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	log.Info("serving metrics", "address", fmt.Sprintf("http://%s/metrics", listener.Addr()))
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
