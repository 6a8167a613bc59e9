package fleet

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

// acted is an entry about exp1 at a minute after noon.
func acted(minute int64, kind, outcome string) Action {
	return Action{
		ID: kind + itoa(minute), At: noon + minute*min1, Kind: kind, Target: exp1.ID.String(), Outcome: outcome,
		RunID: "run-" + itoa(minute),
	}
}

func (a Action) after(f Facts) Action {
	a.After = f.Text()
	return a
}

func (a Action) in(run string) Action {
	a.RunID = run
	return a
}

func (a Action) saying(class, text string) Action {
	a.ErrorClass, a.Error = class, text
	return a
}

func factsAt(version int64, change func(*Facts)) Facts {
	f := UnknownFacts()
	f.Version = version
	change(&f)
	return f
}

func TestWhatTheJournalRemembersOfAnExperiment(t *testing.T) {
	marks := func(version int64, marks map[string]uint64) Facts {
		return factsAt(version, func(f *Facts) { f.Marks = marks })
	}
	tails := func(stranded, unknown int64) Facts {
		return factsAt(5, func(f *Facts) { f.Stranded, f.Unknown = stranded, unknown })
	}
	for why, c := range map[string]struct {
		actions []Action
		want    History
	}{
		"nothing": {nil, History{}},
		"failures in a row, and the words of the last": {
			[]Action{acted(1, ActMergeWAL, OutcomeFailed).saying("conflict", ""), acted(2, ActMergeWAL, OutcomeFailed).saying("conflict", "commit conflict")},
			History{Merge: Tries{2, noon + 2*min1, "commit conflict"}},
		},
		"only a class": {[]Action{acted(1, ActCompact, OutcomeFailed).saying("denied", "")}, History{Compact: Tries{1, noon + min1, "denied"}}},
		"a success forgets failures of its kind only": {
			[]Action{acted(1, ActMergeWAL, OutcomeFailed), acted(1, ActCompact, OutcomeFailed), acted(2, ActMergeWAL, OutcomeDone)},
			History{Compact: Tries{1, noon + min1, ""}},
		},
		"nothing to do is a success": {[]Action{acted(1, ActRetire, OutcomeFailed), acted(2, ActRetire, OutcomeNoOp)}, History{}},
		"a refusal counts":           {[]Action{acted(1, ActRetire, OutcomeRefused).saying("", "1 WAL entry of unknown state")}, History{Retire: Tries{1, noon + min1, "1 WAL entry of unknown state"}}},
		"a failure after a success":  {[]Action{acted(1, ActRetire, OutcomeDone), acted(2, ActRetire, OutcomeFailed)}, History{Retire: Tries{1, noon + 2*min1, ""}}},
		"an optimization is a merge and a compaction": {
			[]Action{acted(1, ActOptimize, OutcomeFailed)},
			History{Merge: Tries{1, noon + min1, ""}, Compact: Tries{1, noon + min1, ""}},
		},
		"an optimization whose steps speak for themselves": {
			[]Action{acted(1, ActMergeWAL, OutcomeDone).in("r"), acted(2, ActCompact, OutcomeFailed).in("r"), acted(3, ActOptimize, OutcomeFailed).in("r")},
			History{Compact: Tries{1, noon + 2*min1, ""}},
		},
		"several failures of one run are one": {
			[]Action{acted(1, ActMergeWAL, OutcomeFailed).in("r"), acted(2, ActMergeWAL, OutcomeFailed).in("r")},
			History{Merge: Tries{1, noon + 2*min1, ""}},
		},
		"operators' actions and the fleet's are not tries": {
			[]Action{acted(1, ActRescan, OutcomeFailed), acted(2, ActWake, OutcomeFailed), {ID: "p", At: noon, Kind: ActPause, Outcome: OutcomeFailed}},
			History{},
		},
		"the newest mark of each shard": {
			[]Action{acted(1, ActMergeWAL, OutcomeDone).after(marks(5, map[string]uint64{"s1": 4, "s2": 9})), acted(2, ActMergeWAL, OutcomeDone).after(marks(6, map[string]uint64{"s1": 8}))},
			History{RememberedMarks: map[string]uint64{"s1": 8, "s2": 9}, MarksVersion: 6},
		},
		"a mark that fell is remembered as it was": {
			[]Action{acted(1, ActMergeWAL, OutcomeDone).after(marks(5, map[string]uint64{"s1": 4})), acted(2, ActMergeWAL, OutcomeRefused).after(marks(6, map[string]uint64{"s1": 1}))},
			History{RememberedMarks: map[string]uint64{"s1": 4}, MarksVersion: 6, Merge: Tries{1, noon + 2*min1, ""}},
		},
		"what an operator accepted goes before what was remembered": {
			[]Action{
				acted(1, ActMergeWAL, OutcomeDone).after(marks(5, map[string]uint64{"s1": 4, "s2": 9})),
				acted(2, ActMergeWAL, OutcomeRefused).after(marks(6, map[string]uint64{"s2": 9})),
				acted(3, ActAccept, OutcomeDone).after(factsAt(8, func(f *Facts) { f.Accepted, f.Marks = map[string]uint64{"s1": 0}, map[string]uint64{"s1": 2} })),
			},
			History{RememberedMarks: map[string]uint64{"s1": 2, "s2": 9}, MarksVersion: 8},
		},
		"an accepted mark that is below what was remembered": {
			[]Action{
				acted(1, ActMergeWAL, OutcomeDone).after(marks(5, map[string]uint64{"s1": 4})),
				acted(2, ActAccept, OutcomeDone).after(factsAt(8, func(f *Facts) { f.Accepted = map[string]uint64{"s1": 1} })),
			},
			History{RememberedMarks: map[string]uint64{"s1": 1}, MarksVersion: 8},
		},
		"an accepted mark that nothing was merged above yet": {
			[]Action{
				acted(1, ActMergeWAL, OutcomeDone).after(marks(5, map[string]uint64{"s1": 4, "s2": 9})),
				acted(2, ActRetire, OutcomeRefused).after(marks(6, map[string]uint64{"s2": 9})),
				acted(3, ActAccept, OutcomeFailed).after(factsAt(8, func(f *Facts) { f.Accepted = map[string]uint64{"s1": 0} })),
			},
			History{RememberedMarks: map[string]uint64{"s2": 9}, MarksVersion: 8, Retire: Tries{1, noon + 2*min1, ""}},
		},
		"a table made anew has marks of its own": {
			[]Action{acted(1, ActMergeWAL, OutcomeDone).after(marks(50, map[string]uint64{"s1": 40})), acted(2, ActMergeWAL, OutcomeDone).after(marks(3, map[string]uint64{"s1": 2}))},
			History{RememberedMarks: map[string]uint64{"s1": 2}, MarksVersion: 3},
		},
		"a table made anew without marks": {
			[]Action{acted(1, ActMergeWAL, OutcomeDone).after(marks(50, map[string]uint64{"s1": 40})), acted(2, ActCompact, OutcomeDone).after(marks(3, nil))},
			History{},
		},
		"the last empty plan": {
			[]Action{
				acted(1, ActCompact, OutcomeNoOp).after(factsAt(5, func(f *Facts) { f.NoOpVersion, f.NoOpOptions = 5, "a" })),
				acted(2, ActCompact, OutcomeNoOp).after(factsAt(6, func(f *Facts) { f.NoOpVersion, f.NoOpOptions = 6, "b" })),
				acted(3, ActMergeWAL, OutcomeDone).after(factsAt(7, func(*Facts) {})),
			},
			History{NoOpVersion: 6, NoOpOptions: "b"},
		},
		"the last look at the tails": {
			[]Action{acted(1, ActRetire, OutcomeRefused).after(tails(2, 3)), acted(2, ActSeal, OutcomeDone).after(tails(0, 0)), acted(3, ActCompact, OutcomeDone).after(tails(-1, -1))},
			History{Retire: Tries{1, noon + min1, ""}, TailsAt: noon + 2*min1},
		},
		"a foreign drain is remembered": {
			[]Action{acted(1, ActMergeWAL, OutcomeDone).after(factsAt(5, func(f *Facts) { f.ForeignDrain = true })), acted(2, ActMergeWAL, OutcomeDone).after(factsAt(6, func(*Facts) {}))},
			History{ForeignDrain: true},
		},
	} {
		t.Run(why, func(t *testing.T) {
			got := Histories(c.actions)[exp1.ID]
			got.MaintainedAt = 0 // has a test of its own
			assert.Equal(t, c.want, got)
			assert.Equal(t, got.Retire, got.Tries(DoRetire))
		})
	}
}

func TestAnActionOnAnotherExperimentIsNotRemembered(t *testing.T) {
	other := acted(1, ActMergeWAL, OutcomeFailed)
	other.Target = "generic:x"
	hostile := acted(1, ActMergeWAL, OutcomeFailed)
	hostile.ID, hostile.Target = "hostile", "../x"
	histories := Histories([]Action{other, hostile})
	assert.Len(t, histories, 1)
	assert.EqualValues(t, 1, histories[ID{Generic, "x"}].Merge.Failures)
}

func TestHistoriesDependNeitherOnTheOrderNorOnRepeatedEntries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		actions := rapid.SliceOfN(rapid.Custom(drawAction), 0, 12).Draw(t, "actions")
		want := Histories(actions)
		again := rapid.Permutation(append(actions, actions...)).Draw(t, "again")
		assert.Equal(t, want, Histories(again))
	})
}

// drawAction makes entries of few ids, runs and moments: ties are the point.
func drawAction(t *rapid.T) Action {
	one := func(name string, of ...string) string { return rapid.SampledFrom(of).Draw(t, name) }
	return Action{
		ID: one("id", "1", "2", "3", "4", "5"), At: rapid.Int64Range(1, 5).Draw(t, "at"),
		Kind:    one("kind", ActMergeWAL, ActCompact, ActOptimize, ActRetire, ActSeal, ActPause),
		Target:  one("target", "rollout:a", "a", "table:a", ""),
		Outcome: one("outcome", OutcomeDone, OutcomeNoOp, OutcomeRefused, OutcomeFailed),
		Error:   one("error", "", "x", "y"), RunID: one("run", "", "r1", "r2"), After: drawFacts(t).Text(),
	}
}

func TestMarksOfATableThatWasMadeAnewDoNotHold(t *testing.T) {
	h := History{RememberedMarks: map[string]uint64{"s1": 40}, MarksVersion: 50}
	assert.Equal(t, h.RememberedMarks, h.Marks(&Row{Version: 50}))
	assert.Equal(t, h.RememberedMarks, h.Marks(&Row{Version: -1}), "unknown is no proof")
	assert.Equal(t, h.RememberedMarks, h.Marks(nil))
	assert.Empty(t, h.Marks(&Row{Version: 49}))
}

func TestGenerationsThatSomebodyElseDrainedAreNoticed(t *testing.T) {
	was := Shard{ShardMark: ShardMark{ID: "s1"}, Epoch: 3, CurrentGeneration: 10, CompactedMark: 2, Pending: 7}
	for why, c := range map[string]struct {
		change  func(*Shard)
		drained bool
	}{
		"nothing happened":                     {func(*Shard) {}, false},
		"more generations":                     {func(s *Shard) { s.CurrentGeneration, s.Pending = 12, 9 }, false},
		"our merge, drained":                   {func(s *Shard) { s.CompactedMark, s.Pending = 6, 3 }, false},
		"our merge and more generations":       {func(s *Shard) { s.CompactedMark, s.CurrentGeneration, s.Pending = 6, 12, 5 }, false},
		"a drain without a mark":               {func(s *Shard) { s.Pending = 0 }, true},
		"our merge and a drain beside it":      {func(s *Shard) { s.CompactedMark, s.Pending = 6, 1 }, true},
		"a drain, and some new generations":    {func(s *Shard) { s.CurrentGeneration, s.Pending = 12, 2 }, true},
		"a drain, and as many new generations": {func(s *Shard) { s.CurrentGeneration, s.Pending = 17, 7 }, true},
		"pending unknown":                      {func(s *Shard) { s.Pending = -1 }, false},
		"a table made anew":                    {func(s *Shard) { s.Epoch, s.CurrentGeneration, s.CompactedMark, s.Pending = 1, 2, 0, 1 }, false},
		"a writer that began anew":             {func(s *Shard) { s.Epoch, s.Pending = 1, 1 }, false},
		"a counter that began anew":            {func(s *Shard) { s.CurrentGeneration, s.Pending = 4, 1 }, false},
		"an overwritten base":                  {func(s *Shard) { s.CompactedMark, s.Pending = 0, 1 }, false},
	} {
		t.Run(why, func(t *testing.T) {
			is := was
			c.change(&is)
			got := DrainedByOthers([]Shard{was}, []Shard{is, {ShardMark: ShardMark{ID: "new"}}})
			assert.Equal(t, c.drained, len(got) > 0)
		})
	}
}

func TestAnActionSaysEachThingOnce(t *testing.T) {
	for want, a := range map[string]Action{
		"not retired: it moved":           {Why: "not retired: it moved", Error: "not retired: it moved"},
		"finished: not retired: it moved": {Why: "finished: not retired: it moved", Error: "not retired: it moved"},
		"403":                             {Error: "403"},
		"merged":                          {Why: "merged"},
		"nightly: 403":                    {Why: "nightly", Error: "403"},
	} {
		assert.Equal(t, want, a.Words())
	}
}

func TestTheJournalRemembersWhenSomethingWasLastRewritten(t *testing.T) {
	done := func(kind, outcome string, at int64) Action {
		return Action{ID: kind + outcome, At: at, Kind: kind, Target: exp1.StatsName(), Outcome: outcome}
	}
	h := Histories([]Action{done(ActMergeWAL, OutcomeDone, 5), done(ActCompact, OutcomeDone, 3), done(ActCompact, OutcomeFailed, 7), done(ActRetire, OutcomeDone, 9)})
	assert.EqualValues(t, 5, h[exp1.ID].MaintainedAt)
}
