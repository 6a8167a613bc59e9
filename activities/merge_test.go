package activities

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/workflows"
)

const s1, s2 = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"

// shards plays merges over shards with so many pending generations each.
func shards(w *fakeWorld, pending map[string]int64) *fakeHeavy {
	marks := map[string]uint64{}
	h := &fakeHeavy{fakeWorld: w}
	h.merge = func(s lance.MergeSpec) (lance.Merged, error) {
		n := min(pending[s.Shard], int64(s.MaxGenerations))
		pending[s.Shard] -= n
		marks[s.Shard] += uint64(n)
		return lance.Merged{Shard: s.Shard, Generations: n, Drained: n, Rows: n, Deletes: 2 * n, Left: pending[s.Shard], Mark: marks[s.Shard], Version: 3}, nil
	}
	h.tails = func() ([]lance.Tail, error) { return []lance.Tail{{Shard: s1}, {Shard: s2}}, nil }
	return h
}

func mergeIn() workflows.MergeInput {
	return workflows.MergeInput{Target: target("a"), Limits: workflows.Limits{MergeGenerations: 8, MergeBytes: 1 << 30, SilentFor: time.Hour.Milliseconds()}}
}

func TestEveryShardIsMergedPassByPassUntilNothingIsPending(t *testing.T) {
	w := newWorld("a")
	h := shards(w, map[string]int64{s1: 20, s2: 3})

	r, err := do[workflows.MergeResult](t, w.maintenance(h).MergeWAL, mergeIn())

	require.NoError(t, err)
	require.Equal(t, workflows.MergeResult{
		Passes: 4, Generations: 23, Rows: 23, Deletes: 46, Drained: 23, Shards: 2, Version: 3, Marks: map[string]uint64{s1: 20, s2: 3},
	}, r)
	require.Equal(t, 1, h.closed, "the process ends with the step")
}

func TestABusyWriterCannotKeepAMergeGoing(t *testing.T) {
	w := newWorld("a")
	pending := map[string]int64{s1: 16}
	h := shards(w, pending)
	merge, passes := h.merge, 0
	h.merge = func(s lance.MergeSpec) (lance.Merged, error) {
		if passes++; passes > 100 {
			return lance.Merged{}, errors.New("it never ends")
		}
		r, err := merge(s)
		if s.Shard == s1 {
			pending[s1] += 8 // flushed meanwhile
			r.Left = pending[s1]
		}
		return r, err
	}

	r, err := do[workflows.MergeResult](t, w.maintenance(h).MergeWAL, mergeIn())

	require.NoError(t, err)
	require.Equal(t, int64(24), r.Generations, "what was there when the first pass was over")
	require.Positive(t, r.Left)
	require.False(t, r.More)
}

func TestTheShardThatWasWrittenLastIsMergedLast(t *testing.T) {
	w := newWorld("a")
	h := shards(w, map[string]int64{s1: 1, s2: 1})
	h.tails = func() ([]lance.Tail, error) {
		return []lance.Tail{{Shard: s1, NewestTime: 2000}, {Shard: s2, NewestTime: 1000}}, nil
	}

	_, err := do[workflows.MergeResult](t, w.maintenance(h).MergeWAL, mergeIn())

	require.NoError(t, err)
	require.Equal(t, []string{"classify", "merge " + s2, "merge " + s1, "classify"}, h.calls)
}

func TestARememberedMarkGoesWithEveryPass(t *testing.T) {
	w := newWorld("a")
	h := shards(w, map[string]int64{s1: 20})
	var remembered []uint64
	merge := h.merge
	h.merge = func(s lance.MergeSpec) (lance.Merged, error) {
		if s.Shard == s1 {
			remembered = append(remembered, s.RememberedMark)
		}
		return merge(s)
	}
	in := mergeIn()
	in.Marks = map[string]uint64{s1: 5}

	_, err := do[workflows.MergeResult](t, w.maintenance(h).MergeWAL, in)

	require.NoError(t, err)
	require.Equal(t, []uint64{5, 8, 16}, remembered)
}

func TestAWorkerWhoseClockIsAheadLeavesALiveShardToItsWriter(t *testing.T) {
	for _, ahead := range []time.Duration{-24 * time.Hour, -time.Hour, 0, time.Hour, 24 * time.Hour} {
		t.Run(ahead.String(), func(t *testing.T) {
			w := newWorld("a")
			w.now, w.ahead = time.Unix(1_000_000_000, 0), ahead
			storage := w.now.Add(-ahead)
			h := shards(w, map[string]int64{s1: 1, s2: 1})
			h.tails = func() ([]lance.Tail, error) {
				return []lance.Tail{
					{Shard: s1, NewestTime: storage.Add(-10 * time.Minute).UnixMilli()},
					{Shard: s2, NewestTime: storage.Add(-40 * time.Hour).UnixMilli()},
				}, nil
			}
			in := mergeIn()
			in.Limits.LeaveWrittenWithin = time.Hour.Milliseconds()
			r, err := do[workflows.MergeResult](t, w.maintenance(h).MergeWAL, in)
			require.NoError(t, err)
			require.Equal(t, 1, r.Live)
			require.NotContains(t, h.calls, "merge "+s1)
			require.Contains(t, h.calls, "merge "+s2)
		})
	}
}

func TestWhereTheStorageTellsNoTimeNothingIsMergedBesideItsWriter(t *testing.T) {
	w := newWorld("a")
	w.clockErr = &lance.Error{Class: lance.Unreachable, Op: "put", Message: "no answer"}
	h := shards(w, map[string]int64{s1: 1})
	in := mergeIn()
	_, err := do[workflows.MergeResult](t, w.maintenance(h).MergeWAL, in)
	require.NoError(t, err, "nothing is left to anybody: nobody asks")
	in.Limits.LeaveWrittenWithin = 1
	merges := len(h.calls)
	_, err = do[workflows.MergeResult](t, w.maintenance(h).MergeWAL, in)
	require.Error(t, err)
	require.Len(t, h.calls, merges)
}

func TestStrandedEntriesOfASilentShardAreSealedBeforeTheMerge(t *testing.T) {
	w := newWorld("a")
	old := w.now.Add(-2 * time.Hour).UnixMilli()
	h := shards(w, map[string]int64{s1: 1, s2: 1})
	h.tails = func() ([]lance.Tail, error) {
		if len(h.calls) > 1 {
			return []lance.Tail{{Shard: s1}, {Shard: s2, Stranded: 4, Unknown: 1}}, nil
		}
		return []lance.Tail{
			{Shard: s1, Stranded: 2, NewestTime: old, TouchedTime: old},
			// Written as long ago, and claimed by somebody since.
			{Shard: s2, Stranded: 4, Unknown: 1, NewestTime: old, TouchedTime: w.now.Add(-time.Minute).UnixMilli()},
		}, nil
	}
	h.seal = func(s lance.SealSpec) (lance.Sealed, error) {
		require.Equal(t, time.Hour, s.SilentFor)
		require.False(t, s.AllowUnknown, "only an operator may decide that")
		return lance.Sealed{Shard: s.Shard, Entries: make([]lance.TailEntry, 2), Rows: 7}, nil
	}

	r, err := do[workflows.MergeResult](t, w.maintenance(h).MergeWAL, mergeIn())

	require.NoError(t, err)
	require.Equal(t, []string{"classify", "seal " + s1, "merge " + s1, "merge " + s2, "classify"}, h.calls)
	require.Equal(t, 1, r.Sealed)
	require.Equal(t, int64(7), r.SealedRows)
	require.Equal(t, int64(4), r.Stranded, "those of the shard that is not silent yet")
	require.Equal(t, int64(1), r.Unknown)
}

func TestARefusalOfOneShardDoesNotHoldUpTheOthers(t *testing.T) {
	w := newWorld("a")
	h := shards(w, map[string]int64{s1: 3, s2: 3})
	merge := h.merge
	h.merge = func(s lance.MergeSpec) (lance.Merged, error) {
		if s.Shard == s1 {
			return lance.Merged{Shard: s1, Left: 3, Refused: &lance.Refusal{Code: "sealed", Sentence: "shard 1 is sealed"}}, nil
		}
		return merge(s)
	}

	r, err := do[workflows.MergeResult](t, w.maintenance(h).MergeWAL, mergeIn())

	require.NoError(t, err)
	require.Equal(t, []string{"shard 1 is sealed"}, r.Refused)
	require.Equal(t, int64(3), r.Generations)
	require.Equal(t, int64(3), r.Left)
	require.False(t, r.More)
}

func TestAnAttemptWhoseTimeIsOverSaysThatThereIsMore(t *testing.T) {
	w := newWorld("a")
	h := shards(w, map[string]int64{s1: 100})
	merge := h.merge
	h.merge = func(s lance.MergeSpec) (lance.Merged, error) {
		w.now = w.now.Add(6 * time.Minute)
		return merge(s)
	}

	r, err := do[workflows.MergeResult](t, w.maintenance(h).MergeWAL, mergeIn())

	require.NoError(t, err)
	require.True(t, r.More)
	require.Equal(t, 3, r.Passes)
	require.Equal(t, int64(76), r.Left)
	require.Equal(t, uint64(24), r.Marks[s1])
}

func TestAPassThatMovesNothingIsNotMadeForEver(t *testing.T) {
	w := newWorld("a")
	h := shards(w, map[string]int64{})
	h.merge = func(s lance.MergeSpec) (lance.Merged, error) { return lance.Merged{Shard: s.Shard, Left: 5}, nil }

	r, err := do[workflows.MergeResult](t, w.maintenance(h).MergeWAL, mergeIn())

	require.NoError(t, err)
	require.Equal(t, int64(10), r.Left)
	require.Zero(t, r.Passes+r.Shards, "nothing was merged")
	require.Len(t, h.calls, 3)
}

func TestALiveShardIsLeftToItsWriterWhereThePolicySaysSo(t *testing.T) {
	w := newWorld("a")
	h := shards(w, map[string]int64{s1: 3, s2: 3})
	h.tails = func() ([]lance.Tail, error) {
		return []lance.Tail{
			{Shard: s1, NewestTime: w.now.UnixMilli()},
			// Only drained by us.
			{Shard: s2, NewestTime: 1, TouchedTime: w.now.UnixMilli()},
		}, nil
	}
	in := mergeIn()
	in.Limits.LeaveWrittenWithin = time.Hour.Milliseconds()

	r, err := do[workflows.MergeResult](t, w.maintenance(h).MergeWAL, in)

	require.NoError(t, err)
	require.Equal(t, 1, r.Live)
	require.NotContains(t, h.calls, "merge "+s1)
	require.Contains(t, h.calls, "merge "+s2)
}

func TestAConflictEndsTheAttemptBenignly(t *testing.T) {
	w := newWorld("a")
	h := shards(w, map[string]int64{s1: 3})
	h.merge = func(lance.MergeSpec) (lance.Merged, error) {
		return lance.Merged{}, &lance.Error{Class: lance.Conflict, Op: "merge_wal"}
	}
	h.comp = func(lance.CompactSpec) (lance.Compacted, error) {
		return lance.Compacted{}, &lance.Error{Class: lance.Conflict, Op: "compact"}
	}
	m := w.maintenance(h)
	_, merging := do[workflows.MergeResult](t, m.MergeWAL, mergeIn())
	_, compacting := do[workflows.CompactResult](t, m.Compact, workflows.CompactInput{Target: target("a")})
	for _, err := range []error{merging, compacting} {
		var app *temporal.ApplicationError
		require.ErrorAs(t, err, &app)
		require.Equal(t, "conflict", app.Type())
		require.Equal(t, temporal.ApplicationErrorCategoryBenign, app.Category())
		require.False(t, app.NonRetryable())
	}
	require.Equal(t, 2, h.closed)
}

func TestAHeavyStepForAnotherFleetStartsNoProcess(t *testing.T) {
	w := newWorld("a")
	in := mergeIn()
	in.Target.FleetID = "other"
	_, err := do[workflows.MergeResult](t, w.maintenance(&fakeHeavy{}).MergeWAL, in)
	require.Equal(t, typeForeignFleet, workflows.ErrorClass(errors.Unwrap(err)))
}

func TestCompactionGoesOnUntilItsPlanIsEmpty(t *testing.T) {
	w := newWorld("a")
	left := 3
	h := &fakeHeavy{comp: func(s lance.CompactSpec) (lance.Compacted, error) {
		require.Equal(t, lance.CompactSpec{URI: exp("a").URI, TargetRows: 100, MinFragments: 2, MaxSourceFragments: 32, MaxSourceBytes: 99}, s)
		left--
		return lance.Compacted{
			Tasks: 1, FragmentsRemoved: 8, FragmentsAdded: 1, FragmentsBefore: int64(7*left + 8), FragmentsAfter: int64(7*left + 1),
			Rows: 10, Version: uint64(10 - left), More: left > 0,
		}, nil
	}}
	limits := workflows.Limits{CompactTargetRows: 100, CompactFragments: 2, CompactSources: 32, CompactBytes: 99}

	r, err := do[workflows.CompactResult](t, w.maintenance(h).Compact, workflows.CompactInput{Target: target("a"), Limits: limits})

	require.NoError(t, err)
	require.Equal(t, workflows.CompactResult{Passes: 3, Removed: 24, Added: 3, Rows: 30, FragmentsBefore: 22, Fragments: 1, Version: 10}, r)
}

func TestAnEmptyCompactionPlanIsNoPass(t *testing.T) {
	w := newWorld("a")
	h := &fakeHeavy{comp: func(lance.CompactSpec) (lance.Compacted, error) {
		return lance.Compacted{Version: 4, FragmentsBefore: 30, FragmentsAfter: 30}, nil
	}}
	r, err := do[workflows.CompactResult](t, w.maintenance(h).Compact, workflows.CompactInput{Target: target("a")})
	require.NoError(t, err)
	require.Equal(t, workflows.CompactResult{FragmentsBefore: 30, Fragments: 30, Version: 4}, r)
}

func TestACleanupOfAllHistoryIsRefusedWhateverAsksForIt(t *testing.T) {
	w := newWorld("a")
	h := &fakeHeavy{clean: func(time.Duration) (lance.CleanedVersions, error) {
		return lance.CleanedVersions{Removed: 3, Held: []lance.HeldVersion{{By: "tag v1", Version: 1}, {By: "tag v1", Version: 2}, {By: "branch b", Version: 3}}}, nil
	}}
	_, err := do[workflows.CleanupResult](t, w.maintenance(h).CleanupVersions, workflows.CleanupInput{Target: target("a")})
	require.Equal(t, "invalid", workflows.ErrorClass(errors.Unwrap(err)))
	require.Empty(t, h.calls)

	r, err := do[workflows.CleanupResult](t, w.maintenance(h).CleanupVersions, workflows.CleanupInput{Target: target("a"), OlderThan: 1})
	require.NoError(t, err)
	require.Equal(t, []string{"tag v1", "branch b"}, r.Held)
}

func TestTheNextSweepIsDueWithTheFirstFolder(t *testing.T) {
	w := newWorld("a")
	h := &fakeHeavy{sweep: func(s lance.SweepSpec) (lance.Swept, error) {
		require.Equal(t, []time.Duration{5 * time.Minute, time.Hour}, []time.Duration{s.Grace, s.UnknownGrace})
		return lance.Swept{Deleted: make([]lance.SweptFolder, 2), Kept: []lance.SweptFolder{{Due: 30}, {Due: 20}, {Due: 40}, {Due: 0}}, Bytes: 9}, nil
	}}
	limits := workflows.Limits{Grace: (5 * time.Minute).Milliseconds(), UnknownGrace: time.Hour.Milliseconds()}
	r, err := do[workflows.SweepResult](t, w.maintenance(h).SweepGenerations, workflows.SweepInput{Target: target("a"), Limits: limits})
	require.NoError(t, err)
	require.Equal(t, workflows.SweepResult{Deleted: 2, Kept: 4, NextDue: 20, Bytes: 9}, r)
}

func TestEntriesOfALiveShardAreCountedApartAndASilentOneIsSealed(t *testing.T) {
	w := newWorld("a").seen()
	old, now := w.now.Add(-2*time.Hour).UnixMilli(), w.now.UnixMilli()
	h := &fakeHeavy{fakeWorld: w}
	h.tails = func() ([]lance.Tail, error) {
		return []lance.Tail{{Shard: "live", Stranded: 2, NewestTime: now, TouchedTime: now}, {Shard: "gone", Stranded: 3, NewestTime: old, TouchedTime: old}}, nil
	}
	h.merge = func(s lance.MergeSpec) (lance.Merged, error) { return lance.Merged{Shard: s.Shard}, nil }
	h.seal = func(s lance.SealSpec) (lance.Sealed, error) { return lance.Sealed{Shard: s.Shard}, nil }

	r, err := do[workflows.MergeResult](t, w.maintenance(h).MergeWAL, workflows.MergeInput{Target: target("a"), Limits: workflows.Limits{SilentFor: time.Hour.Milliseconds()}})

	require.NoError(t, err)
	require.Equal(t, []string{"classify", "seal gone", "merge gone", "merge live"}, h.calls)
	require.Equal(t, []int64{5, 2}, []int64{r.Stranded, r.Unflushed})
}

func TestAVerificationDoesNotCallStrandedWhatAWriterMayFlush(t *testing.T) {
	words := "shard s: 2 WAL entries with 2 rows are stranded: their writer never flushed them"
	for age, called := range map[time.Duration]bool{time.Minute: false, 2 * time.Hour: true} {
		w := newWorld("a").seen()
		h := &fakeHeavy{fakeWorld: w}
		h.verify = func() (fleet.Evidence, error) { return fleet.Evidence{Stranded: 2, Blocking: []string{words}}, nil }
		h.tails = func() ([]lance.Tail, error) {
			return []lance.Tail{{Shard: "s", Stranded: 2, TouchedTime: w.now.Add(-age).UnixMilli(), Sentence: words}}, nil
		}
		e, err := do[fleet.Evidence](t, w.maintenance(h).VerifyZeroPending, workflows.VerifyInput{Target: target("a")})
		require.NoError(t, err)
		require.False(t, e.Clean())
		require.Equal(t, called, e.Blocking[0] == words, e.Blocking)
	}
}
