package activities

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/workflows"
)

// silent plays one shard with entries that its dead writer never flushed.
func silent(w *fakeWorld) *fakeHeavy {
	h := shards(w, map[string]int64{s1: 1})
	old := w.now.Add(-2 * time.Hour).UnixMilli()
	h.tails = func() ([]lance.Tail, error) {
		return []lance.Tail{{Shard: s1, Stranded: 2, NewestTime: old, TouchedTime: old}}, nil
	}
	h.seal = func(s lance.SealSpec) (lance.Sealed, error) {
		return lance.Sealed{Shard: s.Shard, Entries: make([]lance.TailEntry, 2), Rows: 7, Generation: 5, Requests: fleet.Requests{Put: 3}}, nil
	}
	return h
}

var refusal = &lance.Refusal{Code: "unknown", Sentence: "nobody can tell"}

func TestASealThatIsRefusedIsToldAndTheRestIsMerged(t *testing.T) {
	w := newWorld("a")
	h := silent(w)
	h.seal = func(lance.SealSpec) (lance.Sealed, error) {
		return lance.Sealed{Refused: refusal, Entries: make([]lance.TailEntry, 2), Rows: 7}, nil
	}
	r, err := do[workflows.MergeResult](t, w.maintenance(h).MergeWAL, mergeIn())
	require.NoError(t, err)
	require.Equal(t, []string{"nobody can tell"}, r.Refused)
	require.Zero(t, r.Sealed+int(r.SealedRows))
	require.Equal(t, int64(1), r.Generations)
}

func TestAfterASealTailsAreCountedAnewAlsoWhereTheMergeIsRefused(t *testing.T) {
	w := newWorld("a")
	h := silent(w)
	tails := h.tails
	h.tails = func() ([]lance.Tail, error) {
		if len(h.calls) > 1 {
			return []lance.Tail{{Shard: s1}}, nil
		}
		return tails()
	}
	h.merge = func(lance.MergeSpec) (lance.Merged, error) {
		return lance.Merged{Refused: refusal, Requests: fleet.Requests{Get: 4}}, nil
	}
	r, err := do[workflows.MergeResult](t, w.maintenance(h).MergeWAL, mergeIn())
	require.NoError(t, err)
	require.Zero(t, r.Stranded)
	require.Equal(t, fleet.Requests{Put: 3, Get: 4}, r.Requests)
}

func TestAMergeThatCannotGoOnEndsWithThatError(t *testing.T) {
	lost := &lance.Error{Class: lance.Conflict, Message: "fenced"}
	for name, c := range map[string]struct {
		change func(h *fakeHeavy)
		calls  []string
	}{
		"nobody tells the tails": {func(h *fakeHeavy) { h.tails = func() ([]lance.Tail, error) { return nil, lost } }, []string{"classify"}},
		"the seal": {func(h *fakeHeavy) {
			h.seal = func(lance.SealSpec) (lance.Sealed, error) { return lance.Sealed{}, lost }
		}, []string{"classify", "seal " + s1}},
		"nobody tells the tails afterwards": {func(h *fakeHeavy) {
			tails := h.tails
			h.tails = func() ([]lance.Tail, error) {
				if len(h.calls) > 1 {
					return nil, lost
				}
				return tails()
			}
		}, []string{"classify", "seal " + s1, "merge " + s1, "classify"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld("a")
			h := silent(w)
			c.change(h)
			_, err := do[workflows.MergeResult](t, w.maintenance(h).MergeWAL, mergeIn())
			require.Equal(t, "conflict", classOf(err))
			require.Equal(t, c.calls, h.calls)
		})
	}
}

func TestAnOperatorsSealTellsWhatItDidOrWhyNot(t *testing.T) {
	w := newWorld("a")
	h := silent(w)
	sealed := h.seal
	var asked lance.SealSpec
	h.seal = func(s lance.SealSpec) (lance.Sealed, error) { asked = s; return sealed(s) }
	in := workflows.SealInput{Target: target("a"), Shard: s1, AllowUnknown: true, Limits: mergeIn().Limits}
	r, err := do[workflows.SealResult](t, w.maintenance(h).SealShard, in)
	require.NoError(t, err)
	require.Equal(t, workflows.SealResult{Entries: 2, Rows: 7, Generation: 5}, r)
	require.Equal(t, lance.SealSpec{URI: exp("a").URI, Shard: s1, SilentFor: time.Hour, AllowUnknown: true}, asked)

	h.seal = func(lance.SealSpec) (lance.Sealed, error) { return lance.Sealed{Refused: refusal, Rows: 7}, nil }
	r, err = do[workflows.SealResult](t, w.maintenance(h).SealShard, in)
	require.NoError(t, err)
	require.Equal(t, workflows.SealResult{Refused: "nobody can tell"}, r)

	h.seal = func(lance.SealSpec) (lance.Sealed, error) { return lance.Sealed{}, lance.ErrUnreachable }
	_, err = do[workflows.SealResult](t, w.maintenance(h).SealShard, in)
	require.Equal(t, "unreachable", classOf(err))
}
