package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const foreseen = int64(1_800_000_000_000)

var hourly = Reach{SilentFor: time.Hour.Milliseconds()}

func ago(d time.Duration) int64 { return foreseen - d.Milliseconds() }

func TestAMergeLeavesLiveShardsAndSealsOnlySilentOnes(t *testing.T) {
	leave := Reach{LeaveWithin: time.Hour.Milliseconds(), SilentFor: time.Hour.Milliseconds()}
	for name, c := range map[string]struct {
		reach Reach
		tail  ShardTail
		want  ShardStep
	}{
		"nothing unflushed":                       {hourly, ShardTail{NewestTime: ago(2 * time.Hour), TouchedTime: ago(2 * time.Hour)}, DrainShard},
		"written lately, merged all the same":     {hourly, ShardTail{NewestTime: ago(time.Minute), TouchedTime: ago(time.Minute)}, DrainShard},
		"written lately, left to its writer":      {leave, ShardTail{NewestTime: ago(time.Minute), TouchedTime: ago(time.Minute)}, LeaveShard},
		"left to nobody when it is silent":        {leave, ShardTail{NewestTime: ago(2 * time.Hour), TouchedTime: ago(2 * time.Hour)}, DrainShard},
		"unflushed and silent":                    {hourly, ShardTail{Stranded: 1, NewestTime: ago(2 * time.Hour), TouchedTime: ago(2 * time.Hour)}, SealShard},
		"unflushed while its writer may live":     {hourly, ShardTail{Stranded: 1, NewestTime: ago(2 * time.Hour), TouchedTime: ago(time.Minute)}, DrainShard},
		"unflushed, silence is asked for nowhere": {Reach{}, ShardTail{Stranded: 1, NewestTime: foreseen, TouchedTime: foreseen}, SealShard},
	} {
		require.Equal(t, c.want, c.reach.Step(c.tail, foreseen), name)
	}
}

func TestADryRunTellsWhatTheRunTakesAwayFromWhatStopsIt(t *testing.T) {
	const (
		pending  = "shard a: 3 generations are not merged yet"
		listed   = "shard a still lists 2 generations that the base has: a merge takes them out"
		stranded = "shard a: 2 WAL entries with 7 rows are stranded: their writer never flushed them"
		unknown  = "shard a: of 2 WAL entries nobody can tell whether the base has or had their rows"
		anew     = "shard a counts its generations anew (the next is 2, the base has those up to 9): nobody can tell which of them the base has"
	)
	silent := ShardTail{Shard: "a", NewestTime: ago(2 * time.Hour), TouchedTime: ago(2 * time.Hour)}
	live := ShardTail{Shard: "a", NewestTime: ago(time.Minute), TouchedTime: ago(3 * time.Minute)}
	with := func(t ShardTail, strandedN, unknownN int64, words string) ShardTail {
		t.Stranded, t.Unknown, t.Words = strandedN, unknownN, words
		return t
	}
	leave := Reach{LeaveWithin: time.Hour.Milliseconds(), SilentFor: time.Hour.Milliseconds()}
	for name, c := range map[string]struct {
		reach     Reach
		refused   string
		tail      ShardTail
		sentence  string
		clears    bool
		wantStops string
	}{
		"pending generations are merged":           {hourly, "", silent, pending, true, ""},
		"so are those of a live shard":             {hourly, "", live, pending, true, ""},
		"unless live shards are left":              {leave, "", live, pending, false, pending + " (left to its live writer)"},
		"unless the merge is refused":              {hourly, "the merge mark fell from 9 to 4", silent, pending, false, "shard a: the merge mark fell from 9 to 4"},
		"what the base has is taken out":           {hourly, "", silent, listed, true, ""},
		"stranded entries of a silent shard":       {hourly, "", with(silent, 2, 0, stranded), stranded, true, ""},
		"stranded is not what a writer may flush":  {hourly, "", with(live, 2, 0, stranded), stranded, false, "shard a: 2 WAL entries not flushed yet by a writer that may live (touched 3 min ago); replayed after 1 h of silence"},
		"entries of unknown state":                 {hourly, "", with(silent, 0, 2, unknown), unknown, false, unknown},
		"a restarted counter":                      {hourly, "", silent, anew, false, anew},
		"what is worded as never before":           {hourly, "", silent, "shard a is on fire", false, "shard a is on fire"},
		"what is about no shard that was seen":     {hourly, "", silent, "shard b: 3 generations are not merged yet", false, "shard b: 3 generations are not merged yet"},
		"what is about the table and not its logs": {hourly, "", silent, "the table has 3 rows under 2 keys", false, "the table has 3 rows under 2 keys"},
	} {
		t.Run(name, func(t *testing.T) {
			f := c.reach.Foresee([]ForeseenMerge{{Shard: "a", Refused: c.refused, Generations: 3}}, []ShardTail{c.tail}, []string{c.sentence}, foreseen)
			if c.clears {
				require.Equal(t, Foreseen{Clears: []string{c.sentence}}, f)
				return
			}
			require.Equal(t, Foreseen{Stops: []string{c.wantStops}}, f)
		})
	}
}

func TestOnlyEntriesWhoseWriterIsGoneAreCalledStranded(t *testing.T) {
	const words, other = "shard a: 1 WAL entry with 1 row is stranded: their writer never flushed them", "shard b: 3 generations are not merged yet"
	tail := ShardTail{Shard: "a", Stranded: 1, TouchedTime: ago(2 * time.Hour), Words: words}
	require.Equal(t, []string{words, other}, hourly.Reword([]string{words, other}, []ShardTail{tail}, foreseen))
	tail.TouchedTime = ago(time.Minute)
	reworded := hourly.Reword([]string{words, other}, []ShardTail{tail}, foreseen)
	require.Equal(t, other, reworded[1])
	require.Contains(t, reworded[0], "1 WAL entry not flushed yet by a writer that may live")
	require.NotContains(t, reworded[0], "stranded")
	tail.Unknown = 2
	require.Contains(t, hourly.Unflushed(tail, foreseen), "of 2 others nobody can tell")
}

func TestARunAndItsDryRunDecideAlike(t *testing.T) {
	row := UnknownRow(Experiment{ID: ID{Kind: Rollout, Name: "a"}})
	row.Known, row.LastWrite, row.PendingWAL, row.FragmentCount, row.SmallFragments = true, ago(2*time.Hour), 1, 1, 1
	row.Shards = []Shard{{ShardMark: ShardMark{ID: "s"}, Pending: 1, CurrentGeneration: 3, CompactedMark: 1, Status: "active"}}
	p := DefaultPolicy()
	p.Maintain = true
	decide := func(a Asked) Decision {
		_, d := DecideAsked(a, row, p, History{}, foreseen)
		return d
	}
	require.Equal(t, DoNothing, decide(Asked{Action: ActRetire, ByHand: true}).Action, "written lately")
	require.Equal(t, DoRetire, decide(Asked{Action: ActRetire, ByHand: true, Force: true}).Action)
	require.Equal(t, DoNothing, decide(Asked{Action: ActOptimize}).Action, "below what is worth while")
	require.Equal(t, DoMerge, decide(Asked{Action: ActOptimize, ByHand: true}).Action)
	require.Equal(t, DoMerge, decide(Asked{Action: ActSeal, Shard: "s"}).Action)
	require.Equal(t, HeldRefused, decide(Asked{Action: ActSeal, Shard: "other"}).Held)
	p.Paused = "disk is full"
	require.Equal(t, HeldPaused, decide(Asked{Action: ActSeal, Shard: "s"}).Held)
}
