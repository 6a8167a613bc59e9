package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"time"
)

// webSettings say what `bench web` measures.
type webSettings struct {
	Hot         int           `json:"hot"`      // rows of the large fleet; 0 = it is left out
	Retired     int           `json:"retired"`  // beside them
	Cold        int           `json:"cold"`     // real datasets that only a registry names; 0 = that search is left out
	Actions     int           `json:"actions"`  // in the journal, and samples
	Rate        int           `json:"rate"`     // questions a second
	Seconds     int           `json:"seconds"`  // for each kind of question
	Loads       int           `json:"loads"`    // of each page in the browser
	LatencyMS   int           `json:"latency"`  // added to each answer of the S3 server
	S3Cold      int           `json:"s3_cold"`  // real datasets there; 0 = left out
	Experiments int           `json:"readable"` // of the fleet beside readers; 0 = left out
	Readers     int           `json:"readers"`
	Patience    time.Duration `json:"-"` // for maintenance of that fleet
	Keep        bool          `json:"-"`
	Out         string        `json:"-"`
	Dir         string        `json:"-"`
	Timeout     time.Duration `json:"-"`
}

func parseWebSettings(args []string, stderr io.Writer) (webSettings, error) {
	var s webSettings
	f := flag.NewFlagSet("bench web", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.IntVar(&s.Hot, "hot", 50_000, "rows of the large fleet; 0: it is left out")
	f.IntVar(&s.Retired, "retired", 100_000, "retired ones beside them")
	f.IntVar(&s.Cold, "cold", 400, "real datasets that only a registry names; 0: the search for them is left out")
	f.IntVar(&s.Actions, "actions", 20_000, "entries of the journal, and samples")
	f.IntVar(&s.Rate, "rate", 100, "questions a second")
	f.IntVar(&s.Seconds, "seconds", 10, "for each kind of question")
	f.IntVar(&s.Loads, "loads", 7, "of each page in the browser")
	f.IntVar(&s.LatencyMS, "latency-ms", 20, "added to each answer of the S3 server")
	f.IntVar(&s.S3Cold, "s3-cold", 200, "real datasets on the S3 server; 0: left out")
	f.IntVar(&s.Experiments, "experiments", 300, "of the fleet beside readers; 0: left out")
	f.IntVar(&s.Readers, "readers", 200, "who read at once")
	f.DurationVar(&s.Patience, "patience", 15*time.Minute, "for the maintenance of the fleet beside readers")
	f.BoolVar(&s.Keep, "keep", false, "keep fleets, logs and Temporal's database")
	f.StringVar(&s.Out, "out", "docs/benchmarks-web.md", "page to write; empty: only stdout")
	f.StringVar(&s.Dir, "dir", "", "folder to make the fleets in; empty: the system's temporary folder")
	f.DurationVar(&s.Timeout, "timeout", time.Hour, "of the whole run")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return s, err
		}
		return s, usageError{err}
	}
	if f.NArg() > 0 {
		return s, usageError{fmt.Errorf("unknown argument %q", f.Arg(0))}
	}
	return s, s.validate()
}

func (s webSettings) validate() error {
	for _, c := range []struct {
		flag       string
		value, low int
	}{
		{"hot", s.Hot, 0},
		{"retired", s.Retired, 0},
		{"cold", s.Cold, 0},
		{"actions", s.Actions, 1},
		{"rate", s.Rate, 1},
		{"seconds", s.Seconds, 1},
		{"loads", s.Loads, 1},
		{"latency-ms", s.LatencyMS, 0},
		{"s3-cold", s.S3Cold, 0},
		{"experiments", s.Experiments, 0},
		{"readers", s.Readers, 1},
	} {
		if c.value < c.low {
			return usageError{fmt.Errorf("--%s %d: at least %d is allowed", c.flag, c.value, c.low)}
		}
	}
	return nil
}
