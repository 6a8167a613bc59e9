package main

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"lancefleet/e2e/notrun"
)

func TestSettingsOfPagesThatMeasureNothingAreRefused(t *testing.T) {
	for _, args := range [][]string{
		{"--hot", "-1"}, {"--rate", "0"}, {"--seconds", "0"}, {"--readers", "0"}, {"--loads", "none"}, {"more"},
	} {
		_, err := parseWebSettings(args, new(bytes.Buffer))
		require.ErrorAs(t, err, new(usageError), "%v", args)
		assert.Contains(t, err.Error(), args[len(args)-1])
	}
}

func TestAnswersOtherThanGoodOnesAreErrors(t *testing.T) {
	report := `{"latencies":{"50th":2000000,"99th":41000000,"max":90000000},"bytes_in":{"mean":8200},"requests":100,"status_codes":{"0":2,"200":90,"304":3,"503":5},"errors":["503 Service Unavailable"]}`
	a, err := parseAttack("list", []byte(report))
	require.NoError(t, err)
	require.Equal(t, 10, a.Errors, "what is not 2xx, and what was never answered")
	require.InDelta(t, 0.041, a.P99, 1e-9)
	_, err = parseAttack("list", []byte(`{"requests":0}`))
	require.ErrorContains(t, err, "nothing was asked")
}

func TestWhatReadersChangeIsSaid(t *testing.T) {
	alone := Treatment{
		countsOfRounds: []string{"observed 3", "observed 0"}, before: map[string]string{"a": "1 row"}, after: map[string]string{"a": "2 rows"},
		retiredAs: map[string]string{"b": "clean"},
	}
	same := alone
	require.Empty(t, alone.differences(&same))
	beside := Treatment{
		countsOfRounds: []string{"observed 3", "observed 1"}, before: alone.before, after: map[string]string{"a": "1 row"},
		retiredAs: map[string]string{"c": "clean"},
	}
	found := alone.differences(&beside)
	require.Len(t, found, 4, "%v", found)
	for i, word := range []string{"round 2", "row after it of a", "retirement of b", "retirement of c"} {
		assert.Contains(t, found[i], word)
	}
}

func TestThePageOfPagesSaysWhatWasMissed(t *testing.T) {
	r := webReport{
		API:     &APIPart{Hot: 50_000, Retired: 100_000, Answers: []Answers{{What: "list", Requests: 1000, P99: 0.004}, {What: "operations", Requests: 1000, P99: 0.061, Errors: 2}}},
		Paint:   &PaintPart{Pages: []Painted{{What: "list", FirstPaint: []float64{0.2, 0.3}}, {What: "operations", FirstPaint: []float64{0.4, 1.2}}}},
		Search:  &SearchPart{Pages: []ColdPage{{Seconds: 0.4, Shown: 50, Looked: 50}, {Seconds: 0.6, Shown: 50, Looked: 49, Why: "1 of 50 without a row were not looked at"}}},
		Readers: &ReadersPart{Count: 200, Beside: Treatment{Answers: []Answers{{Requests: 9000}}}},
	}
	page := r.page()
	for _, said := range []string{
		"slowest: operations, p99 61.0 ms; 2 errors", "slowest: operations, 1200.0 ms", "slowest page 0.60 s; 99 of 100 looked at", "0 differences; 0 errors in 9,000 answers",
		"1 of 50 without a row were not looked at",
	} {
		assert.Contains(t, page, said)
	}
	require.Equal(t, 3, bytes.Count([]byte(page), []byte("**not met**")))
}

// What is asked of one fleet, at a tiny size, with the real programs: it ends, asks
// what it says it asks, and gets answers.
func TestPagesAreMeasuredAtATinySize(t *testing.T) {
	s, err := parseWebSettings([]string{
		"--hot", "60", "--retired", "80", "--cold", "12", "--actions", "40", "--rate", "30", "--seconds", "1", "--loads", "1", "--s3-cold", "0",
		"--experiments", "0", "--dir", t.TempDir(), // rounds beside readers take minutes
	}, io.Discard)
	require.NoError(t, err)
	b, err := newBench(Settings{Dir: s.Dir})
	if err != nil {
		notrun.Skip(t, "the measurement of pages", err.Error())
	}
	t.Cleanup(b.close)
	if !isFile(b.tools.vegeta) {
		notrun.Skip(t, "the measurement of pages", "no load tool")
	}
	r, err := b.measureWeb(t.Context(), s)
	require.NoError(t, err)
	for _, a := range r.API.Answers {
		require.Zero(t, a.Errors, "%s: %v", a.What, a.Said)
		require.Positive(t, a.Bytes, a.What)
	}
	require.Len(t, r.API.Answers, len(questions(s, nil))+1)
	require.Equal(t, 12, r.Search.shown())
	require.Positive(t, r.Search.looked()) // a busy machine may not get through all in its second
	require.Nil(t, r.Readers)
	require.Empty(t, r.NotRun)
}
