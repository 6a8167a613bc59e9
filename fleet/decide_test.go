package fleet

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// quiet is a known row that needs nothing: written two hours ago, three fragments.
func quiet() Row {
	row := UnknownRow(exp1)
	row.Known, row.LastWrite = true, noon-2*hour
	row.FragmentCount, row.SmallFragments, row.PendingWAL, row.StrandedEntries = 3, 3, 0, 0
	row.Version = 7
	return row
}

func TestDecideSaysWhatToDoAndWhyInOneSentence(t *testing.T) {
	p := DefaultPolicy()
	policy := func(change func(*Policy)) Policy {
		q := p
		change(&q)
		return q
	}
	row := func(change func(*Row)) Row {
		r := quiet()
		change(&r)
		return r
	}
	pending := func(n int64) Row { return row(func(r *Row) { r.PendingWAL = n }) }
	shards := func(status string, current, mark uint64) Row {
		return row(func(r *Row) {
			r.PendingWAL = 9
			r.Shards = []Shard{{ShardMark: ShardMark{ID: "s1"}, Pending: 9, Status: status, CurrentGeneration: current, CompactedMark: mark}}
		})
	}
	cold := row(func(r *Row) { r.LastWrite = noon - 8*24*hour })
	conflict := History{Merge: Tries{3, noon + 5*min1 - 10*min1, "commit conflict"}}
	for why, c := range map[string]struct {
		row     Row
		policy  Policy
		history History
		action  Todo
		reason  string
		before  int64
	}{
		"a quiet one":    {quiet(), p, History{}, DoNothing, "3 fragments, below 16; written 2 h ago", noon - 2*hour + 7*24*hour},
		"never observed": {UnknownRow(exp1), p, History{}, DoNothing, "not observed yet", 0},
		"unreachable": {Failed(exp1, nil, "unreachable", "no answer", noon-10*min1, fiveMinutes), p, History{}, DoNothing,
			"unreachable since 11:50, next try by 12:05: no answer", noon + 5*min1},
		"missing once": {row(func(r *Row) { r.MissingRounds = 1 }), p, History{}, DoNothing, "its source did not name it in the last round", 0},

		"enough generations":  {pending(8), p, History{}, DoMerge, "8 pending generations, merged from 8 on", 0},
		"too few generations": {pending(2), p, History{}, DoNothing, "2 pending generations, below 8; 3 fragments, below 16; written 2 h ago", noon + 22*hour},
		"an old tail":         {row(func(r *Row) { r.PendingWAL, r.LastWrite = 1, noon-25*hour }), p, History{}, DoMerge, "1 pending generation, nothing written for 25 h", 0},
		"merging turned off": {pending(9), policy(func(p *Policy) { p.MergeMinGenerations = 0 }), History{}, DoNothing,
			"9 pending generations, merged after 24 h without a write; 3 fragments, below 16; written 2 h ago", noon + 22*hour},
		"merging and tails turned off": {pending(9), policy(func(p *Policy) { p.MergeMinGenerations, p.MergeTailsAfter = 0, 0 }), History{}, DoNothing,
			"9 pending generations, never merged; 3 fragments, below 16; written 2 h ago", noon - 2*hour + 7*24*hour},
		"pending unknown": {pending(-1), p, History{}, DoNothing, "unknown pending generations; 3 fragments, below 16; written 2 h ago", noon - 2*hour + 7*24*hour},
		"sealed":          {shards("sealed", 10, 0), p, History{}, DoNothing, "not merged: shard s1 is sealed; 3 fragments, below 16; written 2 h ago", noon - 2*hour + 7*24*hour},
		"a restarted counter": {shards("active", 3, 5), p, History{}, DoNothing,
			"not merged: shard s1 restarted its generation counter; accept shows what is there and lets you decide; 3 fragments, below 16; written 2 h ago", noon - 2*hour + 7*24*hour},
		"an erased mark": {shards("active", 10, 0), p, History{RememberedMarks: map[string]uint64{"s1": 6}, MarksVersion: 5}, DoNothing,
			"not merged: the table was overwritten or restored by its user, the merge mark of shard s1 fell from 6 to 0; accept shows what is there and lets you decide; 3 fragments, below 16; written 2 h ago", noon - 2*hour + 7*24*hour},
		"stranded entries": {row(func(r *Row) { r.StrandedEntries = 2 }), p, History{}, DoNothing,
			"2 unflushed WAL entries; 3 fragments, below 16; written 2 h ago", noon + 22*hour},

		"enough small fragments": {row(func(r *Row) { r.FragmentCount, r.SmallFragments = 40, 20 }), p, History{}, DoCompact, "20 small fragments, compacted from 16 on", 0},
		"many large fragments": {row(func(r *Row) { r.FragmentCount, r.SmallFragments = 40, 3 }), p, History{}, DoNothing,
			"40 fragments, 3 of them small, below 16; written 2 h ago", noon - 2*hour + 7*24*hour},
		"small ones unknown": {row(func(r *Row) { r.FragmentCount, r.SmallFragments = 40, -1 }), p, History{}, DoCompact, "40 fragments, compacted from 16 on", 0},
		"a plan that was empty": {row(func(r *Row) { r.FragmentCount, r.SmallFragments = 40, 20 }), p, History{NoOpVersion: 7, NoOpOptions: p.CompactOptions()}, DoNothing,
			"40 fragments, nothing to compact in version 7; written 2 h ago", noon - 2*hour + 7*24*hour},
		"an empty plan of another version": {row(func(r *Row) { r.FragmentCount, r.SmallFragments = 40, 20 }), p, History{NoOpVersion: 6, NoOpOptions: p.CompactOptions()}, DoCompact, "20 small fragments, compacted from 16 on", 0},
		"an empty plan with other options": {row(func(r *Row) { r.FragmentCount, r.SmallFragments = 40, 20 }), p, History{NoOpVersion: 7, NoOpOptions: "others"}, DoCompact, "20 small fragments, compacted from 16 on", 0},
		"held by a tag": {row(func(r *Row) { r.Tags = []string{"v1"} }), policy(func(p *Policy) { p.CleanupOlderThan = time.Hour }), History{}, DoNothing,
			"3 fragments, below 16; written 2 h ago; old versions held by tag v1", noon - 2*hour + 7*24*hour},
		"tags without a cleanup": {row(func(r *Row) { r.Tags = []string{"v1"} }), p, History{}, DoNothing, "3 fragments, below 16; written 2 h ago", noon - 2*hour + 7*24*hour},

		"cold":                          {cold, p, History{}, DoRetire, "not written for 8 d, retired after 7 d", 0},
		"a millisecond short of cold":   {row(func(r *Row) { r.LastWrite = noon - 7*24*hour + 1 }), p, History{}, DoNothing, "3 fragments, below 16; written 6 d ago", noon + 1},
		"cold this very moment":         {row(func(r *Row) { r.LastWrite = noon - 7*24*hour }), p, History{}, DoRetire, "not written for 7 d, retired after 7 d", 0},
		"never retired":                 {cold, policy(func(p *Policy) { p.RetireAfter = 0 }), History{}, DoNothing, "3 fragments, below 16; written 8 d ago, never retired", 0},
		"cold with pending generations": {row(func(r *Row) { r.PendingWAL, r.LastWrite = 9, noon-8*24*hour }), p, History{}, DoRetire, "not written for 8 d, retired after 7 d", 0},
		"cold but sealed": {row(func(r *Row) {
			r.LastWrite, r.PendingWAL = noon-8*24*hour, 9
			r.Shards = []Shard{{ShardMark: ShardMark{ID: "s1"}, Pending: 9, Status: "sealed", CurrentGeneration: 10}}
		}), p, History{}, DoNothing, "neither merged nor retired: shard s1 is sealed; 3 fragments, below 16", 0},
		"cold, one shard sealed and one not": {row(func(r *Row) {
			r.LastWrite, r.PendingWAL = noon-8*24*hour, 12
			r.Shards = []Shard{
				{ShardMark: ShardMark{ID: "s1"}, Pending: 9, Status: "sealed", CurrentGeneration: 10},
				{ShardMark: ShardMark{ID: "s2"}, Pending: 3, CurrentGeneration: 10},
			}
		}), p, History{}, DoMerge, "3 pending generations, nothing written for 8 d", 0},
		"a mark that fell in a table that was made anew": {row(func(r *Row) {
			r.PendingWAL, r.Shards = 9, []Shard{{ShardMark: ShardMark{ID: "s1"}, Pending: 9, CurrentGeneration: 10}}
		}), p, History{RememberedMarks: map[string]uint64{"s1": 6}, MarksVersion: 8}, DoMerge, "9 pending generations, merged from 8 on", 0},
		"cold, with entries that nobody can tell": {row(func(r *Row) { r.LastWrite, r.TailEntries = noon-8*24*hour, 3 }), p, History{Unknown: 2, TailsAt: noon - hour}, DoNothing,
			"3 fragments, below 16; not retired: 2 WAL entries of which nobody can tell whether the table has them; seal shows them and lets you decide", noon + 23*hour},
		"cold, the tails were looked at long ago": {row(func(r *Row) { r.LastWrite, r.TailEntries = noon-8*24*hour, 3 }), p, History{Unknown: 2, TailsAt: noon - 24*hour}, DoRetire, "not written for 8 d, retired after 7 d", 0},
		"cold, the tails have become shorter":     {row(func(r *Row) { r.LastWrite, r.TailEntries = noon-8*24*hour, 1 }), p, History{Unknown: 2, TailsAt: noon - hour}, DoRetire, "not written for 8 d, retired after 7 d", 0},
		"cold, with stranded entries":             {row(func(r *Row) { r.LastWrite, r.StrandedEntries = noon-8*24*hour, 2 }), p, History{}, DoRetire, "not written for 8 d, retired after 7 d", 0},
		"soon cold, with stranded entries": {row(func(r *Row) { r.LastWrite, r.StrandedEntries = noon-30*min1, 2 }), policy(func(p *Policy) { p.RetireAfter = 10 * time.Minute }), History{}, DoNothing,
			"2 unflushed WAL entries; 3 fragments, below 16; not retired: 2 unflushed WAL entries, replayed after 1 h without a write", noon + 30*min1},
		"stranded entries a day old": {row(func(r *Row) { r.LastWrite, r.StrandedEntries = noon-25*hour, 2 }), p, History{}, DoMerge, "2 unflushed WAL entries, nothing written for 25 h", 0},
		"stranded entries that a look at the tails found": {row(func(r *Row) { r.LastWrite, r.StrandedEntries = noon-25*hour, -1 }), p, History{Stranded: 1}, DoMerge,
			"1 unflushed WAL entry, nothing written for 25 h", 0},
		"stranded entries, pending unknown": {row(func(r *Row) { r.PendingWAL, r.StrandedEntries = -1, 2 }), p, History{}, DoNothing,
			"unknown pending generations; 2 unflushed WAL entries; 3 fragments, below 16; written 2 h ago", noon + 22*hour},
		"a last write nobody knows": {row(func(r *Row) { r.LastWrite = 0 }), p, History{}, DoNothing, "3 fragments, below 16; last write unknown", 0},

		"a merge that cools down lets a compaction through": {row(func(r *Row) { r.PendingWAL, r.FragmentCount, r.SmallFragments = 9, 40, 20 }), p, conflict, DoCompact,
			"20 small fragments, compacted from 16 on", 0},
		"a retirement that cools down lets a merge through": {row(func(r *Row) { r.LastWrite, r.PendingWAL = noon-8*24*hour, 9 }), p, History{Retire: Tries{9, noon, "denied"}}, DoMerge,
			"9 pending generations, merged from 8 on", 0},
		"both cool down, one less long": {row(func(r *Row) { r.PendingWAL, r.FragmentCount, r.SmallFragments = 9, 40, 20 }), p,
			History{Merge: Tries{4, noon, ""}, Compact: Tries{3, noon, ""}}, DoNothing,
			"cooling down until 12:20 after 4 failures; 9 pending generations, merged from 8 on", noon + 10*min1},

		"maintenance off":                   {pending(9), ObserveOnly(), History{}, DoNothing, "maintenance is off: observe only; 9 pending generations, merged from 8 on", 0},
		"maintenance off and nothing to do": {quiet(), ObserveOnly(), History{}, DoNothing, "3 fragments, below 16; written 2 h ago", noon - 2*hour + 7*24*hour},
		"paused":                            {pending(9), policy(func(p *Policy) { p.Paused = "release week" }), History{}, DoNothing, "paused: release week; 9 pending generations, merged from 8 on", 0},
		"cooling down": {pending(9), p, conflict, DoNothing,
			"cooling down until 12:05 after 3 failures: commit conflict; 9 pending generations, merged from 8 on", noon + 5*min1},
		"cooled down":  {pending(9), p, History{Merge: Tries{Failures: 3, LastAt: noon - 10*min1}}, DoMerge, "9 pending generations, merged from 8 on", 0},
		"two failures": {pending(9), p, History{Merge: Tries{Failures: 2, LastAt: noon}}, DoMerge, "9 pending generations, merged from 8 on", 0},
		"in the quiet window": {pending(9), policy(func(p *Policy) { p.QuietWindow = Window{11 * time.Hour, 13 * time.Hour} }), History{}, DoNothing,
			"quiet until 13:00; 9 pending generations, merged from 8 on", noon + hour},
	} {
		t.Run(why, func(t *testing.T) {
			got := Decide(c.row, c.policy, c.history, noon)
			assert.Equal(t, c.action, got.Action)
			assert.Equal(t, c.reason, got.Reason)
			assert.Equal(t, c.before, got.NotBefore)
		})
	}
}

func TestShardsThatTheirWorkerStillWritesCanBeLeftToIt(t *testing.T) {
	p := DefaultPolicy()
	p.LiveShards = LeaveLiveShards
	live := Shard{Pending: 20, CurrentGeneration: 30, NewestEntryTime: noon - 10*min1}
	orphan := Shard{Pending: 9, CurrentGeneration: 30, NewestEntryTime: noon - 3*hour}
	row := quiet()

	row.Shards, row.PendingWAL = []Shard{live, orphan}, 29
	assert.Equal(t, "9 pending generations, merged from 8 on", Decide(row, p, History{}, noon).Reason)

	row.Shards, row.PendingWAL = []Shard{live}, 20
	d := Decide(row, p, History{}, noon)
	assert.Equal(t, DoNothing, d.Action)
	assert.True(t, strings.HasPrefix(d.Reason, "20 pending generations left to their live writer"), d.Reason)
}

func TestADecisionIsAwaitedWhereAMarkFellACounterRestartedOrAMergeFoundWorse(t *testing.T) {
	remembers := History{RememberedMarks: map[string]uint64{"s": 4}, MarksVersion: 1}
	for name, c := range map[string]struct {
		shard   Shard
		history History
		want    bool
	}{
		"all as it should be":                   {Shard{ShardMark: ShardMark{ID: "s"}, Status: "active", CurrentGeneration: 6, CompactedMark: 4, Pending: 1}, remembers, false},
		"the mark fell":                         {Shard{ShardMark: ShardMark{ID: "s"}, Status: "active", CurrentGeneration: 6, CompactedMark: 3, Pending: 1}, remembers, true},
		"the mark fell, and nothing is pending": {Shard{ShardMark: ShardMark{ID: "s"}, Status: "active", CurrentGeneration: 6, CompactedMark: 3}, remembers, true},
		"the counter began again":               {Shard{ShardMark: ShardMark{ID: "s"}, Status: "active", CurrentGeneration: 3, CompactedMark: 4, Pending: 2}, History{}, true},
		"nothing was ever written to it":        {Shard{ShardMark: ShardMark{ID: "s"}, Status: "active"}, History{}, false},
		"it is sealed: nobody can decide":       {Shard{ShardMark: ShardMark{ID: "s"}, Status: "sealed", CurrentGeneration: 6, CompactedMark: 3, Pending: 1}, remembers, false},
		"the marks are those of an older table": {Shard{ShardMark: ShardMark{ID: "s"}, Status: "active", CurrentGeneration: 6, CompactedMark: 3, Pending: 1}, History{RememberedMarks: map[string]uint64{"s": 4}, MarksVersion: 99}, false},
		"only a merge could find it":            {Shard{ShardMark: ShardMark{ID: "s"}, Status: "active"}, History{Merge: Tries{Error: "not merged: shard s was made anew" + acceptHint}}, true},
		"a retirement found it":                 {Shard{ShardMark: ShardMark{ID: "s"}, Status: "active"}, History{Retire: Tries{Error: "not merged: shard s was made anew" + nativeHint(t)}}, true},
		"a merge failed for another reason":     {Shard{ShardMark: ShardMark{ID: "s"}, Status: "active"}, History{Merge: Tries{Error: "shard s is sealed"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := Row{Version: 9, Shards: []Shard{c.shard}}
			require.Equal(t, c.want, AwaitsDecision(&r, c.history))
		})
	}
}

// nativeHint is how the native library ends such a sentence: by its own source.
func nativeHint(t *testing.T) string {
	t.Helper()
	source, err := os.ReadFile("../native/src/merge/look.rs")
	require.NoError(t, err)
	found := regexp.MustCompile(`pub const DECIDE: &str = "([^"]+)";`).FindSubmatch(source)
	require.NotNil(t, found)
	return string(found[1])
}

func TestAShardDrainedBySomebodyElseIsLeftToItsWriterFromThenOn(t *testing.T) {
	row := quiet()
	row.PendingWAL, row.Shards = 20, []Shard{{Pending: 20, CurrentGeneration: 30, NewestEntryTime: noon - 10*min1}}
	assert.Equal(t, DoMerge, Decide(row, DefaultPolicy(), History{}, noon).Action)
	d := Decide(row, DefaultPolicy(), History{ForeignDrain: true}, noon)
	assert.Equal(t, DoNothing, d.Action)
	assert.Contains(t, d.Reason, "20 pending generations left to their live writer, which merges by itself")
	assert.Equal(t, noon+50*min1, d.NotBefore, "then the shard is live no longer")
	assert.Equal(t, DoMerge, Decide(row, DefaultPolicy(), History{ForeignDrain: true}, d.NotBefore).Action)
}

func TestEachKindIsDecidedAsIfThereWereNoOther(t *testing.T) {
	row := quiet()
	row.LastWrite, row.PendingWAL, row.FragmentCount, row.SmallFragments = noon-8*24*hour, 9, 40, 20
	each := DecideEach(row, DefaultPolicy(), History{Merge: Tries{3, noon, ""}}, noon)
	assert.Equal(t, DoRetire, each.Retire.Action)
	assert.Equal(t, Decision{DoNothing, "cooling down until 12:10 after 3 failures; 9 pending generations, merged from 8 on", noon + 10*min1, DoMerge, HeldCooling}, each.Merge)
	assert.Equal(t, DoCompact, each.Compact.Action)
}

func TestAForcedRetirementOverlooksTheAgeAndNothingElse(t *testing.T) {
	p := DefaultPolicy()
	sealed := Shard{ShardMark: ShardMark{ID: "s1"}, Pending: 9, Status: "sealed", CurrentGeneration: 10}
	restored := Shard{ShardMark: ShardMark{ID: "s1"}, Pending: 9, CurrentGeneration: 10, Status: "active"}
	for why, c := range map[string]struct {
		row     func(*Row)
		policy  func(*Policy)
		history History
		action  Todo
		held    Held
		reason  string
	}{
		"written lately":     {nil, nil, History{}, DoRetire, "", "written 2 h ago, retired because somebody asked for it"},
		"last write unknown": {func(r *Row) { r.LastWrite = 0 }, nil, History{}, DoRetire, "", "written at an unknown time, retired because somebody asked for it"},
		"sealed":             {func(r *Row) { r.PendingWAL, r.Shards = 9, []Shard{sealed} }, nil, History{}, DoNothing, HeldRefused, "not retired: shard s1 is sealed"},
		"restored by its user": {func(r *Row) { r.PendingWAL, r.Shards = 9, []Shard{restored} }, nil, History{RememberedMarks: map[string]uint64{"s1": 6}}, DoNothing, HeldRefused,
			"not retired: the table was overwritten or restored by its user, the merge mark of shard s1 fell from 6 to 0; accept shows what is there and lets you decide"},
		"an unknown tail":           {func(r *Row) { r.TailEntries = 1 }, nil, History{Unknown: 1, TailsAt: noon}, DoNothing, HeldRefused, "not retired: 1 WAL entry of which nobody can tell whether the table has them; seal shows them and lets you decide"},
		"paused":                    {nil, func(p *Policy) { p.Paused = "release week" }, History{}, DoNothing, HeldPaused, "paused: release week; written 2 h ago, retired because somebody asked for it"},
		"maintenance is off":        {nil, func(p *Policy) { p.Maintain = false }, History{}, DoNothing, HeldOff, "maintenance is off: observe only; written 2 h ago, retired because somebody asked for it"},
		"retirement is off":         {nil, func(p *Policy) { p.RetireAfter = 0 }, History{}, DoNothing, "", "written 2 h ago, never retired"},
		"it can't be reached":       {func(r *Row) { *r = Failed(exp1, r, "denied", "", noon-min1, fiveMinutes) }, nil, History{}, DoNothing, HeldFailing, "denied since 11:59, next try 12:04"},
		"it failed again and again": {nil, nil, History{Retire: Tries{3, noon, "denied"}}, DoNothing, HeldCooling, "cooling down until 12:10 after 3 failures: denied; written 2 h ago, retired because somebody asked for it"},
	} {
		t.Run(why, func(t *testing.T) {
			row, policy := quiet(), p
			if c.row != nil {
				c.row(&row)
			}
			if c.policy != nil {
				c.policy(&policy)
			}
			d := DecideForced(row, policy, c.history, noon)
			assert.Equal(t, c.action, d.Action)
			assert.Equal(t, c.held, d.Held)
			assert.Equal(t, c.reason, d.Reason)
		})
	}
	row := quiet()
	assert.Equal(t, DoNothing, Decide(row, p, History{}, noon).Action, "without force it is not cold")
}

// drawAny is any row, with any history, that a table may hold.
func drawAny(t *rapid.T) (Row, Policy, History) {
	n := func(name string) int64 { return rapid.Int64Range(-1, 40).Draw(t, name) }
	row := quiet()
	row.Known = rapid.Bool().Draw(t, "known")
	row.FragmentCount, row.SmallFragments, row.PendingWAL, row.StrandedEntries = n("fragments"), n("small"), n("pending"), n("stranded")
	row.LastWrite = noon - rapid.Int64Range(-1, 20).Draw(t, "days")*24*hour
	row.MissingRounds = rapid.Int64Range(0, 1).Draw(t, "missing")
	if rapid.IntRange(0, 4).Draw(t, "fails") == 0 {
		row = Failed(exp1, &row, "gone", "", noon-hour, fiveMinutes)
	}
	p := DefaultPolicy()
	p.Maintain = rapid.Bool().Draw(t, "maintain")
	p.Paused = rapid.SampledFrom([]string{"", "why not"}).Draw(t, "paused")
	p.RetireAfter = rapid.SampledFrom([]time.Duration{0, 7 * day}).Draw(t, "retire after")
	tries := func(kind string) Tries {
		return Tries{Failures: rapid.Int64Range(0, 20).Draw(t, kind+" failures"), LastAt: noon - rapid.Int64Range(0, 10).Draw(t, kind+" hours")*hour}
	}
	h := History{Merge: tries("merge"), Compact: tries("compact"), Retire: tries("retire")}
	h.Stranded, h.Unknown = n("remembered stranded"), n("remembered unknown")
	h.TailsAt = noon - rapid.Int64Range(0, 30).Draw(t, "tails looked at, hours ago")*hour
	row.TailEntries = n("tail")
	return row, p, h
}

func TestEveryDecisionHasASentenceAndNothingStartsThatIsForbidden(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		row, p, h := drawAny(t)
		d, each := Decide(row, p, h, noon), DecideEach(row, p, h, noon)
		assert.NotEmpty(t, d.Reason)
		assert.NotContains(t, d.Reason, "-1", "unknown is a word, not a number")
		if !p.Maintain || p.Paused != "" || row.Failing() || !row.Known || row.MissingRounds > 0 {
			assert.Equal(t, DoNothing, d.Action)
		}
		for kind, one := range map[Todo]Decision{DoRetire: each.Retire, DoMerge: each.Merge, DoCompact: each.Compact} {
			cooling := noon < h.Tries(kind).LastAt+p.Cooldown(h.Tries(kind).Failures).Milliseconds()
			assert.False(t, cooling && one.Action != DoNothing, "cooling down")
			assert.Contains(t, []Todo{DoNothing, kind}, one.Action)
		}
		if d.Action != DoNothing {
			assert.Equal(t, d.Action, d.Wants)
			assert.Empty(t, d.Held)
		}
		if d.Action == DoRetire {
			assert.Positive(t, p.RetireAfter)
			assert.GreaterOrEqual(t, noon-row.LastWrite, p.RetireAfter.Milliseconds())
		}
	})
}

// A decision that says "not before" comes to nothing if it is asked again earlier.
func TestWaitingShorterThanNotBeforeChangesNoAction(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		row, p, h := drawAny(t)
		d := Decide(row, p, h, noon)
		if d.Action != DoNothing || d.NotBefore <= noon {
			return
		}
		later := rapid.Int64Range(noon, d.NotBefore-1).Draw(t, "later")
		assert.Equal(t, DoNothing, Decide(row, p, h, later).Action)
	})
}
