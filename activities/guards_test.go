package activities

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/workflows"
)

func TestAWriteWhileNewEvidenceIsMadeDoesNotStayRetired(t *testing.T) {
	w := newWorld("a").retire("a", 2)
	w.maintainedByOthers()
	w.verified = w.evidence(4) // somebody appended between the look and the verification

	r, err := do[workflows.CommitResult](t, w.scan().CommitRound, stagedRound(t, w))

	require.NoError(t, err)
	require.Equal(t, 1, r.Returned)
	require.Len(t, w.head().Rows, 1)
	require.False(t, w.entry("a").Retired())
}

func TestEvidenceThatNamesWhatBlocksIsRefusedByTheDropItself(t *testing.T) {
	w := newWorld("a").seen()
	in := dropIn(w, "a", 2)
	in.Evidence.Blocking = []string{"shard s1: merged and still listed"}
	r, err := do[workflows.DropResult](t, w.maintenance(nil).DropRow, in)
	require.NoError(t, err)
	require.NotEmpty(t, r.Refused)
	require.Nil(t, w.entry("a"))
}

func TestARetirementByAnotherRunIsNotThisOnesOwn(t *testing.T) {
	w := newWorld("a").seen().retire("a", 1)
	w.now = w.now.Add(time.Minute)
	in := dropIn(w, "a", 2)

	r, err := do[workflows.DropResult](t, w.maintenance(nil).DropRow, in)

	require.NoError(t, err)
	require.Empty(t, r.Refused)
	require.Equal(t, in.Evidence, w.entry("a").Evidence, "what this run saw counts")
	require.Len(t, w.ledger, 2)
}

func TestAnAttemptWhoseTimeIsOverBeginsNoOtherShard(t *testing.T) {
	w := newWorld("a")
	h := shards(w, map[string]int64{s1: 100, s2: 1})
	merge := h.merge
	h.merge = func(s lance.MergeSpec) (lance.Merged, error) {
		w.now = w.now.Add(16 * time.Minute)
		return merge(s)
	}
	r, err := do[workflows.MergeResult](t, w.maintenance(h).MergeWAL, mergeIn())
	require.NoError(t, err)
	require.True(t, r.More)
	require.Equal(t, []string{"classify", "merge " + s1}, h.calls)
}

func TestThousandsOfRefusedShardsAreToldByEightSentences(t *testing.T) {
	w := newWorld("a")
	h := &fakeHeavy{}
	h.tails = func() ([]lance.Tail, error) {
		var tails []lance.Tail
		for i := range 20 {
			tails = append(tails, lance.Tail{Shard: strconv.Itoa(i)})
		}
		return tails, nil
	}
	h.merge = func(s lance.MergeSpec) (lance.Merged, error) {
		return lance.Merged{Refused: &lance.Refusal{Sentence: "shard " + s.Shard + " is sealed"}}, nil
	}
	r, err := do[workflows.MergeResult](t, w.maintenance(h).MergeWAL, mergeIn())
	require.NoError(t, err)
	require.Len(t, r.Refused, refusalsTold)
	require.Equal(t, "shard 7 is sealed", r.Refused[refusalsTold-1])
}

func TestADropLooksAtTheExperimentThatItsRunMeant(t *testing.T) {
	w := newWorld("a").seen()
	in := dropIn(w, "a", 2)
	in.Target.URI = "/data/where-it-was-before"
	r, err := do[workflows.DropResult](t, w.maintenance(nil).DropRow, in)
	require.NoError(t, err)
	require.Contains(t, r.Refused, "another uri")
	require.Empty(t, w.ledger)
	require.Equal(t, fleet.Hot, fleet.StateOf(&w.head().Rows[0], w.entry("a")))
}

// One was killed after its commit; the other's drain lost to a writer that claimed the
// shard.
func TestAPassThatOnlyDrainsAndOneThatOnlyMergesAreProgress(t *testing.T) {
	w := newWorld("a")
	passes := map[string][]lance.Merged{
		s1: {{Drained: 3, Left: 2}, {Generations: 2, Drained: 2}},
		s2: {{Generations: 2, Left: 2}, {Generations: 2, Drained: 4}},
	}
	h := shards(w, nil)
	h.merge = func(s lance.MergeSpec) (lance.Merged, error) {
		next := passes[s.Shard][0]
		passes[s.Shard] = passes[s.Shard][1:]
		return next, nil
	}
	r, err := do[workflows.MergeResult](t, w.maintenance(h).MergeWAL, mergeIn())
	require.NoError(t, err)
	require.Equal(t, []int64{4, 6, 9, 0}, []int64{int64(r.Passes), r.Generations, r.Drained, r.Left})
}
