package web

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
)

func TestAnAgeingAnswerIsRenewedBehindTheBackOfWhoAsks(t *testing.T) {
	var r renewed[string, int]
	begun, goOn := make(chan struct{}), make(chan struct{})
	slow := func() int { close(begun); <-goOn; return 2 }
	never := func() int { t.Error("it is worked out once"); return 0 }

	require.Equal(t, 1, r.ask("a", 1000, 10, func() int { return 1 }))
	require.Equal(t, 1, r.ask("a", 1009, 10, never))
	require.Equal(t, 1, r.ask("a", 1010, 10, slow), "nobody waits")
	<-begun
	require.Equal(t, 1, r.ask("a", 1029, 10, never), "not while it is being worked out")
	close(goOn)
	require.Eventually(t, func() bool { return r.ask("a", 1011, 10, never) == 2 }, 10*time.Second, time.Millisecond)
}

func TestWhatIsTooOldOrOfSomethingElseIsWaitedFor(t *testing.T) {
	var r renewed[string, int]
	require.Equal(t, 1, r.ask("a", 1000, 10, func() int { return 1 }))
	require.Equal(t, 2, r.ask("b", 1001, 10, func() int { return 2 }), "made from something else")
	require.Equal(t, 3, r.ask("b", 1031, 10, func() int { return 3 }), "nobody asked for a while")
	require.Equal(t, 3, r.ask("b", 1022, 10, func() int { return 4 }), "somebody who looked at the clock before that")
	require.Equal(t, 4, r.ask("b", 1021, 10, func() int { return 4 }), "the clock was set back")
}

func TestARenewalForSomethingThatIsOverChangesNothing(t *testing.T) {
	var r renewed[string, int]
	begun, goOn := make(chan struct{}), make(chan struct{})
	r.ask("a", 1000, 10, func() int { return 1 })
	r.ask("a", 1010, 10, func() int { close(begun); <-goOn; return 2 })
	<-begun
	require.Equal(t, 7, r.ask("b", 1011, 10, func() int { return 7 }))
	close(goOn)
	require.Eventually(t, func() bool { r.mu.Lock(); defer r.mu.Unlock(); return !r.making }, 10*time.Second, time.Millisecond)
	require.Equal(t, 7, r.ask("b", 1012, 10, func() int { return 0 }))
}

func TestAPanicBehindTheBackHurtsNobody(t *testing.T) {
	var r renewed[string, int]
	var tries atomic.Int32
	r.ask("a", 1000, 10, func() int { return 1 })
	require.Equal(t, 1, r.ask("a", 1010, 10, func() int { tries.Add(1); panic("no") })) //nolint:forbidigo // what must hurt nobody
	require.Eventually(t, func() bool { r.mu.Lock(); defer r.mu.Unlock(); return !r.making }, 10*time.Second, time.Millisecond)
	require.EqualValues(t, 1, tries.Load())
	require.Panics(t, func() { r.ask("a", 1030, 10, func() int { panic("no") }) }, "the request that waits for it tells") //nolint:forbidigo // likewise
	require.Equal(t, 2, r.ask("a", 1030, 10, func() int { return 2 }), "and holds nobody up")
}

// panickingJournal has entries that can't be worked with.
type panickingJournal struct{ journal }

func (panickingJournal) All(context.Context) ([]fleet.Action, error) { panic("no") } //nolint:forbidigo // likewise

func TestAViewIsShownAlthoughWhatIsPreparedForItBreaksOff(t *testing.T) {
	b := newBench(t, demoStore(10), func(_ *Config, p *parts) { p.journal = panickingJournal{p.journal} })
	require.NotNil(t, b.feed.moment().view)
	require.Equal(t, 200, b.get("/api/v1/experiments").Code)
	require.Equal(t, 500, b.get("/operations").Code, "the request tells")
	require.Equal(t, 200, b.get("/api/v1/plan").Code, "and holds nobody up")
	b.warm(t.Context(), b.feed.moment()) // nobody catches a panic there
}
