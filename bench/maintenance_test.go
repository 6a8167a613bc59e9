package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSettingsOfMaintenanceThatMeasureNothingAreRefused(t *testing.T) {
	for _, args := range [][]string{
		{"--retired", "-1"}, {"--hot", "0"}, {"--interval", "2h"}, {"--interval", "0s"}, {"--minutes", "0"}, {"more"}, {"--cold", "many"},
	} {
		_, err := parseMaintenanceSettings(args, new(bytes.Buffer))
		require.ErrorAs(t, err, new(usageError), "%v", args)
		assert.Contains(t, err.Error(), args[len(args)-1])
	}
}

func TestThePageOfMaintenanceSaysWhatWasMeasured(t *testing.T) {
	round := func(seconds float64, heads int64) Round {
		r := Round{Seconds: seconds, Memory: Memory{Peak: 200e6}}
		r.Record.StorageRequests.Head, r.Record.DurationSeconds = heads, seconds
		return r
	}
	r := maintenanceReport{
		Retired: &RetiredPart{Hot: 1000, Retired: 30_000, IntervalSeconds: 300, Alone: []Round{round(0.5, 6000)}, Beside: []Round{round(0.7, 6600)}},
		Fair:    &FairPart{Candidates: 500, Fragments: 20_000, Minutes: []Minute{{Merged: 41, Fragments: 19_000, Rounds: 6, RoundMax: 1.25}}},
		Cold:    &ColdPart{Experiments: 25_000, Before: []Round{round(2, 1)}, Minutes: []ColdMinute{{Retired: 90, Rounds: 5, RoundMedian: 2.5, RoundMax: 3}}, StatsCommits: 5, Rounds: 5},
	}
	page := r.page()
	for _, said := range []string{
		"A slice is 2500 experiments here", "would cost 186,000 requests", "| 1,000 hot, 30,000 retired | 0.70",
		"| 1      | 41     | 19,000", "`_stats` got 5 versions in 5 rounds",
	} {
		assert.Contains(t, page, said)
	}
}
