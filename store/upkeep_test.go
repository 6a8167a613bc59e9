package store_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/store"
	"lancefleet/store/storetest"
)

func upkeepSuite() map[string]func(*testing.T, *backend) {
	return map[string]func(*testing.T, *backend){
		"upkeep leaves few versions and every row":        upkeepKeeps,
		"upkeep of an empty directory does nothing":       upkeepNothing,
		"registries are only kept when told so":           upkeepRegistries,
		"versions younger than the history stay":          upkeepYoung,
		"rounds with upkeep leave few versions of _stats": upkeepRounds,
		"versions are counted as they lie on disk":        upkeepVersions,
	}
}

func (b *backend) keeper() *store.Keeper {
	if b.memory != nil {
		return store.NewKeeper(b, b.memory, b.dir)
	}
	return store.NewKeeper(b, b.engine.Maintainer(), b.dir)
}

func resultOf(t *testing.T, results []store.UpkeepResult, table string) store.UpkeepResult {
	t.Helper()
	for _, r := range results {
		if r.Table == table {
			return r
		}
	}
	t.Fatalf("no result for %s", table)
	return store.UpkeepResult{}
}

// settle waits until the clock has moved past the last commit, so that it is old.
func settle(t *testing.T) {
	t.Helper()
	now := time.Now().UnixMilli()
	for time.Now().UnixMilli() <= now {
		if err := t.Context().Err(); err != nil {
			t.Fatal(err)
		}
	}
}

func upkeepKeeps(t *testing.T, b *backend) {
	ledger, journal, rounds, samples := newLedger(b), newJournal(b), newRounds(b), newSamples(b)
	s, stats := newStats(b)
	for i := range 20 {
		require.NoError(t, ledger.Append(t.Context(), retirement(i, int64(i))))
		require.NoError(t, journal.Append(t.Context(), fleet.Action{ID: strconv.Itoa(i), At: int64(i), Kind: fleet.ActRetire, Target: experiment(i).ID.String()}))
		require.NoError(t, rounds.Append(t.Context(), round(int64(i))))
		require.NoError(t, samples.Append(t.Context(), fleet.Sample{ID: experiment(1).ID, At: int64(i)}))
		commit(t, stats, latest(t, s), observedRows(i+1, int64(i)))
	}
	settle(t)
	results := b.keeper().Upkeep(t.Context(), store.UpkeepOptions{})
	for _, name := range []string{"_stats.rollout.lance", "_retired.lance", "_journal.lance", "_rounds.lance", "_samples.lance"} {
		r := resultOf(t, results, name)
		require.NoError(t, r.Err)
		require.EqualValues(t, 20, r.Before, name)
		require.LessOrEqual(t, r.After, int64(3), name)
		require.Positive(t, r.Removed)
		require.Positive(t, r.Bytes)
		if name != "_stats.rollout.lance" {
			require.EqualValues(t, 19, r.Fragments, name)
		}
	}
	require.Len(t, latest(t, s).Rows, 20)
	require.Len(t, ledgerView(t, newLedger(b).Ledger).Retired(), 20)
	got, err := newJournal(b).Latest(t.Context(), 0)
	require.NoError(t, err)
	require.Len(t, got, 20)
	all, err := newRounds(b).Latest(t.Context(), 0)
	require.NoError(t, err)
	require.Len(t, all, 20)
	// And appending goes on.
	require.NoError(t, ledger.Append(t.Context(), retirement(20, 20)))
	require.Len(t, ledgerView(t, ledger.Ledger).Retired(), 21)
}

func upkeepNothing(t *testing.T, b *backend) {
	for _, r := range b.keeper().Upkeep(t.Context(), store.UpkeepOptions{Registries: true}) {
		require.NoError(t, r.Err)
		require.Zero(t, r.Before)
		require.Zero(t, r.Removed)
	}
}

func upkeepRegistries(t *testing.T, b *backend) {
	const registry = "_registry.rollout.lance"
	for range 5 {
		b.write(t, registry, table(t, upstreamFields(2), [][]any{{"a", "/a"}})[0])
	}
	settle(t)
	b.keeper().Upkeep(t.Context(), store.UpkeepOptions{})
	versions, err := b.keeper().Versions(t.Context(), registry)
	require.NoError(t, err)
	require.EqualValues(t, 5, versions)
	r := resultOf(t, b.keeper().Upkeep(t.Context(), store.UpkeepOptions{Registries: true}), registry)
	require.NoError(t, r.Err)
	require.EqualValues(t, 2, r.After)
}

func upkeepYoung(t *testing.T, b *backend) {
	s, w := newStats(b)
	for i := range 6 {
		commit(t, w, latest(t, s), observedRows(i+1, 1))
	}
	settle(t)
	keeper := b.keeper()
	r := resultOf(t, keeper.Upkeep(t.Context(), store.UpkeepOptions{HistoryTTL: time.Hour}), statsName)
	require.EqualValues(t, 6, r.After)
	r = resultOf(t, keeper.Upkeep(t.Context(), store.UpkeepOptions{KeepVersions: 4}), statsName)
	require.EqualValues(t, 4, r.After, "the newest stay, however old")
}

func upkeepRounds(t *testing.T, b *backend) {
	many := 500
	if b.memory == nil && !b.local {
		many = 60
	}
	s, w := newStats(b)
	var most int64
	for i := range many {
		commit(t, w, latest(t, s), observedRows(3, int64(i)))
		if i%12 == 11 {
			settle(t)
			r := resultOf(t, b.keeper().Upkeep(t.Context(), store.UpkeepOptions{}), statsName)
			require.NoError(t, r.Err)
			most = max(most, r.Before)
		}
	}
	versions, err := b.keeper().Versions(t.Context(), statsName)
	require.NoError(t, err)
	require.Less(t, max(most, versions), int64(30))
}

func upkeepVersions(t *testing.T, b *backend) {
	s, w := newStats(b)
	keeper := b.keeper()
	for i := range int64(3) {
		versions, err := keeper.Versions(t.Context(), statsName)
		require.NoError(t, err)
		require.Equal(t, i, versions)
		commit(t, w, latest(t, s), observedRows(1, i))
	}
}

// troubled is an engine with one table on which cleaning up or compacting does
// something else first.
type troubled struct {
	*storetest.Memory
	table   string
	cleanUp func(context.Context) error
	compact func() error
}

func (e *troubled) CleanupVersions(ctx context.Context, uri string, olderThan time.Duration, keep int) (int64, error) {
	if e.cleanUp != nil && uri == e.table {
		if err := e.cleanUp(ctx); err != nil {
			return 0, err
		}
	}
	return e.Memory.CleanupVersions(ctx, uri, olderThan, keep)
}

func (e *troubled) Compact(ctx context.Context, s lance.CompactSpec) (lance.Compacted, error) {
	if e.compact != nil && s.URI == e.table {
		if err := e.compact(); err != nil {
			return lance.Compacted{}, err
		}
	}
	return e.Memory.Compact(ctx, s)
}

// grown is a directory whose ledger and journal have had ten appends, a while ago.
func grown(t *testing.T) *backend {
	b := memoryBackend()
	for i := range 10 {
		require.NoError(t, newLedger(b).Append(t.Context(), retirement(i, int64(i))))
		require.NoError(t, newJournal(b).Append(t.Context(), fleet.Action{ID: strconv.Itoa(i), At: int64(i)}))
	}
	settle(t)
	return b
}

func TestATableWhoseUpkeepFailsOrHangsDoesNotKeepTheNextFromItsTurn(t *testing.T) {
	for why, cleanUp := range map[string]func(context.Context) error{
		"fails": func(context.Context) error { return &lance.Error{Class: lance.Denied, Op: "cleanup", Message: "403"} },
		"hangs": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	} {
		t.Run(why, func(t *testing.T) {
			b := grown(t)
			e := &troubled{Memory: b.memory, table: b.dir + "/_retired.lance", cleanUp: cleanUp}
			results := store.NewKeeper(e, e, b.dir).Upkeep(t.Context(), store.UpkeepOptions{Budget: 500 * time.Millisecond})
			ledger, journal := resultOf(t, results, "_retired.lance"), resultOf(t, results, "_journal.lance")
			require.ErrorContains(t, ledger.Err, "upkeep of _retired.lance")
			require.EqualValues(t, 10, ledger.Before, "the backlog is told all the same")
			require.NoError(t, journal.Err)
			require.EqualValues(t, 2, journal.After)
		})
	}
}

func TestACompactionThatLosesToAnAppendIsTriedAgain(t *testing.T) {
	b := grown(t)
	tries := 0
	e := &troubled{Memory: b.memory, table: b.dir + "/_journal.lance", compact: func() error {
		if tries++; tries < 3 {
			return lance.ErrConflict
		}
		return nil
	}}
	r := resultOf(t, store.NewKeeper(e, e, b.dir).Upkeep(t.Context(), store.UpkeepOptions{}), "_journal.lance")
	require.NoError(t, r.Err)
	require.EqualValues(t, 9, r.Fragments)
}

func TestOldVersionsGoThoughCompactionFails(t *testing.T) {
	b := grown(t)
	e := &troubled{Memory: b.memory, table: b.dir + "/_journal.lance", compact: func() error { return lance.ErrCorrupt }}
	r := resultOf(t, store.NewKeeper(e, e, b.dir).Upkeep(t.Context(), store.UpkeepOptions{}), "_journal.lance")
	require.ErrorIs(t, r.Err, lance.ErrCorrupt)
	require.EqualValues(t, 2, r.After)
}
