package web

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"lancefleet/control"
	"lancefleet/fleet"
)

// hinter hands experiments that events named over to the workers.
type hinter interface {
	// Hint tells of some; when an earlier call is still under way it takes none of
	// them, and says so.
	Hint(ctx context.Context, ids []fleet.ID) (taken bool, err error)
}

// EventMetrics counts events; metrics.Metrics is one.
type EventMetrics interface {
	Events(outcome string, n int)
	EventsHandedOver(n int)
	EventsNotHandedOver()
	EventsWaiting(n int)
}

const (
	handOverSoon  = time.Second      // from an event about a retired experiment
	handOverLater = 10 * time.Second // from one about a hot one: only the next round needs it
	handOverAgain = 5 * time.Second  // after a failure
	lastHandOver  = 5 * time.Second  // when the server ends
)

// eventQueue gathers what events name until it is handed over. It holds each
// experiment once, however many events there are, and none that is not of the fleet:
// so it is never longer than the fleet. What is lost with the process rounds find.
type eventQueue struct {
	to      hinter // nil = nobody
	metrics EventMetrics
	log     *slog.Logger
	added   chan struct{} // something urgent, or the first of all

	mu      sync.Mutex
	waiting map[fleet.ID]bool // true: retired
	urgent  bool
}

func newEventQueue(to hinter, metrics EventMetrics, log *slog.Logger) *eventQueue {
	if metrics == nil {
		metrics = noEventMetrics{}
	}
	return &eventQueue{to: to, metrics: metrics, log: log, added: make(chan struct{}, 1), waiting: map[fleet.ID]bool{}}
}

// add keeps rows of a view until they are handed over.
func (q *eventQueue) add(v *view, rows map[int32]bool) {
	if len(rows) == 0 {
		return
	}
	q.mu.Lock()
	for row := range rows {
		retired := v.retired[row] != nil
		id := v.Rows[row].ID
		q.waiting[id] = q.waiting[id] || retired
		q.urgent = q.urgent || retired
	}
	q.metrics.EventsWaiting(len(q.waiting))
	q.mu.Unlock()
	poke(q.added)
}

// run hands over until the context ends, and then once more.
func (q *eventQueue) run(ctx context.Context) {
	if q.to == nil {
		return
	}
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-q.added:
			q.gather(ctx)
			q.handOverAll(ctx)
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastHandOver)
	defer cancel()
	for q.length() > 0 && q.handOver(last) == nil {
	}
}

// gather lets more events come: a while, but a short one once a retired experiment
// is among them.
func (q *eventQueue) gather(ctx context.Context) {
	later := time.NewTimer(handOverLater)
	defer later.Stop()
	for !q.isUrgent() {
		select {
		case <-ctx.Done():
			return
		case <-later.C:
			return
		case <-q.added:
		}
	}
	_ = sleep(ctx, handOverSoon)
}

func (q *eventQueue) handOverAll(ctx context.Context) {
	for q.length() > 0 && ctx.Err() == nil {
		if err := q.handOver(ctx); err != nil && ctx.Err() == nil {
			q.metrics.EventsNotHandedOver()
			q.log.WarnContext(ctx, "hand over what events named; it is tried again", "experiments", q.length(), "error", err)
			_ = sleep(ctx, handOverAgain)
		}
	}
}

// handOver tells of as many as one call takes, retired ones first.
func (q *eventQueue) handOver(ctx context.Context) error {
	batch := q.next()
	asked, cancel := context.WithTimeout(ctx, temporalTimeout)
	defer cancel()
	taken, err := q.to.Hint(asked, ids(batch))
	if err != nil {
		q.putBack(batch)
		return err
	}
	if !taken {
		q.putBack(batch)
		return sleep(ctx, handOverSoon)
	}
	q.metrics.EventsHandedOver(len(batch))
	q.metrics.EventsWaiting(q.length())
	return nil
}

type hinted struct {
	id      fleet.ID
	retired bool
}

func ids(batch []hinted) []fleet.ID {
	all := make([]fleet.ID, len(batch))
	for i, h := range batch {
		all[i] = h.id
	}
	return all
}

// next takes a batch out. An event that comes while it is under way counts again.
func (q *eventQueue) next() []hinted {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := make([]hinted, 0, len(q.waiting))
	for id, retired := range q.waiting {
		all = append(all, hinted{id, retired})
	}
	slices.SortFunc(all, func(a, b hinted) int {
		if a.retired != b.retired {
			if a.retired {
				return -1
			}
			return 1
		}
		return a.id.Compare(b.id)
	})
	batch := all[:min(len(all), control.MostHints)]
	q.urgent = len(all) > len(batch) && all[len(batch)].retired
	for _, h := range batch {
		delete(q.waiting, h.id)
	}
	return batch
}

func (q *eventQueue) putBack(batch []hinted) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, h := range batch {
		q.waiting[h.id] = q.waiting[h.id] || h.retired
		q.urgent = q.urgent || h.retired
	}
}

func (q *eventQueue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}

func (q *eventQueue) isUrgent() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.urgent
}

// sleep waits, or fails when the context ends first.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

type noEventMetrics struct{}

func (noEventMetrics) Events(string, int)   {}
func (noEventMetrics) EventsHandedOver(int) {}
func (noEventMetrics) EventsNotHandedOver() {}
func (noEventMetrics) EventsWaiting(int)    {}
