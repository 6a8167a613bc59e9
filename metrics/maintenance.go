package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// maintenanceMetrics is what this process did to experiments and to our own tables.
type maintenanceMetrics struct {
	retired         prometheus.Counter
	retireFailures  prometheus.Counter
	retireDuration  prometheus.Histogram
	dropsRefused    prometheus.Counter
	returned        prometheus.Counter
	retiredChecked  prometheus.Counter
	recounted       prometheus.Counter
	versionsRemoved prometheus.Counter
	upkeepFailures  prometheus.Counter
	upkeepDuration  prometheus.Histogram
	outcomes        *prometheus.CounterVec
}

// A retirement waits for the grace of what it merged, and perhaps for a slot.
var retireBuckets = []float64{1, 5, 15, 60, 300, 600, 1200, 1800, 3600, 3 * 3600, 6 * 3600, 24 * 3600}

func newMaintenanceMetrics() maintenanceMetrics {
	return maintenanceMetrics{
		retired: counter("master_stats_experiments_retired_total",
			"Experiments that this process retired: transitions, each counted once. Not an alert."),
		retireFailures: counter("master_stats_retire_failures_total",
			"Retirements that failed; the experiment stays hot and is tried again later. Alert when it keeps climbing: the journal says why."),
		retireDuration: histogram("master_stats_retire_duration_seconds",
			"Time from the start of a retirement to its end, graces and waiting for a slot included.", retireBuckets),
		dropsRefused: counter("lancefleet_drops_refused_total",
			"Retirements that were given up at the last step, because something moved since the evidence. Normal in small numbers."),
		returned: counter("lancefleet_experiments_returned_total",
			"Retired experiments that were found written and are hot again. Alert when it follows retirements closely: retire_after is too short."),
		retiredChecked: counter("lancefleet_retired_checked_total",
			"Looks at retired experiments: each comes up once an hour. Alert when it stands still while there are retired ones."),
		recounted: counter("master_stats_pending_recounted_total",
			"Experiments observed anew although their base version had not moved: writes that only the write-ahead log shows. Not an alert."),
		versionsRemoved: counter("master_stats_versions_removed_total",
			"Old versions of our own tables that upkeep removed."),
		upkeepFailures: counter("master_stats_maintenance_failures_total",
			"Passes of upkeep over our own tables that failed. Alert on master_stats_unreclaimed_versions instead: one failure harms nothing."),
		upkeepDuration: histogram("master_stats_maintenance_duration_seconds",
			"Duration of a pass of upkeep over our own tables.", roundBuckets),
		outcomes: counters("lancefleet_maintenance_outcomes_total",
			"Journal entries about maintenance that this process wrote, by action, outcome and class of error. Alert when failed keeps climbing for an action; refused and conflict are normal in small numbers.",
			"action", "outcome", "class"),
	}
}

func (m maintenanceMetrics) all() []prometheus.Collector {
	return []prometheus.Collector{
		m.retired, m.retireFailures, m.retireDuration, m.dropsRefused, m.returned, m.retiredChecked, m.recounted,
		m.versionsRemoved, m.upkeepFailures, m.upkeepDuration, m.outcomes,
	}
}

// Retired counts a transition to retired.
func (m *Metrics) Retired() { m.maintenance.retired.Inc() }

// RetireFailed counts a retirement that failed.
func (m *Metrics) RetireFailed() { m.maintenance.retireFailures.Inc() }

// RetireTook observes how long a retirement took that was not in vain.
func (m *Metrics) RetireTook(d time.Duration) { m.maintenance.retireDuration.Observe(d.Seconds()) }

// DropRefused counts a retirement that something written last prevented.
func (m *Metrics) DropRefused() { m.maintenance.dropsRefused.Inc() }

// Returned counts experiments that left the ledger.
func (m *Metrics) Returned(n int) { m.maintenance.returned.Add(float64(n)) }

// RetiredChecked counts looks at retired experiments.
func (m *Metrics) RetiredChecked(n int) { m.maintenance.retiredChecked.Add(float64(n)) }

// PendingRecounted counts writes that only the write-ahead log showed.
func (m *Metrics) PendingRecounted(n int) { m.maintenance.recounted.Add(float64(n)) }

// UpkeepDone counts a pass over our own tables.
func (m *Metrics) UpkeepDone(took time.Duration, removed int64, failed bool) {
	m.maintenance.upkeepDuration.Observe(took.Seconds())
	m.maintenance.versionsRemoved.Add(float64(max(removed, 0)))
	if failed {
		m.maintenance.upkeepFailures.Inc()
	}
}

// Journalled counts an entry about maintenance.
func (m *Metrics) Journalled(action, outcome, class string) {
	m.maintenance.outcomes.WithLabelValues(action, outcome, class).Inc()
}
