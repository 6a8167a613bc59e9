// Package metrics is what lancefleet tells Prometheus.
//
// Gauges about the fleet come from shared state (`_stats`, `_rounds`, the
// schedule), so every process tells the same and a restart forgets nothing; see
// shared.go. Counters and histograms come from the process that did the work.
// No experiment's name is ever a label.
package metrics

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"lancefleet/fleet"
)

// Metrics holds the registry of one process and what it counts itself.
type Metrics struct {
	Registry *prometheus.Registry

	scanDuration     prometheus.Histogram
	observed         prometheus.Counter
	skipped          prometheus.Counter
	observeFailures  *prometheus.CounterVec
	stepErrors       *prometheus.CounterVec
	commits          *prometheus.CounterVec
	conflicts        prometheus.Counter
	sourceProblems   prometheus.Gauge
	selfHeals        prometheus.Counter
	scheduleRestored prometheus.Counter
	httpRequests     *prometheus.CounterVec
	httpDuration     *prometheus.HistogramVec

	maintenance maintenanceMetrics
	events      eventMetrics
}

// Buckets reach past the longest normal duration.
var (
	roundBuckets = []float64{.25, .5, 1, 2.5, 5, 10, 20, 40, 60, 120, 300, 600, 1200, 3600}
	httpBuckets  = []float64{.002, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
	sdkBuckets   = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600}
)

// New makes the metrics of a process, with those of the Go runtime.
func New() *Metrics {
	m := &Metrics{
		Registry:     prometheus.NewRegistry(),
		scanDuration: histogram("master_scan_duration_seconds", "Time from the start of a round to its record. Alert when it nears the scan interval: rounds are then skipped.", roundBuckets),
		observed:     counter("lancefleet_experiments_observed_total", "Experiments observed in full by this process."),
		skipped:      counter("lancefleet_experiments_skipped_total", "Experiments that a probe of this process found unchanged."),
		observeFailures: counters("lancefleet_observation_failures_total",
			"Experiments that gave no answer, by class of the error. Alert on the gauge lancefleet_experiments_failing instead: one broken experiment counts here again and again.", "class"),
		stepErrors: counters("lancefleet_activity_errors_total",
			"Failed attempts of activities, by class. conflict, worker-stopping and cancelled are normal; alert when denied, corrupt or unreachable keep climbing.", "activity", "class"),
		commits: counters("lancefleet_stats_commits_total",
			"Commits of _stats by rounds: changed, or freshness (nothing changed, but scan times had grown old).", "reason"),
		conflicts: counter("lancefleet_stats_commit_conflicts_total",
			"Commits of _stats that somebody else was faster than; merged again and tried again. Normal in small numbers."),
		sourceProblems: gauge("lancefleet_source_problems",
			"Names that the sources gave in this process's last listing and that can't be used; the worker's log names them."),
		selfHeals: counter("lancefleet_self_heal_starts_total",
			"Rounds that a worker started because none had finished for three intervals while the schedule was not paused. Alert on any increase: the schedule has stopped."),
		scheduleRestored: counter("lancefleet_schedule_restored_total",
			"Times a worker found the schedule missing and created it again, in the state that the journal remembers. Alert on any increase."),
		httpRequests: counters("http_requests_total", "HTTP requests by method, route and status. Alert on a growing share of status 5xx.", "method", "path", "status"),
		httpDuration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "http_request_duration_seconds", Help: "Time to answer HTTP requests, by method and route. Long polls take as long as they were asked to.", Buckets: httpBuckets,
		}, []string{"method", "path"}),
	}
	m.maintenance, m.events = newMaintenanceMetrics(), newEventMetrics()
	m.Registry.MustRegister(m.maintenance.all()...)
	m.Registry.MustRegister(m.events.all()...)
	m.Registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		m.scanDuration, m.observed, m.skipped, m.observeFailures, m.stepErrors, m.commits, m.conflicts,
		m.sourceProblems, m.selfHeals, m.scheduleRestored, m.httpRequests, m.httpDuration,
	)
	return m
}

// Handler serves the registry. A collector that fails costs its own metrics, not
// the answer.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.Registry, promhttp.HandlerOpts{
		ErrorHandling:      promhttp.ContinueOnError,
		DisableCompression: true, // the web server compresses; twice is unreadable to Prometheus
	})
}

// ObserveHTTP counts an answered request. route is the pattern, never the path
// itself: a path holds names of experiments.
func (m *Metrics) ObserveHTTP(method, route string, status int, took time.Duration) {
	m.httpRequests.WithLabelValues(method, route, strconv.Itoa(status)).Inc()
	m.httpDuration.WithLabelValues(method, route).Observe(took.Seconds())
}

// ObservationFailed counts an experiment that gave no answer.
func (m *Metrics) ObservationFailed(class string) { m.observeFailures.WithLabelValues(class).Inc() }

// PageDone counts what an attempt at a page found.
func (m *Metrics) PageDone(observed, skipped int) {
	m.observed.Add(float64(observed))
	m.skipped.Add(float64(skipped))
}

// SourceProblems sets how many names of the last listing can't be used.
func (m *Metrics) SourceProblems(n int) { m.sourceProblems.Set(float64(n)) }

// Committed counts a commit of `_stats`.
func (m *Metrics) Committed(freshnessOnly bool) {
	reason := "changed"
	if freshnessOnly {
		reason = "freshness"
	}
	m.commits.WithLabelValues(reason).Inc()
}

// CommitConflict counts a lost race for the head of `_stats`.
func (m *Metrics) CommitConflict() { m.conflicts.Inc() }

// RoundFinished counts a recorded round.
func (m *Metrics) RoundFinished(r fleet.RoundRecord) { m.scanDuration.Observe(r.DurationSeconds) }

// StepFailed counts a failed attempt of an activity.
func (m *Metrics) StepFailed(activity, class string) {
	m.stepErrors.WithLabelValues(activity, class).Inc()
}

// SelfHealed counts a round that was started because the schedule stood still.
func (m *Metrics) SelfHealed() { m.selfHeals.Inc() }

// ScheduleRestored counts a schedule that was found missing and made again.
func (m *Metrics) ScheduleRestored() { m.scheduleRestored.Inc() }

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func gauge(name, help string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}

func histogram(name, help string, buckets []float64) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
}
