package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"lancefleet/store"
	"lancefleet/worker"
)

// logFlags say how the program tells what it does. Logs go to stderr.
type logFlags struct {
	LogLevel  string `help:"debug, info, warn or error." enum:"debug,info,warn,error" default:"info" env:"LOG_LEVEL"`
	LogFormat string `help:"text or json." enum:"text,json" default:"text" env:"LOG_FORMAT"`
}

func (f logFlags) logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.LogLevel)); err != nil {
		return nil, fmt.Errorf("--log-level %q: debug, info, warn or error are allowed", f.LogLevel)
	}
	options := &slog.HandlerOptions{Level: level}
	if f.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, options)), nil
	}
	return slog.New(slog.NewTextHandler(w, options)), nil
}

// dataFlags say which fleet and where its data is.
type dataFlags struct {
	DataDir string `help:"Folder or bucket of the fleet: /path, s3://bucket/prefix, gs://, az://." default:"${data_dir}" env:"DATA_DIR"`
	fleetFlags
}

// fleetFlags are those of dataFlags that every program with a fleet has.
type fleetFlags struct {
	Fleet   string `help:"Name of the fleet, part of its ids in Temporal. Two fleets may share a namespace." default:"default" env:"FLEET"`
	Sources string `help:"Where experiments are listed: registry, folder or registry,folder. Unset: registries where there are any, else the folder." env:"SOURCES"`
}

// settings are the worker's, which every program with a fleet shares: what one
// refuses the others do too.
func (f dataFlags) settings() (worker.Config, error) {
	config, err := f.unchecked()
	if err != nil {
		return config, err
	}
	return checked(config)
}

func (f dataFlags) unchecked() (worker.Config, error) {
	config := worker.DefaultConfig()
	var err error
	config.DataDir, err = cleanDataDir(f.DataDir)
	config.Fleet, config.Sources = f.Fleet, store.SourceMode(f.Sources)
	return config, err
}

func checked(config worker.Config) (worker.Config, error) {
	if err := config.Validate(); err != nil {
		return config, usageError{err}
	}
	var err error
	config.Sources, err = store.ParseSources(string(config.Sources))
	return config, err
}

func cleanDataDir(text string) (string, error) {
	clean, err := store.CleanDataDir(text)
	if err != nil {
		return "", usageError{fmt.Errorf("--data-dir (DATA_DIR): %w", err)}
	}
	return clean, nil
}

// noFile refuses a data directory that is a file: no waiting makes it one. A folder
// that is not there yet may come, as a mount does.
func noFile(dataDir string) error {
	if info, err := os.Stat(dataDir); err == nil && !info.IsDir() {
		return usageError{fmt.Errorf("--data-dir (DATA_DIR) %q: it is no folder; a folder, or a bucket, is allowed", dataDir)}
	}
	return nil
}

// maintainFlag says whether experiments may be rewritten at all.
type maintainFlag struct {
	Maintenance string `help:"off or on: whether this fleet's experiments may be merged, compacted and retired. Give worker and web the same." enum:"off,on" default:"off" env:"MAINTENANCE"`
}

func (f maintainFlag) on() bool { return f.Maintenance == "on" }

// scanFlags say how rounds run.
type scanFlags struct {
	ScanConcurrency   int     `help:"Experiments asked at once, per worker." default:"256" env:"SCAN_CONCURRENCY"`
	ScanPageSize      int     `help:"Experiments per activity of a round." default:"1000" env:"SCAN_PAGE_SIZE"`
	ScanPagesAtOnce   int     `help:"Activities of one round at once, over all workers." default:"8" env:"SCAN_PAGES_AT_ONCE"`
	ProbeTimeout      seconds `help:"Longest time the cheap look at one experiment may take." default:"10s" env:"PROBE_TIMEOUT"`
	ObserveTimeout    seconds `help:"Longest time the full look at one experiment may take; then it counts as failed." default:"30s" env:"OBSERVE_TIMEOUT"`
	WorkerStopTimeout seconds `help:"How long running activities may take to end when the worker stops." default:"1m" env:"WORKER_STOP_TIMEOUT"`
}

// config is worker.Config as flags have it; more sets what is not about rounds.
func (f scanFlags) config(data dataFlags, interval seconds, more func(*worker.Config) error) (worker.Config, error) {
	config, err := data.unchecked()
	if err != nil {
		return config, err
	}
	config.ScanInterval = time.Duration(interval)
	config.ScanConcurrency, config.PageSize, config.MaxPagesAtOnce = f.ScanConcurrency, f.ScanPageSize, f.ScanPagesAtOnce
	config.ProbeTimeout, config.ObserveTimeout = time.Duration(f.ProbeTimeout), time.Duration(f.ObserveTimeout)
	config.StopTimeout = time.Duration(f.WorkerStopTimeout)
	if err := more(&config); err != nil {
		return config, err
	}
	return checked(config)
}

// temporalFlags say where Temporal is. Everything else of the connection (TLS,
// API key, profile) comes from Temporal's own variables and file.
type temporalFlags struct {
	TemporalAddress   string `help:"host:port of Temporal. Unset: TEMPORAL_ADDRESS, the profile file, 127.0.0.1:7233."`
	TemporalNamespace string `help:"Namespace. Unset: TEMPORAL_NAMESPACE, the profile file, default."`
}
