package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"time"
)

// maintenanceSettings say what `bench maintenance` measures.
type maintenanceSettings struct {
	Hot        int           `json:"hot"`        // experiments beside the retired ones
	Retired    int           `json:"retired"`    // 0 = left out
	Interval   time.Duration `json:"interval"`   // between rounds beside retired ones
	Rounds     int           `json:"rounds"`     // beside retired ones, and beside cold ones without maintenance
	Candidates int           `json:"candidates"` // for merges; 0 = left out
	Fragments  int           `json:"fragments"`  // of the one table beside them
	Cold       int           `json:"cold"`       // 0 = left out
	Minutes    int           `json:"minutes"`    // that maintenance is watched
	Keep       bool          `json:"-"`
	Out        string        `json:"-"`
	Dir        string        `json:"-"`
	Timeout    time.Duration `json:"-"`
}

func parseMaintenanceSettings(args []string, stderr io.Writer) (maintenanceSettings, error) {
	var s maintenanceSettings
	f := flag.NewFlagSet("bench maintenance", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.IntVar(&s.Hot, "hot", 1000, "hot experiments beside the retired ones")
	f.IntVar(&s.Retired, "retired", 30_000, "retired experiments; 0: that part is left out")
	f.DurationVar(&s.Interval, "interval", 5*time.Minute, "between rounds beside retired ones: each looks at those whose turn came meanwhile")
	f.IntVar(&s.Rounds, "rounds", 3, "rounds beside retired ones, and beside cold ones before maintenance")
	f.IntVar(&s.Candidates, "candidates", 500, "experiments that want a merge; 0: that part is left out")
	f.IntVar(&s.Fragments, "fragments", 20_000, "fragments of the one table that wants a compaction meanwhile")
	f.IntVar(&s.Cold, "cold", 25_000, "experiments that turn cold at once; 0: that part is left out")
	f.IntVar(&s.Minutes, "minutes", 5, "that maintenance is watched")
	f.BoolVar(&s.Keep, "keep", false, "keep fleets, logs and Temporal's database")
	f.StringVar(&s.Out, "out", "docs/benchmarks-maintenance.md", "page to write; empty: only stdout")
	f.StringVar(&s.Dir, "dir", "", "folder to make the fleets in; empty: the system's temporary folder")
	f.DurationVar(&s.Timeout, "timeout", 3*time.Hour, "of the whole run")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return s, err
		}
		return s, usageError{err}
	}
	if f.NArg() > 0 {
		return s, usageError{fmt.Errorf("unknown argument %q", f.Arg(0))}
	}
	for _, c := range []struct {
		flag       string
		value, low int
	}{
		{"hot", s.Hot, 1},
		{"retired", s.Retired, 0},
		{"rounds", s.Rounds, 1},
		{"candidates", s.Candidates, 0},
		{"fragments", s.Fragments, 1},
		{"cold", s.Cold, 0},
		{"minutes", s.Minutes, 1},
	} {
		if c.value < c.low {
			return s, usageError{fmt.Errorf("--%s %d: at least %d is allowed", c.flag, c.value, c.low)}
		}
	}
	if s.Interval < time.Second || s.Interval > time.Hour {
		return s, usageError{fmt.Errorf("--interval %s: 1s to 1h is allowed", s.Interval)}
	}
	return s, nil
}
