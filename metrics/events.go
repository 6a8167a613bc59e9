package metrics

import "github.com/prometheus/client_golang/prometheus"

// eventMetrics is what this process did with events.
type eventMetrics struct {
	events   *prometheus.CounterVec
	handed   prometheus.Counter
	failures prometheus.Counter
	waiting  prometheus.Gauge
	hinted   prometheus.Counter
}

func newEventMetrics() eventMetrics {
	return eventMetrics{
		events: counters("lancefleet_events_total",
			"Events that this web server was sent, by what they were about: taken (an experiment of the fleet), unknown (a place where no known experiment lies), own (lancefleet's or lance-context's own tables), ignored (removals, tests). Alert when a fleet that is written sends none for hours: the notification is broken, and only rounds find what was written.", "outcome"),
		handed: counter("lancefleet_event_experiments_handed_over_total",
			"Experiments that this web server handed over to the workers because events named them: many events on one count once."),
		failures: counter("lancefleet_event_handover_failures_total",
			"Times that this web server could not hand over what events named; it tries again. Alert when it keeps climbing."),
		waiting: gauge("lancefleet_event_experiments_waiting",
			"Experiments that events named and that this web server has not handed over yet. Alert when it stays above zero for minutes."),
		hinted: counter("lancefleet_hinted_experiments_total",
			"Experiments that this worker took in because events named them."),
	}
}

func (m eventMetrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.events, m.handed, m.failures, m.waiting, m.hinted}
}

// Events counts events of one request by what they were about.
func (m *Metrics) Events(outcome string, n int) {
	m.events.events.WithLabelValues(outcome).Add(float64(n))
}

// EventsHandedOver counts experiments that workers were told of.
func (m *Metrics) EventsHandedOver(n int) { m.events.handed.Add(float64(n)) }

// EventsNotHandedOver counts a failure to tell them.
func (m *Metrics) EventsNotHandedOver() { m.events.failures.Inc() }

// EventsWaiting sets how many experiments workers are still to be told of.
func (m *Metrics) EventsWaiting(n int) { m.events.waiting.Set(float64(n)) }

// Hinted counts experiments that events named and a worker took in.
func (m *Metrics) Hinted(n int) { m.events.hinted.Add(float64(n)) }
