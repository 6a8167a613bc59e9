package fleet

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

const (
	sec  = int64(1000)
	min1 = 60 * sec
	hour = 60 * min1
	noon = int64(1_764_504_000_000) // 2025-11-30 12:00 UTC
)

func appended(version uint64, time int64) Commit {
	return Commit{Version: version, Time: time, Operation: "Append"}
}

func rewrite(version uint64, time int64) Commit {
	return Commit{Version: version, Time: time, Operation: "Rewrite"}
}

func TestOnlyCommitsThatCannotBringRowsAreMaintenance(t *testing.T) {
	for why, c := range map[string]struct {
		commit Commit
		want   bool
	}{
		"a compaction":                         {Commit{Operation: "Rewrite"}, true},
		"a new index":                          {Commit{Operation: "CreateIndex"}, true},
		"reserved fragment ids":                {Commit{Operation: "ReserveFragments"}, true},
		"a changed setting":                    {Commit{Operation: "UpdateConfig"}, true},
		"bookkeeping of MemWAL":                {Commit{Operation: "UpdateMemWalState"}, true},
		"a merge that marks what it compacted": {Commit{Operation: "Update", Marks: true}, true},
		"a delete of ours":                     {Commit{Operation: "Delete", Action: "merge"}, true},
		"an append of ours":                    {Commit{Operation: "Append", Action: "merge"}, true},
		"somebody's update":                    {Commit{Operation: "Update"}, false},
		"somebody's append":                    {Commit{Operation: "Append"}, false},
		"somebody's delete":                    {Commit{Operation: "Delete"}, false},
		"an overwrite":                         {Commit{Operation: "Overwrite"}, false},
		"a restore":                            {Commit{Operation: "Restore"}, false},
		"a transaction that is gone":           {Commit{}, false},
		"an operation from the future":         {Commit{Operation: "Teleport"}, false},
	} {
		t.Run(why, func(t *testing.T) { assert.Equal(t, c.want, IsMaintenance(c.commit)) })
	}
}

func TestTheNativeWalkPassesExactlyWhatIsMaintenance(t *testing.T) {
	walk := MaintenanceWalk()
	assert.True(t, walk.Marks)
	assert.Equal(t, "lancefleet.action", walk.Property)
	for _, operation := range walk.Operations {
		assert.True(t, IsMaintenance(Commit{Operation: operation}), operation)
	}
	assert.NotContains(t, walk.Operations, "Update", "passes by its marks, not by its name")
}

func TestLastWriteIsTheNewestOfWALGenerationsAndBase(t *testing.T) {
	head := Fingerprint{Version: 3}
	shard := func(entry, generation int64) Shard {
		return Shard{NewestEntryTime: entry, NewestGenTime: generation}
	}
	for why, c := range map[string]struct {
		o    Observation
		prev *Row
		want int64
		base int64
	}{
		"a base write":                      {Observation{Fingerprint: head, Commits: []Commit{appended(3, 50)}}, nil, 50, 50},
		"a base write under maintenance":    {Observation{Fingerprint: head, Commits: []Commit{rewrite(3, 90), appended(2, 50)}}, nil, 50, 50},
		"an unflushed write":                {Observation{Fingerprint: head, Commits: []Commit{appended(3, 50)}, Shards: []Shard{shard(70, 60)}}, nil, 70, 50},
		"an entry that was flushed later":   {Observation{Fingerprint: head, Commits: []Commit{appended(3, 50)}, Shards: []Shard{shard(70, 99)}}, nil, 70, 50},
		"a flushed write of an old writer":  {Observation{Fingerprint: head, Commits: []Commit{appended(3, 50)}, Shards: []Shard{shard(0, 60), shard(55, 0)}}, nil, 60, 50},
		"nothing since what was known":      {Observation{Fingerprint: head, ManifestTime: 90}, &Row{Known: true, Version: 3, LastWrite: 40, LastBaseWrite: 30}, 40, 30},
		"maintenance since what was known":  {Observation{Fingerprint: head, ManifestTime: 90, Commits: []Commit{rewrite(3, 90), rewrite(2, 80)}}, &Row{Known: true, Version: 1, LastWrite: 40, LastBaseWrite: 30}, 40, 30},
		"generations that were drained":     {Observation{Fingerprint: head, Commits: []Commit{{Version: 3, Time: 90, Operation: "Update", Marks: true}}}, &Row{Known: true, Version: 2, LastWrite: 60, LastBaseWrite: 30}, 60, 30},
		"only maintenance and no history":   {Observation{Fingerprint: head, ManifestTime: 90, Commits: []Commit{rewrite(3, 90), rewrite(2, 80)}}, nil, 80, 80},
		"no commits and no history":         {Observation{Fingerprint: head, ManifestTime: 90}, nil, 90, 90},
		"a gap in the history":              {Observation{Fingerprint: Fingerprint{Version: 9}, ManifestTime: 99, Commits: []Commit{rewrite(9, 90), rewrite(8, 80)}}, &Row{Known: true, Version: 3, LastWrite: 40, LastBaseWrite: 30}, 80, 80},
		"a version below the known one":     {Observation{Fingerprint: head, ManifestTime: 99, Commits: []Commit{rewrite(3, 90)}}, &Row{Known: true, Version: 7, LastWrite: 40, LastBaseWrite: 30}, 90, 90},
		"a row that was never observed":     {Observation{Fingerprint: head, Commits: []Commit{appended(3, 50)}}, &Row{Version: 3, LastWrite: 400}, 50, 50},
		"a known row without a base write":  {Observation{Fingerprint: head, ManifestTime: 90, Commits: []Commit{rewrite(3, 90)}}, &Row{Known: true, Version: 2, LastWrite: 40}, 90, 90},
		"a base write behind what is known": {Observation{Fingerprint: head, Commits: []Commit{appended(3, 20)}}, &Row{Known: true, Version: 2, LastWrite: 40, LastBaseWrite: 30}, 40, 30},
	} {
		t.Run(why, func(t *testing.T) {
			last, base, _ := LastWrite(c.o, c.prev)
			assert.Equal(t, c.want, last, "last write")
			assert.Equal(t, c.base, base, "last base write")
		})
	}
}

func TestLastMaintenanceIsTheNewestEverSeen(t *testing.T) {
	o := Observation{Fingerprint: Fingerprint{Version: 3}, Commits: []Commit{rewrite(3, 90), appended(2, 50)}}
	_, _, maintained := LastWrite(o, nil)
	assert.EqualValues(t, 90, maintained)
	_, _, maintained = LastWrite(Observation{Fingerprint: Fingerprint{Version: 3}}, &Row{Known: true, Version: 3, LastMaintenance: 70})
	assert.EqualValues(t, 70, maintained)
	_, _, maintained = LastWrite(Observation{Commits: []Commit{appended(1, 50)}}, nil)
	assert.EqualValues(t, -1, maintained, "never seen is not 1970")
}

// However much maintenance is committed on top of a known row, by whomever, the
// experiment looks no fresher.
func TestMaintenanceNeverMovesTheLastWrite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		prev := Row{Known: true, Version: 5, LastWrite: noon, LastBaseWrite: noon - rapid.Int64Range(0, hour).Draw(t, "earlier")}
		o := Observation{Fingerprint: Fingerprint{Version: 5}, ManifestTime: noon}
		for range rapid.IntRange(0, 6).Draw(t, "commits") {
			c := rapid.SampledFrom([]Commit{
				{Operation: "Rewrite"}, {Operation: "Update", Marks: true}, {Operation: "Append", Action: "merge"}, {Operation: "CreateIndex"},
			}).Draw(t, "commit")
			o.Fingerprint.Version++
			o.ManifestTime += hour
			c.Version, c.Time = o.Fingerprint.Version, o.ManifestTime
			o.Commits = append([]Commit{c}, o.Commits...)
		}
		last, base, _ := LastWrite(o, &prev)
		assert.Equal(t, prev.LastWrite, last)
		assert.Equal(t, prev.LastBaseWrite, base)
	})
}

// Entries of the WAL are never collected: whatever is made of them later, by a
// flush, a replay, a seal or a merge, they keep the time at which they came.
func TestFlushesAndReplaysNeverMoveTheLastWrite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entry := rapid.Int64Range(1, 100).Draw(t, "entry")
		flush := rapid.Int64Range(entry, 1000).Draw(t, "flush")
		o := Observation{Fingerprint: Fingerprint{Version: 1}, Commits: []Commit{appended(1, 1)}}
		o.Shards = []Shard{{NewestEntryTime: entry, NewestGenTime: flush}}
		last, _, _ := LastWrite(o, nil)
		assert.Equal(t, entry, last)
	})
}

func TestLastWriteNeverFallsAndAWriteAlwaysMovesIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		prev := Row{Known: true, Version: 5, LastWrite: rapid.Int64Range(1, 100).Draw(t, "last"), LastBaseWrite: rapid.Int64Range(0, 100).Draw(t, "base")}
		write := rapid.Int64Range(101, 200).Draw(t, "write")
		o := Observation{Fingerprint: Fingerprint{Version: rapid.Uint64Range(1, 9).Draw(t, "head")}}
		switch rapid.IntRange(0, 3).Draw(t, "path") {
		case 0:
			o.Shards = []Shard{{NewestEntryTime: write}}
		case 1:
			o.Shards = []Shard{{NewestGenTime: write}}
		case 2:
			o.Commits = []Commit{rewrite(o.Fingerprint.Version, 300), appended(o.Fingerprint.Version-1, write)}
		case 3:
			write = prev.LastWrite // nothing
		}
		last, _, _ := LastWrite(o, &prev)
		assert.GreaterOrEqual(t, last, write)
	})
}
