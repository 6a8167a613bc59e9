package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"lancefleet/fleet"
)

const (
	pollLimit  = 40 * time.Minute // for all rounds of one start
	sampleSize = 2000             // experiments on which the best concurrency is sought
	trialRuns  = 2                // rounds of a trial; the first warms up
)

// concurrencies of the script that are tried.
var concurrencies = []int{1, 4, 8, 16}

// What the script looks at; see poll.py.
const (
	lookOpen = "open"
	lookWAL  = "wal"
)

var looks = []string{lookOpen, lookWAL}

// said is how a report calls them.
func said(look string) string {
	if look == lookWAL {
		return "opens and lists WAL"
	}
	return "opens"
}

// Poll is what the polling script measured in one start.
type Poll struct {
	Look        string    `json:"look"` // what it looks at: open, wal
	Experiments int       `json:"experiments"`
	Concurrency int       `json:"concurrency"`
	Seconds     []float64 `json:"seconds"` // of each round
	PeakBytes   int64     `json:"peak_bytes"`
	Requests    int64     `json:"requests,omitempty"` // of all rounds, counted at the S3 server
}

// pollWork is one start of the script.
type pollWork struct {
	look                string
	concurrency, rounds int
	experiments         []fleet.Experiment
	options             map[string]string // of the storage
}

func (b *bench) poll(ctx context.Context, w pollWork) (Poll, error) {
	var uris strings.Builder
	for _, e := range w.experiments {
		uris.WriteString(e.URI + "\n")
	}
	storage, err := json.Marshal(w.options)
	if err != nil {
		return Poll{}, err
	}
	text, err := output(ctx, pollLimit, []string{"POLL_STORAGE_OPTIONS=" + string(storage)}, uris.String(),
		b.tools.python, b.tools.script, strconv.Itoa(w.concurrency), strconv.Itoa(w.rounds), w.look)
	if err != nil {
		return Poll{}, err
	}
	var p Poll
	if err := json.Unmarshal(text, &p); err != nil {
		return p, fmt.Errorf("read what the polling script measured: %w: %s", err, text)
	}
	return p, nil
}

// Script is the script on one local fleet.
type Script struct {
	Trials []Poll `json:"trials"` // on a sample, to find the best concurrency
	Poll   Poll   `json:"poll"`   // at that
}

// script looks for the best concurrency on a sample, then runs on all.
func (b *bench) script(ctx context.Context, look string, experiments []fleet.Experiment) (s Script, err error) {
	w := pollWork{look: look, rounds: trialRuns, experiments: experiments[:min(len(experiments), sampleSize)]}
	for _, w.concurrency = range concurrencies {
		p, err := b.poll(ctx, w)
		if err != nil {
			return s, err
		}
		s.Trials = append(s.Trials, p)
	}
	w.concurrency, w.rounds, w.experiments = best(s.Trials).Concurrency, b.settings.Rounds, experiments
	s.Poll, err = b.poll(ctx, w)
	return s, err
}

// best is the trial with the fastest round.
func best(trials []Poll) Poll {
	return slices.MinFunc(trials, func(a, b Poll) int {
		if slices.Min(a.Seconds) < slices.Min(b.Seconds) {
			return -1
		}
		return 1
	})
}
