package metrics

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"lancefleet/fleet"
)

// Shared is the state that all processes of a fleet see alike.
type Shared interface {
	Snapshot(ctx context.Context) (Snapshot, error)
	// LastRound is the newest finished round, nil when there is none.
	LastRound(ctx context.Context) (*fleet.RoundRecord, error)
	Schedule(ctx context.Context) (Schedule, error)
	// Maintenance is what ledger and journal say, nil where this process reads neither.
	Maintenance(ctx context.Context) (*Maintenance, error)
	// Requests that this process sent to storage since it started.
	Requests(ctx context.Context) (fleet.Requests, error)
}

// Snapshot is the newest `_stats`. Rows are shared: read only.
type Snapshot struct {
	Version     uint64
	CommittedAt int64 // unix ms; 0 unknown
	Rows        []fleet.Row
}

// Schedule is the state of the schedule of rounds.
type Schedule struct {
	Exists         bool
	Paused         bool
	IntervalSecs   int64
	SkippedOverlap int64
	MissedCatchup  int64
}

// SharedOptions bound what a scrape may cost.
type SharedOptions struct {
	MaxAge  time.Duration    // state younger than this is told again; 0 = 5 s
	Timeout time.Duration    // for reading it; 0 = 5 s
	Prices  fleet.PriceSheet // of the storage; the zero sheet costs nothing
	Now     func() time.Time // nil = the clock
	Log     *slog.Logger     // nil = the default one
}

// RegisterShared adds the gauges about the fleet. What can't be read is left out:
// never a zero for something unknown.
func (m *Metrics) RegisterShared(s Shared, o SharedOptions) error {
	if o.MaxAge <= 0 {
		o.MaxAge = 5 * time.Second
	}
	if o.Timeout <= 0 {
		o.Timeout = 5 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return m.Registry.Register(&sharedCollector{shared: s, options: o})
}

// sharedCollector reads shared state when it is scraped.
type sharedCollector struct {
	shared  Shared
	options SharedOptions

	mu   sync.Mutex
	at   time.Time
	told []prometheus.Metric

	version     uint64 // of which totals is the sum
	committedAt int64
	totals      *fleet.Totals
}

// Describe sends nothing: which gauges there are depends on what could be read.
func (c *sharedCollector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c *sharedCollector) Collect(out chan<- prometheus.Metric) {
	for _, metric := range c.current() {
		out <- metric
	}
}

func (c *sharedCollector) current() []prometheus.Metric {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.options.Now()
	if c.told != nil && now.Sub(c.at) < c.options.MaxAge {
		return c.told
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.options.Timeout)
	defer cancel()
	t := &telling{now: now.UnixMilli()}
	snapshot, read := c.tellSnapshot(ctx, t)
	c.tellMaintenance(ctx, t, snapshot, read)
	schedule := c.tellSchedule(ctx, t)
	c.tellRound(ctx, t, schedule)
	c.tellRequests(ctx, t)
	c.at, c.told = now, t.metrics
	return c.told
}

func (c *sharedCollector) tellSnapshot(ctx context.Context, t *telling) (Snapshot, bool) {
	snapshot, err := c.shared.Snapshot(ctx)
	if !c.readable(t, "stats", err) {
		return snapshot, false
	}
	if c.totals == nil || c.version != snapshot.Version || c.committedAt != snapshot.CommittedAt {
		totals := fleet.Total(snapshot.Rows, t.now)
		c.totals, c.version, c.committedAt = &totals, snapshot.Version, snapshot.CommittedAt
	}
	totals := c.totals
	t.gauge(experiments, float64(totals.Experiments))
	t.gauge(rolloutRows, float64(totals.Rows))
	t.gauge(rolloutFragments, float64(totals.Fragments))
	t.gauge(pendingMax, float64(totals.PendingMax))
	t.gauge(pendingOver1k, float64(totals.PendingOver1k))
	t.gauge(pendingOverCap, float64(totals.PendingOverReadCap))
	t.gauge(failing, float64(totals.Failing))
	t.gauge(missing, float64(totals.Missing))
	t.gauge(statsVersion, float64(snapshot.Version))
	if snapshot.CommittedAt > 0 {
		t.gauge(snapshotAge, t.secondsSince(snapshot.CommittedAt))
	}
	return snapshot, true
}

func (c *sharedCollector) tellSchedule(ctx context.Context, t *telling) Schedule {
	schedule, err := c.shared.Schedule(ctx)
	if !c.readable(t, "schedule", err) {
		return Schedule{}
	}
	t.gauge(scheduleExists, number(schedule.Exists))
	if schedule.Exists {
		t.gauge(schedulePaused, number(schedule.Paused))
		t.gauge(scheduleInterval, float64(schedule.IntervalSecs))
		t.counter(scheduleSkipped, float64(schedule.SkippedOverlap))
		t.counter(scheduleMissed, float64(schedule.MissedCatchup))
	}
	return schedule
}

func (c *sharedCollector) tellRound(ctx context.Context, t *telling, schedule Schedule) {
	r, err := c.shared.LastRound(ctx)
	if !c.readable(t, "rounds", err) || r == nil {
		return
	}
	t.gauge(roundAge, t.secondsSince(r.FinishedAt))
	t.gauge(roundDuration, r.DurationSeconds)
	t.gauge(scanSkipped, float64(r.Skipped))
	t.gauge(scanObserved, float64(r.Observed))
	t.gauge(scanFailed, float64(r.Failed))
	t.gauge(scanBackingOff, float64(r.BackingOff))
	t.byOp(t.gauge, roundRequests, r.StorageRequests)
	if schedule.Exists {
		t.gauge(roundPrice, c.options.Prices.PricePerDay(r.StorageRequests, schedule.IntervalSecs))
	}
}

func (c *sharedCollector) tellRequests(ctx context.Context, t *telling) {
	requests, err := c.shared.Requests(ctx)
	if c.readable(t, "engine", err) {
		t.byOp(t.counter, storageRequests, requests)
	}
}

// readable tells whether one part of the state could be read.
func (c *sharedCollector) readable(t *telling, part string, err error) bool {
	t.gauge(sharedReadable, number(err == nil), part)
	if err != nil {
		c.options.Log.Warn("read shared state for metrics", "part", part, "error", err)
	}
	return err == nil
}

// telling is one reading of the shared state.
type telling struct {
	now     int64 // unix ms
	metrics []prometheus.Metric
}

func (t *telling) gauge(d *prometheus.Desc, v float64, labels ...string) {
	t.metrics = append(t.metrics, prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...))
}

func (t *telling) counter(d *prometheus.Desc, v float64, labels ...string) {
	t.metrics = append(t.metrics, prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...))
}

func (t *telling) byOp(add func(*prometheus.Desc, float64, ...string), d *prometheus.Desc, r fleet.Requests) {
	add(d, float64(r.List), "list")
	add(d, float64(r.Head), "head")
	add(d, float64(r.Get), "get")
	add(d, float64(r.Put), "put")
	add(d, float64(r.Delete), "delete")
}

func (t *telling) secondsSince(ms int64) float64 { return float64(max(t.now-ms, 0)) / 1000 }

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
