package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"text/tabwriter"
	"time"

	"go.temporal.io/sdk/client"

	"lancefleet/cmd/internal/doctor"
	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/store"
	"lancefleet/worker"
	"lancefleet/workflows"
)

type doctorCommand struct {
	dataFlags
	temporalFlags
	maintainFlag
	ScanConcurrency int        `help:"As of the worker." default:"256" env:"SCAN_CONCURRENCY"`
	HeavySlots      atLeastOne `help:"As of the worker." default:"1" env:"HEAVY_SLOTS"`
	ChildMemory     byteSize   `help:"As of the worker." default:"4GiB" env:"CHILD_MEMORY,CHILD_MEMORY_BYTES"`
	ReadOnly        bool       `help:"Write nothing at all: neither a probe object nor anything to Temporal. Conditional writes and clocks are then not checked."`
	JSON            bool       `name:"json" help:"Print one JSON document and nothing else on stdout."`
}

// Run checks everything that a fleet needs, and fails when something is wrong.
func (c *doctorCommand) Run(ctx context.Context, io streams, log *slog.Logger) error {
	settings, err := c.settings()
	if err != nil {
		return err
	}
	var report doctor.Report
	lastRound, identity := c.storage(ctx, settings, &report)
	if err := c.temporal(ctx, log, settings, lastRound, identity, &report); err != nil {
		return err
	}
	report.Add(doctor.ThisMachine().Judge(doctor.Needs{
		ScanConcurrency: c.ScanConcurrency, HeavySlots: int(c.HeavySlots), ChildMemory: int64(c.ChildMemory), Maintenance: c.on(),
	})...)
	report.Add(doctor.Disk(settings.DataDir))
	if c.JSON {
		err = printJSON(io.out, report)
	} else {
		err = printReport(io.out, report)
	}
	if err == nil && report.Fail > 0 {
		err = fmt.Errorf("%s", fleet.Count(int64(report.Fail), "check")+" failed")
	}
	return err
}

// storage checks the library and what it reaches. It tells what the checks of
// Temporal compare with: when the newest round ended (below 0 if nobody can tell), and
// whose directory it is.
func (c *doctorCommand) storage(ctx context.Context, settings worker.Config, report *doctor.Report) (lastRound int64, fleetID string) {
	engine, err := lance.Open(lance.Options{})
	if err != nil {
		report.Add(doctor.Finding{
			Check: "native library", Status: doctor.Fail, Found: err.Error(), Means: "no dataset can be looked at",
			Do: "put it beside the program, or name it with LANCEFLEET_NATIVE; both have to be of one version",
		})
		return -1, ""
	}
	defer engine.Close()
	report.Add(doctor.Finding{
		Check: "native library", Status: doctor.OK,
		Found: fmt.Sprintf("%s fits lancefleet %s (%s, %s/%s)", engine.LibraryPath(), version, runtime.Version(), runtime.GOOS, runtime.GOARCH),
	})
	place := doctor.Place{DataDir: settings.DataDir, Fleet: settings.Fleet, Sources: settings.Sources, ReadOnly: c.ReadOnly, Now: time.Now}
	report.Add(place.Storage(ctx, engine)...)
	rounds, err := store.NewRounds(engine, settings.DataDir).Latest(ctx, 1)
	switch {
	case err != nil:
		lastRound = -1 // it is told by the checks of storage
	case len(rounds) > 0:
		lastRound = rounds[0].FinishedAt
	}
	if there, err := store.ReadIdentity(ctx, engine, settings.DataDir); err == nil && there != nil {
		fleetID = there.FleetID
	}
	return lastRound, fleetID
}

func (c *doctorCommand) temporal(ctx context.Context, log *slog.Logger, settings worker.Config, lastRound int64, fleetID string, report *doctor.Report) error {
	options, err := c.options(log, nil)
	if err != nil {
		return err
	}
	lazy, err := client.NewLazyClient(options)
	if err != nil {
		return usageError{fmt.Errorf("settings of Temporal's client: %w", err)}
	}
	defer lazy.Close()
	address, namespace := options.HostPort, options.Namespace
	if address == "" {
		address = client.DefaultHostPort
	}
	if namespace == "" {
		namespace = client.DefaultNamespace
	}
	report.Add(doctor.Temporal{
		Client: lazy, Namespace: namespace, Address: address, Names: workflows.Names{Fleet: settings.Fleet}, DataDir: settings.DataDir,
		FleetID: fleetID, Maintenance: c.on(), ReadOnly: c.ReadOnly, LastRoundAt: lastRound, Now: time.Now,
	}.Look(ctx)...)
	return nil
}

func printReport(out io.Writer, report doctor.Report) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, f := range report.Findings {
		fmt.Fprintf(table, "%s\t%s\t%s\n", f.Status, f.Check, f.Found)
		if f.Means != "" {
			fmt.Fprintf(table, "\t\tmeans: %s\n", f.Means)
		}
		if f.Do != "" {
			fmt.Fprintf(table, "\t\tdo: %s\n", f.Do)
		}
	}
	fmt.Fprintf(table, "\n%d ok, %d to look at, %d failed, %d not checked\n", report.OK, report.Warn, report.Fail, report.Skipped)
	return table.Flush()
}
