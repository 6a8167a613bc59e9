package fleet

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// proof is clean evidence about a table at a version.
func proof(version uint64) Evidence {
	return Evidence{
		Fingerprint: Fingerprint{Version: version, ETag: "e", Naming: "v2", Shards: []ShardMark{{ID: "s1", Manifest: 4, WALNext: 100}}},
		Rows:        10, Fragments: 1, Bytes: 1000, DistinctKeys: -1, VerifiedAt: noon - min1,
		Shards: []ShardEvidence{{ID: "s1", Mark: 6}},
	}
}

// coldRow was last written eight days before noon.
func coldRow() Row {
	row := quiet()
	row.LastWrite = noon - 8*24*hour
	row.LastCompaction, row.TotalCompactions = noon-9*24*hour, 3
	return row
}

// retirement of exp1, an hour before noon.
func retirement() LedgerEntry {
	e := NewRetirement(coldRow(), proof(7), nil, noon-hour)
	e.RunID = "run-1"
	return e
}

func TestARetirementKeepsWhatItRestsOn(t *testing.T) {
	e := retirement()
	assert.Equal(t, exp1, e.Experiment)
	assert.True(t, e.Retired())
	assert.False(t, e.Renewal())
	assert.Equal(t, coldRow().LastWrite, e.LastWrite)
	assert.Equal(t, proof(7), e.Evidence)
	assert.EqualValues(t, 10, e.RowCount)
	assert.EqualValues(t, 3, e.TotalCompactions)
	assert.Equal(t, noon-hour, e.RetiredAt)
	assert.Equal(t, "run-1/rollout:x/retired", e.Key())
}

func TestTheRowOfARetiredExperimentShowsWhatTheEvidenceSaw(t *testing.T) {
	row := retirement().Row()
	assert.True(t, row.Known)
	assert.EqualValues(t, 10, row.RowCount)
	assert.EqualValues(t, 7, row.Version)
	assert.Zero(t, row.PendingWAL)
	assert.EqualValues(t, -1, row.SmallFragments, "nobody looked")
	assert.Equal(t, coldRow().LastWrite, row.LastWrite)
	assert.Equal(t, noon-min1, row.ObservedAt)
}

func TestARetiredExperimentThatIsObservedAgainLooksNoFresher(t *testing.T) {
	row := retirement().Row()
	o := same()
	o.ManifestTime = noon - hour // our own compaction
	assert.Equal(t, coldRow().LastWrite, Observed(exp1, &row, o, noon).LastWrite)
	o.Fingerprint.Version, o.Commits = 8, []Commit{rewrite(8, noon)}
	assert.Equal(t, coldRow().LastWrite, Observed(exp1, &row, o, noon).LastWrite)
}

func TestAnEntryIsLaterThanTheOneItFollowsWhateverTheClockSays(t *testing.T) {
	e := retirement()
	early := e.At - 5*min1
	for _, next := range []LedgerEntry{e.Return(noon, early), e.Renew(proof(8), early), NewRetirement(coldRow(), proof(8), &e, early)} {
		assert.Greater(t, next.At, e.At)
		assert.True(t, next.Supersedes(e))
	}
}

func TestARenewalKeepsTheRetirementAndHasAKeyOfItsOwn(t *testing.T) {
	e := retirement()
	next := e.Renew(proof(8), noon)
	next.RunID = "run-2"
	assert.True(t, next.Renewal())
	assert.Equal(t, e.RetiredAt, next.RetiredAt)
	assert.Equal(t, e.LastWrite, next.LastWrite, "nothing was written")
	assert.EqualValues(t, 8, next.Evidence.Fingerprint.Version)
	assert.Equal(t, "run-2/rollout:x/retired/renewed/"+itoa(noon), next.Key())
}

func TestAReturnIsNoRetirementAndKnowsTheWrite(t *testing.T) {
	e := retirement().Return(noon, noon)
	assert.False(t, e.Retired())
	assert.False(t, e.Renewal(), "made once, whatever the clock says then")
	assert.Equal(t, noon, e.LastWrite)
	assert.Empty(t, e.RunID, "the returning run's, not the retiring one's")
	woken := retirement().Return(0, noon)
	assert.Equal(t, coldRow().LastWrite, woken.LastWrite)
}

// drawEntries are entries of two experiments whose times are close on purpose.
func drawEntries(t *rapid.T) []LedgerEntry {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) LedgerEntry {
		e := LedgerEntry{
			Experiment: Experiment{ID: ID{Rollout, rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name")}},
			State:      rapid.SampledFrom([]LedgerState{LedgerRetired, LedgerReturned, LedgerGone, "odd"}).Draw(t, "state"),
			At:         rapid.Int64Range(1, 4).Draw(t, "at"), RunID: rapid.SampledFrom([]string{"r1", "r2"}).Draw(t, "run"),
		}
		e.RetiredAt = rapid.Int64Range(1, e.At).Draw(t, "retired at")
		return e
	}), 0, 8).Draw(t, "entries")
}

func TestTheNewestEntryCountsInWhateverOrderAndHoweverOftenTheyArrive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entries := drawEntries(t)
		want := Newest(entries)
		there := map[ID]bool{}
		for _, e := range entries {
			there[e.ID] = true
		}
		require.Len(t, want, len(there))
		again := rapid.Permutation(append(entries, entries...)).Draw(t, "again")
		got := Newest(again)
		require.Len(t, got, len(want))
		for i := range want {
			assert.Equal(t, want[i].Key(), got[i].Key())
			assert.Equal(t, want[i].State, got[i].State)
			for _, e := range entries {
				assert.False(t, e.ID == got[i].ID && e.At > got[i].At, "a later entry lost")
				assert.False(t, e.ID == got[i].ID && e.At == got[i].At && got[i].Retired() && !e.Retired(), "of one moment the return counts")
			}
		}
	})
}

func TestARetiredNameThatTwoRoundsMissIsGoneAndOneNamedAgainIsNot(t *testing.T) {
	e := retirement()
	add := Unnamed([]LedgerEntry{e}, listing("other"), noon, noon+5)
	require.Len(t, add, 1)
	marked := add[0]
	assert.True(t, marked.Retired())
	assert.Equal(t, noon, marked.MissingSince)
	assert.NotEqual(t, e.Key(), marked.Key())

	for why, c := range map[string]struct {
		entry   LedgerEntry
		listed  []Experiment
		started int64
		state   LedgerState // "" = nothing to add
		missing int64
	}{
		"a name that is there":                         {e, []Experiment{exp1}, noon, "", 0},
		"missed again by a later round":                {marked, nil, noon + 6, LedgerGone, noon},
		"missed again by a round that raced the first": {marked, nil, noon + 4, "", 0},
		"named again":                                  {marked, []Experiment{exp1}, noon + 6, LedgerRetired, 0},
		"named by an older round":                      {marked, []Experiment{exp1}, noon - 1, "", 0},
		"missed by a round from before it retired":     {e, nil, noon - 2*hour, "", 0},
		"one that returned":                            {e.Return(noon, noon), nil, noon + 9, "", 0},
	} {
		t.Run(why, func(t *testing.T) {
			add := Unnamed([]LedgerEntry{c.entry}, c.listed, c.started, c.started+20)
			if c.state == "" {
				assert.Empty(t, add)
				return
			}
			require.Len(t, add, 1)
			assert.Equal(t, c.state, add[0].State)
			assert.Equal(t, c.missing, add[0].MissingSince)
			assert.True(t, add[0].Supersedes(c.entry))
		})
	}
}
