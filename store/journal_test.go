package store_test

import (
	"fmt"
	"reflect"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
	"lancefleet/store"
)

func journalSuite() map[string]func(*testing.T, *backend) {
	return map[string]func(*testing.T, *backend){
		"the history of each experiment follows the journal":  journalHistory,
		"the actions on one experiment come newest first":     journalOf,
		"actions recorded at once share a few commits":        journalGrouped,
		"without a journal there is no history, and no error": journalAbsent,
	}
}

func failedMerge(n int, at int64) fleet.Action {
	return fleet.Action{ID: fmt.Sprint("merge-", n, "-", at), At: at, Kind: fleet.ActMergeWAL, Target: experiment(n).ID.String(), Outcome: fleet.OutcomeFailed, Error: "commit conflict"}
}

func journalHistory(t *testing.T, b *backend) {
	w := newJournal(b)
	require.NoError(t, w.Append(t.Context(), failedMerge(1, 1), failedMerge(1, 2), failedMerge(2, 3)))
	reader := store.NewJournal(b, b.dir)
	history, err := reader.History(t.Context())
	require.NoError(t, err)
	require.Equal(t, fleet.Tries{Failures: 2, LastAt: 2, Error: "commit conflict"}, history[experiment(1).ID].Merge)
	reads := b.reads.Load()
	again, err := reader.History(t.Context())
	require.NoError(t, err)
	require.Equal(t, reflect.ValueOf(history).Pointer(), reflect.ValueOf(again).Pointer(), "made once for each version")
	require.Equal(t, reads, b.reads.Load(), "one read for each version")
	done := failedMerge(1, 4)
	done.Outcome = fleet.OutcomeDone
	require.NoError(t, w.Append(t.Context(), done))
	history, err = reader.History(t.Context())
	require.NoError(t, err)
	require.Zero(t, history[experiment(1).ID].Merge)
	require.EqualValues(t, 1, history[experiment(2).ID].Merge.Failures)
}

func journalOf(t *testing.T, b *backend) {
	w := newJournal(b)
	require.NoError(t, w.Append(t.Context(), failedMerge(1, 1), failedMerge(2, 2), failedMerge(1, 3), failedMerge(1, 4), fleet.Action{ID: "p", At: 9, Kind: fleet.ActPause}))
	got, err := w.Of(t.Context(), experiment(1).ID, 2)
	require.NoError(t, err)
	require.Equal(t, []fleet.Action{failedMerge(1, 4), failedMerge(1, 3)}, got)
	all, err := w.Of(t.Context(), experiment(1).ID, 0)
	require.NoError(t, err)
	require.Len(t, all, 3)
	none, err := w.Of(t.Context(), experiment(7).ID, 0)
	require.NoError(t, err)
	require.Empty(t, none)

	every, err := w.All(t.Context())
	require.NoError(t, err)
	require.Len(t, every, 5)
	again, err := w.All(t.Context())
	require.NoError(t, err)
	require.Same(t, &every[0], &again[0], "the same reading")
	bare := failedMerge(1, 10)
	bare.Target = experiment(1).StatsName() // as `_stats` writes a rollout
	require.NoError(t, w.Append(t.Context(), bare))
	again, err = w.All(t.Context())
	require.NoError(t, err)
	require.Len(t, again, 6)
	require.Len(t, every, 5, "who has it keeps it")
	all, err = w.Of(t.Context(), experiment(1).ID, 0)
	require.NoError(t, err)
	require.Len(t, all, 4)
}

func journalGrouped(t *testing.T, b *backend) {
	const many = 60
	w := newJournal(b)
	var wg sync.WaitGroup
	for i := range many {
		wg.Go(func() {
			if err := w.Append(t.Context(), failedMerge(i, 1)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.LessOrEqual(t, b.appends.Load(), int64(many/5))
	got, err := newJournal(b).Latest(t.Context(), 0)
	require.NoError(t, err)
	require.Len(t, got, many)
}

func journalAbsent(t *testing.T, b *backend) {
	history, err := newJournal(b).History(t.Context())
	require.NoError(t, err)
	require.Empty(t, history)
}

func TestTheLastWordOnAnExperimentIsKeptHoweverBusyTheFleet(t *testing.T) {
	var actions []fleet.Action
	for i := range 150_000 {
		actions = append(actions, fleet.Action{ID: strconv.Itoa(i), At: int64(1_000_000 - i), Kind: fleet.ActMergeWAL, Target: "busy", Outcome: fleet.OutcomeDone})
	}
	actions = append(actions,
		fleet.Action{ID: "last", At: 10, Kind: fleet.ActCompact, Target: "still", Outcome: fleet.OutcomeNoOp},
		fleet.Action{ID: "other kind", At: 9, Kind: fleet.ActRetire, Target: "still", Outcome: fleet.OutcomeRefused},
		fleet.Action{ID: "older", At: 8, Kind: fleet.ActCompact, Target: "still", Outcome: fleet.OutcomeDone},
	)
	kept := store.TrimActions(actions)
	require.Len(t, kept, 100_002)
	require.Equal(t, "last", kept[100_000].ID)
	require.Equal(t, "other kind", kept[100_001].ID)
}
