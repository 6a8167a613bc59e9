package store_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/store"
)

func stagingSuite() map[string]func(*testing.T, *backend) {
	return map[string]func(*testing.T, *backend){
		"a listing is kept under the hash of its content":         stagingListing,
		"a listing that was damaged is noticed":                   stagingDamaged,
		"each attempt at a page stores an object of its own":      stagingPages,
		"pages of one round go and everything else stays":         stagingRemove,
		"a sweep takes what is older than a day and not in use":   stagingSweep,
		"the storage tells its time":                              storageTells,
		"what events named is taken by one round":                 hintsTaken,
		"a round begun again finds what it had taken":             hintsRetried,
		"hints never pile up":                                     hintsBounded,
		"hints that no round takes are swept after a day":         hintsSwept,
		"damaged hints hold up nothing":                           hintsDamaged,
		"keys from outside can't name anything but staged things": stagingKeys,
	}
}

func listing(n int) store.Listing {
	l := store.Listing{From: []string{"/data"}, Problems: []store.Problem{{Name: "x", Why: "y"}}}
	for i := range n {
		l.Experiments = append(l.Experiments, experiment(i))
	}
	return l
}

func stagingListing(t *testing.T, b *backend) {
	s := store.NewStaging(b, b.dir)
	hash, err := s.PutListing(t.Context(), listing(500))
	require.NoError(t, err)
	again, err := store.NewStaging(b, b.dir).PutListing(t.Context(), listing(500))
	require.NoError(t, err)
	require.Equal(t, hash, again)
	other, err := s.PutListing(t.Context(), listing(499))
	require.NoError(t, err)
	require.NotEqual(t, hash, other)
	reader := store.NewStaging(b, b.dir)
	back, err := reader.Listing(t.Context(), hash)
	require.NoError(t, err)
	require.Equal(t, listing(500), *back)
	same, err := reader.Listing(t.Context(), hash)
	require.NoError(t, err)
	require.Same(t, back, same)
	_, err = reader.Listing(t.Context(), strings.Repeat("0", 64))
	require.ErrorIs(t, err, lance.ErrGone)
}

func stagingDamaged(t *testing.T, b *backend) {
	s := store.NewStaging(b, b.dir)
	hash, err := s.PutListing(t.Context(), listing(3))
	require.NoError(t, err)
	other, err := s.PutListing(t.Context(), listing(4))
	require.NoError(t, err)
	key := func(h string) string { return "_lancefleet/listings/" + h + ".json.gz" }
	wrong, err := b.Get(t.Context(), b.dir+"/"+key(other))
	require.NoError(t, err)
	b.put(t, key(hash), string(wrong.Body))
	_, err = store.NewStaging(b, b.dir).Listing(t.Context(), hash)
	require.ErrorIs(t, err, lance.ErrCorrupt)
	b.put(t, key(hash), "not even gzip")
	_, err = store.NewStaging(b, b.dir).Listing(t.Context(), hash)
	require.ErrorIs(t, err, lance.ErrCorrupt)
}

func stagingPages(t *testing.T, b *backend) {
	s := store.NewStaging(b, b.dir)
	var keys []string
	for range 2 {
		key, err := s.PutPage(t.Context(), "round-1", 3, 1, observedRows(20, int64(len(keys))))
		require.NoError(t, err)
		keys = append(keys, key)
	}
	require.NotEqual(t, keys[0], keys[1], "a late twin of an attempt must not overwrite")
	for i, key := range keys {
		require.True(t, strings.HasPrefix(key, "_lancefleet/rounds/round-1/page-3-attempt-1-"), key)
		rows, err := store.NewStaging(b, b.dir).Page(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, observedRows(20, int64(i)), rows)
	}
	b.put(t, keys[0], "cut")
	_, err := s.Page(t.Context(), keys[0])
	require.ErrorIs(t, err, lance.ErrCorrupt)
	empty, err := s.PutPage(t.Context(), "round-1", 4, 1, nil)
	require.NoError(t, err)
	rows, err := s.Page(t.Context(), empty)
	require.NoError(t, err)
	require.Empty(t, rows)
}

func stagingRemove(t *testing.T, b *backend) {
	s := store.NewStaging(b, b.dir)
	put := func(round string, page int) string {
		key, err := s.PutPage(t.Context(), round, page, 1, observedRows(2, 1))
		require.NoError(t, err)
		return key
	}
	mine := []string{put("round", 1), put("round", 2)}
	theirs := put("round-2", 1)
	if b.local { // a worker was killed while it wrote
		torn := filepath.Join(b.dir, "_lancefleet/rounds/round/page-3-attempt-1-ABC.arrow#1")
		require.NoError(t, os.WriteFile(torn, []byte("{"), 0o600))
	}
	b.put(t, "_lancefleet/rounds/round-2/notes.txt", "somebody's")
	removed, err := s.RemovePages(t.Context(), "round")
	require.NoError(t, err)
	require.Equal(t, 2, removed)
	for _, key := range mine {
		_, err := s.Page(t.Context(), key)
		require.ErrorIs(t, err, lance.ErrGone)
	}
	_, err = s.Page(t.Context(), theirs)
	require.NoError(t, err)
	removed, err = s.RemovePages(t.Context(), "round-2")
	require.NoError(t, err)
	require.Equal(t, 1, removed)
	_, err = b.Get(t.Context(), b.dir+"/_lancefleet/rounds/round-2/notes.txt")
	require.NoError(t, err, "a foreign file is not ours to remove")
	removed, err = s.RemovePages(t.Context(), "round-3")
	require.NoError(t, err)
	require.Zero(t, removed)
	if b.local {
		_, err := os.Stat(filepath.Join(b.dir, "_lancefleet/rounds/round"))
		require.ErrorIs(t, err, os.ErrNotExist, "empty folders don't pile up")
		_, err = os.Stat(filepath.Join(b.dir, "_lancefleet/rounds/round-2"))
		require.NoError(t, err)
	}
}

func stagingSweep(t *testing.T, b *backend) {
	s := store.NewStaging(b, b.dir)
	page, err := s.PutPage(t.Context(), "round", 1, 1, observedRows(2, 1))
	require.NoError(t, err)
	current, err := s.PutListing(t.Context(), listing(1))
	require.NoError(t, err)
	old, err := s.PutListing(t.Context(), listing(2))
	require.NoError(t, err)
	_, err = store.ClaimIdentity(t.Context(), b, b.dir, store.Identity{})
	require.NoError(t, err)
	for _, wrong := range []time.Duration{-25 * time.Hour, -time.Hour, 0, time.Hour, 25 * time.Hour} {
		removed, err := s.Sweep(t.Context(), current, time.Now().Add(wrong).UnixMilli())
		require.NoError(t, err)
		require.Zero(t, removed, "all of it is young, whatever a worker's clock says: %v", wrong)
	}
	now, aged := b.later(t, 25*time.Hour)
	if !aged {
		return // a bucket dates its objects itself
	}
	_, err = s.PutListing(t.Context(), listing(3))
	require.NoError(t, err)
	removed, err := s.Sweep(t.Context(), current, now.Add(-24*time.Hour).UnixMilli())
	require.NoError(t, err)
	require.Zero(t, removed, "a clock that is behind only delays")
	removed, err = s.Sweep(t.Context(), current, now.UnixMilli())
	require.NoError(t, err)
	require.Equal(t, 2, removed)
	other := store.NewStaging(b, b.dir)
	_, err = other.Page(t.Context(), page)
	require.ErrorIs(t, err, lance.ErrGone)
	_, err = other.Listing(t.Context(), old)
	require.ErrorIs(t, err, lance.ErrGone)
	_, err = other.Listing(t.Context(), current)
	require.NoError(t, err)
	there, err := store.ReadIdentity(t.Context(), b, b.dir)
	require.NoError(t, err)
	require.NotNil(t, there)
}

func stagingKeys(t *testing.T, b *backend) {
	s := store.NewStaging(b, b.dir)
	b.put(t, "secret", "x")
	for _, key := range []string{"secret", "../secret", "_lancefleet/fleet.json", "_lancefleet/rounds/../../secret", ""} {
		_, err := s.Page(t.Context(), key)
		require.ErrorIs(t, err, lance.ErrInvalid, key)
		_, err = s.Listing(t.Context(), key)
		require.ErrorIs(t, err, lance.ErrInvalid, key)
	}
	for _, round := range []string{"", "..", "a/b", ".", "a b"} {
		_, err := s.PutPage(t.Context(), round, 1, 1, nil)
		require.ErrorIs(t, err, lance.ErrInvalid, round)
		_, err = s.RemovePages(t.Context(), round)
		require.ErrorIs(t, err, lance.ErrInvalid, round)
	}
}

func TestAListingIsPutAgainBeforeItGetsOld(t *testing.T) {
	b := memoryBackend()
	s := store.NewStaging(b, b.dir)
	now := time.Now()
	b.memory.Now = func() time.Time { return now }
	store.SetClock(s, b.memory.Now)
	puts := func() int { return b.memory.Calls("put") }
	for _, step := range []struct {
		after time.Duration
		puts  int
	}{{0, 1}, {time.Minute, 1}, {59 * time.Minute, 2}, {30 * time.Minute, 2}, {26 * time.Hour, 3}} {
		now = now.Add(step.after)
		_, err := s.PutListing(t.Context(), listing(5))
		require.NoError(t, err)
		require.Equal(t, step.puts, puts())
	}
}

func TestPagesOfManyRowsAreSmall(t *testing.T) {
	b := memoryBackend()
	rows := observedRows(1000, 1)
	key, err := store.NewStaging(b, b.dir).PutPage(t.Context(), "r", 0, 1, rows)
	require.NoError(t, err)
	object, err := b.Get(t.Context(), b.dir+"/"+key)
	require.NoError(t, err)
	t.Logf("%d bytes a row", len(object.Body)/len(rows))
	require.Less(t, len(object.Body), 300*len(rows))
	require.True(t, slices.IsSortedFunc(rows, func(a, b fleet.Row) int { return a.Compare(b.ID) }))
}
