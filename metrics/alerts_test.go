package metrics_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"lancefleet/e2e/notrun"
)

// promtool runs Prometheus' own checker; tools/promtool gets it.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	program := os.Getenv("LANCEFLEET_PROMTOOL")
	if program == "" {
		notrun.Skip(t, "alert rules in Prometheus", "no promtool; tools/promtool gets it")
	}
	said, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	require.NoError(t, err, "promtool %s: %s", strings.Join(args, " "), said)
}

func TestPrometheusTakesItsConfigurationAndTheRules(t *testing.T) {
	promtool(t, "check", "rules", "../deploy/prometheus/alerts.yml")
	promtool(t, "check", "config", "--syntax-only", "../deploy/prometheus/prometheus.yml")
}

// series are values each minute, in promtool's notation.
type series map[string]string

// quiet is what two workers and a web server tell of a fleet that needs nobody.
func quiet() series {
	s := series{
		`up{job="lancefleet-web"}`:                               "1x2000",
		`http_requests_total{job="lancefleet-web",status="200"}`: "0+60x2000",
		`http_requests_total{job="lancefleet-web",status="503"}`: "0+1x2000",
	}
	for _, worker := range []string{"one", "two"} {
		for name, values := range map[string]string{
			`up{job="lancefleet-worker",instance="%s"}`:                      "1x2000",
			`lancefleet_last_round_age_seconds{instance="%s"}`:               "20 80 140 200 260 20x2000",
			`lancefleet_snapshot_age_seconds{instance="%s"}`:                 "20x2000",
			`lancefleet_schedule_interval_seconds{instance="%s"}`:            "300x2000",
			`lancefleet_schedule_paused{instance="%s"}`:                      "0x2000",
			`lancefleet_schedule_exists{instance="%s"}`:                      "1x2000",
			`lancefleet_schedule_skipped_total{instance="%s"}`:               "3x2000",
			`lancefleet_schedule_restored_total{instance="%s"}`:              "1x2000",
			`lancefleet_self_heal_starts_total{instance="%s"}`:               "0x2000",
			`lancefleet_scan_experiments_failed{instance="%s"}`:              "4x2000",
			`lancefleet_experiments_failing{instance="%s"}`:                  "4x2000",
			`lancefleet_maintenance_cooling_down{instance="%s"}`:             "4x2000",
			`lancefleet_unknown_wal_entries{instance="%s"}`:                  "0x2000",
			`lancefleet_retired_experiments{instance="%s"}`:                  "500x2000",
			`lancefleet_retired_checked_total{instance="%s"}`:                "0+40x2000",
			`lancefleet_drops_refused_total{instance="%s"}`:                  "0+1x7 7x2000",
			`lancefleet_event_handover_failures_total{instance="%s"}`:        "0 0 1x2000",
			`lancefleet_shared_state_readable{part="stats",instance="%s"}`:   "1x2000",
			`lancefleet_shared_state_readable{part="journal",instance="%s"}`: "1x2000",
			`master_experiments{instance="%s"}`:                              "1000x2000",
			`master_stats_hot_experiments{instance="%s"}`:                    "1000x2000",
			`master_stores_pending_over_read_cap{instance="%s"}`:             "0x2000",
			`master_wal_pending_generations_max{instance="%s"}`:              "40x2000",
			`master_stats_unreclaimed_versions{instance="%s"}`:               "12x2000",
			`master_stats_maintenance_consecutive_failures{instance="%s"}`:   "0 1 2 0x2000",
			`master_stats_retire_failures_total{instance="%s"}`:              "0 1 2x2000",
		} {
			s[fmt.Sprintf(name, worker)] = values
		}
	}
	return s
}

const (
	soon    = "30m"
	halfDay = "12h10m"
	oneDay  = "24h10m"
)

// both gives the same to what both workers tell.
func both(name, values string) series {
	return series{fmt.Sprintf(name, `instance="one"`): values, fmt.Sprintf(name, `instance="two"`): values}
}

var alerts = []struct {
	name   string
	told   series
	at     string // fires
	before string // and not yet here; "" = it fires at once
}{
	{"NoRoundFinished", both(`lancefleet_last_round_age_seconds{%s}`, "0+60x2000"), "18m", "15m"},
	{"SnapshotOld", both(`lancefleet_snapshot_age_seconds{%s}`, "0+60x2000"), "41m", "35m"},
	{"ScheduleStoodStill", series{`lancefleet_self_heal_starts_total{instance="two"}`: "0x10 1x2000"}, "12m", "9m"},
	{"ScheduleMissing", both(`lancefleet_schedule_exists{%s}`, "0x2000"), "3m", "1m"},
	{"PausedForLong", both(`lancefleet_schedule_paused{%s}`, "1x2000"), halfDay, "11h50m"},
	{"MostExperimentsFail", both(`lancefleet_scan_experiments_failed{%s}`, "501x2000"), "6m", "4m"},
	{"ExperimentsFail", both(`lancefleet_experiments_failing{%s}`, "51x2000"), "61m", "59m"},
	{"RoundsAreSkipped", both(`lancefleet_schedule_skipped_total{%s}`, "0+1x2000"), soon, ""},
	{"HotSetVanished", both(`master_stats_hot_experiments{%s}`, "1000x10 0x2000"), soon, "20m"},
	{"ReadersRefuse", series{`master_stores_pending_over_read_cap{instance="one"}`: "0x10 1x2000"}, "12m", "9m"},
	{"BacklogGrows", both(`master_wal_pending_generations_max{%s}`, "1001x2000"), "31m", "29m"},
	{"UpkeepFails", both(`master_stats_unreclaimed_versions{%s}`, "0+1x2000"), "105m", "100m"},
	{"UpkeepFailsAgain", series{`master_stats_maintenance_consecutive_failures{instance="one"}`: "0 1 2 3x2000"}, "4m", "2m"},
	{"RetirementsFail", both(`master_stats_retire_failures_total{%s}`, "0+1x2000"), "20m", "4m"},
	{"DropsRefused", both(`lancefleet_drops_refused_total{%s}`, "0+1x2000"), soon, "9m"},
	{"RetiredNotChecked", both(`lancefleet_retired_checked_total{%s}`, "0+40x200 8000x2000"), "6h30m", "3h10m"},
	{"OperatorHasToDecide", both(`lancefleet_unknown_wal_entries{%s}`, "2x2000"), oneDay, "23h50m"},
	{"MaintenanceCoolsDown", both(`lancefleet_maintenance_cooling_down{%s}`, "51x2000"), "61m", "59m"},
	{"EventsNotHandedOver", both(`lancefleet_event_handover_failures_total{%s}`, "0+1x2000"), soon, "10m"},
	{"StateUnreadable", series{`lancefleet_shared_state_readable{part="journal",instance="two"}`: "0x2000"}, "6m", "4m"},
	{"WebFails", series{`http_requests_total{job="lancefleet-web",status="503"}`: "0+10x2000"}, soon, "9m"},
	{"ProcessDown", series{`up{job="lancefleet-worker",instance="two"}`: "0x2000"}, "6m", "4m"},
}

// Each alert alone fires in the situation it is for, and no sooner than it says.
func TestEachAlertFiresForWhatItIsForAndNoOther(t *testing.T) {
	require.Len(t, alerts, strings.Count(read(t, "../deploy/prometheus/alerts.yml"), "- alert:"))
	rules, err := filepath.Abs("../deploy/prometheus/alerts.yml")
	require.NoError(t, err)
	// What takes hours is looked at every ten minutes, or it would take as long.
	every := map[string][]any{
		"1m":  {situation("a quiet fleet", nil, firing("5m"), firing(soon))},
		"10m": {situation("a quiet fleet", nil, firing("6h30m"), firing(halfDay), firing(oneDay))},
	}
	for _, a := range alerts {
		asked := []any{firing(a.at, a.name)}
		if a.before != "" {
			asked = append(asked, firing(a.before))
		}
		often := "1m"
		if strings.Contains(a.at, "h") {
			often = "10m"
		}
		every[often] = append(every[often], situation(a.name, a.told, asked...))
	}
	for often, tests := range every {
		text, err := yaml.Marshal(map[string]any{"rule_files": []string{rules}, "evaluation_interval": often, "tests": tests})
		require.NoError(t, err)
		file := filepath.Join(t.TempDir(), "alerts_test.yml")
		require.NoError(t, os.WriteFile(file, text, 0o600))
		promtool(t, "test", "rules", file)
	}
}

func situation(name string, told series, asked ...any) map[string]any {
	all := quiet()
	maps.Copy(all, told)
	var input []any
	for _, key := range slices.Sorted(maps.Keys(all)) {
		input = append(input, map[string]any{"series": key, "values": all[key]})
	}
	return map[string]any{"name": name, "interval": "1m", "input_series": input, "promql_expr_test": asked}
}

// firing are all alerts that fire at a time after the start.
func firing(at string, names ...string) map[string]any {
	samples := []any{}
	for _, name := range names {
		samples = append(samples, map[string]any{"labels": fmt.Sprintf("{alertname=%q}", name), "value": 1})
	}
	return map[string]any{"expr": `group by (alertname) (ALERTS{alertstate="firing"})`, "eval_time": at, "exp_samples": samples}
}
