package main

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"lancefleet/control"
	"lancefleet/fleet"
	"lancefleet/web"
)

func TestStatusSaysWhereTheFleetStands(t *testing.T) {
	ops := web.Operations{
		Schedule:      &web.Schedule{Exists: true, Paused: true, By: "ada", Reason: "moving the bucket"},
		RunningRounds: []web.RoundRunning{{RunningRound: control.RunningRound{StartedAt: 1}}},
		Rounds:        []web.Round{{RoundRecord: fleet.RoundRecord{Observed: 7, Skipped: 90, Failed: 3}}},
		Plan:          &web.FleetPlan{Starts: []web.Planned{{}, {}}, WaitingAll: 4, BlockedAll: 5, Causes: []web.Cause{{Count: 5, Says: "maintenance is off"}}},
		Retirement:    &web.Retirement{CandidatesAll: 1, BlockedAll: 2, RetiredAll: 30, ReturnedAll: 4},
		Failures:      []web.Failure{{Level: "bad"}, {Level: "note"}, {Level: "note"}},
		Upkeep:        &web.Upkeep{Failures: 2, Unreclaimed: 140},
		Missing:       []string{"storage: it hangs"}, Stale: true, StaleWhy: "no round has finished for 2 h",
	}
	out, errs, exit, asked := command(t, http.StatusOK, ops, "status")
	require.Zero(t, exit)
	require.Equal(t, "/api/v1/operations", asked.URL.Path)
	for _, says := range []string{"paused by ada", "moving the bucket", "7 observed, 90 skipped, 3 failed", "2 to start, 4 waiting, 5 blocked", "5: maintenance is off",
		"1 due, 2 blocked, 30 retired", "3 causes: 1 for somebody to mend, 0 to look at, 2 that pass", "2 failures in a row, 140 versions"} {
		require.Contains(t, out, says)
	}
	require.Contains(t, errs, "not to be had: storage: it hangs")
	require.Contains(t, errs, "stale: no round has finished for 2 h")
}

func TestStatusOfAFleetOfWhichNothingIsKnownSaysSo(t *testing.T) {
	out, _, exit, _ := command(t, http.StatusOK, web.Operations{}, "status")
	require.Zero(t, exit)
	require.Contains(t, out, "unknown")
	require.NotContains(t, out, "retirement", "nothing is told as 0")
}

func TestFailuresAreListedByCause(t *testing.T) {
	next := int64(1_796_031_000_000)
	out, _, exit, _ := command(t, http.StatusOK, web.Operations{Failures: []web.Failure{
		{Where: "observing", Class: "denied", Level: "bad", Count: 12, Attempts: 40, NextAt: &next, Sample: "AccessDenied"}, {Where: "compact", Class: "conflict", Level: "note", Count: 1}}}, "failures")
	require.Zero(t, exit)
	require.Regexp(t, `bad +observing +denied +12 +40 .*2026-11-30T09:30:00Z +AccessDenied`, out)
	require.Contains(t, out, "when it is wanted")
	out, _, _, _ = command(t, http.StatusOK, web.Operations{}, "failures")
	require.Equal(t, "nothing fails\n", out)
}

func TestWhereAValueOfThePolicyComesFrom(t *testing.T) {
	clean(t)
	t.Setenv("STATS_COLD_RETIRE_SECS", "0")
	t.Setenv("MIN_FRAGMENTS", "9")
	origins := policyOrigins(map[string]bool{"compact-min-fragments": true})
	require.Equal(t, "environment STATS_COLD_RETIRE_SECS", origins["retire_after_secs"])
	require.Equal(t, "flag --compact-min-fragments", origins["compact_min_fragments"], "a flag goes before the environment")
	require.NotContains(t, origins, "live_shards")
}
