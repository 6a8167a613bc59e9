package metrics_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
	"lancefleet/metrics"
)

func TestRetirementAndUpkeepAreCountedUnderTheNamesThatDashboardsKnow(t *testing.T) {
	m := metrics.New()
	m.Retired()
	m.RetireFailed()
	m.RetireTook(20 * time.Minute)
	m.DropRefused()
	m.Returned(2)
	m.RetiredChecked(7)
	m.PendingRecounted(3)
	m.UpkeepDone(2*time.Second, 11, false)
	m.UpkeepDone(2*time.Second, 0, true)
	m.Journalled("compact", "failed", "conflict")

	text := scrape(m)

	for _, line := range []string{
		"master_stats_experiments_retired_total 1", "master_stats_retire_failures_total 1",
		`master_stats_retire_duration_seconds_bucket{le="1200"} 1`, `master_stats_retire_duration_seconds_bucket{le="600"} 0`,
		"lancefleet_drops_refused_total 1", "lancefleet_experiments_returned_total 2", "lancefleet_retired_checked_total 7",
		"master_stats_pending_recounted_total 3", "master_stats_versions_removed_total 11",
		"master_stats_maintenance_failures_total 1", "master_stats_maintenance_duration_seconds_count 2",
		`lancefleet_maintenance_outcomes_total{action="compact",class="conflict",outcome="failed"} 1`,
	} {
		require.Contains(t, text, "\n"+line+"\n")
	}
}

func TestWhatLedgerAndJournalSayIsTold(t *testing.T) {
	m, clock, s := metrics.New(), time.UnixMilli(now), full()
	rows := s.snapshot.Rows
	rows[0].TailEntries, rows[1].TailEntries = 5, 5
	s.kept.Retired = map[fleet.ID]int64{rows[2].ID: rows[2].LastWrite, {Kind: fleet.Table, Name: "gone"}: 1}
	s.kept.Histories = map[fleet.ID]fleet.History{
		rows[0].ID: {Stranded: 3, Unknown: 4, Compact: fleet.Tries{Failures: 3, LastAt: now - 60_000}},
		rows[1].ID: {Compact: fleet.Tries{Failures: 2, LastAt: now - 60_000}},
		rows[2].ID: {Stranded: 100, Unknown: 100},
	}
	register(t, m, s, &clock)

	text := scrape(m)

	for _, line := range []string{
		"master_experiments 3", "master_stats_hot_experiments 2", "lancefleet_retired_experiments 2",
		"lancefleet_stranded_wal_entries 3", "lancefleet_unknown_wal_entries 4", "lancefleet_maintenance_cooling_down 1",
	} {
		require.Contains(t, text, "\n"+line+"\n")
	}
}

// pass is a journal entry of the upkeep of our own tables.
func pass(outcome string, facts fleet.UpkeepFacts) fleet.Action {
	return fleet.Action{Kind: fleet.ActTables, Outcome: outcome, At: 1, After: facts.Text()}
}

func TestFailuresOfUpkeepAddUpAndASuccessForgetsThem(t *testing.T) {
	failed, done := fleet.OutcomeFailed, fleet.OutcomeDone
	for name, c := range map[string]struct {
		newestFirst []fleet.Action
		lines       []string
	}{
		"no pass yet: all there are": {nil, []string{
			"master_stats_maintenance_consecutive_failures 0", "master_stats_unreclaimed_versions 12",
		}},
		"a failure before any success reports the whole backlog": {
			[]fleet.Action{pass(failed, fleet.UpkeepFacts{Head: 10, OnDisk: 300})},
			[]string{"master_stats_maintenance_consecutive_failures 1", "master_stats_unreclaimed_versions 302"},
		},
		"also where it could not be counted": {
			[]fleet.Action{pass(failed, fleet.UpkeepFacts{OnDisk: -1})},
			[]string{"master_stats_maintenance_consecutive_failures 1", "master_stats_unreclaimed_versions 12"},
		},
		"failures since the last success": {
			[]fleet.Action{pass(failed, fleet.UpkeepFacts{Head: 11}), {Kind: "retire"}, pass(failed, fleet.UpkeepFacts{Head: 9}), pass(done, fleet.UpkeepFacts{Cleaned: 5}), pass(failed, fleet.UpkeepFacts{})},
			[]string{"master_stats_maintenance_consecutive_failures 2", "master_stats_unreclaimed_versions 7"},
		},
		"a success forgets them": {
			[]fleet.Action{pass(done, fleet.UpkeepFacts{Cleaned: 12}), pass(failed, fleet.UpkeepFacts{})},
			[]string{"master_stats_maintenance_consecutive_failures 0", "master_stats_unreclaimed_versions 0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, clock, s := metrics.New(), time.UnixMilli(now), full() // version 12
			s.kept.Upkeep = fleet.UpkeepOf(c.newestFirst)
			register(t, m, s, &clock)
			text := scrape(m)
			for _, line := range c.lines {
				require.Contains(t, text, "\n"+line+"\n")
			}
		})
	}
}

func TestAProcessThatReadsNoLedgerStillTellsHotOnes(t *testing.T) {
	m, clock, s := metrics.New(), time.UnixMilli(now), full()
	s.kept = nil
	register(t, m, s, &clock)
	require.Contains(t, scrape(m), "\nmaster_stats_hot_experiments 3\n")
}
