package fleet

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// at is a healthy row that was observed and scanned at t with so many rows.
func at(name string, t, rows int64) Row {
	row := UnknownRow(Experiment{ID: ID{Rollout, name}, URI: "/data/" + name})
	row.Known, row.ObservedAt, row.ScannedAt, row.RowCount = true, t, t, rows
	row.Fingerprint.Version = uint64(rows)
	return row
}

func listing(names ...string) []Experiment {
	var exps []Experiment
	for _, name := range names {
		exps = append(exps, Experiment{ID: ID{Rollout, name}, URI: "/data/" + name})
	}
	return exps
}

// of finds a row by name, nil when it is not there.
func of(rows []Row, name string) *Row {
	for i := range rows {
		if rows[i].Name == name {
			return &rows[i]
		}
	}
	return nil
}

// round is a MergeInput whose freshness commit is not due.
func round(latest []Row, started int64, names ...string) MergeInput {
	return MergeInput{Latest: latest, RoundStarted: started, Now: started + 10, LastCommitAt: started, Listed: listing(names...)}
}

func TestARoundThatFindsNothingNewCommitsNothing(t *testing.T) {
	out := MergeRound(round([]Row{at("a", 10, 1), at("b", 10, 2)}, 100, "a", "b"))
	assert.False(t, out.Changed)
	assert.Len(t, out.Rows, 2)
}

func TestNothingNewIsCommittedOnceScannedAtHasGrownOld(t *testing.T) {
	in := round([]Row{at("a", 10, 1)}, 100, "a")
	in.LastCommitAt = in.Now - DefaultFreshness.Milliseconds() + 1
	assert.False(t, MergeRound(in).Changed)
	in.LastCommitAt--
	out := MergeRound(in)
	assert.True(t, out.Changed)
	assert.True(t, out.FreshnessOnly)
	assert.EqualValues(t, 100, of(out.Rows, "a").ScannedAt)

	in.Freshness, in.LastCommitAt = time.Hour, in.Now-hour+1
	assert.False(t, MergeRound(in).Changed, "the caller's freshness counts")
}

func TestAnEmptyFleetNeverCommits(t *testing.T) {
	assert.False(t, MergeRound(MergeInput{Now: noon}).Changed)
}

func TestWhatIsCommittedWithAChange(t *testing.T) {
	failing := Failed(listing("c")[0], &Row{Experiment: listing("c")[0], Known: true, ScannedAt: 10}, "gone", "", 20, fiveMinutes)
	in := round([]Row{at("a", 10, 1), at("b", 10, 1), failing, at("d", 10, 1)}, 100, "a", "b", "c", "d", "e")
	in.Unasked = map[ID]bool{{Rollout, "d"}: true}
	in.Staged = []Row{at("a", 101, 5), at("e", 102, 6)}
	out := MergeRound(in)
	assert.True(t, out.Changed)
	assert.False(t, out.FreshnessOnly)
	assert.Equal(t, 1, out.Added)
	assert.EqualValues(t, 5, of(out.Rows, "a").RowCount, "what changed")
	assert.EqualValues(t, 101, of(out.Rows, "a").ScannedAt)
	assert.EqualValues(t, 100, of(out.Rows, "b").ScannedAt, "carried rows have the round's time")
	assert.EqualValues(t, 10, of(out.Rows, "c").ScannedAt, "one that backs off was not confirmed")
	assert.EqualValues(t, 10, of(out.Rows, "d").ScannedAt, "nor was one whose page never finished")
	assert.EqualValues(t, 6, of(out.Rows, "e").RowCount, "what is new")
}

func TestBeginningAndCeasingToFailAreChangesButCountingIsNot(t *testing.T) {
	well := at("a", 10, 1)
	once := Failed(well.Experiment, &well, "gone", "no manifest", 101, fiveMinutes)
	in := round([]Row{well}, 100, "a")
	in.Staged = []Row{once}
	assert.True(t, MergeRound(in).Changed, "begins to fail")

	twice := Failed(well.Experiment, &once, "gone", "still no manifest", 201, fiveMinutes)
	in = round([]Row{once}, 200, "a")
	in.Staged = []Row{twice}
	out := MergeRound(in)
	assert.False(t, out.Changed, "fails once more")
	assert.EqualValues(t, 2, of(out.Rows, "a").Failures, "it goes along with the next commit")

	in.Staged = []Row{Failed(well.Experiment, &once, "denied", "access denied", 201, fiveMinutes)}
	assert.True(t, MergeRound(in).Changed, "fails for another reason")

	in.Staged = []Row{Confirmed(once, 202)}
	out = MergeRound(in)
	assert.True(t, out.Changed, "is well again")
	assert.False(t, of(out.Rows, "a").Failing())
	assert.EqualValues(t, 202, of(out.Rows, "a").ScannedAt)
}

func TestAnObservationThatFindsTheSameIsNoChange(t *testing.T) {
	in := round([]Row{at("a", 10, 1)}, 100, "a")
	in.Staged = []Row{at("a", 101, 1)}
	out := MergeRound(in)
	assert.False(t, out.Changed)
	assert.EqualValues(t, 101, of(out.Rows, "a").ObservedAt)
}

func TestARoundWhereEverythingFailsKeepsEveryNumber(t *testing.T) {
	latest := []Row{at("a", 10, 1), at("b", 10, 2)}
	in := round(latest, 100, "a", "b", "c")
	for _, exp := range in.Listed {
		in.Staged = append(in.Staged, Failed(exp, of(latest, exp.Name), "unreachable", "no answer", 101, fiveMinutes))
	}
	out := MergeRound(in)
	require.Len(t, out.Rows, 3)
	assert.EqualValues(t, 1, of(out.Rows, "a").RowCount)
	assert.EqualValues(t, 2, of(out.Rows, "b").RowCount)
	assert.False(t, of(out.Rows, "c").Known, "a new one has a row that says what is wrong")
	assert.EqualValues(t, -1, of(out.Rows, "c").RowCount)
}

func TestANameIsDroppedOnlyWhenTwoRoundsInARowMissIt(t *testing.T) {
	first := MergeRound(round([]Row{at("a", 10, 1), at("b", 10, 2)}, 100, "a"))
	assert.True(t, first.Changed)
	assert.Equal(t, 1, first.MissingOnce)
	assert.Zero(t, first.Dropped)
	b := of(first.Rows, "b")
	require.NotNil(t, b)
	assert.EqualValues(t, 1, b.MissingRounds)
	assert.EqualValues(t, 100, b.MissingSince)
	assert.EqualValues(t, 10, b.ScannedAt, "nobody confirmed it")

	second := MergeRound(round(first.Rows, 200, "a"))
	assert.True(t, second.Changed)
	assert.Equal(t, 1, second.Dropped)
	assert.Nil(t, of(second.Rows, "b"))

	back := MergeRound(round(first.Rows, 200, "a", "b"))
	assert.True(t, back.Changed)
	assert.Zero(t, of(back.Rows, "b").MissingRounds)
	again := MergeRound(round(back.Rows, 300, "a"))
	assert.NotNil(t, of(again.Rows, "b"), "the count starts anew")
}

func TestRacingRoundsThatReadTheSameGapCountAsOne(t *testing.T) {
	latest := []Row{at("a", 10, 1)}
	early, late := round(latest, 100), round(latest, 105) // both began before either committed
	early.Now, late.Now = 120, 121
	late.Latest = MergeRound(early).Rows
	assert.NotNil(t, of(MergeRound(late).Rows, "a"))
	early.Latest = MergeRound(round(latest, 105)).Rows
	assert.NotNil(t, of(MergeRound(early).Rows, "a"))
}

func TestASecondAttemptOfOneCommitDoesNotDrop(t *testing.T) {
	in := round([]Row{at("a", 10, 1)}, 100)
	in.Latest = MergeRound(in).Rows
	in.Now = 500 // the first attempt's worker died after its commit
	out := MergeRound(in)
	assert.NotNil(t, of(out.Rows, "a"))
	assert.False(t, out.Changed)
}

func TestAnOlderRoundUndoesNothingOfANewerOne(t *testing.T) {
	newer := MergeRound(MergeInput{
		Latest: []Row{at("a", 10, 1)}, Listed: listing("a", "new"), RoundStarted: 200, Now: 210,
		Staged: []Row{at("a", 201, 9), at("new", 202, 3)},
	})
	older := round(newer.Rows, 100, "a") // began before "new" was registered
	older.Staged = []Row{at("a", 101, 5)}
	out := MergeRound(older)
	assert.EqualValues(t, 9, of(out.Rows, "a").RowCount)
	require.NotNil(t, of(out.Rows, "new"))
	assert.Zero(t, of(out.Rows, "new").MissingRounds)
	assert.False(t, out.Changed)
}

func TestALateRoundDoesNotBringBackWhatWasDroppedMeanwhile(t *testing.T) {
	pinned := []Row{at("a", 10, 1), at("b", 10, 2)}
	in := round([]Row{at("a", 10, 1)}, 100, "a", "b") // b was dropped by a round that knew more
	in.Pinned = pinned
	in.Staged = []Row{at("b", 101, 3), at("c", 101, 4)}
	out := MergeRound(in)
	assert.Nil(t, of(out.Rows, "b"))
	assert.NotNil(t, of(out.Rows, "c"), "but what it found itself is new")
}

func TestRetiredRowsAreTakenOutUnlessWrittenSince(t *testing.T) {
	cold, written := at("cold", 10, 1), at("written", 10, 1)
	cold.LastWrite, written.LastWrite = 5, 50
	in := round([]Row{cold, written}, 100, "cold", "written")
	in.Retired = map[ID]int64{cold.ID: 5, written.ID: 5, {Table, "other"}: 5}
	out := MergeRound(in)
	assert.True(t, out.Changed)
	assert.Equal(t, 1, out.Dropped)
	assert.Nil(t, of(out.Rows, "cold"))
	assert.NotNil(t, of(out.Rows, "written"))
}

func TestARefreshAddsMissingRowsOnlyWhenTold(t *testing.T) {
	latest := []Row{at("b", 10, 2)}
	fresh := []Row{at("a", 20, 1), at("b", 20, 3)}
	kept := MergeRefresh(latest, fresh, false)
	require.Len(t, kept, 1)
	assert.EqualValues(t, 3, kept[0].RowCount)
	added := MergeRefresh(latest, fresh, true)
	require.Len(t, added, 2)
	assert.Equal(t, "a", added[0].Name, "sorted")
	stale := MergeRefresh(latest, []Row{at("b", 9, 1)}, true)
	assert.EqualValues(t, 2, stale[0].RowCount, "newer wins")
	assert.EqualValues(t, 2, latest[0].RowCount, "the caller's rows are not touched")
}

func TestARefreshKeepsTheMarkOfAMissingName(t *testing.T) {
	marked := at("a", 10, 1)
	marked.MissingRounds, marked.MissingSince, marked.MissingSeenAt = 1, 12, 13
	assert.EqualValues(t, 1, MergeRefresh([]Row{marked}, []Row{at("a", 20, 2)}, false)[0].MissingRounds)
}

func TestJoinKeepsWhatOnlyGrows(t *testing.T) {
	older, newer := at("a", 10, 1), at("a", 20, 2)
	older.TotalCompactions, older.LastCompaction = 4, 9
	older.LastWrite, older.LastBaseWrite, older.LastMaintenance = 8, 7, 6
	for _, row := range []Row{Join(older, newer), Join(newer, older)} {
		assert.EqualValues(t, 2, row.RowCount)
		assert.EqualValues(t, 4, row.TotalCompactions)
		assert.EqualValues(t, 9, row.LastCompaction)
		assert.EqualValues(t, 8, row.LastWrite)
		assert.EqualValues(t, 7, row.LastBaseWrite)
		assert.EqualValues(t, 6, row.LastMaintenance)
	}
}

func BenchmarkMergeRoundOf30000UnchangedRows(b *testing.B) {
	var in MergeInput
	for i := range 30_000 {
		name := fmt.Sprintf("experiment-%05d", i)
		in.Latest = append(in.Latest, at(name, 10, 1))
		in.Listed = append(in.Listed, listing(name)...)
	}
	in.Pinned, in.RoundStarted, in.Now, in.LastCommitAt = in.Latest, 100, 110, 100
	for b.Loop() {
		MergeRound(in)
	}
}
