package web

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/store"
)

func coldStore(n int) *fakeStore {
	f := &fakeStore{snapshot: Snapshot{Version: 1, CommittedAt: minutesAgo(1), Rows: []fleet.Row{
		healthy(fleet.Rollout, "run-hot", minutesAgo(3)), healthy(fleet.Rollout, "other", minutesAgo(3)),
	}}, observe: observes}
	f.named = append(f.named, f.snapshot.Rows[0].Experiment)
	for i := range n {
		f.named = append(f.named, experiment(fleet.Generic, fmt.Sprintf("run-cold-%05d", i)))
	}
	return f
}

func TestASearchFindsWhatOnlyASourceNames(t *testing.T) {
	b := newBench(t, coldStore(3))
	list := decode[ExperimentList](t, b.get("/api/v1/experiments?search=RUN-"), 200)
	require.Equal(t, 4, list.Total, "the row is not counted twice")
	require.EqualValues(t, 4, list.Totals.Experiments)
	require.Equal(t, "rollout:run-hot", list.Experiments[0].ID, "unknown values come last")
	require.True(t, list.Experiments[0].Stored)
	cold := list.Experiments[1]
	require.Equal(t, "generic:run-cold-00000", cold.ID)
	require.False(t, cold.Stored)
	require.EqualValues(t, 1200, *cold.RowCount, "it was looked at")
	require.EqualValues(t, 41, *cold.Version)
	require.False(t, list.Partial)
	require.NotNil(t, list.NamesAsOf)
	require.Empty(t, b.temporal.said(), "nothing was started, so nothing was stored")

	again := decode[ExperimentList](t, b.get("/api/v1/experiments"), 200)
	require.Equal(t, 2, again.Total, "a list without a search has the rows")
	require.Len(t, b.store.observed, 3)
	b.get("/?q=run-")
	require.Len(t, b.store.observed, 3, "a page that refreshes itself does not look again")
}

func TestPagesOfASearchHaveNoRepeatsAndOnlyTheirOwnColdOnesAreLookedAt(t *testing.T) {
	b := newBench(t, coldStore(95))
	seen := map[string]bool{}
	for offset := 0; offset < 110; offset += 10 {
		list := decode[ExperimentList](t, b.get(fmt.Sprintf("/api/v1/experiments?search=run-&limit=10&offset=%d", offset)), 200)
		require.Equal(t, 96, list.Total)
		for _, e := range list.Experiments {
			require.False(t, seen[e.ID], e.ID)
			seen[e.ID] = true
		}
		if offset == 0 {
			require.Len(t, b.store.observed, 9)
		}
	}
	require.Len(t, seen, 96)
}

func TestTheSourcesAreNotListedForEachKeystroke(t *testing.T) {
	store := coldStore(3)
	var later atomic.Int64
	b := newBench(t, store, func(_ *Config, p *parts) {
		p.now = func() time.Time { return testNow.Add(time.Duration(later.Load())) }
	})
	_, stop := newRunning(t, b)
	defer stop()
	listed := func() int {
		store.mu.Lock()
		defer store.mu.Unlock()
		return store.listed
	}
	require.Eventually(t, func() bool { return listed() == 2 }, 10*time.Second, time.Millisecond, "at the start")
	for i := range 50 {
		require.Equal(t, 200, b.get(fmt.Sprintf("/api/v1/experiments?search=run%d", i)).Code)
	}
	require.Equal(t, 2, listed())

	later.Store(int64(time.Minute))
	store.set(func(f *fakeStore) { f.named = append(f.named, experiment(fleet.Table, "run-brand-new")) })
	require.Equal(t, 200, b.get("/api/v1/experiments").Code)
	require.Equal(t, 2, listed(), "nor for a list")
	list := decode[ExperimentList](t, b.get("/api/v1/experiments?search=brand-new"), 200)
	require.Equal(t, 3, listed(), "an old listing is renewed by the search that finds it old")
	require.Equal(t, 1, list.Total)
}

func TestASourceThatCannotBeReadIsSaid(t *testing.T) {
	s := coldStore(2)
	s.unread = []store.Unread{{From: "s3://b/_registry.generic.lance", Err: unreadable(), Kept: true}}
	b := newBench(t, s)
	list := decode[ExperimentList](t, b.get("/api/v1/experiments?search=run"), 200)
	require.True(t, list.Partial)
	require.Contains(t, list.PartialWhy[0], "connection refused")
	require.Contains(t, list.PartialWhy[0], "what it named before is searched")
	require.Contains(t, b.get("/?q=run").Body.String(), "Partial.")
	require.False(t, decode[ExperimentList](t, b.get("/api/v1/experiments"), 200).Partial, "a list of rows is whole without it")

	s = coldStore(2)
	s.lookErr = errors.New("the bucket is on fire")
	list = decode[ExperimentList](t, newBench(t, s).get("/api/v1/experiments?search=run"), 200)
	require.True(t, list.Partial)
	require.Contains(t, list.PartialWhy[0], "on fire")
	require.Equal(t, 1, list.Total, "what has a row is found")
}

func TestColdOnesThatDoNotAnswerAreShownAsTheyAre(t *testing.T) {
	s := coldStore(3)
	s.observe = func(e fleet.Experiment) (fleet.Observation, error) {
		if e.Name == "run-cold-00001" {
			return fleet.Observation{}, &lance.Error{Class: lance.Unreachable, Op: "observe", URI: e.URI, Message: "no route to host"}
		}
		return observes(e)
	}
	b := newBench(t, s)
	list := decode[ExperimentList](t, b.get("/api/v1/experiments?search=run-cold&sort=name"), 200)
	require.Nil(t, list.Experiments[1].RowCount, "unknown, not 0")
	require.Equal(t, "unreachable", list.Experiments[1].ErrorClass)
	require.Contains(t, list.Experiments[1].Error, "no route to host")
	require.NotNil(t, list.Experiments[2].RowCount)
	require.Contains(t, b.get("/?q=run-cold").Body.String(), ">unreachable</span>")
}

// hanging never answers before it is told to stop.
type hanging struct{ asked chan fleet.ID }

func (h hanging) Observe(ctx context.Context, exp fleet.Experiment, _ *fleet.Row) (fleet.Observation, error) {
	h.asked <- exp.ID
	<-ctx.Done()
	return fleet.Observation{}, ctx.Err()
}

func TestAStoreThatHangsHoldsASearchNoLongerThanItsTime(t *testing.T) {
	h := hanging{make(chan fleet.ID, 1000)}
	b := newBench(t, coldStore(60), func(_ *Config, p *parts) { p.observer = h })
	began := time.Now()
	list := decode[ExperimentList](t, b.get("/api/v1/experiments?search=run-cold&limit=60"), 200)
	require.Less(t, time.Since(began), 20*coldPage, "the machine may be busy")
	require.Len(t, list.Experiments, 60)
	require.True(t, list.Partial)
	require.Contains(t, list.PartialWhy[0], "were not looked at")
	require.LessOrEqual(t, len(h.asked), 2*coldAtOnce, "no more at once than the server allows")
	timedOut := 0
	for _, e := range list.Experiments {
		require.Nil(t, e.RowCount)
		if e.ErrorClass == coldTimeout {
			timedOut++
		}
	}
	require.LessOrEqual(t, timedOut, coldAtOnce)
}

func TestLooksThatAreRememberedAreBounded(t *testing.T) {
	c := newColdLooks(nil, func() time.Time { return testNow })
	for i := range 3 * coldKept {
		c.remember(experiment(fleet.Table, strconv.Itoa(i)), coldLook{at: testNow})
	}
	require.LessOrEqual(t, len(c.kept), coldKept)
}

func TestHostileWordsAreOrdinaryInASearch(t *testing.T) {
	b := newBench(t, coldStore(2))
	for _, word := range []string{"%", "_", "'", `"`, "../", "<script>alert(1)</script>", "\x00", "ü", "a\nb", `\`, "=1+1", "{{.}}"} {
		require.Equal(t, 200, b.get("/api/v1/experiments?search="+url.QueryEscape(word)).Code, word)
		require.Equal(t, 200, b.get("/?search="+url.QueryEscape(word)).Code, word)
		require.Equal(t, 200, b.get("/export.csv?search="+url.QueryEscape(word)).Code, word)
	}
}

// hangingObserver tells of looks that began, and ends them when it is told to.
type hangingObserver struct {
	observer
	began chan struct{}
	goOn  chan struct{}
}

func (h hangingObserver) Observe(ctx context.Context, exp fleet.Experiment, row *fleet.Row) (fleet.Observation, error) {
	h.began <- struct{}{}
	<-h.goOn
	return h.observer.Observe(ctx, exp, row)
}

func TestManyWhoOpenOneWithoutARowShareALook(t *testing.T) {
	const many = 4 * (observersAtOnce + busiest) // more than may look or wait
	h := hangingObserver{began: make(chan struct{}, many), goOn: make(chan struct{})}
	var asked atomic.Int64
	b := newBench(t, coldStore(1), func(c *Config, p *parts) {
		h.observer, c.StorageReads = p.observer, 1_000_000
		p.observer = h
		p.now = func() time.Time { asked.Add(1); return testNow } // for the ration, right before the look
	})
	left, leave := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() { _, err := b.experiment(left, "generic:run-cold-00000", false); first <- err }()
	<-h.began
	answers := make(chan error, many)
	before := asked.Load()
	for range many {
		go func() { _, err := b.experiment(t.Context(), "generic:run-cold-00000", false); answers <- err }()
	}
	leave()
	require.ErrorIs(t, <-first, context.Canceled, "it ends for who leaves, and for nobody else")
	require.Eventually(t, func() bool { return asked.Load() >= before+many }, 10*time.Second, time.Millisecond)
	close(h.goOn)
	for range many {
		require.NoError(t, <-answers)
	}
	require.Less(t, len(h.began), many/4, "who came after the end of a look began another")
}

// hangingNames does likewise for readings of the sources.
type hangingNames struct {
	names
	began chan struct{}
	goOn  chan struct{}
}

func (h hangingNames) Names(ctx context.Context) (store.Named, error) {
	h.began <- struct{}{}
	<-h.goOn
	return h.names.Names(ctx)
}

func TestASlowReadingOfTheSourcesIsNotFollowedByAnotherAtOnce(t *testing.T) {
	var later atomic.Int64
	h := hangingNames{began: make(chan struct{}, 10), goOn: make(chan struct{}, 10)}
	h.goOn <- struct{}{} // the bench's own
	b := newBench(t, coldStore(3), func(_ *Config, p *parts) {
		h.names = p.names
		p.names = h
		p.now = func() time.Time { return testNow.Add(time.Duration(later.Load())) }
	})
	<-h.began
	_, stop := newRunning(t, b)
	defer stop()
	<-h.began // it is being read
	later.Store(int64(time.Minute))
	for range 3 { // each finds the names old, and waits a little
		require.Equal(t, 200, b.get("/api/v1/experiments?search=run").Code)
	}
	ended := b.feed.moment().named
	h.goOn <- struct{}{}
	require.Eventually(t, func() bool { return b.feed.moment().named != ended && !b.feed.naming.Load() }, 10*time.Second, time.Millisecond)
	require.Equal(t, 200, b.get("/api/v1/experiments?search=run").Code)
	require.Empty(t, h.began, "it took a minute: it is good for another")

	later.Store(int64(2*time.Minute + time.Second))
	h.goOn <- struct{}{}
	require.Equal(t, 200, b.get("/api/v1/experiments?search=run").Code)
	<-h.began
}
