package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	temporallog "go.temporal.io/sdk/log"
)

// redial is how long to wait before asking a Temporal server again that is not there.
const redial = 500 * time.Millisecond

// options are those of Temporal's own variables and profile file, then the flags.
func (f temporalFlags) options(log *slog.Logger, metrics client.MetricsHandler) (client.Options, error) {
	options, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return client.Options{}, usageError{fmt.Errorf("settings of Temporal's client: %w", err)}
	}
	if f.TemporalAddress != "" {
		options.HostPort = f.TemporalAddress
	}
	if err := checkTarget(options.HostPort); err != nil {
		return client.Options{}, usageError{fmt.Errorf("--temporal-address (TEMPORAL_ADDRESS): %w", err)}
	}
	if f.TemporalNamespace != "" {
		options.Namespace = f.TemporalNamespace
	}
	options.Logger = temporalLogger(log)
	options.MetricsHandler = metrics
	return options, nil
}

// checkTarget refuses an address that would be waited for in vain. "" is the
// default, and a target with a resolver of its own (dns:///host:port) is gRPC's.
func checkTarget(address string) error {
	if address == "" || strings.Contains(address, ":///") {
		return nil
	}
	host, port, err := net.SplitHostPort(address)
	if number, wrong := strconv.ParseUint(port, 10, 16); err != nil || wrong != nil || number == 0 || strings.Contains(host, "/") {
		return fmt.Errorf("%q: host:port is allowed", address)
	}
	return nil
}

// dial connects and waits for a server that is not there yet: programs of one
// deployment start in any order. It says so once it has waited longer than it usually
// takes.
func dial(ctx context.Context, options client.Options, patience time.Duration, log *slog.Logger) (client.Client, error) {
	said, since := false, time.Now()
	for {
		c, err := client.DialContext(ctx, options)
		if err == nil {
			return c, nil
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("connect to temporal %s: %w", options.HostPort, err)
		}
		if !said && time.Since(since) >= patience {
			log.Info("waiting for temporal", "address", options.HostPort, "error", err)
			said = true
		}
		_ = pause(ctx, redial) // the next attempt tells that the context has ended
	}
}

// temporalLogger leaves out what Temporal's client says below a warning: it tells
// of every poll that was renewed.
func temporalLogger(log *slog.Logger) temporallog.Logger {
	return temporallog.NewStructuredLogger(slog.New(atLeast{log.Handler(), slog.LevelWarn}))
}

// atLeast drops records below a level.
type atLeast struct {
	slog.Handler
	level slog.Level
}

// Enabled implements slog.Handler.
func (h atLeast) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= h.level && h.Handler.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (h atLeast) WithAttrs(attrs []slog.Attr) slog.Handler {
	return atLeast{h.Handler.WithAttrs(attrs), h.level}
}

// WithGroup implements slog.Handler.
func (h atLeast) WithGroup(name string) slog.Handler {
	return atLeast{h.Handler.WithGroup(name), h.level}
}
