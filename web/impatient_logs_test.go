package web

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
)

// hangingLogs never answer while they hang.
type hangingLogs struct {
	journal
	samples
	rounds
	hang *bool
}

func (h hangingLogs) wait(ctx context.Context) error {
	if !*h.hang {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

type (
	hangingActions struct{ hangingLogs }
	hangingSamples struct{ hangingLogs }
	hangingRounds  struct{ hangingLogs }
)

func (h hangingActions) All(ctx context.Context) ([]fleet.Action, error) {
	if err := h.wait(ctx); err != nil {
		return nil, err
	}
	return h.journal.All(ctx)
}

func (h hangingActions) Of(ctx context.Context, id fleet.ID, n int) ([]fleet.Action, error) {
	if err := h.wait(ctx); err != nil {
		return nil, err
	}
	return h.journal.Of(ctx, id, n)
}

func (h hangingActions) Latest(ctx context.Context, n int) ([]fleet.Action, error) {
	return h.journal.Latest(ctx, n)
}

func (h hangingActions) History(ctx context.Context) (map[fleet.ID]fleet.History, error) {
	return h.journal.History(ctx)
}

func (h hangingSamples) All(ctx context.Context) ([]fleet.Sample, error) {
	if err := h.wait(ctx); err != nil {
		return nil, err
	}
	return h.samples.All(ctx)
}

func (h hangingSamples) Of(ctx context.Context, id fleet.ID, n int) ([]fleet.Sample, error) {
	if err := h.wait(ctx); err != nil {
		return nil, err
	}
	return h.samples.Of(ctx, id, n)
}

func (h hangingRounds) Latest(ctx context.Context, n int) ([]fleet.RoundRecord, error) {
	if err := h.wait(ctx); err != nil {
		return nil, err
	}
	return h.rounds.Latest(ctx, n)
}

func TestPagesDoNotWaitForStorageThatIsKnownToHang(t *testing.T) {
	hang := false
	b := newBench(t, oneRow(120), func(_ *Config, p *parts) {
		logs := hangingLogs{p.journal, p.samples, p.rounds, &hang}
		p.journal, p.samples, p.rounds = hangingActions{logs}, hangingSamples{logs}, hangingRounds{logs}
	})
	require.NotContains(t, b.get("/operations").Body.String(), "Not all charts")
	hang = true
	b.feed.update(func(m *moment) { m.storageProblem = "it hangs" })
	for page, says := range map[string]string{
		"/operations":                "Not all charts",
		"/api/v1/operations":         "reading the journal",
		"/experiments/rollout:run-1": "could not be read",
	} {
		began := time.Now()
		answer := b.get(page)
		require.Equal(t, 200, answer.Code, page)
		require.Contains(t, answer.Body.String(), says, page)
		require.Less(t, time.Since(began), 10*whileGone, page) // it reads one after the other
	}
}

func TestStorageIsTakenForGoneWhenALookAtItTakesLong(t *testing.T) {
	b := newBench(t, oneRow(120))
	now := b.now().UnixMilli()
	for since, gone := range map[int64]bool{0: false, now: false, now - slowLook.Milliseconds(): false, now - slowLook.Milliseconds() - 1: true} {
		b.feed.looking.Store(since)
		require.Equal(t, gone, b.feed.gone(), "%d ms", now-since)
		ctx, cancel := b.feed.soon(t.Context())
		_, bounded := ctx.Deadline()
		require.Equal(t, gone, bounded)
		cancel()
	}
	b.feed.looking.Store(0)
	b.feed.update(func(m *moment) { m.storageProblem = "refused" })
	require.True(t, b.feed.gone())
}
