package web

import (
	"testing"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
)

func TestWhatIsRetiredShowsWhatItsEvidenceAndTheJournalKnow(t *testing.T) {
	store := oneRow(120)
	entry := retiredOne(fleet.Table, "old")
	entry.Evidence.Shards = []fleet.ShardEvidence{{ID: "a", Epoch: 4, Mark: 21, Contained: 2, Superseded: 1}, {ID: "b", InBase: 3}}
	entry.Evidence.Fingerprint.Shards = []fleet.ShardMark{{ID: "a", Manifest: 40, WALNext: 412}, {ID: "b"}}
	store.retired = []fleet.LedgerEntry{entry}
	store.actions = []fleet.Action{
		{ID: "2", At: minutesAgo(50), Kind: fleet.ActRetire, Target: "table:old", Outcome: fleet.OutcomeDone},
		{ID: "1", At: minutesAgo(60), Kind: fleet.ActMergeWAL, Target: "table:old", Outcome: fleet.OutcomeDone},
	}
	b := newBench(t, store)
	d := decode[Detail](t, b.get("/api/v1/experiments/old"), 200)
	require.Equal(t, Retired, d.State)
	require.EqualValues(t, 2, *d.Shards)
	require.EqualValues(t, 6, *d.TailEntries)
	require.Equal(t, minutesAgo(60), *d.LastMaintenance, "the merge, not the entry in the ledger")
	require.Len(t, d.WALShards, 2)
	require.Equal(t, []any{"a", "at rest", uint64(4), uint64(40), uint64(412), uint64(21), int64(3)}, []any{
		d.WALShards[0].ID, d.WALShards[0].Status, d.WALShards[0].Epoch, d.WALShards[0].Manifest, d.WALShards[0].WALNext, d.WALShards[0].CompactedMark, *d.WALShards[0].TailEntries,
	})

	store.set(func(f *fakeStore) { f.retired[0].Evidence = fleet.Evidence{} })
	d = decode[Detail](t, newBench(t, store).get("/api/v1/experiments/old"), 200)
	require.Nil(t, d.Shards, "without evidence nothing is known")
	require.Empty(t, d.WALShards)
}
