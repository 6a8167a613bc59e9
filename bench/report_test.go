package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
)

func rounds(resident func(i int) int64, seconds ...float64) []Round {
	var all []Round
	for i, s := range seconds {
		all = append(all, Round{
			Seconds: s,
			Memory:  Memory{Resident: resident(i), Peak: resident(i)},
			Record:  fleet.RoundRecord{StorageRequests: fleet.Requests{Head: 60_000, List: 30_000}},
		})
	}
	return all
}

func flat(int) int64 { return 100e6 }

// measured is a report in which every aim is met.
func measured() *Report {
	l := Local{Experiments: aimedFleet, First: rounds(flat, 40)[0], Unchanged: rounds(flat, 4, 9, 5), Changed: rounds(flat, 6, 7, 8)}
	l.Scripts = []Script{{
		Poll:   Poll{Look: lookOpen, Experiments: aimedFleet, Concurrency: 4, Seconds: []float64{50, 60}, PeakBytes: 300e6},
		Trials: []Poll{{Experiments: 2000, Concurrency: 1, Seconds: []float64{9}}, {Experiments: 2000, Concurrency: 4, Seconds: []float64{4}}},
	}}
	return &Report{
		StartedAt: time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC), FinishedAt: time.Date(2026, 1, 2, 4, 4, 0, 0, time.UTC),
		Local:  []Local{l},
		Remote: &Remote{Experiments: 300, LatencyMS: 20, First: l.First, Unchanged: rounds(flat, 0.5, 0.5), Polls: []Poll{{Look: lookWAL, Concurrency: 8, Seconds: []float64{99}}, {Look: lookOpen, Concurrency: 8, Seconds: []float64{5.5}}}},
		Soak:   &Soak{Experiments: 1000, Unchanged: rounds(flat, 1, 1, 1), Changed: rounds(flat, 1, 1, 1)},
	}
}

func verdicts(r *Report) []string {
	var all []string
	for _, a := range r.aims() {
		all = append(all, a.Verdict)
	}
	return all
}

func TestAimsAreMetOnlyByNumbersThatMeetThem(t *testing.T) {
	met, missed := verdict(true), verdict(false)
	require.Equal(t, []string{met, met, met}, verdicts(measured()))

	slow := measured()
	slow.Local[0].Unchanged = rounds(flat, 4, 10, 11)
	require.Equal(t, []string{missed, met, met}, verdicts(slow))

	near := measured()
	near.Remote.Polls[1].Seconds = []float64{4.9}
	require.Equal(t, []string{met, missed, met}, verdicts(near))

	leaking := measured()
	leaking.Soak.Changed = rounds(func(i int) int64 { return 100e6 + int64(i)*20_000 }, 1, 1, 1)
	require.Equal(t, []string{met, met, missed}, verdicts(leaking))
}

func TestAnAimThatWasNotMeasuredIsNotCalledMet(t *testing.T) {
	require.Equal(t, []string{notMeasured, notMeasured, notMeasured}, verdicts(&Report{}))
	other := measured()
	other.Local[0].Experiments = 10_000
	other.Remote.Polls[1].Concurrency = 16
	require.Equal(t, []string{notMeasured, notMeasured, verdict(true)}, verdicts(other))
}

func TestThePageHasEveryNumberAndItsTablesLineUp(t *testing.T) {
	page := measured().page()
	for _, words := range []string{
		"2026-01-02 03:04 UTC", "| 30,000 ", "round, 300 changed", "script opens, concurrency 4", "5.00 s (median; worst 9.00 s)", "| 6,000 ",
		"11.0 times", "2,000 of 30,000", "## How this is measured", "3.00",
	} {
		require.Contains(t, page, words)
	}
	width := 0
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, "|") {
			width = 0
			continue
		}
		if width > 0 {
			require.Len(t, []rune(line), width, line)
		}
		width = len([]rune(line))
	}
}

func TestTheRawNumbersLieBesideThePage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "page.md")
	r := measured()
	r.notRun("polling script", "no Python")
	var stdout strings.Builder
	require.NoError(t, publish(&stdout, path, r.page(), r))
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, stdout.String()+"\nRaw numbers: [page.json](page.json).\n", string(page))
	require.Contains(t, string(page), "Not run: polling script: no Python")
	raw, err := os.ReadFile(strings.TrimSuffix(path, ".md") + ".json")
	require.NoError(t, err)
	var read Report
	require.NoError(t, json.Unmarshal(raw, &read))
	require.Equal(t, *r, read)
}
