package fleet

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Times in these properties are small on purpose: ties and races are the point.

var someNames = []string{"a", "b", "c", "d"}

// drawRow is any row of a name that could have been stored up to time until.
func drawRow(t *rapid.T, name string, until int64) Row {
	row := at(name, rapid.Int64Range(1, until).Draw(t, "observed"), rapid.Int64Range(0, 3).Draw(t, "rows"))
	row.ScannedAt = rapid.Int64Range(row.ObservedAt, until).Draw(t, "scanned")
	row.LastWrite = rapid.Int64Range(0, until).Draw(t, "written")
	row.TotalCompactions = rapid.Int64Range(0, 3).Draw(t, "compactions")
	if rapid.IntRange(0, 3).Draw(t, "state") == 0 {
		row = Failed(row.Experiment, &row, "gone", "", rapid.Int64Range(row.ScannedAt, until).Draw(t, "failed"), fiveMinutes)
	}
	return row
}

func drawRows(t *rapid.T, until int64) []Row {
	var rows []Row
	for _, name := range someNames {
		if rapid.Bool().Draw(t, "has "+name) {
			rows = append(rows, drawRow(t, name, until))
		}
	}
	return rows
}

// drawRound is a round over pinned that began at a time after it: what it lists,
// and for each listed name a carried, confirmed, failed or observed row.
func drawRound(t *rapid.T, pinned []Row, names []string) MergeInput {
	in := MergeInput{Pinned: pinned, Latest: pinned, RoundStarted: rapid.Int64Range(21, 30).Draw(t, "started"), Now: 50, LastCommitAt: 50}
	in.Listed = listing(names...)
	for _, exp := range in.Listed {
		now := rapid.Int64Range(in.RoundStarted, 40).Draw(t, "asked")
		old := of(pinned, exp.Name)
		switch rapid.SampledFrom([]string{"carried", "confirmed", "failed", "observed"}).Draw(t, "found") {
		case "confirmed":
			if old != nil && old.Failing() {
				in.Staged = append(in.Staged, Confirmed(*old, now))
			}
		case "failed":
			in.Staged = append(in.Staged, Failed(exp, old, "gone", "", now, fiveMinutes))
		case "observed":
			o := Observation{ObservedAt: now, BaseRows: rapid.Int64Range(0, 3).Draw(t, "rows"), ManifestTime: now}
			o.Fingerprint.Version = uint64(o.BaseRows + 1)
			in.Staged = append(in.Staged, Observed(exp, old, o, now))
		}
	}
	return in
}

func drawListing(t *rapid.T) []string {
	var names []string
	for _, name := range someNames {
		if rapid.IntRange(0, 3).Draw(t, "lists "+name) > 0 {
			names = append(names, name)
		}
	}
	return names
}

// after merges b on top of what a left.
func after(a, b MergeInput) []Row {
	b.Latest = MergeRound(a).Rows
	return MergeRound(b).Rows
}

func contents(rows []Row, of func(Row) string) []string {
	var all []string
	for _, row := range rows {
		all = append(all, of(row))
	}
	return all
}

func content(r Row) string {
	return fmt.Sprint(scalarsOf(r), r.Failing(), r.ErrorClass, r.MissingRounds)
}

func contentWithoutMark(r Row) string {
	r.MissingRounds = 0
	return content(r)
}

func TestJoinIsCommutativeAssociativeAndIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := drawRow(t, "a", 6), drawRow(t, "a", 6), drawRow(t, "a", 6)
		assert.Equal(t, a, Join(a, a))
		assert.Equal(t, Join(a, b), Join(b, a))
		assert.Equal(t, Join(a, Join(b, c)), Join(Join(a, b), c))
		assert.Equal(t, Join(a, b), Join(Join(a, b), b))
	})
}

func TestMergingARoundTwiceIsMergingItOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawRound(t, drawRows(t, 20), drawListing(t))
		once := MergeRound(in)
		in.Latest, in.Now = once.Rows, 60
		twice := MergeRound(in)
		assert.Equal(t, once.Rows, twice.Rows)
		assert.False(t, twice.Changed)
	})
}

func TestTheOrderAndNumberOfAttemptsDoNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pinned := drawRows(t, 20)
		in := drawRound(t, pinned, drawListing(t))
		other := drawRound(t, pinned, someNames) // another attempt of the same pages
		in.Staged = append(in.Staged, other.Staged...)
		want := MergeRound(in)
		in.Staged = rapid.Permutation(append(in.Staged, in.Staged...)).Draw(t, "staged")
		assert.Equal(t, want, MergeRound(in))
	})
}

func TestTwoRacingRoundsEndTheSameInEitherOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pinned := drawRows(t, 20)
		a, b := drawRound(t, pinned, someNames), drawRound(t, pinned, someNames)
		assert.Equal(t, contents(after(a, b), content), contents(after(b, a), content))
	})
}

// Where the sources changed between two racing rounds the rows still agree. Only
// the mark of a name missed once may differ for a row that has no time of its own
// from the round that named it (failing, or new), and a mark alone does nothing.
func TestTwoRacingRoundsThatListDifferentNamesKeepTheSameRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pinned := drawRows(t, 20)
		a, b := drawRound(t, pinned, drawListing(t)), drawRound(t, pinned, drawListing(t))
		ab, ba := after(a, b), after(b, a)
		require.Equal(t, contents(ab, contentWithoutMark), contents(ba, contentWithoutMark))
		for i := range ab {
			if old := of(pinned, ab[i].Name); old != nil && !old.Failing() && !ab[i].Failing() && !ba[i].Failing() {
				assert.Equal(t, content(ab[i]), content(ba[i]))
			}
		}
	})
}

func TestNoRowIsLostThatWasNotMissedTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pinned := drawRows(t, 20)
		a, b := drawRound(t, pinned, drawListing(t)), drawRound(t, pinned, drawListing(t))
		rows := after(a, b) // racing: both began before either committed
		for _, want := range slices.Concat(pinned, a.Staged, b.Staged) {
			got := of(rows, want.Name)
			require.NotNil(t, got, want.Name)
			assert.GreaterOrEqual(t, got.ObservedAt, want.ObservedAt, "an older observation won")
		}
	})
}

func TestARemovedRowComesBackOnlyAsANewOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pinned := drawRows(t, 20)
		in := drawRound(t, pinned, drawListing(t))
		kept := rapid.SliceOfNDistinct(rapid.SampledFrom(someNames), 0, len(someNames), rapid.ID).Draw(t, "kept")
		in.Latest = slices.DeleteFunc(slices.Clone(pinned), func(r Row) bool { return !slices.Contains(kept, r.Name) })
		for _, row := range MergeRound(in).Rows {
			wasThere := of(pinned, row.Name) != nil
			assert.Equal(t, wasThere, of(in.Latest, row.Name) != nil, row.Name)
		}
	})
}

func TestAnAllFailedRoundNeverBlanksTheTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		latest := drawRows(t, 20)
		in := MergeInput{Latest: latest, Pinned: latest, RoundStarted: 30, Now: 50, Listed: listing(someNames...)}
		for _, exp := range in.Listed {
			in.Staged = append(in.Staged, Failed(exp, of(latest, exp.Name), "unreachable", "no answer", 31, fiveMinutes))
		}
		out := MergeRound(in)
		require.Len(t, out.Rows, len(someNames))
		for _, old := range latest {
			assert.True(t, sameNumbers(old, *of(out.Rows, old.Name)))
		}
	})
}

// A whole life: rounds one after another, each listing the name or not. The row is
// there exactly as long as no two rounds in a row missed it.
func TestARowIsDroppedExactlyWhenTwoRoundsInARowMissIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := []Row{drawRow(t, "a", 20)}
		missed := 0
		for i := range rapid.IntRange(1, 8).Draw(t, "rounds") {
			in := MergeInput{Latest: rows, Pinned: rows, RoundStarted: 100 + int64(i)*20}
			in.Now = in.RoundStarted + rapid.Int64Range(0, 19).Draw(t, "duration")
			missed++
			if rapid.Bool().Draw(t, "listed") {
				in.Listed, missed = listing("a"), 0
			}
			rows = MergeRound(in).Rows
			require.Equal(t, missed < 2, of(rows, "a") != nil)
			if missed == 2 {
				return
			}
		}
	})
}
