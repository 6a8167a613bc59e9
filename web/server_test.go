package web

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
)

// newRunning renews the bench's data in the background, as Serve does.
func newRunning(t testing.TB, b *bench) (context.Context, func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	b.lookNoMore()
	done.Go(func() { b.Run(ctx) })
	return ctx, func() { cancel(); done.Wait() }
}

func TestANewVersionIsShownWithoutAnybodyAsking(t *testing.T) {
	b := newBench(t, demoStore(10), func(c *Config, _ *parts) { c.RefreshEvery = 100 * time.Millisecond })
	ctx, stop := newRunning(t, b)
	defer stop()
	b.store.set(func(f *fakeStore) {
		f.snapshot = Snapshot{Version: 900, Rows: []fleet.Row{healthy(fleet.Rollout, "one", minutesAgo(1))}}
	})
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	m := b.feed.await(ctx, b.feed.reload, func(m moment) bool { return m.view.Version == 900 })
	require.Len(t, m.view.Rows, 1)
}

func TestWhatAFinishedRoundCommittedIsShownOnceItIsTold(t *testing.T) {
	b := newBench(t, demoStore(10), func(c *Config, _ *parts) { c.RefreshEvery = time.Hour })
	b.feed.update(func(m *moment) { m.view = nil })
	_, stop := newRunning(t, b)
	defer stop()
	require.Eventually(t, func() bool { return b.feed.moment().view != nil }, 10*time.Second, time.Millisecond, "the first look comes by itself")
	version := uint64(900)
	b.store.set(func(f *fakeStore) {
		f.snapshot = Snapshot{Version: version, Rows: []fleet.Row{healthy(fleet.Rollout, "one", minutesAgo(1))}}
	})
	b.temporal.record = &fleet.RoundRecord{RoundID: "run-1", CommittedVersion: &version}
	require.Equal(t, 200, b.get("/api/v1/rounds/lancefleet-scan-now/run-1?wait_secs=30").Code)
	require.EqualValues(t, 900, b.feed.moment().view.Version)

	// A round that stored nothing new may end right after one that did.
	b.store.set(func(f *fakeStore) { f.snapshot.Version = 901 })
	b.temporal.record = &fleet.RoundRecord{RoundID: "run-2"}
	require.Equal(t, 200, b.get("/api/v1/rounds/lancefleet-scan-now/run-2?wait_secs=30").Code)
	require.EqualValues(t, 901, b.feed.moment().view.Version)
	b.store.set(func(f *fakeStore) { f.snapshot.Version = 902 })
	b.AwaitShown(t.Context())
	require.EqualValues(t, 902, b.feed.moment().view.Version)

	b.store.set(func(f *fakeStore) { f.rounds = append(f.rounds, *b.temporal.record) })
	b.AwaitShown(t.Context())
	b.AwaitShown(t.Context())
	looks := b.feed.moment().look
	for range 9 {
		require.Equal(t, 200, b.get("/api/v1/rounds/lancefleet-scan-now/run-2").Code)
	}
	require.Equal(t, looks, b.feed.moment().look, "what is shown is not looked for again")

	b.store.set(func(f *fakeStore) { f.err = unreadable() })
	version = 903
	require.Equal(t, 200, b.get("/api/v1/rounds/lancefleet-scan-now/run-3?wait_secs=30").Code, "storage that does not answer holds up nothing")
}

func TestServeEndsLongPollsWhenItsContextEnds(t *testing.T) {
	b := newBench(t, demoStore(10))
	b.temporal.ended = make(chan struct{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	b.lookNoMore()
	go func() { served <- b.Serve(ctx, l) }()
	polled := make(chan error, 1)
	go func() {
		answer, err := http.Get("http://" + l.Addr().String() + "/api/v1/rounds/lancefleet-scan-now/run-1?wait_secs=60")
		if err == nil {
			err = answer.Body.Close()
		}
		polled <- err
	}()
	require.Eventually(t, func() bool { return len(b.temporal.said()) == 1 }, 10*time.Second, 5*time.Millisecond)
	start := time.Now()
	cancel()
	require.NoError(t, <-served)
	<-polled
	require.Less(t, time.Since(start), 9*time.Second, "it did not wait for the poll's own end")
}

func TestHeadIsAnsweredAsGetWithoutABody(t *testing.T) {
	b := newBench(t, demoStore(10))
	served := httptest.NewServer(b.Handler())
	defer served.Close()
	for _, path := range []string{"/", "/api/v1/experiments", "/healthz"} {
		answer, err := http.Head(served.URL + path)
		require.NoError(t, err)
		require.Equal(t, 200, answer.StatusCode, path)
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Empty(t, body)
	}
}

// TestServingAtFiftyThousandRows measures what a person waits for. A busy machine
// makes the clock useless, so the bound is on the processor's time, and loose for
// the race detector; LANCEFLEET_TIMING=strict asks for the promise itself.
func TestServingAtFiftyThousandRows(t *testing.T) {
	b := newBench(t, demoStore(50_000))
	var clock, processor []time.Duration
	for i, col := range columns {
		if col.title == "" {
			continue
		}
		for _, rest := range []string{"&order=asc", "&order=desc&search=gsm8k", fmt.Sprintf("&offset=%d", 977*i)} {
			start, spent := time.Now(), processorTime(t)
			require.Equal(t, 200, b.get("/api/v1/experiments?limit=50&sort="+col.name+rest).Code)
			clock, processor = append(clock, time.Since(start)), append(processor, processorTime(t)-spent)
		}
	}
	t.Logf("at 50,000 rows, of %d requests: p50 %s, p99 %s; processor p50 %s, p99 %s", len(clock),
		percentile(clock, 50), percentile(clock, 99), percentile(processor, 50), percentile(processor, 99))
	require.Less(t, percentile(processor, 99), 600*time.Millisecond)
	if os.Getenv("LANCEFLEET_TIMING") == "strict" {
		require.Less(t, percentile(clock, 99), 50*time.Millisecond)
	}
}

// processorTime is what this process has spent so far.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkListAtFiftyThousandRows(b *testing.B) {
	bench := newBench(b, demoStore(50_000))
	for _, target := range []string{"/api/v1/experiments", "/api/v1/experiments?search=gsm8k&sort=pending", "/", "/?search=gsm8k"} {
		b.Run(target, func(b *testing.B) {
			for b.Loop() {
				bench.get(target)
			}
		})
	}
}
