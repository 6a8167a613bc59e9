package web

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
	"lancefleet/lance"
)

// looksLike is an observation that shows nothing but what is in a row.
func looksLike(row fleet.Row, change func(*fleet.Observation)) func(fleet.Experiment) (fleet.Observation, error) {
	o := fleet.Observation{
		Fingerprint: row.Fingerprint, Fragments: row.FragmentCount, SmallFragments: row.SmallFragments, BaseRows: row.RowCount, Bytes: row.Bytes,
		Shards: row.Shards, ObservedAt: minutesAgo(0), ManifestTime: row.LastWrite,
		Commits: []fleet.Commit{{Version: row.Fingerprint.Version, Time: row.LastWrite, Operation: "Append"}},
	}
	if change != nil {
		change(&o)
	}
	return func(fleet.Experiment) (fleet.Observation, error) { return o, nil }
}

// coldOne is a server of one experiment that the tables call due for retirement.
func coldOne(t *testing.T, preview lance.Preview, change func(*fleet.Observation)) *bench {
	t.Helper()
	store := oneRow(8 * daysOfMinutes)
	b := newBench(t, store)
	store.preview = func(lance.PreviewSpec) (lance.Preview, error) { return preview, nil }
	store.observe = looksLike(store.snapshot.Rows[0], change)
	return b
}

func retirePlan(t *testing.T, b *bench) MaintenancePlan {
	t.Helper()
	plan := decode[MaintenancePlan](t, b.do("POST", "/api/v1/experiments/run-1/retire?dry_run=true", ""), 200)
	require.Empty(t, b.temporal.said(), "nothing is started")
	return plan
}

func TestADryRunOfARetirementDecidesByWhatIsThereNowAsTheRunDoes(t *testing.T) {
	shard := func(s fleet.Shard) func(*fleet.Observation) {
		return func(o *fleet.Observation) { s.ID, o.Shards = "a", []fleet.Shard{s} }
	}
	for name, c := range map[string]struct {
		change func(*fleet.Observation)
		want   string // of the reason; "" = it would start
	}{
		"as the tables have it": {nil, ""},
		"written since": {func(o *fleet.Observation) {
			o.Commits = []fleet.Commit{{Version: o.Fingerprint.Version + 1, Time: minutesAgo(3), Operation: "Append"}}
			o.Fingerprint.Version++
		}, "written 3 min ago"},
		"its counter restarted": {shard(fleet.Shard{Status: "active", Pending: 2, CurrentGeneration: 3, CompactedMark: 9}), "not retired: shard  restarted its generation counter; accept"},
		"sealed by its owner":   {shard(fleet.Shard{Status: "sealed", Pending: 2, CurrentGeneration: 12, CompactedMark: 9}), "not retired: shard  is sealed"},
	} {
		t.Run(name, func(t *testing.T) {
			plan := retirePlan(t, coldOne(t, lance.Preview{}, c.change))
			require.Equal(t, c.want == "", plan.Start, plan.Reason)
			require.Contains(t, plan.Reason, c.want)
		})
	}
}

func TestADryRunThatTheRunWouldEndRefusedWouldNotStart(t *testing.T) {
	mark := "the merge mark fell from 9 to 4"
	plan := retirePlan(t, coldOne(t, lance.Preview{
		Merge:    []lance.MergePreview{{Shard: "a", Refused: &lance.Refusal{Code: "mark_erased", Sentence: mark}, Generations: 2}},
		Tails:    []lance.Tail{{Shard: "a", NewestTime: minutesAgo(300), TouchedTime: minutesAgo(300)}},
		Blocking: []string{"shard a: 2 generations are not merged yet"},
	}, nil))
	require.False(t, plan.Start)
	require.Equal(t, "it would be refused: shard a: "+mark, plan.Reason)
	require.Equal(t, []string{"shard a: " + mark}, plan.Blocking)
}

func TestWhatARunTakesAwayItselfIsNotInItsWay(t *testing.T) {
	pending, stranded := "shard a: 2 generations are not merged yet", "shard a: 1 WAL entry with 1 row is stranded: their writer never flushed them"
	preview := lance.Preview{
		Merge:    []lance.MergePreview{{Shard: "a", Generations: 2}},
		Tails:    []lance.Tail{{Shard: "a", Stranded: 1, NewestTime: minutesAgo(300), TouchedTime: minutesAgo(300), Sentence: stranded}},
		Blocking: []string{pending, stranded},
	}
	b := coldOne(t, preview, nil)
	plan := retirePlan(t, b)
	require.True(t, plan.Start)
	require.Empty(t, plan.Blocking)
	require.Equal(t, []string{pending, stranded}, plan.Clears)
	page := b.get("/experiments/rollout:run-1/do/retire").Body.String()
	require.Contains(t, page, pending, "the page says so, too")
	require.Contains(t, page, stranded)

	preview.Tails[0].TouchedTime = minutesAgo(5)
	plan = retirePlan(t, coldOne(t, preview, nil))
	require.False(t, plan.Start)
	require.Equal(t, []string{pending}, plan.Clears)
	require.Len(t, plan.Blocking, 1)
	require.Contains(t, plan.Blocking[0], "not flushed yet by a writer that may live (touched 5 min ago)")
}

func TestAVerificationTellsWhatAWriterMayFlushFromWhatIsStranded(t *testing.T) {
	words := "shard a: 2 WAL entries with 2 rows are stranded: their writer never flushed them"
	for touched, want := range map[int64]int64{5: 2, 300: 0} {
		store := oneRow(120)
		store.evidence = func(string, bool) (fleet.Evidence, error) {
			return fleet.Evidence{Stranded: 2, Blocking: []string{words}, DistinctKeys: -1}, nil
		}
		store.tails = []lance.Tail{{Shard: "a", Stranded: 2, TouchedTime: testNow.Add(-time.Duration(touched) * time.Minute).UnixMilli(), Sentence: words}}
		v := decode[Verification](t, newBench(t, store).get("/api/v1/experiments/run-1/verify"), 200)
		require.False(t, v.Clean)
		require.Equal(t, want, v.Unflushed)
		require.Equal(t, want == 0, v.Blocking[0] == words, v.Blocking)
	}
}

func tailsOf(stranded, unknown int64) []lance.Tail {
	return []lance.Tail{{Shard: "a", Stranded: stranded, Unknown: unknown}}
}
