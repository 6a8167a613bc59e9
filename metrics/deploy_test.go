package metrics_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
	"lancefleet/metrics"
)

// everyMetric is a scrape of a process that did a bit of everything.
func everyMetric(t *testing.T) string {
	t.Helper()
	m, clock, s := metrics.New(), time.UnixMilli(now), full()
	s.kept.Policy = fleet.DefaultPolicy()
	register(t, m, s, &clock)
	m.ObserveHTTP("GET", "/", 200, time.Second)
	m.ObservationFailed("denied")
	m.StepFailed("BeginRound", "denied")
	m.Committed(true)
	m.Journalled("retire", "done", "")
	m.Events("taken", 1)
	return scrape(m)
}

var (
	metricName = regexp.MustCompile(`\b(?:master|lancefleet|http)_[a-z0-9_]+\b`)
	suffix     = regexp.MustCompile(`_(bucket|sum|count)$`)
	expression = regexp.MustCompile(`(?m)expr: >-\n\s+(.+)$`)
	alert      = regexp.MustCompile(`- alert: (\w+)`)
	runbook    = regexp.MustCompile(`runbook: (docs/operations\.md)#([a-z0-9-]+)`)
)

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}

// requireKnown checks that what an expression asks for is something we tell.
func requireKnown(t *testing.T, scraped, expr string) int {
	t.Helper()
	names := metricName.FindAllString(expr, -1)
	for _, name := range names {
		require.Contains(t, scraped, "# TYPE "+suffix.ReplaceAllString(name, "")+" ", "%s asks for a metric that there is none of", expr)
	}
	return len(names)
}

func TestEveryMetricThatARuleOrAPanelNamesExists(t *testing.T) {
	scraped, found := everyMetric(t), 0
	rules := read(t, "../deploy/prometheus/alerts.yml")
	expressions := expression.FindAllStringSubmatch(rules, -1)
	require.Len(t, expressions, strings.Count(rules, "- alert:"))
	for _, e := range expressions {
		require.Equal(t, strings.Count(e[1], "("), strings.Count(e[1], ")"), e[1])
		found += requireKnown(t, scraped, e[1])
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(read(t, "../deploy/grafana/dashboards/lancefleet.json")), &dashboard))
	require.NotEmpty(t, dashboard.Panels)
	for _, panel := range dashboard.Panels {
		require.NotEmpty(t, panel.Targets, panel.Title)
		for _, target := range panel.Targets {
			require.Positive(t, requireKnown(t, scraped, target.Expr), panel.Title)
			found++
		}
	}
	require.Greater(t, found, 60, "too few were looked at to mean anything")
}

func TestEveryAlertHasARunbookThatExists(t *testing.T) {
	rules, page := read(t, "../deploy/prometheus/alerts.yml"), read(t, "../docs/operations.md")
	alerts, runbooks := alert.FindAllStringSubmatch(rules, -1), runbook.FindAllStringSubmatch(rules, -1)
	require.NotEmpty(t, alerts)
	require.Len(t, runbooks, len(alerts))
	for i, a := range alerts {
		require.Equal(t, strings.ToLower(a[1]), runbooks[i][2])
		_, section, there := strings.Cut(page, "\n### "+a[1]+"\n")
		require.True(t, there, "docs/operations.md has no section %s", a[1])
		require.Greater(t, len(strings.SplitN(section, "\n", 2)[0]), 40, "the section says nothing")
	}
	require.Equal(t, len(alerts), strings.Count(strings.SplitN(strings.SplitN(page, "## Alerts\n", 2)[1], "\n## ", 2)[0], "\n### "), "a section without an alert")
}

func TestTheAlertsThatUpstreamsUsersRelyOnAreThere(t *testing.T) {
	rules := read(t, "../deploy/prometheus/alerts.yml")
	for _, name := range []string{
		"master_stats_unreclaimed_versions", "lancefleet_snapshot_age_seconds", "master_stats_maintenance_consecutive_failures",
		"lancefleet_schedule_paused", "lancefleet_experiments_failing", "lancefleet_drops_refused_total", "master_stores_pending_over_read_cap",
	} {
		require.Contains(t, rules, name)
	}
	require.NotContains(t, rules, "master_stats_version)", "it climbs by design")
}
