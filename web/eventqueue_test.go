package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/control"
	"lancefleet/fleet"
)

// fakeHinter remembers what it was told and when.
type fakeHinter struct {
	mu    sync.Mutex
	start time.Time
	told  [][]fleet.ID
	at    []time.Duration
	err   error
	busy  bool
}

func (h *fakeHinter) Hint(_ context.Context, ids []fleet.ID) (bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err != nil || h.busy {
		return false, h.err
	}
	h.told, h.at = append(h.told, ids), append(h.at, time.Since(h.start))
	return true, nil
}

func (h *fakeHinter) set(err error, busy bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err, h.busy = err, busy
}

// queueView is a view of n hot experiments and then n retired ones.
func queueView(n int) *view {
	v := &view{retired: make([]*fleet.LedgerEntry, 2*n)}
	for i := range 2 * n {
		row := fleet.UnknownRow(experiment(fleet.Rollout, fmt.Sprintf("e%05d", i)))
		v.Rows = append(v.Rows, &row)
		if i >= n {
			v.retired[i] = &fleet.LedgerEntry{}
		}
	}
	return v
}

func rowNumbers(numbers ...int32) map[int32]bool {
	rows := map[int32]bool{}
	for _, n := range numbers {
		rows[n] = true
	}
	return rows
}

// queueTest runs a queue on a clock that moves by itself.
func queueTest(t *testing.T, test func(t *testing.T, q *eventQueue, h *fakeHinter, m *counted, stop func())) {
	synctest.Test(t, func(t *testing.T) {
		h, m := &fakeHinter{start: time.Now()}, &counted{outcomes: map[string]int{}}
		q := newEventQueue(h, m, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { q.run(ctx) })
		stop := func() {
			cancel()
			running.Wait()
		}
		test(t, q, h, m, stop)
		stop()
	})
}

func TestARetiredOneIsToldOfWithinASecondAndAHotOneWaitsForMore(t *testing.T) {
	queueTest(t, func(t *testing.T, q *eventQueue, h *fakeHinter, m *counted, _ func()) {
		v := queueView(3)
		q.add(v, rowNumbers(0))
		h.pass(5 * time.Second)
		q.add(v, rowNumbers(1))
		require.Empty(t, h.told)
		h.pass(6 * time.Second)
		require.Len(t, h.told, 1, "ten seconds after the first")
		require.Len(t, h.told[0], 2)

		q.add(v, rowNumbers(3))
		q.add(v, rowNumbers(2))
		h.pass(1100 * time.Millisecond)
		require.Len(t, h.told, 2)
		require.Equal(t, []fleet.ID{v.Rows[3].ID, v.Rows[2].ID}, h.told[1], "the retired one first")
		require.Equal(t, 4, m.handed)
		require.Zero(t, m.last)
	})
}

func TestAHundredThousandEventsInASecondAreOneCall(t *testing.T) {
	queueTest(t, func(t *testing.T, q *eventQueue, h *fakeHinter, _ *counted, _ func()) {
		v := queueView(3)
		for range 100_000 {
			q.add(v, rowNumbers(3))
		}
		h.pass(time.Minute)
		require.Equal(t, [][]fleet.ID{{v.Rows[3].ID}}, h.told)
	})
}

func TestMoreThanOneCallTakesGoesInSeveral(t *testing.T) {
	queueTest(t, func(t *testing.T, q *eventQueue, h *fakeHinter, _ *counted, _ func()) {
		v := queueView(control.MostHints)
		all := map[int32]bool{}
		for i := range 2*control.MostHints - 1 {
			all[int32(i)] = true
		}
		q.add(v, all)
		h.pass(2 * time.Second)
		require.Len(t, h.told, 2)
		require.Len(t, h.told[0], control.MostHints)
		require.Len(t, h.told[1], control.MostHints-1)
	})
}

func TestWhatCouldNotBeToldIsToldLater(t *testing.T) {
	queueTest(t, func(t *testing.T, q *eventQueue, h *fakeHinter, m *counted, _ func()) {
		v := queueView(3)
		h.set(errors.New("temporal is away"), false)
		q.add(v, rowNumbers(3))
		h.pass(time.Minute)
		require.Empty(t, h.told)
		require.Greater(t, m.not, 5)
		h.set(nil, true) // an earlier one is still under way
		h.pass(time.Minute)
		require.Empty(t, h.told)
		h.set(nil, false)
		h.pass(10 * time.Second)
		require.Equal(t, [][]fleet.ID{{v.Rows[3].ID}}, h.told)
	})
}

func TestWhatWaitsIsHandedOverWhenTheServerEnds(t *testing.T) {
	queueTest(t, func(t *testing.T, q *eventQueue, h *fakeHinter, _ *counted, stop func()) {
		v := queueView(3)
		q.add(v, rowNumbers(0, 1))
		synctest.Wait()
		stop()
		require.Len(t, h.told, 1)
		require.Len(t, h.told[0], 2)
	})
}

func TestAServerEndsThoughNobodyTakesWhatWaits(t *testing.T) {
	queueTest(t, func(t *testing.T, q *eventQueue, h *fakeHinter, _ *counted, stop func()) {
		h.set(nil, true)
		q.add(queueView(3), rowNumbers(0))
		began := time.Now()
		stop()
		require.LessOrEqual(t, time.Since(began), 2*lastHandOver)
		require.Empty(t, h.told)
	})
}

// pass lets time go by in a synctest bubble, where it costs none, until all that it
// set going has come to rest.
func (h *fakeHinter) pass(d time.Duration) {
	h.mu.Lock()   // what the test has read is read before what comes
	h.mu.Unlock() //nolint:staticcheck // an empty section orders the two
	time.Sleep(d) //nolint:forbidigo // the bubble's clock, not the machine's
	synctest.Wait()
}
