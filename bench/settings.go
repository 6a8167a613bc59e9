package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// Settings say what is measured. They are part of the raw numbers.
type Settings struct {
	Sizes         []int         `json:"sizes"`          // experiments of the local fleets
	Rounds        int           `json:"rounds"`         // of each kind, after the first
	LatencyMS     int           `json:"latency_ms"`     // added to each answer of the S3 server
	S3Experiments int           `json:"s3_experiments"` // 0 = S3 is left out
	SoakRounds    int           `json:"soak_rounds"`    // of each kind, after warm-up; 0 = left out
	WarmupRounds  int           `json:"warmup_rounds"`  // before them
	SoakSize      int           `json:"soak_size"`      // experiments
	Keep          bool          `json:"-"`              // the folder with fleets, logs and Temporal's database
	Out           string        `json:"-"`              // page to write; the raw numbers go beside it
	Dir           string        `json:"-"`              // where fleets are made
	Timeout       time.Duration `json:"-"`
}

// usageError is about the command line.
type usageError struct{ error }

func parseSettings(args []string, stderr io.Writer) (Settings, error) {
	var s Settings
	sizes := "1000,10000,30000"
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&sizes, "sizes", sizes, "experiments of the local fleets, separated by commas; empty: no local fleets")
	f.IntVar(&s.Rounds, "rounds", 5, "rounds of each kind")
	f.IntVar(&s.LatencyMS, "latency-ms", 20, "added to each answer of the S3 server")
	f.IntVar(&s.S3Experiments, "s3-experiments", 2000, "experiments on the S3 server; 0: left out")
	f.IntVar(&s.SoakRounds, "soak-rounds", 50, "rounds of each kind in which memory is watched; 0: left out")
	f.IntVar(&s.WarmupRounds, "warmup-rounds", 20, "rounds before memory is watched")
	f.IntVar(&s.SoakSize, "soak-size", 1000, "experiments of the fleet on which memory is watched")
	f.BoolVar(&s.Keep, "keep", false, "keep fleets, logs and Temporal's database, and say where they are")
	f.StringVar(&s.Out, "out", "docs/benchmarks.md", "page to write; raw numbers go beside it as .json; empty: only stdout")
	f.StringVar(&s.Dir, "dir", "", "folder to make the fleets in; empty: the system's temporary folder. 1,000 experiments take 0.4 GB until the end")
	f.DurationVar(&s.Timeout, "timeout", 2*time.Hour, "of the whole run")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return s, err
		}
		return s, usageError{err}
	}
	if f.NArg() > 0 {
		return s, usageError{fmt.Errorf("unknown argument %q", f.Arg(0))}
	}
	var err error
	if s.Sizes, err = parseSizes(sizes); err != nil {
		return s, usageError{err}
	}
	return s, s.validate()
}

func parseSizes(text string) ([]int, error) {
	var sizes []int
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.TrimSpace(word); word == "" {
			continue
		}
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("--sizes %q: whole numbers from 1 are allowed, separated by commas", text)
		}
		sizes = append(sizes, n)
	}
	return sizes, nil
}

func (s Settings) validate() error {
	for _, c := range []struct {
		flag       string
		value, low int
	}{
		{"rounds", s.Rounds, 1},
		{"latency-ms", s.LatencyMS, 0},
		{"s3-experiments", s.S3Experiments, 0},
		{"soak-rounds", s.SoakRounds, 0},
		{"warmup-rounds", s.WarmupRounds, 0},
		{"soak-size", s.SoakSize, 1},
	} {
		if c.value < c.low {
			return usageError{fmt.Errorf("--%s %d: at least %d is allowed", c.flag, c.value, c.low)}
		}
	}
	if s.SoakRounds == 1 {
		return usageError{errors.New("--soak-rounds 1: one round has no slope; 0 or at least 2 is allowed")}
	}
	return nil
}

// changed is how many experiments are 1 % of a fleet.
func changed(experiments int) int { return max(1, experiments/100) }
