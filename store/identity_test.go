package store_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"lancefleet/lance"
	"lancefleet/store"
)

func identitySuite() map[string]func(*testing.T, *backend) {
	return map[string]func(*testing.T, *backend){
		"of many who claim a directory one wins and all agree": identityRace,
		"a foreign fleet is refused":                           identityForeign,
		"an identity that can't be read is never overwritten":  identityCorrupt,
	}
}

func identityRace(t *testing.T, b *backend) {
	none, err := store.ReadIdentity(t.Context(), b, b.dir)
	require.NoError(t, err)
	require.Nil(t, none)
	seen := map[string]bool{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			got, err := store.ClaimIdentity(t.Context(), b, b.dir, store.Identity{Name: "default"})
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			seen[got.FleetID] = true
		})
	}
	wg.Wait()
	require.Len(t, seen, 1)
	there, err := store.ReadIdentity(t.Context(), b, b.dir)
	require.NoError(t, err)
	require.True(t, seen[there.FleetID])
	require.Equal(t, "default", there.Name)
	require.Positive(t, there.CreatedAt)
}

func identityForeign(t *testing.T, b *backend) {
	mine, err := store.ClaimIdentity(t.Context(), b, b.dir, store.Identity{FleetID: "one", Name: "default", CreatedAt: 5})
	require.NoError(t, err)
	require.Equal(t, store.Identity{FleetID: "one", Name: "default", CreatedAt: 5}, mine)
	for _, want := range []store.Identity{{FleetID: "two", Name: "default"}, {FleetID: "one", Name: "other"}, {Name: "other"}} {
		there, err := store.ClaimIdentity(t.Context(), b, b.dir, want)
		var foreign *store.ForeignFleetError
		require.ErrorAs(t, err, &foreign)
		require.Contains(t, err.Error(), b.dir)
		require.Equal(t, mine, there)
	}
	for _, want := range []store.Identity{{}, {FleetID: "one"}, {Name: "default"}, mine} {
		again, err := store.ClaimIdentity(t.Context(), b, b.dir, want)
		require.NoError(t, err)
		require.Equal(t, mine, again)
	}
}

func identityCorrupt(t *testing.T, b *backend) {
	for _, body := range []string{"{", "{}", "", "[]"} {
		b.put(t, "_lancefleet/fleet.json", body)
		_, err := store.ClaimIdentity(t.Context(), b, b.dir, store.Identity{Name: "default"})
		require.ErrorIs(t, err, lance.ErrCorrupt)
		object, err := b.Get(t.Context(), b.dir+"/_lancefleet/fleet.json")
		require.NoError(t, err)
		require.Equal(t, body, string(object.Body))
	}
}
