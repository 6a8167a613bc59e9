// Command bench measures rounds of lancefleet and compares them, in one run and on
// the same fleets, with a script that opens every dataset. `./task bench` runs it;
// docs/benchmarks.md is what it wrote last.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:])
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.As(err, new(usageError)):
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run measures and writes what it found. A run that is cut short writes no page,
// so that what docs/benchmarks.md says was always measured in one run.
func run(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == "maintenance" {
		return runMaintenance(ctx, args[1:])
	}
	if len(args) > 0 && args[0] == "web" {
		return runWeb(ctx, args[1:])
	}
	settings, err := parseSettings(args, os.Stderr)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, settings.Timeout, fmt.Errorf("not done after %s (--timeout)", settings.Timeout))
	defer cancel()
	b, err := newBench(settings)
	if err != nil {
		return err
	}
	defer b.close()
	report, err := b.measure(ctx)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return fmt.Errorf("%w: %w", cause, err)
		}
		return err
	}
	return publish(os.Stdout, settings.Out, report.page(), report)
}

// runMaintenance measures rounds beside maintenance; its page is one of its own.
func runMaintenance(ctx context.Context, args []string) error {
	settings, err := parseMaintenanceSettings(args, os.Stderr)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, settings.Timeout, fmt.Errorf("not done after %s (--timeout)", settings.Timeout))
	defer cancel()
	b, err := newBench(Settings{Dir: settings.Dir, Keep: settings.Keep})
	if err != nil {
		return err
	}
	defer b.close()
	report, err := b.measureMaintenance(ctx, settings)
	if err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	return publish(os.Stdout, settings.Out, report.page(), report)
}
