package web

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
)

func TestAnEntryThatIsOlderThanTheNewestIsNoticedToo(t *testing.T) {
	store := oneRow(120)
	store.actions = []fleet.Action{{ID: "b", At: minutesAgo(1), Kind: fleet.ActScan, Outcome: "done", RunID: "b"}}
	b := newBench(t, store)
	require.Equal(t, 1, decode[Operations](t, b.get("/api/v1/operations"), 200).Work.Total)
	b.store.set(func(f *fakeStore) { // it ended first and was written down last
		f.actions = append(slices.Clone(f.actions), fleet.Action{ID: "a", At: minutesAgo(2), Kind: fleet.ActPause, Outcome: "done", RunID: "a"})
	})
	require.Equal(t, 2, decode[Operations](t, b.get("/api/v1/operations"), 200).Work.Total)
}

// hangingJournal does not answer before the context ends, once it hangs.
type hangingJournal struct {
	journal
	hangs *bool
	asked chan struct{}
}

func (h hangingJournal) All(ctx context.Context) ([]fleet.Action, error) {
	if !*h.hangs {
		return h.journal.All(ctx)
	}
	h.asked <- struct{}{}
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestNobodyWaitsForAnothersReadingOfTheJournal(t *testing.T) {
	hangs, asked := false, make(chan struct{}, 2)
	b := newBench(t, oneRow(120), func(_ *Config, p *parts) { p.journal = hangingJournal{p.journal, &hangs, asked} })
	hangs = true
	patient, cancel := context.WithCancel(t.Context())
	first := make(chan error)
	go func() { _, err := b.journalled(patient); first <- err }()
	<-asked
	hurried, end := context.WithCancel(t.Context())
	end()
	_, err := b.journalled(hurried)
	require.ErrorIs(t, err, context.Canceled)
	cancel()
	require.ErrorIs(t, <-first, context.Canceled)
}

func TestTheBacklogIsSummedUpOnceAMinute(t *testing.T) {
	var b backlogs
	now := testNow.UnixMilli() - testNow.UnixMilli()%hourMS
	minute := backlogKept.Milliseconds()
	id := fleet.ID{Kind: fleet.Rollout, Name: "a"}
	samples := []fleet.Sample{{ID: id, At: now - 2*hourMS, Pending: 5}, {ID: id, At: now - 9*hourMS, Pending: 2}}
	from := now - 3*hourMS
	points := b.since(from, now, 7, samples, nil)
	require.Equal(t, []BacklogPoint{{At: from, Pending: 2}, {At: now - 2*hourMS, Pending: 5}}, points[len(points)-2:])

	later := b.since(from+30_000, now+30_000, 7, nil, nil)
	require.Equal(t, from+30_000, later[0].At, "nothing stands before the window")
	require.Len(t, later, len(points), "not made again")
	_ = append(later, BacklogPoint{At: now, Pending: 99})
	require.Equal(t, later, b.since(from+30_000, now+30_000, 7, nil, nil), "the caller's own")

	require.Empty(t, b.since(from, now, 30, nil, nil), "another window is another sum")
	more := []fleet.Action{{Target: id.String(), At: now - hourMS, After: fleet.Facts{Pending: 1}.Text()}}
	newest := func(points []BacklogPoint) int64 { return points[len(points)-1].Pending }
	require.EqualValues(t, 5, newest(b.since(from, now+minute, 7, samples, more)), "nobody waits for it")
	require.Eventually(t, func() bool { return newest(b.since(from, now+minute, 7, samples, more)) == 1 }, 10*time.Second, time.Millisecond)
}
