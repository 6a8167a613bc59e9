package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWhatADryRunCannotPromiseForAShardThatIsSealedStops(t *testing.T) {
	const words = "shard a: 2 WAL entries are stranded, and of 1 nobody can tell"
	tail := ShardTail{Shard: "a", Stranded: 2, TouchedTime: ago(2 * time.Hour), Words: words}
	require.Equal(t, SealShard, hourly.Step(tail, foreseen))
	for why, c := range map[string]struct {
		unknown  int64
		sentence string
		clears   bool
	}{
		"stranded entries are replayed":             {0, words, true},
		"those of which nobody can tell are not":    {1, words, false},
		"nor does sealing help what is not of them": {0, "shard a is on fire", false},
	} {
		t.Run(why, func(t *testing.T) {
			tail.Unknown = c.unknown
			f := hourly.Foresee(nil, []ShardTail{tail}, []string{c.sentence}, foreseen)
			if c.clears {
				require.Equal(t, Foreseen{Clears: []string{c.sentence}}, f)
			} else {
				require.Equal(t, Foreseen{Stops: []string{c.sentence}}, f)
			}
		})
	}
}

func TestEntriesOfWhichNobodyCanTellAreNotCalledUnflushed(t *testing.T) {
	const words = "shard a: of 2 WAL entries nobody can tell"
	tail := ShardTail{Shard: "a", Unknown: 2, TouchedTime: ago(time.Minute), Words: words}
	require.Equal(t, []string{words}, hourly.Reword([]string{words}, []ShardTail{tail}, foreseen))
}

func TestWhereLiveShardsAreNobodysATimeAheadOfOursMakesNoneLive(t *testing.T) {
	ahead := ShardTail{NewestTime: foreseen + 1, TouchedTime: foreseen + 1, Stranded: 1}
	require.Equal(t, SealShard, Reach{}.Step(ahead, foreseen))
	require.False(t, Reach{}.Live(ahead, foreseen))
}

func TestTheWorstOfCompactionsHasTheMostSmallFragments(t *testing.T) {
	row := func(name string, fragments, small int64) Row {
		return needing(name, func(r *Row) { r.FragmentCount, r.SmallFragments = fragments, small })
	}
	in := planOf(row("large", 900, 20), row("small", 60, 50), row("unknown", 40, -1))
	in.Budgets.Compact = 2
	out := Plan(in)
	require.Equal(t, []string{"small compact", "unknown compact"}, names(out.Starts), "those whose small ones nobody knows count all")
	require.Equal(t, []string{"large compact"}, names(out.Waiting))
}

func TestWhatHasFailedOftenEnoughToCoolDownStandsBehindTheOthersFromThenOn(t *testing.T) {
	for failures, first := range map[int64]string{2: "bad merge", 3: "fine merge"} {
		in := planOf(merging("bad", 50), merging("fine", 9))
		in.Budgets.Merge = 1
		in.Histories = map[ID]History{{Rollout, "bad"}: {Merge: Tries{Failures: failures, LastAt: noon - 24*hour}}}
		require.Equal(t, []string{first}, names(Plan(in).Starts), failures)
	}
}

func TestWhatWaitsForTwoKindsWaitsOnce(t *testing.T) {
	both := compacting("both", 20)
	both.PendingWAL = 9
	in := planOf(both)
	in.Budgets = Budgets{}
	require.Equal(t, []string{"both merge"}, names(Plan(in).Waiting))
}

func TestTheRowOfARetiredExperimentSaysNoMoreThanTheLedgerKnows(t *testing.T) {
	e := retirement()
	row := UnknownRow(exp1)
	row.Known, row.LastWrite, row.LastBaseWrite = true, e.LastWrite, e.LastWrite
	row.RowCount, row.RowsExact, row.Bytes, row.FragmentCount = 10, true, 1000, 1
	row.LastCompaction, row.TotalCompactions = noon-9*24*hour, 3
	row.PendingWAL, row.PendingRows, row.StrandedEntries, row.TailEntries = 0, 0, 0, -1
	row.Fingerprint, row.Version = proof(7).Fingerprint, 7
	row.ObservedAt, row.ScannedAt = noon-min1, noon-min1
	require.Equal(t, row, e.Row())

	e.CheckedAt = noon
	require.Equal(t, noon, e.Row().ScannedAt, "found true again since")
	e.RowCount, e.Evidence.Fingerprint = -1, Fingerprint{}
	require.False(t, e.Row().RowsExact)
	require.Equal(t, int64(-1), e.Row().Version, "without evidence nobody knows it")
	e.RowCount = 0
	require.True(t, e.Row().RowsExact, "none at all is exact too")
}

func TestARenewalHasTheNumbersOfItsEvidenceAndNobodysName(t *testing.T) {
	e := retirement()
	e.By, e.Why, e.WorkflowID = "alice", "done with it", "retire/x"
	evidence := proof(8)
	evidence.Rows, evidence.Bytes, evidence.Fragments, evidence.VerifiedAt = 11, 12, 13, 14
	next := e.Renew(evidence, noon)
	require.Equal(t, []int64{11, 12, 13, 14}, []int64{next.RowCount, next.Bytes, next.FragmentCount, next.CheckedAt})
	require.Equal(t, []string{"", "", "", ""}, []string{next.By, next.Why, next.WorkflowID, next.RunID})
}

// A round that began at the very moment of an entry may have listed before it.
func TestARoundSaysNothingOfAnEntryThatIsNotOlderThanItself(t *testing.T) {
	e := retirement()
	marked := Unnamed([]LedgerEntry{e}, nil, e.RetiredAt+1, noon)[0]
	for why, c := range map[string]struct {
		entry   LedgerEntry
		listed  []Experiment
		started int64
		adds    int
	}{
		"missed as it retired":            {e, nil, e.RetiredAt, 0},
		"missed after it retired":         {e, nil, e.RetiredAt + 1, 1},
		"named by the round that missed":  {marked, []Experiment{exp1}, marked.MissingSince, 0},
		"named by one after it":           {marked, []Experiment{exp1}, marked.MissingSince + 1, 1},
		"missed as the first was written": {marked, nil, marked.At, 0},
		"missed after it was written":     {marked, nil, marked.At + 1, 1},
	} {
		assert.Len(t, Unnamed([]LedgerEntry{c.entry}, c.listed, c.started, noon+hour), c.adds, why)
	}
}

func TestAReturnCountsBeforeARetirementOfTheSameMomentWhicheverIsAskedFirst(t *testing.T) {
	e := retirement()
	back := e
	back.State = LedgerReturned
	require.True(t, back.Supersedes(e))
	require.False(t, e.Supersedes(back))
	require.False(t, e.Supersedes(e))
}

func TestValuesThatCannotBeMeantAreRefusedOneByOne(t *testing.T) {
	require.NoError(t, Policies{Default: Policy{LiveShards: MergeLiveShards}}.Validate(), "0 can be meant everywhere")
	for why, change := range map[string]func(*Policy){
		"retire after":          func(p *Policy) { p.RetireAfter = -1 },
		"merge tails after":     func(p *Policy) { p.MergeTailsAfter = -1 },
		"cleanup older than":    func(p *Policy) { p.CleanupOlderThan = -1 },
		"cooldown base":         func(p *Policy) { p.CooldownBase = -1 },
		"cooldown max":          func(p *Policy) { p.CooldownMax = -1 },
		"live within":           func(p *Policy) { p.LiveWithin = -1 },
		"merge min generations": func(p *Policy) { p.MergeMinGenerations = -1 },
		"compact min fragments": func(p *Policy) { p.CompactMinFragments = -1 },
		"cooldown after":        func(p *Policy) { p.CooldownAfter = -1 },
		"target bytes":          func(p *Policy) { p.TargetBytes = -1 },
		"target rows":           func(p *Policy) { p.TargetRows = -1 },
		"a window from before":  func(p *Policy) { p.QuietWindow = Window{From: -1} },
		"a window to before":    func(p *Policy) { p.QuietWindow = Window{To: -1} },
		"a window from 24:00":   func(p *Policy) { p.QuietWindow = Window{From: day} },
		"a window to 24:00":     func(p *Policy) { p.QuietWindow = Window{To: day} },
	} {
		p := DefaultPolicy()
		change(&p)
		assert.Error(t, Policies{Default: p}.Validate(), why)
	}
}

func TestWhereSizesAreNotKnownOnlyTheNumberOfRowsCounts(t *testing.T) {
	p := DefaultPolicy()
	p.TargetRows, p.TargetBytes = 1000, 100
	require.EqualValues(t, 20, p.RowsPerFragment(&Row{RowCount: 10, Bytes: 50}))
	for _, r := range []Row{{RowCount: 10}, {RowCount: 10, Bytes: -1}, {Bytes: 50}, {RowCount: -1, Bytes: 50}} {
		require.EqualValues(t, 1000, p.RowsPerFragment(&r))
	}
	p.TargetBytes = 0
	require.EqualValues(t, 1000, p.RowsPerFragment(&Row{RowCount: 10, Bytes: 50}), "0 is no target")
}
