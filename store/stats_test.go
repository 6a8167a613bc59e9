package store_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/store"
)

func statsSuite() map[string]func(*testing.T, *backend) {
	return map[string]func(*testing.T, *backend){
		"a directory without statistics has version 0 and no rows":    statsAbsent,
		"what is committed is read back by another process":           statsReadBack,
		"each commit makes exactly one version":                       statsOneVersion,
		"the second of two commits over one base is a conflict":       statsConflict,
		"of two first commits one is a conflict":                      statsFirstConflict,
		"a commit from before a cleanup is noticed":                   statsStaleAfterCleanup,
		"a commit over a table that was recreated is a conflict":      statsRecreated,
		"asking often reads once per version":                         statsReadOnce,
		"a pinned version stays while others commit":                  statsPinned,
		"a pinned version that was cleaned up is gone":                statsPinnedGone,
		"a hundred refreshes share a few commits and none is lost":    statsRefreshGroup,
		"refreshes of two processes at once lose nothing":             statsRefreshTwoProcesses,
		"a refresh adds a missing row only when told so":              statsRefreshMissing,
		"a refresh with nothing newer commits nothing":                statsRefreshNothing,
		"a round that races a refresh is refused, then keeps its row": statsRoundRacesRefresh,
		"a commit of rows with one name twice is refused":             statsTwice,
		"an empty fleet can be committed":                             statsEmpty,
		"a damaged table is an error and starts anew when moved away": statsDamaged,
	}
}

func newStats(b *backend) (*store.Stats, *store.StatsWriter) {
	s := store.NewStats(b, b.dir)
	return s, store.NewStatsWriter(b, s)
}

// experiment makes the n-th of a fleet; a row of it is as a full observation at a
// time has it.
func experiment(n int) fleet.Experiment {
	name := fmt.Sprintf("run-%05d", n)
	return fleet.Experiment{ID: fleet.ID{Kind: fleet.Rollout, Name: name}, URI: "/data/" + name + ".rollout.lance", Source: fleet.FromRegistry, CreatedAt: 1}
}

func observedRow(n int, at int64) fleet.Row {
	row := fleet.UnknownRow(experiment(n))
	row.Known, row.RowCount, row.FragmentCount, row.PendingWAL = true, int64(n), 1, 3
	row.ObservedAt, row.ScannedAt, row.LastWrite, row.Version = at, at, at-1, 7
	row.Fingerprint = fleet.Fingerprint{Version: 7, ETag: fmt.Sprint("e", n), Naming: "v2"}
	return row
}

func observedRows(n int, at int64) []fleet.Row {
	rows := make([]fleet.Row, n)
	for i := range rows {
		rows[i] = observedRow(i, at)
	}
	return rows
}

func latest(t *testing.T, s *store.Stats) *store.Snapshot {
	t.Helper()
	snapshot, err := s.Latest(t.Context())
	require.NoError(t, err)
	return snapshot
}

func commit(t *testing.T, w *store.StatsWriter, base *store.Snapshot, rows []fleet.Row) uint64 {
	t.Helper()
	version, err := w.Commit(t.Context(), base, rows, nil)
	require.NoError(t, err)
	return version
}

func statsAbsent(t *testing.T, b *backend) {
	s, _ := newStats(b)
	snapshot := latest(t, s)
	require.Zero(t, snapshot.Version)
	require.Empty(t, snapshot.Rows)
	_, found := snapshot.Row(experiment(0).ID)
	require.False(t, found)
	pinned, err := s.At(t.Context(), 0)
	require.NoError(t, err)
	require.Empty(t, pinned.Rows)
	require.Zero(t, b.reads.Load())
}

func statsReadBack(t *testing.T, b *backend) {
	s, w := newStats(b)
	rows := observedRows(100, 1000)
	shuffled := append([]fleet.Row{}, rows...)
	rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	version := commit(t, w, latest(t, s), shuffled)
	other, _ := newStats(b)
	snapshot := latest(t, other)
	require.Equal(t, version, snapshot.Version)
	require.NotEmpty(t, snapshot.ETag)
	require.Positive(t, snapshot.CommittedAt)
	require.Equal(t, rows, snapshot.Rows)
	row, found := snapshot.Row(rows[42].ID)
	require.True(t, found)
	require.Equal(t, rows[42], *row)
}

func statsOneVersion(t *testing.T, b *backend) {
	s, w := newStats(b)
	for n := uint64(1); n <= 5; n++ {
		require.Equal(t, n, commit(t, w, latest(t, s), observedRows(10, int64(n))))
		require.Equal(t, n, latest(t, s).Version)
	}
	require.EqualValues(t, 5, b.commits.Load())
}

func statsConflict(t *testing.T, b *backend) {
	s, w := newStats(b)
	commit(t, w, latest(t, s), observedRows(3, 1))
	base := latest(t, s)
	commit(t, w, base, observedRows(4, 2))
	_, err := w.Commit(t.Context(), base, nil, nil)
	require.ErrorIs(t, err, lance.ErrConflict)
	require.Len(t, latest(t, s).Rows, 4)
}

func statsFirstConflict(t *testing.T, b *backend) {
	s, w := newStats(b)
	nothing := latest(t, s)
	var wins, conflicts int
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			_, err := w.Commit(t.Context(), nothing, observedRows(i+1, 1), nil)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				wins++
			} else if lance.ClassOf(err) == lance.Conflict {
				conflicts++
			} else {
				t.Errorf("neither won nor lost: %v", err)
			}
		})
	}
	wg.Wait()
	require.Equal(t, 1, wins)
	require.Equal(t, 3, conflicts)
}

// A strict overwrite asks that the next version does not exist. After a cleanup it
// does not exist, although the head is far ahead.
func statsStaleAfterCleanup(t *testing.T, b *backend) {
	s, w := newStats(b)
	commit(t, w, latest(t, s), observedRows(1, 1))
	stale := latest(t, s)
	for n := range 5 {
		commit(t, w, latest(t, s), observedRows(n+2, int64(n)))
	}
	b.age(t, "_stats.rollout.lance")
	_, err := w.Commit(t.Context(), stale, nil, nil)
	require.ErrorIs(t, err, lance.ErrConflict)
	// Past our own look at the head, the engine must notice it by itself.
	record := table(t, upstreamFields(10), [][]any{upstreamValues("x")})
	_, err = b.CommitSnapshot(t.Context(), b.dir+"/_stats.rollout.lance", stale.Version, record, nil, nil)
	require.ErrorIs(t, err, lance.ErrConflict)
	other, _ := newStats(b)
	require.Len(t, latest(t, other).Rows, 6)
}

func statsRecreated(t *testing.T, b *backend) {
	s, w := newStats(b)
	commit(t, w, latest(t, s), observedRows(1, 1))
	base := latest(t, s)
	b.drop(t, "_stats.rollout.lance")
	other, theirs := newStats(b)
	commit(t, theirs, latest(t, other), observedRows(2, 2))
	_, err := w.Commit(t.Context(), base, nil, nil)
	require.ErrorIs(t, err, lance.ErrConflict)
	again := latest(t, s)
	require.Equal(t, base.Version, again.Version)
	require.Len(t, again.Rows, 2, "the same version number, other rows")
	pinned, err := s.At(t.Context(), base.Version)
	require.NoError(t, err)
	require.Len(t, pinned.Rows, 2)
}

func statsReadOnce(t *testing.T, b *backend) {
	s, w := newStats(b)
	commit(t, w, latest(t, s), observedRows(50, 1))
	first := latest(t, s)
	require.EqualValues(t, 1, b.reads.Load())
	before := b.requests(t)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			again, err := s.Latest(t.Context())
			if err != nil || again != first {
				t.Errorf("not the same snapshot: %v", err)
			}
		})
	}
	wg.Wait()
	_, err := s.At(t.Context(), first.Version)
	require.NoError(t, err)
	require.EqualValues(t, 1, b.reads.Load())
	if b.engine != nil {
		spent := b.requests(t)
		t.Logf("50 times Latest: %d list, %d head, %d get", spent.List-before.List, spent.Head-before.Head, spent.Get-before.Get)
	}
	commit(t, w, first, observedRows(51, 2))
	require.Len(t, latest(t, s).Rows, 51)
	require.EqualValues(t, 2, b.reads.Load())
}

func (b *backend) requests(t *testing.T) fleet.Requests {
	t.Helper()
	if b.engine == nil {
		return fleet.Requests{}
	}
	stats, err := b.engine.Stats(t.Context())
	require.NoError(t, err)
	return stats.Requests
}

func statsPinned(t *testing.T, b *backend) {
	s, w := newStats(b)
	v1 := commit(t, w, latest(t, s), observedRows(1, 1))
	v2 := commit(t, w, latest(t, s), observedRows(2, 2))
	v3 := commit(t, w, latest(t, s), observedRows(3, 3))
	for range 3 {
		for i, v := range []uint64{v1, v2, v3} {
			pinned, err := s.At(t.Context(), v)
			require.NoError(t, err)
			require.Equal(t, v, pinned.Version)
			require.Len(t, pinned.Rows, i+1)
		}
	}
	// Who pins keeps what he pinned over the next commit, without a second read.
	latest(t, s)
	_, err := s.At(t.Context(), v1)
	require.NoError(t, err)
	commit(t, w, latest(t, s), observedRows(4, 4))
	latest(t, s)
	reads := b.reads.Load()
	pinned, err := s.At(t.Context(), v3)
	require.NoError(t, err)
	require.Len(t, pinned.Rows, 3)
	require.Equal(t, reads, b.reads.Load())
}

func statsPinnedGone(t *testing.T, b *backend) {
	s, w := newStats(b)
	v1 := commit(t, w, latest(t, s), observedRows(1, 1))
	commit(t, w, latest(t, s), observedRows(2, 2))
	b.age(t, "_stats.rollout.lance")
	other, _ := newStats(b)
	_, err := other.At(t.Context(), v1)
	require.ErrorIs(t, err, lance.ErrGone)
}

func statsRefreshGroup(t *testing.T, b *backend) {
	const many = 100
	s, w := newStats(b)
	commit(t, w, latest(t, s), observedRows(many, 1))
	before := b.commits.Load()
	var wg sync.WaitGroup
	for i := range many {
		wg.Go(func() {
			version, err := w.RefreshRows(t.Context(), []fleet.Row{observedRow(i, 2)}, false)
			if err != nil || version == 0 {
				t.Errorf("refresh %d: version %d, %v", i, version, err)
				return
			}
			// What was answered is there, at that version already.
			snapshot, err := s.At(t.Context(), version)
			if err != nil {
				t.Errorf("refresh %d: %v", i, err)
			} else if row, ok := snapshot.Row(experiment(i).ID); !ok || row.ObservedAt != 2 {
				t.Errorf("refresh %d is not in version %d", i, version)
			}
		})
	}
	wg.Wait()
	commits := b.commits.Load() - before
	t.Logf("%d refreshes: %d commits", many, commits)
	require.LessOrEqual(t, commits, int64(many/5))
	require.Equal(t, observedRows(many, 2), latest(t, s).Rows)
}

func statsRefreshTwoProcesses(t *testing.T, b *backend) {
	const many = 20
	s, ours := newStats(b)
	_, theirs := newStats(b)
	commit(t, ours, latest(t, s), observedRows(2*many, 1))
	var wg sync.WaitGroup
	for i := range many {
		for p, w := range []*store.StatsWriter{ours, theirs} {
			wg.Go(func() {
				if _, err := w.RefreshRows(t.Context(), []fleet.Row{observedRow(i+p*many, 2)}, false); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	require.Equal(t, observedRows(2*many, 2), latest(t, s).Rows)
}

func statsRefreshMissing(t *testing.T, b *backend) {
	s, w := newStats(b)
	version, err := w.RefreshRows(t.Context(), observedRows(1, 1), false)
	require.NoError(t, err)
	require.Zero(t, version, "nothing to store")
	require.Zero(t, latest(t, s).Version)
	version, err = w.RefreshRows(t.Context(), observedRows(1, 1), true)
	require.NoError(t, err)
	require.Equal(t, uint64(1), version)
	require.Equal(t, observedRows(1, 1), latest(t, s).Rows)
}

func statsRefreshNothing(t *testing.T, b *backend) {
	s, w := newStats(b)
	v := commit(t, w, latest(t, s), observedRows(3, 5))
	for _, rows := range [][]fleet.Row{nil, observedRows(3, 5), observedRows(3, 4)} {
		version, err := w.RefreshRows(t.Context(), rows, true)
		require.NoError(t, err)
		require.Zero(t, version)
	}
	require.Equal(t, v, latest(t, s).Version)
}

func statsRoundRacesRefresh(t *testing.T, b *backend) {
	s, w := newStats(b)
	commit(t, w, latest(t, s), observedRows(3, 10))
	base := latest(t, s)
	merge := func(snapshot *store.Snapshot) []fleet.Row {
		staged := observedRow(0, 20) // the round saw it before the refresh did
		return fleet.MergeRound(fleet.MergeInput{
			Latest: snapshot.Rows, Pinned: base.Rows, Staged: []fleet.Row{staged}, RoundStarted: 15, Now: 40,
			Listed: []fleet.Experiment{experiment(0), experiment(1), experiment(2)}, LastCommitAt: snapshot.CommittedAt,
		}).Rows
	}
	rows := merge(base)
	fresh := observedRow(0, 30)
	fresh.RowCount = 999
	_, err := w.RefreshRows(t.Context(), []fleet.Row{fresh}, false)
	require.NoError(t, err)
	_, err = w.Commit(t.Context(), base, rows, nil)
	require.ErrorIs(t, err, lance.ErrConflict, "the round must not undo the refresh")
	commit(t, w, latest(t, s), merge(latest(t, s)))
	row, ok := latest(t, s).Row(fresh.ID)
	require.True(t, ok)
	require.EqualValues(t, 999, row.RowCount)
}

func statsTwice(t *testing.T, b *backend) {
	s, w := newStats(b)
	_, err := w.Commit(t.Context(), latest(t, s), append(observedRows(2, 1), observedRow(1, 2)), nil)
	require.ErrorIs(t, err, lance.ErrInvalid)
	require.Zero(t, latest(t, s).Version)
}

func statsEmpty(t *testing.T, b *backend) {
	s, w := newStats(b)
	commit(t, w, latest(t, s), observedRows(2, 1))
	commit(t, w, latest(t, s), nil)
	snapshot := latest(t, s)
	require.Equal(t, uint64(2), snapshot.Version)
	require.Empty(t, snapshot.Rows)
	commit(t, w, snapshot, observedRows(1, 2))
	require.Len(t, latest(t, s).Rows, 1)
}
