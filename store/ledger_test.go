package store_test

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/store"
)

const ledgerName = "_retired.lance"

func ledgerSuite() map[string]func(*testing.T, *backend) {
	return map[string]func(*testing.T, *backend){
		"without a ledger nothing is retired":                          ledgerAbsent,
		"every field of an entry survives":                             ledgerEveryField,
		"the newest entry of an experiment counts":                     ledgerNewest,
		"an entry that is there is not appended again":                 ledgerIdempotent,
		"a hundred retirements at once share a few commits":            ledgerGrouped,
		"retirements by two processes are all there":                   ledgerTwoProcesses,
		"a ledger that was lost makes everything hot, and starts anew": ledgerLost,
		"columns that are missing read as unknown":                     ledgerMissingColumns,
		"evidence that can't be read is none":                          ledgerBadEvidence,
	}
}

func newLedger(b *backend) *store.LedgerWriter {
	return store.NewLedgerWriter(b, store.NewLedger(b, b.dir))
}

// retirement is the n-th experiment's, at a time.
func retirement(n int, at int64) fleet.LedgerEntry {
	evidence := fleet.Evidence{Fingerprint: fleet.Fingerprint{Version: 7, ETag: "e", Naming: "v2"}, Rows: int64(n), Fragments: 1, Bytes: 5, DistinctKeys: -1, VerifiedAt: at - 1}
	e := fleet.NewRetirement(observedRow(n, at-1000), evidence, nil, at)
	e.RunID = fmt.Sprint("run-", n)
	return e
}

func ledgerView(t *testing.T, l *store.Ledger) *store.LedgerView {
	t.Helper()
	view, err := l.Latest(t.Context())
	require.NoError(t, err)
	return view
}

func ledgerAbsent(t *testing.T, b *backend) {
	l := newLedger(b)
	view := ledgerView(t, l.Ledger)
	require.Zero(t, view.Version)
	require.Empty(t, view.Entries)
	require.Empty(t, view.Retired())
	require.Nil(t, view.Get(experiment(1).ID))
	require.NoError(t, l.Append(t.Context()))
	require.Zero(t, b.appends.Load())
}

func ledgerEveryField(t *testing.T, b *backend) {
	var n int64
	var full fleet.LedgerEntry
	fill(t, reflect.ValueOf(&full).Elem(), &n)
	full.ID, full.State = experiment(1).ID, fleet.LedgerReturned
	w := newLedger(b)
	require.NoError(t, w.Append(t.Context(), full, retirement(2, 100)))
	view := ledgerView(t, newLedger(b).Ledger)
	require.Equal(t, []fleet.LedgerEntry{full, retirement(2, 100)}, view.Entries)
	require.Equal(t, full, *view.Get(full.ID))
	require.Equal(t, map[fleet.ID]int64{experiment(2).ID: retirement(2, 100).LastWrite}, view.Retired())
	require.EqualValues(t, 1, view.Version)
}

func ledgerNewest(t *testing.T, b *backend) {
	w := newLedger(b)
	first := retirement(1, 100)
	returned := first.Return(150, 200)
	returned.RunID = "round"
	require.NoError(t, w.Append(t.Context(), returned)) // whatever comes first
	require.NoError(t, w.Append(t.Context(), first))
	view := ledgerView(t, w.Ledger)
	require.Len(t, view.Entries, 1)
	require.Equal(t, fleet.LedgerReturned, view.Get(first.ID).State)
	require.Empty(t, view.Retired())
	second := fleet.NewRetirement(observedRow(1, 300), first.Evidence, view.Get(first.ID), 300)
	second.RunID = "run-again"
	require.NoError(t, w.Append(t.Context(), second))
	require.Equal(t, map[fleet.ID]int64{first.ID: second.LastWrite}, ledgerView(t, w.Ledger).Retired())
}

func ledgerIdempotent(t *testing.T, b *backend) {
	w := newLedger(b)
	require.NoError(t, w.Append(t.Context(), retirement(1, 100)))
	require.NoError(t, w.Append(t.Context(), retirement(1, 100)))
	require.NoError(t, newLedger(b).Append(t.Context(), retirement(1, 100), retirement(2, 100), retirement(2, 100)))
	require.EqualValues(t, 2, b.appends.Load())
	require.Len(t, ledgerView(t, w.Ledger).Entries, 2)
}

func ledgerGrouped(t *testing.T, b *backend) {
	const many = 100
	w := newLedger(b)
	var wg sync.WaitGroup
	for i := range many {
		wg.Go(func() {
			if err := w.Append(t.Context(), retirement(i, 100)); err != nil {
				t.Error(err)
				return
			}
			// What was answered is there.
			view, err := w.Latest(t.Context())
			if err != nil || view.Get(experiment(i).ID) == nil {
				t.Errorf("retirement %d is not there: %v", i, err)
			}
		})
	}
	wg.Wait()
	t.Logf("%d retirements: %d appends", many, b.appends.Load())
	require.LessOrEqual(t, b.appends.Load(), int64(many/5))
	require.Len(t, ledgerView(t, w.Ledger).Retired(), many)
}

func ledgerTwoProcesses(t *testing.T, b *backend) {
	const many = 50 // and so past the append that makes the table anew
	writers := []*store.LedgerWriter{newLedger(b), newLedger(b)}
	var wg sync.WaitGroup
	for p, w := range writers {
		wg.Go(func() {
			for i := range many {
				if err := w.Append(t.Context(), retirement(2*i+p, int64(100+i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	// In a race each try at making the table anew may have lost; alone none does.
	total := 2 * many
	for ; b.commits.Load() == 0 && total < 10*many; total++ {
		require.NoError(t, writers[0].Append(t.Context(), retirement(total, 1000)))
	}
	require.Positive(t, b.commits.Load(), "the table was made anew meanwhile")
	require.Len(t, ledgerView(t, newLedger(b).Ledger).Retired(), total)
}

func ledgerLost(t *testing.T, b *backend) {
	w := newLedger(b)
	require.NoError(t, w.Append(t.Context(), retirement(1, 100), retirement(2, 100)))
	b.drop(t, ledgerName)
	view := ledgerView(t, w.Ledger)
	require.Empty(t, view.Entries)
	require.Equal(t, fleet.Unseen, fleet.StateOf(nil, view.Get(experiment(1).ID)), "hot, and to be observed")
	require.NoError(t, w.Append(t.Context(), retirement(1, 100)))
	require.Len(t, ledgerView(t, w.Ledger).Retired(), 1)
}

func ledgerMissingColumns(t *testing.T, b *backend) {
	fields := []arrow.Field{
		{Name: "run_id", Type: arrow.BinaryTypes.String}, {Name: "name", Type: arrow.BinaryTypes.String},
		{Name: "state", Type: arrow.BinaryTypes.String}, {Name: "at", Type: arrow.PrimitiveTypes.Int64},
	}
	b.write(t, ledgerName, table(t, fields, [][]any{{"r", "a", "retired", int64(5)}, {"r", "../b", "retired", int64(5)}})[0])
	view := ledgerView(t, newLedger(b).Ledger)
	require.Len(t, view.Entries, 1, "a name that is none of ours is left out")
	e := view.Get(fleet.ID{Kind: fleet.Rollout, Name: "a"})
	require.True(t, e.Retired())
	require.EqualValues(t, -1, e.RowCount)
	require.Zero(t, e.Evidence)
	verdict, _ := fleet.OnRetiredObservation(*e, fleet.Observation{})
	require.Equal(t, fleet.Write, verdict, "without evidence the next look makes it hot")

	b.write(t, ledgerName, table(t, fields[:2], [][]any{{"r", "a"}})[0])
	view = ledgerView(t, newLedger(b).Ledger)
	require.Empty(t, view.Retired(), "without a state nothing is retired")
}

func ledgerBadEvidence(t *testing.T, b *backend) {
	fields := []arrow.Field{
		{Name: "run_id", Type: arrow.BinaryTypes.String}, {Name: "name", Type: arrow.BinaryTypes.String},
		{Name: "state", Type: arrow.BinaryTypes.String}, {Name: "evidence", Type: arrow.BinaryTypes.String},
	}
	b.write(t, ledgerName, table(t, fields, [][]any{{"r", "a", "retired", `{"fingerprint":{"version":"seven"}}`}})[0])
	require.Zero(t, ledgerView(t, newLedger(b).Ledger).Entries[0].Evidence)
}

func TestARetirementWithoutCleanEvidenceIsRefused(t *testing.T) {
	for why, change := range map[string]func(*fleet.LedgerEntry){
		"something is pending":  func(e *fleet.LedgerEntry) { e.Evidence.Pending = 1 },
		"something is stranded": func(e *fleet.LedgerEntry) { e.Evidence.Stranded = 1 },
		"something is unknown":  func(e *fleet.LedgerEntry) { e.Evidence.Unknown = 1 },
		"something blocks":      func(e *fleet.LedgerEntry) { e.Evidence.Blocking = []string{"a sealed shard"} },
		"there is no evidence":  func(e *fleet.LedgerEntry) { e.Evidence = fleet.Evidence{} },
		"no run did it":         func(e *fleet.LedgerEntry) { e.RunID = "" },
		"it names nobody":       func(e *fleet.LedgerEntry) { e.ID = fleet.ID{} },
		"its state is odd":      func(e *fleet.LedgerEntry) { e.State = "tired" },
	} {
		t.Run(why, func(t *testing.T) {
			b := memoryBackend()
			bad := retirement(1, 100)
			change(&bad)
			require.ErrorIs(t, newLedger(b).Append(t.Context(), retirement(2, 100), bad), lance.ErrInvalid)
			require.Zero(t, b.appends.Load(), "nor is anything that came with it stored")
		})
	}
}

// unsure is a store whose appends do, or tell, something else than they should.
type unsure struct {
	store.Writer
	append func(do func() (uint64, error)) (uint64, error)
}

func (u *unsure) Append(ctx context.Context, uri string, records []arrow.RecordBatch, schema *arrow.Schema, o lance.AppendOptions) (uint64, error) {
	return u.append(func() (uint64, error) { return u.Writer.Append(ctx, uri, records, schema, o) })
}

func TestAnAppendThatLandedAndAnsweredAnErrorIsFound(t *testing.T) {
	b := memoryBackend()
	u := &unsure{Writer: b, append: func(do func() (uint64, error)) (uint64, error) {
		_, _ = do()
		return 0, &lance.Error{Class: lance.Unreachable, Op: "append", Message: "connection lost"}
	}}
	w := store.NewLedgerWriter(u, store.NewLedger(u, b.dir))
	require.NoError(t, w.Append(t.Context(), retirement(1, 100)))
	require.Len(t, ledgerView(t, w.Ledger).Entries, 1)
}

func TestAnAppendThatDidNotLandIsAnError(t *testing.T) {
	b := memoryBackend()
	u := &unsure{Writer: b, append: func(func() (uint64, error)) (uint64, error) {
		return 0, &lance.Error{Class: lance.Unreachable, Op: "append", Message: "connection lost"}
	}}
	w := store.NewLedgerWriter(u, store.NewLedger(u, b.dir))
	require.ErrorIs(t, w.Append(t.Context(), retirement(1, 100)), lance.ErrUnreachable)
	require.Empty(t, ledgerView(t, w.Ledger).Entries)
}

func TestAnAppendThatWasLostToSomebodyElseIsMadeAgain(t *testing.T) {
	b := memoryBackend()
	calls := 0
	u := &unsure{Writer: b, append: func(do func() (uint64, error)) (uint64, error) {
		if calls++; calls == 1 {
			return 9, nil // as if the version it made had been overwritten by who did not see it
		}
		return do()
	}}
	w := store.NewLedgerWriter(u, store.NewLedger(u, b.dir))
	require.NoError(t, w.Append(t.Context(), retirement(1, 100)))
	require.Equal(t, 2, calls)
	require.Len(t, ledgerView(t, w.Ledger).Entries, 1)
}

func TestARewrittenLedgerKeepsTheNewestEntriesAndForgetsOldReturns(t *testing.T) {
	const day = 24 * 3600 * 1000
	retired, returned, recent := retirement(1, 1*day), retirement(2, 1*day).Return(2*day, 2*day), retirement(3, 1*day).Return(2*day, 90*day)
	renewed := retired.Renew(retired.Evidence, 3*day)
	kept := store.TrimLedger([]fleet.LedgerEntry{retirement(4, 100*day), recent, renewed, returned, retired})
	require.Equal(t, []fleet.LedgerEntry{renewed, recent, retirement(4, 100*day)}, kept)
}

// However many retirements come one after another, hours apart, the table keeps
// few versions by itself.
func TestALedgerThatGrowsForDaysKeepsFewVersions(t *testing.T) {
	b := memoryBackend()
	now := b.memory.Now()
	clock := now
	b.memory.Now = func() time.Time { return clock }
	w := newLedger(b)
	for i := range 200 {
		clock = clock.Add(10 * time.Minute)
		require.NoError(t, w.Append(t.Context(), retirement(i, clock.UnixMilli())))
	}
	versions, err := b.keeper().Versions(t.Context(), ledgerName)
	require.NoError(t, err)
	require.Less(t, versions, int64(50))
	require.Len(t, ledgerView(t, w.Ledger).Retired(), 200)
}
