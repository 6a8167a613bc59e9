package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

func TestWhereAnExperimentStands(t *testing.T) {
	e := retirement()
	returned := e.Return(noon, noon)
	odd := e
	odd.State = ""
	cold, written := coldRow(), coldRow()
	written.LastWrite = noon
	unseen := UnknownRow(exp1)
	for why, c := range map[string]struct {
		row   *Row
		entry *LedgerEntry
		want  State
	}{
		"in neither table":                              {nil, nil, Unseen},
		"a row and no entry":                            {&cold, nil, Hot},
		"retired":                                       {nil, &e, Retired},
		"retired, its row not taken out yet":            {&cold, &e, Retired},
		"retired, and a row that was never observed":    {&unseen, &e, Retired},
		"written since, the ledger does not know yet":   {&written, &e, Hot},
		"returned, its row is there":                    {&written, &returned, Hot},
		"returned, its row is still to come":            {nil, &returned, Unseen},
		"woken: the row is as old as the retirement":    {&cold, &returned, Hot},
		"an entry whose state can't be read":            {nil, &odd, Unseen},
		"a row, and an entry whose state can't be read": {&cold, &odd, Hot},
	} {
		t.Run(why, func(t *testing.T) { assert.Equal(t, c.want, StateOf(c.row, c.entry)) })
	}
}

// same is what an observation of exp1 finds when nothing moved since proof(7).
func same() Observation {
	return Observation{
		Fingerprint: proof(7).Fingerprint, BaseRows: 10, ObservedAt: noon,
		Shards: []Shard{{ShardMark: ShardMark{ID: "s1", Manifest: 4, WALNext: 100}, NewestEntry: 98, CurrentGeneration: 7, CompactedMark: 6}},
	}
}

func TestWhatALookAtARetiredExperimentMeans(t *testing.T) {
	with := func(change func(*Observation)) Observation {
		o := same()
		change(&o)
		return o
	}
	base := func(version uint64, commits ...Commit) func(*Observation) {
		return func(o *Observation) { o.Fingerprint.Version, o.Commits = version, commits }
	}
	shard := func(change func(*Shard)) Observation {
		return with(func(o *Observation) {
			change(&o.Shards[0])
			o.Fingerprint.Shards = []ShardMark{o.Shards[0].ShardMark}
		})
	}
	newShard := func(s Shard) Observation {
		return with(func(o *Observation) {
			s.ID = "s2"
			o.Shards = append(o.Shards, s)
			o.Fingerprint.Shards = append([]ShardMark{}, o.Fingerprint.Shards...)
			o.Fingerprint.Shards = append(o.Fingerprint.Shards, s.ShardMark)
		})
	}
	for why, c := range map[string]struct {
		o    Observation
		want Verdict
		says string
	}{
		"nothing moved":                     {same(), Same, "nothing moved"},
		"somebody compacted it":             {with(base(8, rewrite(8, noon))), Maintenance, "moved without a write"},
		"we compacted it":                   {with(base(8, Commit{Version: 8, Operation: "Append", Action: "compact"})), Maintenance, "moved without a write"},
		"somebody appended":                 {with(base(8, appended(8, noon))), Write, "version 8 may have brought rows"},
		"an append with an old time":        {with(base(8, appended(8, 1))), Write, "version 8 may have brought rows"},
		"an append under a compaction":      {with(base(9, rewrite(9, noon), appended(8, noon))), Write, "version 8 may have brought rows"},
		"an append far above the evidence":  {with(base(12, appended(12, noon))), Write, "version 12 may have brought rows"},
		"a commit that was cleaned up":      {with(base(9, rewrite(9, noon))), Write, "commits since version 7 are gone"},
		"an older version":                  {with(base(3, rewrite(3, noon))), Write, "version 3 is older than 7: another table"},
		"the version of another table":      {with(func(o *Observation) { o.Fingerprint.ETag = "x" }), Write, "version 7 is another one than before"},
		"fewer rows after a compaction":     {with(func(o *Observation) { base(8, rewrite(8, noon))(o); o.BaseRows = 9 }), Write, "9 rows instead of 10"},
		"rows that can't be counted":        {with(func(o *Observation) { base(8, rewrite(8, noon))(o); o.BaseRows = -1 }), Write, "unknown rows instead of 10"},
		"a tag":                             {with(func(o *Observation) { o.Fingerprint.Refs = true }), Maintenance, "moved without a write"},
		"old versions that were removed":    {with(func(o *Observation) { o.Fingerprint.Gaps = true }), Maintenance, "moved without a write"},
		"a writer that opened and closed":   {shard(func(s *Shard) { s.WALNext, s.Manifest = 101, 6 }), Maintenance, "moved without a write"},
		"an entry with rows":                {shard(func(s *Shard) { s.WALNext, s.NewestEntry = 101, 100 }), Write, "an entry was added to the WAL of shard s1"},
		"entries of which none has rows":    {shard(func(s *Shard) { s.WALNext, s.NewestEntry = 160, 0 }), Maintenance, "moved without a write"},
		"more entries than are looked at":   {shard(func(s *Shard) { s.WALNext, s.NewestEntry = 165, 0 }), Write, "the WAL of shard s1 has grown"},
		"a WAL that lost entries":           {shard(func(s *Shard) { s.WALNext = 50 }), Write, "the WAL of shard s1 was cut"},
		"a generation replayed from a tail": {shard(func(s *Shard) { s.Manifest, s.Pending = 5, 1 }), Write, "1 pending generation in shard s1"},
		"generations that can't be counted": {shard(func(s *Shard) { s.Manifest, s.Pending = 5, -1 }), Write, "unknown pending generations in shard s1"},
		"a new shard that is empty":         {newShard(Shard{}), Maintenance, "moved without a write"},
		"a new shard with an entry":         {newShard(Shard{ShardMark: ShardMark{WALNext: 2}, NewestEntry: 1}), Write, "an entry was added to the WAL of shard s2"},
		"a shard that is gone":              {with(func(o *Observation) { o.Shards, o.Fingerprint.Shards = nil, nil }), Maintenance, "moved without a write"},
	} {
		t.Run(why, func(t *testing.T) {
			got, says := OnRetiredObservation(retirement(), c.o)
			assert.Equal(t, c.want, got)
			assert.Equal(t, c.says, says)
		})
	}
	lost := retirement()
	lost.Evidence = Evidence{}
	for _, o := range []Observation{same(), {}} {
		got, _ := OnRetiredObservation(lost, o)
		assert.Equal(t, Write, got, "without evidence there is nothing to rest on")
	}
}

// Whatever maintenance comes, a retired experiment does not return by it, and
// whatever comes with a write it does.
func TestARetiredExperimentReturnsByWritesAndByNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, written := same(), false
		for range rapid.IntRange(1, 5).Draw(t, "events") {
			switch rapid.SampledFrom([]string{"compaction", "claim", "append", "entry", "tag"}).Draw(t, "event") {
			case "compaction":
				o.Fingerprint.Version++
				o.Commits = append([]Commit{rewrite(o.Fingerprint.Version, noon)}, o.Commits...)
			case "append":
				o.Fingerprint.Version++
				o.Commits = append([]Commit{appended(o.Fingerprint.Version, noon)}, o.Commits...)
				written = true
			case "claim":
				o.Shards[0].WALNext++
				o.Shards[0].Manifest++
			case "entry":
				o.Shards[0].NewestEntry = o.Shards[0].WALNext
				o.Shards[0].WALNext++
				written = true
			case "tag":
				o.Fingerprint.Refs = true
			}
		}
		o.Fingerprint.Shards = []ShardMark{o.Shards[0].ShardMark}
		verdict, why := OnRetiredObservation(retirement(), o)
		want := Maintenance
		if written {
			want = Write
		}
		assert.Equal(t, want, verdict, why)
	})
}

// rounds through a day, some late, some missed: nobody waits longer than an hour
// and the gap between two rounds, and an even fleet is spread evenly.
func TestEveryRetiredExperimentIsLookedAtOnceAnHour(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := ID{Rollout, rapid.StringMatching(`[a-z]{1,8}`).Draw(t, "name")}
		clock := RoundClock{Now: noon}
		var lastLook int64
		for i := range 60 {
			gap := rapid.Int64Range(1, 20).Draw(t, "minutes to the next round") * min1
			clock = RoundClock{Number: int64(i), LastRoundAt: clock.Now, Now: clock.Now + gap}
			if lastLook > 0 {
				assert.Less(t, clock.LastRoundAt-lastLook, hour)
			}
			if DueForCheck(id, clock, 12) {
				lastLook = clock.Now
			} else if lastLook == 0 {
				lastLook = noon
			}
		}
	})
}

func TestARoundLooksAtATwelfthOfTheRetired(t *testing.T) {
	const n = 12_000
	for _, last := range []int64{0, noon - 5*min1} {
		clock := RoundClock{Number: 7, Now: noon, LastRoundAt: last}
		due := 0
		for i := range int64(n) {
			if DueForCheck(ID{Rollout, "run-" + itoa(i)}, clock, 12) {
				due++
			}
		}
		assert.InDelta(t, n/12, due, n/60)
	}
}

func TestRetiredExperimentsAreAllDueAfterAnHourWithoutRoundsAndInAFullOne(t *testing.T) {
	for why, clock := range map[string]RoundClock{
		"an hour without rounds": {Now: noon, LastRoundAt: noon - hour},
		"a full round":           {Now: noon, LastRoundAt: noon - 1, Full: true},
	} {
		for i := range int64(100) {
			assert.True(t, DueForCheck(ID{Rollout, itoa(i)}, clock, 12), why)
		}
	}
	assert.True(t, DueForCheck(exp1.ID, RoundClock{Now: noon, LastRoundAt: noon - 1}, 1), "one round an hour")
	assert.True(t, DueForCheck(exp1.ID, RoundClock{Now: noon, LastRoundAt: noon - 1}, 0), "rounds are rarer than hours")
}

// The same things happen in any order: rounds commit what they saw, a retirement
// is dropped, a return is noted. When all have come and one more round has passed,
// the experiment stands where its newest entry and its newest write put it.
func TestRoundsDropsAndReturnsEndTheSameInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := at("a", 10, 1)
		first.LastWrite = 5
		newest := first.LastWrite
		var ledger []LedgerEntry
		var events []func(*world)
		for i := range rapid.IntRange(1, 4).Draw(t, "events") {
			now := 20 + 10*int64(i)
			kind := rapid.SampledFrom([]string{"round", "round that saw a write", "drop", "return"}).Draw(t, "event")
			wrote := kind == "round that saw a write" || kind == "return"
			if wrote {
				newest = now
			}
			row := at("a", now, now)
			row.LastWrite = newest
			switch kind {
			case "drop":
				ledger = append(ledger, NewRetirement(row, proof(1), nil, now))
			case "return":
				e := NewRetirement(row, proof(1), nil, 1).Return(newest, now)
				ledger = append(ledger, e)
			}
			known := len(ledger)
			events = append(events, func(w *world) {
				if kind == "drop" || kind == "return" {
					w.ledger = append(w.ledger, ledger[known-1])
				}
				if kind != "drop" {
					w.round(MergeInput{Pinned: []Row{first}, Staged: []Row{row}, RoundStarted: now})
				}
			})
		}
		run := func(order []int) State {
			w := &world{rows: []Row{first}}
			for _, i := range order {
				events[i](w)
			}
			w.round(MergeInput{Pinned: w.rows, RoundStarted: 1000}) // takes out what has retired
			w.round(MergeInput{Pinned: w.rows, RoundStarted: 2000}) // and changes nothing more
			assert.False(t, w.state() == Retired && len(w.rows) > 0, "a retired row stays")
			return w.state()
		}
		order := make([]int, len(events))
		for i := range order {
			order[i] = i
		}
		want := Hot
		if last := Newest(ledger); len(last) == 1 && last[0].Retired() && newest <= last[0].LastWrite {
			want = Retired
		}
		assert.Equal(t, want, run(order), "in the order in which it happened")
		assert.Equal(t, want, run(rapid.Permutation(order).Draw(t, "order")))
	})
}

// world is `_stats` and the ledger of one experiment, as rounds see them.
type world struct {
	rows   []Row
	ledger []LedgerEntry
}

func (w *world) entry() *LedgerEntry {
	if newest := Newest(w.ledger); len(newest) > 0 {
		return &newest[0]
	}
	return nil
}

func (w *world) round(in MergeInput) {
	in.Latest, in.Listed, in.Now, in.Freshness = w.rows, listing("a"), in.RoundStarted+1, time.Hour
	if e := w.entry(); e != nil && e.Retired() {
		in.Retired = map[ID]int64{e.ID: e.LastWrite}
	}
	w.rows = MergeRound(in).Rows
}

// state counts what is hot and to be observed as hot.
func (w *world) state() State {
	s := StateOf(of(w.rows, "a"), w.entry())
	if s == Unseen {
		return Hot
	}
	return s
}
