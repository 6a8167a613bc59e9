package activities

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
	"lancefleet/workflows"
)

// named commits a round, by a process that has just started, whose sources named these.
func (w *fakeWorld) named(t *testing.T, round string, names ...string) {
	t.Helper()
	w.listing.Experiments = nil
	for _, name := range names {
		w.listing.Experiments = append(w.listing.Experiments, exp(name))
	}
	in := workflows.CommitInput{Round: w.round(), PageSize: 10}
	in.Round.ID = round
	_, err := do[workflows.CommitResult](t, w.scan().CommitRound, in)
	require.NoError(t, err)
}

func TestARetiredOneThatTwoRoundsMissIsGoneWhicheverWorkersCommitThem(t *testing.T) {
	w := newWorld("cold", "hot").seen().retire("cold", 2)
	later := func() int64 { w.now = w.now.Add(time.Minute); return w.now.UnixMilli() }

	missed := later()
	w.named(t, "1", "hot")
	require.True(t, w.entry("cold").Retired(), "missed once")
	require.Equal(t, missed, w.entry("cold").MissingSince)
	w.named(t, "1", "hot")
	w.named(t, "2", "hot")
	require.True(t, w.entry("cold").Retired(), "an attempt made again, and a round that began beside it, miss it once")

	later()
	w.named(t, "3", "cold", "hot")
	require.Zero(t, w.entry("cold").MissingSince, "named again")
	later()
	w.named(t, "4", "hot")
	require.True(t, w.entry("cold").Retired(), "the count begins anew")
	later()
	w.named(t, "5")
	last := w.entry("cold")
	require.Equal(t, fleet.LedgerGone, last.State, "it did not return")
	require.Equal(t, "5", last.RunID)
	entries := len(w.ledger)
	later()
	w.named(t, "6", "hot")
	require.Len(t, w.ledger, entries, "once is enough")
}

func TestAnEntryWithoutEvidenceThatNoSourceNamesStopsNoRound(t *testing.T) {
	for _, lose := range []func(e *fleet.Evidence){
		func(e *fleet.Evidence) { *e = fleet.Evidence{} },
		func(e *fleet.Evidence) { e.Fingerprint = fleet.Fingerprint{} },
		func(e *fleet.Evidence) { e.Pending = 1 },
	} {
		w := newWorld("cold", "hot").seen().retire("cold", 2)
		lose(&w.ledger[0].Evidence)
		w.now = w.now.Add(time.Minute)
		w.named(t, "1", "hot")
		require.Len(t, w.ledger, 1, "the ledger would refuse it")
	}
}
