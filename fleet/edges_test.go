package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What a decision promises for a time holds at that very millisecond.
func TestWhatIsDueAtATimeIsDoneAtThatTimeAndNotBefore(t *testing.T) {
	pending, cold, stranded := quiet(), quiet(), quiet()
	pending.PendingWAL = 1
	stranded.StrandedEntries = 2
	soon := DefaultPolicy()
	soon.RetireAfter, soon.MergeTailsAfter = 10*time.Minute, 0
	written := stranded
	written.LastWrite = noon
	night := DefaultPolicy()
	night.QuietWindow = Window{11 * time.Hour, 13 * time.Hour}
	many := quiet()
	many.PendingWAL = 8
	for why, c := range map[string]struct {
		row    Row
		policy Policy
		h      History
		action Todo
	}{
		"a tail":                      {pending, DefaultPolicy(), History{}, DoMerge},
		"stranded entries":            {stranded, DefaultPolicy(), History{}, DoMerge},
		"a cold one":                  {cold, DefaultPolicy(), History{}, DoRetire},
		"entries that may be flushed": {written, soon, History{}, DoRetire},
		"the end of the quiet window": {many, night, History{}, DoMerge},
		"the end of a back-off":       {many, DefaultPolicy(), History{Merge: Tries{3, noon, ""}}, DoMerge},
		"tails that were looked at":   {Row{Experiment: exp1, Known: true, LastWrite: noon - 8*24*hour, TailEntries: 3, StrandedEntries: 0, Version: 7}, DefaultPolicy(), History{Unknown: 2, TailsAt: noon}, DoRetire},
	} {
		t.Run(why, func(t *testing.T) {
			d := Decide(c.row, c.policy, c.h, noon)
			require.Equal(t, DoNothing, d.Action)
			at := noon
			for d.Action == DoNothing { // several steps, where something else could be due earlier
				require.Greater(t, d.NotBefore, at, d.Reason)
				at = d.NotBefore
				assert.Equal(t, DoNothing, Decide(c.row, c.policy, c.h, at-1).Action)
				d = Decide(c.row, c.policy, c.h, at)
			}
			assert.Equal(t, c.action, d.Action, d.Reason)
		})
	}
}

func TestALogOfWhichEveryNewEntryWasLookedAtBringsNothingBack(t *testing.T) {
	for grown, want := range map[uint64]Verdict{entriesSought: Maintenance, entriesSought + 1: Write} {
		o := same()
		o.Shards[0].WALNext, o.Shards[0].NewestEntry = 100+grown, 0
		o.Fingerprint.Shards = []ShardMark{o.Shards[0].ShardMark}
		got, why := OnRetiredObservation(retirement(), o)
		assert.Equal(t, want, got, why)
	}
}

func TestWhatANewTableWithTheOldOnesVersionHoldsIsAWrite(t *testing.T) {
	o := same()
	o.Fingerprint.Version, o.Fingerprint.ETag = 8, "of the eighth"
	o.Commits = []Commit{rewrite(8, noon)}
	got, _ := OnRetiredObservation(retirement(), o)
	assert.Equal(t, Maintenance, got, "a later version has another e-tag: that alone means nothing")
	o = same()
	o.Fingerprint.ETag, o.Commits = "of another seventh", []Commit{rewrite(7, noon)}
	got, _ = OnRetiredObservation(retirement(), o)
	assert.Equal(t, Write, got)
}

func TestARoundWhoseClockWentBackLooksAtATwelfthAllTheSame(t *testing.T) {
	due := 0
	for i := range int64(1200) {
		if DueForCheck(ID{Rollout, "run-" + itoa(i)}, RoundClock{Number: 7, Now: noon, LastRoundAt: noon + hour}, 12) {
			due++
		}
	}
	assert.InDelta(t, 100, due, 50)
}

func TestAShardIsLiveUntilItsTimeIsOver(t *testing.T) {
	p := DefaultPolicy()
	p.LiveShards = LeaveLiveShards
	assert.True(t, p.Leaves(Shard{NewestEntryTime: noon - hour + 1}, noon))
	assert.False(t, p.Leaves(Shard{NewestEntryTime: noon - hour}, noon))
	assert.False(t, p.Leaves(Shard{}, noon), "nobody knows when it was written")
	assert.False(t, DefaultPolicy().Leaves(Shard{NewestEntryTime: noon}, noon))
	r := p.Reach()
	assert.True(t, r.Live(ShardTail{TouchedTime: noon - hour + 1}, noon))
	assert.False(t, r.Live(ShardTail{TouchedTime: noon - hour}, noon))
}

func TestEvidenceIsCleanOnlyIfNothingAtAllIsLeftBehind(t *testing.T) {
	assert.True(t, proof(7).Clean())
	for why, dirty := range map[string]func(*Evidence){
		"a generation that is pending":         func(e *Evidence) { e.Pending = 1 },
		"generations that nobody counted":      func(e *Evidence) { e.Pending = -1 },
		"an entry that was never flushed":      func(e *Evidence) { e.Stranded = 1 },
		"an entry of which nobody can tell":    func(e *Evidence) { e.Unknown = 1 },
		"anything else that stands in the way": func(e *Evidence) { e.Blocking = []string{"merged and still listed"} },
	} {
		t.Run(why, func(t *testing.T) {
			e := proof(7)
			dirty(&e)
			assert.False(t, e.Clean())
		})
	}
}

func TestWhatAPersonAsksForIsDecidedByKindAndNeverAgainstTheFleet(t *testing.T) {
	row := quiet()
	row.Shards = []Shard{{ShardMark: ShardMark{ID: "s1"}}}
	decide := func(a Asked, p Policy) Decision {
		a.ByHand = true
		_, d := DecideAsked(a, row, p, History{}, noon)
		return d
	}
	off, paused := ObserveOnly(), DefaultPolicy()
	paused.Paused = "release week"
	for _, a := range []Asked{{Action: ActSeal, Shard: "s1"}, {Action: ActAccept}} {
		assert.Equal(t, DoMerge, decide(a, DefaultPolicy()).Action, a.Action)
		assert.Equal(t, Decision{Action: DoNothing, Reason: "maintenance is off: observe only", Held: HeldOff}, decide(a, off), a.Action)
		assert.Equal(t, Decision{Action: DoNothing, Reason: "paused: release week", Held: HeldPaused}, decide(a, paused), a.Action)
	}
	assert.Equal(t, HeldRefused, decide(Asked{Action: ActSeal, Shard: "s2"}, DefaultPolicy()).Held)
	assert.Equal(t, DoNothing, decide(Asked{Action: ActRetire}, DefaultPolicy()).Action, "it is not cold")
	assert.Equal(t, DoRetire, decide(Asked{Action: ActRetire, Force: true}, DefaultPolicy()).Action)

	assert.Equal(t, "3 small fragments, compacted from 2 on", decide(Asked{Action: ActOptimize}, DefaultPolicy()).Reason)
	row.PendingWAL = 1
	assert.Equal(t, "1 pending generation, merged from 1 on", decide(Asked{Action: ActOptimize}, DefaultPolicy()).Reason)
	row.PendingWAL, row.FragmentCount, row.SmallFragments = 0, 1, 1
	d := decide(Asked{Action: ActOptimize}, DefaultPolicy())
	assert.Equal(t, []any{DoNothing, "1 fragment, below 2"}, []any{d.Action, d.Reason})
	row.PendingWAL = -1
	assert.Equal(t, "unknown pending generations; 1 fragment, below 2", decide(Asked{Action: ActOptimize}, DefaultPolicy()).Reason)
	row.PendingWAL, row.FragmentCount, row.SmallFragments = 0, 40, 40
	d = decide(Asked{Action: ActOptimize}, off)
	assert.Equal(t, []any{DoNothing, HeldOff}, []any{d.Action, d.Held})
}

func TestAReachLeavesLiveShardsOnlyWhereThePolicySaysSo(t *testing.T) {
	assert.Equal(t, Reach{SilentFor: hour}, DefaultPolicy().Reach())
	p := DefaultPolicy()
	p.LiveShards = LeaveLiveShards
	assert.Equal(t, Reach{SilentFor: hour, LeaveWithin: hour}, p.Reach())
	now := ShardTail{NewestTime: noon, TouchedTime: noon, Stranded: 1}
	assert.Equal(t, LeaveShard, p.Reach().Step(now, noon))
	assert.Equal(t, DrainShard, DefaultPolicy().Reach().Step(now, noon), "beside its writer, and never sealed under it")
	assert.Equal(t, SealShard, DefaultPolicy().Reach().Step(now, noon+hour))
	now.Stranded = 0
	assert.Equal(t, DrainShard, DefaultPolicy().Reach().Step(now, noon+hour))
}

func TestNothingRetiresBesideALiveShardThatIsLeftToItsWriter(t *testing.T) {
	row := coldRow()
	row.PendingWAL, row.Shards = 2, []Shard{{ShardMark: ShardMark{ID: "s1"}, Pending: 2, CurrentGeneration: 9, NewestEntryTime: noon - 10*min1}}
	p := DefaultPolicy()
	p.LiveShards = LeaveLiveShards
	d := DecideForced(row, p, History{}, noon)
	assert.Equal(t, []any{DoNothing, HeldRefused, noon + 50*min1}, []any{d.Action, d.Held, d.NotBefore}, d.Reason)
	assert.Equal(t, DoRetire, DecideForced(row, p, History{}, d.NotBefore).Action)
}

func TestACounterThatStandsAtItsMarkHasBegunAnew(t *testing.T) {
	row := quiet()
	row.PendingWAL, row.Shards = 9, []Shard{{ShardMark: ShardMark{ID: "s1"}, Pending: 9, CurrentGeneration: 4, CompactedMark: 4}}
	assert.Contains(t, Decide(row, DefaultPolicy(), History{}, noon).Reason, "restarted its generation counter")
	row.Shards[0].CurrentGeneration = 5
	assert.Equal(t, DoMerge, Decide(row, DefaultPolicy(), History{}, noon).Action)
}

func TestWhatWasOnlyHeldUpIsNoFailure(t *testing.T) {
	h := Histories([]Action{acted(1, ActRetire, OutcomeFailed), acted(2, ActRetire, OutcomeRefused).saying(ClassHeld, "paused")})[exp1.ID]
	assert.Equal(t, Tries{1, noon + min1, ""}, h.Retire)
}

func TestTailsThatWereNotClassifiedAreNotRemembered(t *testing.T) {
	for _, f := range []Facts{factsAt(5, func(f *Facts) { f.Stranded = 2 }), factsAt(5, func(f *Facts) { f.Unknown = 2 })} {
		assert.Zero(t, Histories([]Action{acted(1, ActMergeWAL, OutcomeDone).after(f)})[exp1.ID].TailsAt)
	}
}

func TestAnOverrideReachesEveryFieldThatItNames(t *testing.T) {
	o := Override{
		Maintain: ptr(false), Paused: ptr("why"), RetireAfter: ptr(1 * time.Second), MergeMinGenerations: ptr(int64(2)),
		MergeTailsAfter: ptr(3 * time.Second), CompactMinFragments: ptr(int64(4)), TargetBytes: ptr(int64(5)), TargetRows: ptr(int64(6)),
		CleanupOlderThan: ptr(7 * time.Second), LiveShards: ptr(LeaveLiveShards), QuietWindow: ptr(Window{1, 2}),
	}
	got, _ := Policies{Overrides: []Override{o}}.For(exp1.ID)
	assert.Equal(t, Policy{
		Paused: "why", RetireAfter: time.Second, MergeMinGenerations: 2, MergeTailsAfter: 3 * time.Second, CompactMinFragments: 4,
		TargetBytes: 5, TargetRows: 6, CleanupOlderThan: 7 * time.Second, LiveShards: LeaveLiveShards, QuietWindow: Window{1, 2},
	}, got)
}
