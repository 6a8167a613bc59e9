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

// Poll is what the polling script measured in one start.
type Poll struct {
	Experiments int       `json:"experiments"`
	Concurrency int       `json:"concurrency"`
	Seconds     []float64 `json:"seconds"` // of each round
	PeakBytes   int64     `json:"peak_bytes"`
	Requests    int64     `json:"requests,omitempty"` // of all rounds, counted at the S3 server
}

func (b *bench) poll(ctx context.Context, experiments []fleet.Experiment, concurrency, rounds int, options map[string]string) (Poll, error) {
	var uris strings.Builder
	for _, e := range experiments {
		uris.WriteString(e.URI + "\n")
	}
	storage, err := json.Marshal(options)
	if err != nil {
		return Poll{}, err
	}
	text, err := output(ctx, pollLimit, []string{"POLL_STORAGE_OPTIONS=" + string(storage)}, uris.String(),
		b.tools.python, b.tools.script, strconv.Itoa(concurrency), strconv.Itoa(rounds))
	if err != nil {
		return Poll{}, err
	}
	var p Poll
	if err := json.Unmarshal(text, &p); err != nil {
		return p, fmt.Errorf("read what the polling script measured: %w: %s", err, text)
	}
	return p, nil
}

// trials runs the script on a sample at each concurrency.
func (b *bench) trials(ctx context.Context, experiments []fleet.Experiment, options map[string]string) ([]Poll, error) {
	sample := experiments[:min(len(experiments), sampleSize)]
	var trials []Poll
	for _, concurrency := range concurrencies {
		p, err := b.poll(ctx, sample, concurrency, trialRuns, options)
		if err != nil {
			return nil, err
		}
		trials = append(trials, p)
	}
	return trials, nil
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
