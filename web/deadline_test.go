package web

import (
	"context"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
	"lancefleet/lance"
)

func TestDeadlinesAreOfRoutesThatExist(t *testing.T) {
	b := guarded(t)
	for _, table := range []map[string]bool{polls, tagged} {
		for route := range table {
			require.Contains(t, b.access, route)
		}
	}
	for route, deadline := range deadlines {
		require.Contains(t, b.access, route)
		require.Less(t, deadline+lastWords, writeTimeout, "an answer must be able to leave")
	}
}

func TestDryRunsHaveTheirTime(t *testing.T) {
	b := guarded(t)
	dry := 0
	for route, p := range b.strict {
		if strings.Contains(route, "/:name/") && slices.Contains(p.names, "dry_run") {
			dry++
			require.Greater(t, deadlineOf(route), closeLookTimeout, route)
		}
	}
	require.Equal(t, 4, dry, "retire, optimize, seal, accept")
}

func soon(string) time.Duration { return 20 * time.Millisecond }

func TestWhatHangsIsAnsweredWithinItsTime(t *testing.T) {
	b := guarded(t)
	b.deadline = soon
	ended := make(chan struct{})
	b.store.evidence = func(string, bool) (fleet.Evidence, error) { <-ended; return fleet.Evidence{}, nil } // heeds no context
	b.store.preview = func(lance.PreviewSpec) (lance.Preview, error) { <-ended; return lance.Preview{}, nil }
	requireError(t, b.get("/api/v1/experiments/run-1/verify"), 503, "no answer in time: storage or Temporal hangs")
	requireError(t, b.get("/api/v1/experiments/run-1/plan"), 503, "no answer in time")
	require.Equal(t, 200, b.get("/api/v1/experiments/run-1").Code, "what is in memory goes on")
	close(ended)
	require.Eventually(t, func() bool { return len(b.observing) == 0 }, 10*time.Second, time.Millisecond, "the slots come back")
}

func TestAHandlersOwnWordsGoBeforeTheDeadlines(t *testing.T) {
	b := guarded(t)
	b.deadline = soon
	b.temporal.ended = make(chan struct{})
	requireError(t, b.get("/api/v1/rounds/a/b?wait_secs=60"), 503, "asking for round b of a")
}

func TestNoMoreWaitThanCouldBeServed(t *testing.T) {
	b := guarded(t)
	for range observersAtOnce {
		b.observing <- struct{}{}
	}
	b.waiting.Store(busiest)
	w := b.get("/api/v1/experiments/run-1/verify")
	requireError(t, w, 503, "too many looks at storage at once")
	require.Equal(t, "5", w.Header().Get("Retry-After"))
	require.EqualValues(t, busiest, b.waiting.Load())
}

func TestLooksAtStorageAreRationedAndListsAreNot(t *testing.T) {
	now := testNow
	b := guarded(t, withTokens, func(c *Config, p *parts) {
		c.StorageReads = 6
		p.now = func() time.Time { return now }
	})
	looks := []string{"/api/v1/experiments/run-1?fresh=true", "/api/v1/experiments/run-1/verify", "/api/v1/experiments/run-1/plan"}
	b.store.observe = func(fleet.Experiment) (fleet.Observation, error) { return fleet.Observation{}, unreadable() }
	for _, path := range looks {
		require.NotEqual(t, 429, b.do("GET", path, "", bearer(lookSecret)...).Code, path)
	}
	for _, path := range looks {
		w := b.do("GET", path, "", bearer(lookSecret)...)
		requireError(t, w, 429, "too many looks at storage: try again in 10 s")
		require.Equal(t, "10", w.Header().Get("Retry-After"), path)
	}
	page := b.do("GET", "/experiments/run-1?fresh=true", "", append(bearer(lookSecret), "Accept", "text/html")...)
	require.Equal(t, 429, page.Code)
	require.Contains(t, page.Body.String(), "try again in 10 s")
	require.NotEqual(t, 429, b.do("GET", looks[1], "", bearer(opsSecret)...).Code, "somebody else is not kept")
	for range 200 {
		require.Equal(t, 200, b.do("GET", "/api/v1/experiments?limit=1", "", bearer(lookSecret)...).Code)
	}
	require.Equal(t, 200, b.do("GET", "/api/v1/experiments/run-1", "", bearer(lookSecret)...).Code)
	now = now.Add(10 * time.Second)
	require.NotEqual(t, 429, b.do("GET", looks[1], "", bearer(lookSecret)...).Code)
	free := guarded(t, func(c *Config, _ *parts) { c.StorageReads = 0 })
	for range 300 {
		require.Equal(t, 200, free.get(looks[1]).Code)
	}
}

func TestLooksForUnknownNamesAreRationedToo(t *testing.T) {
	b := guarded(t, withTokens, func(c *Config, _ *parts) { c.StorageReads = 6 })
	for range 3 {
		require.Equal(t, 404, b.do("GET", "/api/v1/experiments/nobody", "", bearer(lookSecret)...).Code)
	}
	requireError(t, b.do("GET", "/api/v1/experiments/nobody", "", bearer(lookSecret)...), 429, "too many looks at storage")
	require.Equal(t, 200, b.do("GET", "/api/v1/experiments/run-1", "", bearer(lookSecret)...).Code, "a row takes no look")
}

func TestManyClientsAreRemembered(t *testing.T) {
	now := testNow
	l := newLimits(allowance{atOnce: 1, aMinute: 60}, func() time.Time { return now })
	for i := range clientsKept {
		_, ok := l.take(string(rune(i)) + "x")
		require.True(t, ok)
	}
	_, ok := l.take("new")
	require.True(t, ok)
	_, ok = l.take("newer")
	require.False(t, ok, "those that don't fit share one allowance")
	now = now.Add(time.Second)
	_, ok = l.take("newest")
	require.True(t, ok)
	require.Len(t, l.by, 1, "those that did nothing lately were forgotten")
}

func TestAnswersThatDidNotChangeAreNotSentTwice(t *testing.T) {
	b := guarded(t)
	for _, path := range []string{"/api/v1/experiments", "/api/v1/experiments/run-1", "/api/v1/plan", "/export.csv", "/export.json"} {
		first := b.get(path)
		tag := first.Header().Get("Etag")
		require.Regexp(t, `^W/"1-`, tag, path)
		for _, header := range []string{tag, strings.TrimPrefix(tag, "W/"), `"x", ` + tag} {
			again := b.do("GET", path, "", "If-None-Match", header)
			require.Equal(t, 304, again.Code, path)
			require.Equal(t, tag, again.Header().Get("Etag"))
			require.Empty(t, again.Body.String())
		}
		require.Equal(t, 200, b.do("GET", path, "", "If-None-Match", `W/"1-0"`).Code)
	}
	require.Equal(t, 422, b.do("GET", "/api/v1/plan?limit=much", "", "If-None-Match", "*").Code, "a bad request is told as one")
	plan, one := b.get("/api/v1/plan").Header().Get("Etag"), b.get("/api/v1/experiments/run-1").Header().Get("Etag")
	require.Equal(t, 200, b.do("GET", "/api/v1/experiments/rollout:run-1", "", "If-None-Match", one).Code, "the tag of another address")
	b.temporal.setPaused(true, "ada", "why")
	b.renew(t)
	require.Equal(t, 200, b.do("GET", "/api/v1/plan", "", "If-None-Match", plan).Code, "a pause changes the plan")
	b.store.set(func(f *fakeStore) { f.snapshot.Version = 2 })
	b.renew(t)
	require.Equal(t, 200, b.do("GET", "/api/v1/experiments/run-1", "", "If-None-Match", one).Code)
}

func TestWhatIsLookedAtForTheAnswerHasNoTag(t *testing.T) {
	b := guarded(t)
	b.store.observe = func(fleet.Experiment) (fleet.Observation, error) { return fleet.Observation{}, nil }
	b.store.named = []fleet.Experiment{experiment(fleet.Table, "cold")}
	for _, path := range []string{"/api/v1/experiments/run-1?fresh=true", "/api/v1/experiments/cold"} {
		w := b.do("GET", path, "", "If-None-Match", "*")
		require.Equal(t, 200, w.Code, w.Body.String())
		require.Empty(t, w.Header().Get("Etag"))
	}
	require.Empty(t, b.get("/api/v1/experiments/none").Header().Get("Etag"), "an error has none")
}

// verifying is an inspector whose verifications are those of a test.
type verifying struct {
	inspector
	verify func(context.Context) error
}

func (v verifying) Verify(ctx context.Context, _ string, _ lance.VerifyOptions) (fleet.Evidence, error) {
	return fleet.Evidence{}, v.verify(ctx)
}

func TestStoppingFinishesWhatWasBegunAndCutsWhatHangs(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan struct{})
	b := guarded(t, func(_ *Config, p *parts) {
		p.inspect = verifying{p.inspect, func(ctx context.Context) error { close(begun); <-ended; return ctx.Err() }}
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	served, status := make(chan error, 1), make(chan int, 1)
	b.lookNoMore()
	go func() { served <- b.Serve(ctx, l) }()
	go func() {
		answer, err := http.Get("http://" + l.Addr().String() + "/api/v1/experiments/run-1/verify")
		if err != nil {
			status <- 0
			return
		}
		_ = answer.Body.Close() // its status is what counts
		status <- answer.StatusCode
	}()
	<-begun
	cancel()
	require.Eventually(t, func() bool { return b.stopping.Err() != nil }, 10*time.Second, time.Millisecond)
	close(ended)
	require.Equal(t, 200, <-status, "it was begun before the stop")
	require.NoError(t, <-served)
}
