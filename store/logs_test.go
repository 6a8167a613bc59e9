package store_test

import (
	"fmt"
	"reflect"
	"strconv"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/store"
)

func logSuite() map[string]func(*testing.T, *backend) {
	return map[string]func(*testing.T, *backend){
		"rounds come newest first and each once":              roundsOrder,
		"every field of a round and of an action survives":    logsEveryField,
		"rounds appended for long stay, in few files":         roundsRewrite,
		"actions appended by many at once are all there":      journalConcurrent,
		"the last action of a kind that had its effect":       journalLastOf,
		"one append of several actions leaves out known ones": journalBatch,
		"a foreign table is neither read nor added to":        logsForeign,
	}
}

func round(n int64) fleet.RoundRecord {
	return fleet.RoundRecord{RoundID: fmt.Sprint("round-", n), Number: n, StartedAt: 1000 * n, FinishedAt: 1000*n + 1, Hot: 5}
}

func newRounds(b *backend) *store.RoundsWriter {
	return store.NewRoundsWriter(b, store.NewRounds(b, b.dir))
}

func newJournal(b *backend) *store.JournalWriter {
	return store.NewJournalWriter(b, store.NewJournal(b, b.dir))
}

func roundsOrder(t *testing.T, b *backend) {
	w := newRounds(b)
	none, err := w.Latest(t.Context(), 5)
	require.NoError(t, err)
	require.Empty(t, none)
	for _, n := range []int64{1, 3, 2, 3, 1} {
		require.NoError(t, w.Append(t.Context(), round(n)))
	}
	require.EqualValues(t, 3, b.appends.Load(), "what is there is not appended again")
	other := newRounds(b)
	require.NoError(t, other.Append(t.Context(), round(2)))
	got, err := store.NewRounds(b, b.dir).Latest(t.Context(), 2)
	require.NoError(t, err)
	require.Equal(t, []fleet.RoundRecord{round(3), round(2)}, got)
	all, err := w.Latest(t.Context(), 0)
	require.NoError(t, err)
	require.Len(t, all, 3)
	require.ErrorIs(t, w.Append(t.Context(), fleet.RoundRecord{}), lance.ErrInvalid)
}

func logsForeign(t *testing.T, b *backend) {
	text := func(name string) arrow.Field {
		return arrow.Field{Name: name, Type: arrow.BinaryTypes.String, Nullable: true}
	}
	b.write(t, "_journal.lance", table(t, []arrow.Field{text("id"), text("remark")}, [][]any{{"an id", "of something else"}})[0])
	w := newJournal(b)
	_, err := w.Latest(t.Context(), 5)
	require.ErrorIs(t, err, lance.ErrCorrupt)
	require.ErrorContains(t, err, `"at"`)
	require.Error(t, w.Append(t.Context(), fleet.Action{ID: "ours", At: 1, Kind: fleet.ActScan}))
	require.Zero(t, b.appends.Load())
}

func logsEveryField(t *testing.T, b *backend) {
	var n int64
	var full, bare fleet.RoundRecord
	fill(t, reflect.ValueOf(&full).Elem(), &n)
	bare.RoundID = "bare"
	w := newRounds(b)
	require.NoError(t, w.Append(t.Context(), full))
	require.NoError(t, w.Append(t.Context(), bare))
	got, err := newRounds(b).Latest(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, []fleet.RoundRecord{full, bare}, got)

	var action fleet.Action
	fill(t, reflect.ValueOf(&action).Elem(), &n)
	require.NoError(t, newJournal(b).Append(t.Context(), action, fleet.Action{ID: "bare"}))
	actions, err := newJournal(b).Latest(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, []fleet.Action{action, {ID: "bare"}}, actions)
}

func roundsRewrite(t *testing.T, b *backend) {
	w := newRounds(b)
	const many = 70
	for n := range int64(many) {
		require.NoError(t, w.Append(t.Context(), round(n)))
	}
	require.EqualValues(t, 2, b.commits.Load(), "two of 70 appends made the table anew")
	got, err := newRounds(b).Latest(t.Context(), 0)
	require.NoError(t, err)
	require.Len(t, got, many)
	for i, r := range got {
		require.EqualValues(t, many-1-i, r.Number)
	}
	if b.engine == nil {
		return
	}
	files, err := b.List(t.Context(), b.dir+"/_rounds.lance/data", 0)
	require.NoError(t, err)
	read, err := b.Writer.ReadTable(t.Context(), b.dir+"/_rounds.lance", lance.ReadOptions{})
	require.NoError(t, err)
	defer read.Release()
	t.Logf("%d rounds: %d data files on disk, %d records in the newest version", many, len(files), len(read.Records))
}

func journalConcurrent(t *testing.T, b *backend) {
	const many = 12
	ours, theirs := newJournal(b), newJournal(b)
	var wg sync.WaitGroup
	for i := range many {
		for _, w := range []*store.JournalWriter{ours, theirs} { // each action by both: two attempts
			wg.Go(func() {
				if err := w.Append(t.Context(), fleet.Action{ID: fmt.Sprint("a", i), At: int64(i), Kind: "pause"}); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	got, err := newJournal(b).Latest(t.Context(), 0)
	require.NoError(t, err)
	require.Len(t, got, many)
	for i, a := range got {
		require.EqualValues(t, many-1-i, a.At)
	}
}

func journalLastOf(t *testing.T, b *backend) {
	w := newJournal(b)
	last, err := w.LastOf(t.Context(), "pause", "resume")
	require.NoError(t, err)
	require.Nil(t, last)
	require.NoError(t, w.Append(t.Context(),
		fleet.Action{ID: "1", At: 1, Kind: "pause", Outcome: "done", Why: "maintenance", By: "me"},
		fleet.Action{ID: "2", At: 2, Kind: "resume", Outcome: "failed"},
		fleet.Action{ID: "3", At: 3, Kind: "scan", Outcome: "done"},
	))
	last, err = w.LastOf(t.Context(), "pause", "resume")
	require.NoError(t, err)
	require.Equal(t, "1", last.ID)
	require.Equal(t, "maintenance", last.Why)
}

func journalBatch(t *testing.T, b *backend) {
	w := newJournal(b)
	require.NoError(t, w.Append(t.Context(), fleet.Action{ID: "1", At: 1}))
	require.NoError(t, w.Append(t.Context(), fleet.Action{ID: "1", At: 9}, fleet.Action{ID: "2", At: 2}, fleet.Action{ID: "2", At: 3}))
	require.NoError(t, w.Append(t.Context()))
	got, err := w.Latest(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, []fleet.Action{{ID: "2", At: 2}, {ID: "1", At: 1}}, got)
	require.EqualValues(t, 2, b.appends.Load())
	require.ErrorIs(t, w.Append(t.Context(), fleet.Action{}), lance.ErrInvalid)
}

func TestRoundsAreKeptThirtyDays(t *testing.T) {
	const day = 24 * 3600 * 1000
	var rounds []fleet.RoundRecord
	for n := range int64(40) {
		rounds = append(rounds, fleet.RoundRecord{RoundID: strconv.FormatInt(n, 10), StartedAt: (100 - n) * day})
	}
	require.Len(t, store.TrimRounds(rounds), 31)
	require.Len(t, store.TrimRounds(make([]fleet.RoundRecord, 20_000)), 10_000)
	require.Empty(t, store.TrimRounds(nil))
}

func TestAPauseIsRememberedHoweverOld(t *testing.T) {
	const day = 24 * 3600 * 1000
	kept := store.TrimActions([]fleet.Action{
		{ID: "new", At: 400 * day, Kind: "scan", Outcome: "done"},
		{ID: "young", At: 311 * day, Kind: "scan", Outcome: "done"},
		{ID: "old scan", At: 200 * day, Kind: "scan", Outcome: "done"},
		{ID: "failed pause", At: 150 * day, Kind: "pause", Outcome: "failed"},
		{ID: "pause", At: 100 * day, Kind: "pause", Outcome: "done"},
		{ID: "older pause", At: 50 * day, Kind: "pause", Outcome: "done"},
	})
	var ids []string
	for _, a := range kept {
		ids = append(ids, a.ID)
	}
	require.Equal(t, []string{"new", "young", "pause"}, ids)
}

func TestAnActionThatTwoAttemptsAppendAtOnceCountsOnce(t *testing.T) {
	b := memoryBackend()
	action := fleet.Action{ID: "twice", At: 1, Kind: "pause", Outcome: "done"}
	raced := false
	b.memory.Before = func(op, _ string) error {
		if op != "append" || raced {
			return nil
		}
		raced = true // the second attempt looked before the first one appended
		return newJournal(b).Append(t.Context(), action)
	}
	require.NoError(t, newJournal(b).Append(t.Context(), action))
	require.EqualValues(t, 2, b.appends.Load())
	got, err := newJournal(b).Latest(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, []fleet.Action{action}, got)
}
