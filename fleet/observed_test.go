package fleet

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

var exp1 = Experiment{ID: ID{Rollout, "x"}, URI: "/data/x.rollout.lance", Source: FromRegistry, CreatedAt: 1}

func TestRowsAreAnUpperBoundOnlyWhereTheyMayRepeat(t *testing.T) {
	shard := func(pending, rows int64) Shard { return Shard{Pending: pending, PendingRows: rows} }
	tomb := Shard{Pending: 1, PendingRows: 2, Tombstones: true}
	for why, c := range map[string]struct {
		o     Observation
		rows  int64
		exact bool
	}{
		"a plain table":                          {Observation{BaseRows: 10, Keyed: true}, 10, true},
		"keyed, nothing pending":                 {Observation{BaseRows: 10, Keyed: true, Shards: []Shard{shard(0, 0)}}, 10, true},
		"keyed, pending in two shards":           {Observation{BaseRows: 10, Keyed: true, Shards: []Shard{shard(1, 5), shard(2, 7)}}, 22, false},
		"keyless, pending":                       {Observation{BaseRows: 10, Shards: []Shard{shard(1, 5)}}, 15, true},
		"keyless with tombstones":                {Observation{BaseRows: 10, Shards: []Shard{tomb}}, 12, false},
		"a generation that can't be counted":     {Observation{BaseRows: 10, Shards: []Shard{shard(1, -1), shard(1, 5)}}, -1, false},
		"a base that can't be counted":           {Observation{BaseRows: -1}, -1, false},
		"unknown pending, keyless, rows counted": {Observation{BaseRows: 10, Shards: []Shard{shard(-1, 5)}}, 15, false},
	} {
		t.Run(why, func(t *testing.T) {
			row := Observed(exp1, nil, c.o, 7)
			assert.Equal(t, c.rows, row.RowCount)
			assert.Equal(t, c.exact, row.RowsExact)
		})
	}
}

func TestAnObservationFillsTheRow(t *testing.T) {
	o := Observation{
		Fingerprint: Fingerprint{Version: 4, ETag: "e", Naming: "v2"}, ManifestTime: 90, Fragments: 3, SmallFragments: 2,
		BaseRows: 10, DeletedRows: 1, Bytes: 1000, Indexes: []string{"i"}, Tags: []string{"v1"}, Branches: []string{"b"},
		Commits:    []Commit{appended(4, 90)},
		Shards:     []Shard{{Pending: 2, PendingRows: 5, TailEntries: 1}, {Pending: 1, PendingRows: 6, TailEntries: 2}},
		ObservedAt: 95,
	}
	row := Observed(exp1, nil, o, 100)
	want := Row{
		Experiment: exp1, RowCount: 21, FragmentCount: 3, LastWrite: 90, PendingWAL: 3, LastCompaction: -1, Version: 4,
		ScannedAt: 100, Known: true, RowsExact: true, PendingRows: 11, SmallFragments: 2, DeletedRows: 1, Bytes: 1000,
		TailEntries: 3, StrandedEntries: -1, LastMaintenance: -1, LastBaseWrite: 90, ObservedAt: 95,
		Fingerprint: o.Fingerprint, Shards: o.Shards, Indexes: o.Indexes, Tags: o.Tags, Branches: o.Branches,
	}
	assert.Equal(t, want, row)
}

func TestStrandedIsUnknownUntilClassifiedUnlessNoEntryIsLeft(t *testing.T) {
	assert.EqualValues(t, 0, Observed(exp1, nil, Observation{Shards: []Shard{{}}}, 1).StrandedEntries)
	assert.EqualValues(t, -1, Observed(exp1, nil, Observation{Shards: []Shard{{TailEntries: 1}}}, 1).StrandedEntries)
	assert.EqualValues(t, -1, Observed(exp1, nil, Observation{Shards: []Shard{{TailEntries: -1}}}, 1).StrandedEntries)
}

func TestEachCompactionIsCountedOnceAndNoneIsForgotten(t *testing.T) {
	first := Observed(exp1, nil, Observation{Commits: []Commit{rewrite(4, 90), rewrite(3, 80), appended(2, 50)}}, 100)
	assert.EqualValues(t, 2, first.TotalCompactions)
	assert.EqualValues(t, 90, first.LastCompaction)

	again := Observed(exp1, &first, Observation{Commits: []Commit{rewrite(4, 90), appended(2, 50)}}, 101)
	assert.EqualValues(t, 2, again.TotalCompactions, "seen twice, counted once")

	later := Observed(exp1, &again, Observation{Commits: []Commit{appended(6, 120), rewrite(5, 110)}}, 130)
	assert.EqualValues(t, 3, later.TotalCompactions)
	assert.EqualValues(t, 110, later.LastCompaction)

	refreshed := Observed(exp1, &later, Observation{}, 140)
	assert.EqualValues(t, 3, refreshed.TotalCompactions, "a refresh keeps the history")
	assert.EqualValues(t, 110, refreshed.LastCompaction)

	foreign := Row{LastCompaction: 500, TotalCompactions: 9} // as lance-context stored it
	kept := Observed(exp1, &foreign, Observation{Commits: []Commit{rewrite(4, 90)}}, 600)
	assert.EqualValues(t, 9, kept.TotalCompactions)
	assert.EqualValues(t, 500, kept.LastCompaction)
}

func TestAMovedExperimentKeepsItsCompactionsButNotItsBaseHistory(t *testing.T) {
	prev := Row{Experiment: exp1, Known: true, Version: 3, LastWrite: 40, LastBaseWrite: 40, TotalCompactions: 2, LastCompaction: 30}
	moved := exp1
	moved.URI = "s3://bucket/x"
	row := Observed(moved, &prev, Observation{Fingerprint: Fingerprint{Version: 3}, ManifestTime: 90}, 100)
	assert.Equal(t, "s3://bucket/x", row.URI)
	assert.EqualValues(t, 2, row.TotalCompactions)
	assert.EqualValues(t, 90, row.LastWrite, "version 3 there is not version 3 here")
}

func TestAnObservationEndsAFailure(t *testing.T) {
	failed := Failed(exp1, nil, "corrupt", "truncated manifest", 50, DefaultBackoff(0))
	row := Observed(exp1, &failed, Observation{ObservedAt: 60}, 61)
	assert.False(t, row.Failing())
	assert.Empty(t, row.ErrorClass)
	assert.Zero(t, row.NextAttemptAt)
}

func TestAConfirmedRowIsScannedNowAndNoLongerFailing(t *testing.T) {
	row := Failed(exp1, &Row{Experiment: exp1, Known: true, RowCount: 5, ScannedAt: 10}, "unreachable", "no answer", 50, DefaultBackoff(0))
	well := Confirmed(row, 60)
	assert.Equal(t, Row{Experiment: exp1, Known: true, RowCount: 5, ScannedAt: 60}, well)
	assert.EqualValues(t, 60, Confirmed(well, 55).ScannedAt, "time doesn't run backwards")
}
