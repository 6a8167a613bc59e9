package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"lancefleet/lance"
)

// bench is one run.
type bench struct {
	settings Settings
	tools    tools
	dir      string // fleets, logs, Temporal's database
	engine   *lance.Engine
	temporal *temporal
	begun    time.Time
	attacks  int // of the load tool
}

// newBench wants of the settings where fleets are made and whether they are kept.
func newBench(s Settings) (*bench, error) {
	t, err := findTools()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(s.Dir, "lancefleet-bench-")
	if err != nil {
		return nil, err
	}
	b := &bench{settings: s, tools: t, begun: time.Now()}
	if b.dir, err = filepath.Abs(dir); err == nil {
		err = b.tools.pin(b.dir)
	}
	if err == nil {
		b.engine, err = lance.Open(lance.Options{Library: b.tools.native})
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return b, nil
}

// close ends what still runs and removes what was made.
func (b *bench) close() {
	if b.temporal != nil {
		b.temporal.process.stop()
	}
	if err := b.engine.Close(); err != nil {
		b.say("close the engine: %v", err)
	}
	if b.settings.Keep {
		b.say("kept %s", b.dir)
		return
	}
	b.say("removing %s", b.dir)
	if err := b.removeAll(); err != nil {
		b.say("%v", err)
	}
}

// say tells how far the run is, on stderr.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%6.0f s  %s\n", time.Since(b.begun).Seconds(), fmt.Sprintf(format, args...))
}

// removeAll comes last: removing a large fleet takes minutes, and would disturb what
// is measured next.
func (b *bench) removeAll() error {
	entries, err := os.ReadDir(b.dir)
	for _, entry := range entries {
		if entry.IsDir() {
			err = errors.Join(err, removeFleet(filepath.Join(b.dir, entry.Name())))
		}
	}
	return errors.Join(err, os.RemoveAll(b.dir))
}

// measure runs everything, one after the other: two cores are shared by nothing else.
func (b *bench) measure(ctx context.Context) (*Report, error) {
	machine, err := b.describe(ctx)
	if err != nil {
		return nil, err
	}
	report := &Report{Machine: machine, Settings: b.settings, StartedAt: time.Now().UTC(), LoadBefore: loadAverage()}
	if b.temporal, err = startTemporal(ctx, b); err != nil {
		return nil, err
	}
	if b.tools.python == "" {
		report.notRun("polling script", "no Python with pylance; ./task setup makes it")
	}
	if b.settings.SoakRounds > 0 { // first: the server's database is still small
		if report.Soak, err = b.soak(ctx); err != nil {
			return nil, fmt.Errorf("soak: %w", err)
		}
	}
	for _, size := range b.settings.Sizes {
		l, err := b.local(ctx, size)
		if err != nil {
			return nil, fmt.Errorf("local fleet of %d: %w", size, err)
		}
		report.Local = append(report.Local, l)
	}
	if err := b.measureRemote(ctx, report); err != nil {
		return nil, err
	}
	report.FinishedAt, report.LoadAfter = time.Now().UTC(), loadAverage()
	return report, nil
}

func (b *bench) measureRemote(ctx context.Context, report *Report) error {
	if b.settings.S3Experiments == 0 {
		return nil
	}
	if err := b.missingForRemote(); err != nil {
		report.notRun("S3", err.Error())
		return nil
	}
	var err error
	if report.Remote, err = b.remote(ctx); err != nil {
		return fmt.Errorf("fleet on S3: %w", err)
	}
	return nil
}
