package metrics_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
	"lancefleet/metrics"
)

// state is shared state that a test can break.
type state struct {
	snapshot metrics.Snapshot
	round    *fleet.RoundRecord
	schedule metrics.Schedule
	kept     *metrics.Maintenance
	requests fleet.Requests
	broken   map[string]bool
	reads    int
}

var errBroken = errors.New("broken")

func (s *state) answer(part string) error {
	if s.broken[part] {
		return errBroken
	}
	return nil
}

func (s *state) Snapshot(context.Context) (metrics.Snapshot, error) {
	s.reads++
	return s.snapshot, s.answer("stats")
}

func (s *state) LastRound(context.Context) (*fleet.RoundRecord, error) {
	return s.round, s.answer("rounds")
}

func (s *state) Schedule(context.Context) (metrics.Schedule, error) {
	return s.schedule, s.answer("schedule")
}

func (s *state) Maintenance(context.Context) (*metrics.Maintenance, error) {
	return s.kept, s.answer("maintenance")
}

func (s *state) Requests(context.Context) (fleet.Requests, error) {
	return s.requests, s.answer("engine")
}

const now = int64(1_000_000_000)

func full() *state {
	row := func(name string, rows, pending int64) fleet.Row {
		r := fleet.Observed(fleet.Experiment{ID: fleet.ID{Kind: fleet.Rollout, Name: name}, URI: "/" + name}, nil,
			fleet.Observation{BaseRows: rows, Fragments: 2, ObservedAt: now}, now)
		r.PendingWAL = pending
		return r
	}
	return &state{
		snapshot: metrics.Snapshot{Version: 12, CommittedAt: now - 90_000, Rows: []fleet.Row{row("a", 10, 5), row("b", 20, 1001), row("c", 30, 5000)}},
		round: &fleet.RoundRecord{
			Skipped: 2, Observed: 1, Failed: 4, BackingOff: 3, FinishedAt: now - 30_000, DurationSeconds: 1.5,
			StorageRequests: fleet.Requests{List: 1, Head: 1000, Get: 10, Put: 2},
		},
		schedule: metrics.Schedule{Exists: true, Paused: true, IntervalSecs: 300, SkippedOverlap: 6, MissedCatchup: 7},
		kept:     &metrics.Maintenance{Policy: fleet.DefaultPolicy()},
		requests: fleet.Requests{Head: 77},
		broken:   map[string]bool{},
	}
}

func register(t *testing.T, m *metrics.Metrics, s *state, clock *time.Time) {
	t.Helper()
	require.NoError(t, m.RegisterShared(s, metrics.SharedOptions{
		Prices: fleet.DefaultPriceSheet(), Log: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return *clock },
	}))
}

func scrape(m *metrics.Metrics) string {
	answer := httptest.NewRecorder()
	m.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return answer.Body.String()
}

func TestGaugesTellWhatTheSharedStateSays(t *testing.T) {
	m, clock := metrics.New(), time.UnixMilli(now)
	register(t, m, full(), &clock)

	text := scrape(m)

	for _, line := range []string{
		"master_experiments 3", "master_stats_hot_experiments 3", "master_rollout_rows 60", "master_rollout_fragments 6",
		"master_wal_pending_generations_max 5000", "master_stores_pending_over_1k 2", "master_stores_pending_over_read_cap 1",
		"master_stats_version 12", "master_scan_experiments_skipped 2", "master_scan_experiments_observed 1",
		"lancefleet_scan_experiments_failed 4", "lancefleet_scan_experiments_backing_off 3",
		"lancefleet_snapshot_age_seconds 90", "lancefleet_last_round_age_seconds 30", "lancefleet_round_duration_seconds 1.5",
		"lancefleet_schedule_paused 1", "lancefleet_schedule_skipped_total 6", "lancefleet_schedule_missed_total 7",
		`lancefleet_round_storage_requests{op="head"} 1000`, `lancefleet_storage_requests_total{op="head"} 77`,
	} {
		require.Contains(t, text, "\n"+line+"\n")
	}
	require.Regexp(t, `lancefleet_round_price_dollars_per_day 0\.\d*[1-9]`, text)
}

func TestWhatCannotBeReadIsLeftOutNotToldAsZero(t *testing.T) {
	for part, names := range map[string][]string{
		"stats":    {"master_experiments", "lancefleet_snapshot_age_seconds"},
		"rounds":   {"lancefleet_last_round_age_seconds", "master_scan_experiments_observed"},
		"schedule": {"lancefleet_schedule_paused", "lancefleet_round_price_dollars_per_day"},
		"engine":   {"lancefleet_storage_requests_total"},
		"maintenance": {
			"lancefleet_retired_experiments", "master_stats_maintenance_consecutive_failures", "master_stats_unreclaimed_versions",
			"lancefleet_unknown_wal_entries",
		},
	} {
		t.Run(part, func(t *testing.T) {
			m, s, clock := metrics.New(), full(), time.UnixMilli(now)
			s.broken[part] = true
			register(t, m, s, &clock)
			text := scrape(m)
			for _, name := range names {
				require.NotContains(t, text, "\n"+name)
			}
			require.Contains(t, text, `lancefleet_shared_state_readable{part="`+part+`"} 0`)
			require.Equal(t, 4, strings.Count(text, "lancefleet_shared_state_readable{")-1, "the other parts are told")
		})
	}
}

func TestAStormOfScrapesReadsTheStateOnce(t *testing.T) {
	m, s, clock := metrics.New(), full(), time.UnixMilli(now)
	register(t, m, s, &clock)
	for range 10 {
		scrape(m)
	}
	require.Equal(t, 1, s.reads)

	s.snapshot.Version, s.snapshot.Rows = 13, s.snapshot.Rows[:1]
	clock = clock.Add(time.Minute)
	require.Contains(t, scrape(m), "\nmaster_experiments 1\n")
}

func TestEveryMetricHasHelpAndTypeAndNoneNamesAnExperiment(t *testing.T) {
	m, clock := metrics.New(), time.UnixMilli(now)
	register(t, m, full(), &clock)
	handler, err := m.TemporalHandler(slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	handler.Counter("temporal_request").Inc(1)
	m.ObserveHTTP("GET", "/api/v1/experiments/{name}", 200, time.Second)
	m.ObservationFailed("denied")
	m.StepFailed("BeginRound", "denied")
	m.Committed(true)
	m.Journalled("retire", "done", "")

	text := scrape(m)

	samples := regexp.MustCompile(`(?m)^((?:master|lancefleet|http)_[a-z_0-9]+?)(?:_bucket|_sum|_count)?[{ ]`).FindAllStringSubmatch(text, -1)
	require.Greater(t, len(samples), 30)
	for _, sample := range samples {
		require.Contains(t, text, "# HELP "+sample[1]+" ", sample[1])
		require.Contains(t, text, "# TYPE "+sample[1]+" ", sample[1])
	}
	require.NotRegexp(t, `(experiment|name|uri)="`, text)
}

func TestTemporalsMetricsStandBesideOursInSeconds(t *testing.T) {
	m := metrics.New()
	handler, err := m.TemporalHandler(slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	tagged := handler.WithTags(map[string]string{"operation": "PollWorkflowTaskQueue"})
	tagged.Counter("temporal_long_request").Inc(3)
	tagged.Timer("temporal_long_request_latency").Record(1500 * time.Millisecond)

	text := scrape(m)

	require.Regexp(t, `temporal_long_request_total\{operation="PollWorkflowTaskQueue"\} 3`, text)
	require.Regexp(t, `temporal_long_request_latency_seconds_bucket\{operation="PollWorkflowTaskQueue",le="2.5"\} 1`, text)
	require.Regexp(t, `temporal_long_request_latency_seconds_bucket\{operation="PollWorkflowTaskQueue",le="1"\} 0`, text)
	require.Regexp(t, `temporal_long_request_latency_seconds_bucket\{.*le="3600"\} 1`, text)
}

func TestRequestsAreCountedByRouteAndStatus(t *testing.T) {
	m := metrics.New()
	m.ObserveHTTP("POST", "/api/v1/rescan", 202, 20*time.Millisecond)
	text := scrape(m)
	require.Contains(t, text, `http_requests_total{method="POST",path="/api/v1/rescan",status="202"} 1`)
	require.Contains(t, text, `http_request_duration_seconds_count{method="POST",path="/api/v1/rescan"} 1`)
}

func TestARoundsDurationIsCountedByWhoeverRecordedIt(t *testing.T) {
	m := metrics.New()
	m.RoundFinished(fleet.RoundRecord{DurationSeconds: 7})
	require.Contains(t, scrape(m), `master_scan_duration_seconds_bucket{le="10"} 1`)
	require.Contains(t, scrape(m), `master_scan_duration_seconds_bucket{le="5"} 0`)
}
