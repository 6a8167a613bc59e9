package fleet

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

func TestFactsSurviveTheJournal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFacts(t)
		assert.Equal(t, f, ParseFacts(f.Text()))
	})
}

func drawFacts(t *rapid.T) Facts {
	n := func(name string) int64 { return rapid.Int64Range(-1, 9).Draw(t, name) }
	f := Facts{
		Version: n("version"), Fragments: n("fragments"), SmallFragments: n("small"), Rows: n("rows"), Bytes: n("bytes"),
		Pending: n("pending"), Stranded: n("stranded"), Unknown: n("unknown"), NoOpVersion: max(n("noop"), 0),
		NoOpOptions: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "options"), ForeignDrain: rapid.Bool().Draw(t, "foreign"),
	}
	for _, shard := range []string{"s1", "s2"} {
		if mark := max(n("mark "+shard), 0); mark > 0 {
			f.mark(shard, uint64(mark))
		}
	}
	return f
}

func TestNumbersThatAnOlderEntryLacksAreUnknownNotZero(t *testing.T) {
	want := UnknownFacts()
	want.Version = 4
	assert.Equal(t, want, ParseFacts(`{"version":4}`))
	for _, text := range []string{"", "null?", `{"version":"four"}`, `[1]`} {
		assert.Equal(t, UnknownFacts(), ParseFacts(text), text)
	}
}

func TestFactsOfARowSayWhatItKnows(t *testing.T) {
	assert.Equal(t, UnknownFacts(), FactsOf(nil))
	unseen := UnknownRow(exp1)
	assert.Equal(t, UnknownFacts(), FactsOf(&unseen))

	row := quiet()
	row.RowCount, row.Bytes = 10, 100
	row.Shards = []Shard{{ShardMark: ShardMark{ID: "s1"}, CompactedMark: 6}, {ShardMark: ShardMark{ID: "s2"}}}
	row.StrandedEntries, row.TailEntries = -1, 2
	f := FactsOf(&row)
	assert.Equal(t, Facts{Version: 7, Fragments: 3, SmallFragments: 3, Rows: 10, Bytes: 100, Marks: map[string]uint64{"s1": 6}, Stranded: -1, Unknown: -1}, f)

	row.TailEntries = 0
	f = FactsOf(&row)
	assert.Zero(t, f.Stranded, "no entry lies past a cursor")
	assert.Zero(t, f.Unknown)
}

func TestFactsOfEvidenceAreWhatWasVerified(t *testing.T) {
	e := Evidence{Fingerprint: Fingerprint{Version: 9}, Rows: 5, Fragments: 2, Bytes: 50, Stranded: 1, Unknown: 3, Shards: []ShardEvidence{{ID: "s1", Mark: 8}}}
	assert.Equal(t, Facts{Version: 9, Fragments: 2, SmallFragments: -1, Rows: 5, Bytes: 50, Marks: map[string]uint64{"s1": 8}, Stranded: 1, Unknown: 3}, FactsOfEvidence(e))
}
