package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/store"
)

func hintIDs(from, to int) []fleet.ID {
	var ids []fleet.ID
	for i := from; i < to; i++ {
		ids = append(ids, fleet.ID{Kind: fleet.Rollout, Name: fmt.Sprintf("exp-%03d", i)})
	}
	return ids
}

func setOf(ids []fleet.ID) map[fleet.ID]bool {
	set := map[fleet.ID]bool{}
	for _, id := range ids {
		set[id] = true
	}
	return set
}

func objectsBelow(t *testing.T, b *backend, folder string) int {
	t.Helper()
	objects, err := b.List(t.Context(), b.dir+"/"+folder, 0)
	require.NoError(t, err)
	return len(objects)
}

func hintsTaken(t *testing.T, b *backend) {
	s := store.NewStaging(b, b.dir)
	key, ids, err := s.TakeHints(t.Context(), "round-0")
	require.NoError(t, err)
	require.Empty(t, key, "nothing waits")
	require.Empty(t, ids)

	require.NoError(t, s.PutHints(t.Context(), "run-1", hintIDs(0, 3)))
	require.NoError(t, s.PutHints(t.Context(), "run-2", hintIDs(2, 5)))
	key, ids, err = s.TakeHints(t.Context(), "round-1")
	require.NoError(t, err)
	require.Equal(t, hintIDs(0, 5), ids)
	there, err := store.NewStaging(b, b.dir).Hints(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, setOf(hintIDs(0, 5)), there)
	require.Zero(t, objectsBelow(t, b, "_lancefleet/hints"))

	other, ids, err := s.TakeHints(t.Context(), "round-2")
	require.NoError(t, err)
	require.Empty(t, other, "a round took them already")
	require.Empty(t, ids)
	_, err = s.RemovePages(t.Context(), "round-1")
	require.NoError(t, err)
	require.Zero(t, objectsBelow(t, b, "_lancefleet/rounds/round-1"))
}

func hintsRetried(t *testing.T, b *backend) {
	s := store.NewStaging(b, b.dir)
	require.NoError(t, s.PutHints(t.Context(), "run-1", hintIDs(0, 3)))
	_, _, err := s.TakeHints(t.Context(), "round-1") // its answer is lost
	require.NoError(t, err)
	require.NoError(t, s.PutHints(t.Context(), "run-2", hintIDs(7, 8)))

	key, ids, err := s.TakeHints(t.Context(), "round-1")

	require.NoError(t, err)
	require.Equal(t, append(hintIDs(0, 3), hintIDs(7, 8)...), ids)
	there, err := s.Hints(t.Context(), key)
	require.NoError(t, err)
	require.Len(t, there, 4)
}

func hintsBounded(t *testing.T, b *backend) {
	s := store.NewStaging(b, b.dir)
	for i := range 20 {
		require.NoError(t, s.PutHints(t.Context(), fmt.Sprintf("run-%d", i), hintIDs(0, 3)))
	}
	require.Equal(t, 1, objectsBelow(t, b, "_lancefleet/hints"), "what waits already is not stored again")
	require.NoError(t, s.PutHints(t.Context(), "run-0", hintIDs(0, 3)), "an attempt made again")
}

func hintsSwept(t *testing.T, b *backend) {
	s := store.NewStaging(b, b.dir)
	require.NoError(t, s.PutHints(t.Context(), "run-1", hintIDs(0, 1)))
	b.put(t, "_lancefleet/hints/notes.txt", "somebody's")
	removed, err := s.Sweep(t.Context(), "", time.Now().UnixMilli())
	require.NoError(t, err)
	require.Zero(t, removed, "young")
	now, aged := b.later(t, 25*time.Hour)
	if !aged {
		return // a bucket dates its objects itself
	}
	_, err = s.PutListing(t.Context(), listing(3))
	require.NoError(t, err)
	removed, err = s.Sweep(t.Context(), "", now.UnixMilli())
	require.NoError(t, err)
	require.Equal(t, 1, removed)
	require.Equal(t, 1, objectsBelow(t, b, "_lancefleet/hints"), "a foreign file is not ours to remove")
}

func hintsDamaged(t *testing.T, b *backend) {
	s := store.NewStaging(b, b.dir)
	b.put(t, "_lancefleet/hints/bad.json.gz", "not even gzip")
	b.put(t, "secret", "x")
	require.NoError(t, s.PutHints(t.Context(), "run-1", hintIDs(0, 1)))
	_, ids, err := s.TakeHints(t.Context(), "round-1")
	require.NoError(t, err, "one that nobody can read must not hold up the others")
	require.Equal(t, hintIDs(0, 1), ids)
	require.Zero(t, objectsBelow(t, b, "_lancefleet/hints"))
	for _, key := range []string{"secret", "../secret", "_lancefleet/hints/run-1.json.gz", "_lancefleet/rounds/../../secret", ""} {
		_, err := s.Hints(t.Context(), key)
		require.ErrorIs(t, err, lance.ErrInvalid, key)
	}
	for _, id := range []string{"", "..", "a/b"} {
		require.ErrorIs(t, s.PutHints(t.Context(), id, hintIDs(0, 1)), lance.ErrInvalid)
		_, _, err := s.TakeHints(t.Context(), id)
		require.ErrorIs(t, err, lance.ErrInvalid)
	}
}
