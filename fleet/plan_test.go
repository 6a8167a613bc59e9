package fleet

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// needing is a row of a fleet that needs what change gives it.
func needing(name string, change func(*Row)) Row {
	row := quiet()
	row.Experiment = Experiment{ID: ID{Rollout, name}, URI: "/data/" + name}
	change(&row)
	return row
}

func merging(name string, pending int64) Row {
	return needing(name, func(r *Row) { r.PendingWAL = pending })
}

func compacting(name string, small int64) Row {
	return needing(name, func(r *Row) { r.FragmentCount, r.SmallFragments = small, small })
}

func retiring(name string, days int64) Row {
	return needing(name, func(r *Row) { r.LastWrite = noon - days*24*hour })
}

func planOf(rows ...Row) PlanInput {
	return PlanInput{Rows: rows, Policies: Policies{Default: DefaultPolicy()}, Budgets: DefaultBudgets(), Now: noon}
}

func names(starts []Start) []string {
	all := []string{}
	for _, s := range starts {
		all = append(all, s.Name+" "+string(s.Action))
	}
	return all
}

func TestAPlanStartsTheWorstOfEachKindWithinItsBudget(t *testing.T) {
	in := planOf(
		merging("m9", 9), merging("m99", 99), merging("m50", 50),
		compacting("c20", 20), compacting("c900", 900),
		retiring("r8", 8), retiring("r80", 80), retiring("r10", 10),
		quiet(),
	)
	in.Budgets = Budgets{Merge: 2, Compact: 5, Retire: 1}
	out := Plan(in)
	assert.Equal(t, []string{"r80 retire", "m99 merge", "m50 merge", "c900 compact", "c20 compact"}, names(out.Starts))
	assert.Equal(t, []string{"r10 retire", "r8 retire", "m9 merge"}, names(out.Waiting))
	assert.Equal(t, 1, out.NotDue)
	assert.Empty(t, out.Blocked)
	first := out.Starts[1]
	assert.Equal(t, Start{ID{Rollout, "m99"}, "/data/m99", DoMerge, "99 pending generations, merged from 8 on", 99}, first)
}

func TestWhatIsEquallyBadComesByName(t *testing.T) {
	in := planOf()
	for _, name := range []string{"d", "b", "e", "a", "c"} {
		in.Rows = append(in.Rows, merging(name, 9))
	}
	in.Budgets.Merge = 3
	out := Plan(in)
	assert.Equal(t, []string{"a merge", "b merge", "c merge"}, names(out.Starts))
	assert.Equal(t, []string{"d merge", "e merge"}, names(out.Waiting))
}

func TestAnExperimentThatNeedsTwoThingsIsStartedOnce(t *testing.T) {
	both := compacting("both", 20)
	both.PendingWAL = 9
	out := Plan(planOf(both))
	assert.Equal(t, []string{"both merge"}, names(out.Starts), "its workflow merges and compacts")
	assert.Empty(t, out.Waiting)
}

func TestTheTableWithTheMostFragmentsIsCompactedHoweverManyMergesWait(t *testing.T) {
	var rows []Row
	for i := range 500 {
		rows = append(rows, merging("m"+strconv.Itoa(i), 100+int64(i)))
	}
	both := compacting("both", 20_000)
	both.PendingWAL = 9 // its merge stands last in the queue
	out := Plan(planOf(append(rows, both)...))
	assert.Contains(t, names(out.Starts), "both compact")
	assert.Len(t, out.Starts, 51)
	assert.Len(t, out.Waiting, 450)
}

func TestWhatRunsIsLeftAloneAndWhatHasRetiredIsNotStartedAgain(t *testing.T) {
	written := retiring("back", 8)
	in := planOf(merging("runs", 9), retiring("gone", 8), written)
	in.Running = map[ID]bool{{Rollout, "runs"}: true}
	in.Retired = map[ID]int64{{Rollout, "gone"}: noon - 8*24*hour, {Rollout, "back"}: noon - 9*24*hour}
	out := Plan(in)
	assert.Equal(t, []string{"back retire"}, names(out.Starts))
	assert.Equal(t, 1, out.Running)
}

func TestWhatFailsAgainAndAgainStandsBehindTheOthers(t *testing.T) {
	in := planOf(merging("worst", 1000), merging("bad", 50), merging("fine", 9))
	in.Budgets.Merge = 2
	in.Histories = map[ID]History{
		{Rollout, "worst"}: {Merge: Tries{Failures: 5, LastAt: noon - 24*hour}}, // cooled down, due again
		{Rollout, "bad"}:   {Merge: Tries{Failures: 1, LastAt: noon}},
	}
	out := Plan(in)
	assert.Equal(t, []string{"bad merge", "fine merge"}, names(out.Starts))
	assert.Equal(t, []string{"worst merge"}, names(out.Waiting))
}

func TestAPlanSaysWhatStandsInTheWay(t *testing.T) {
	sealed := needing("sealed", func(r *Row) {
		r.PendingWAL = 9
		r.Shards = []Shard{{ShardMark: ShardMark{ID: "s1"}, Pending: 9, Status: "sealed", CurrentGeneration: 12}}
	})
	failing := Failed(merging("failing", 9).Experiment, nil, "gone", "no manifest", noon-hour, fiveMinutes)
	in := planOf(sealed, failing, merging("cooling", 9), merging("paused", 9))
	in.Policies.Overrides = []Override{{Pattern: "paused", Paused: ptr("release week")}}
	in.Histories = map[ID]History{{Rollout, "cooling"}: {Merge: Tries{Failures: 3, LastAt: noon}}}
	out := Plan(in)
	assert.Empty(t, out.Starts)
	assert.Equal(t, 1, out.CoolingDown)
	var held []string
	for _, b := range out.Blocked {
		held = append(held, b.Name+" "+string(b.Held)+" "+string(b.Wants))
	}
	assert.Equal(t, []string{"cooling cooling merge", "failing failing none", "paused paused merge", "sealed refused merge"}, held)
}

// drawFleet is a fleet with something for everybody, and a plan over it.
func drawFleet(t *rapid.T) PlanInput {
	in := PlanInput{Policies: Policies{Default: DefaultPolicy()}, Now: noon, Histories: map[ID]History{}, Running: map[ID]bool{}, Retired: map[ID]int64{}}
	in.Policies.Default.Maintain = rapid.IntRange(0, 5).Draw(t, "maintain") > 0
	if rapid.IntRange(0, 5).Draw(t, "quiet window") == 0 {
		in.Policies.Default.QuietWindow = Window{11 * time.Hour, 13 * time.Hour}
	}
	in.Policies.Overrides = []Override{{Pattern: "[ab]*", Paused: ptr("why not")}}
	in.Budgets = Budgets{rapid.IntRange(0, 3).Draw(t, "merges"), rapid.IntRange(0, 3).Draw(t, "compactions"), rapid.IntRange(0, 3).Draw(t, "retirements")}
	for i := range rapid.IntRange(0, 12).Draw(t, "experiments") {
		id := ID{Rollout, string(rune('a'+i)) + "x"}
		row, _, h := drawAny(t)
		if rapid.Bool().Draw(t, "healthy") { // else too few are due for anything
			h = History{}
			row = needing(id.Name, func(r *Row) {
				r.PendingWAL = rapid.Int64Range(6, 10).Draw(t, "pending generations")
				r.FragmentCount = rapid.Int64Range(14, 18).Draw(t, "fragments now")
				r.SmallFragments = r.FragmentCount
				r.LastWrite = noon - rapid.Int64Range(6, 8).Draw(t, "days without a write")*24*hour
			})
		}
		row.Experiment = Experiment{ID: id, URI: "/data/" + id.Name}
		in.Rows = append(in.Rows, row)
		in.Histories[id] = h
		if rapid.IntRange(0, 6).Draw(t, "runs") == 0 {
			in.Running[id] = true
		}
		if rapid.IntRange(0, 6).Draw(t, "retired") == 0 {
			in.Retired[id] = noon - rapid.Int64Range(-1, 20).Draw(t, "evidence, days")*24*hour
		}
	}
	return in
}

func TestAPlanStartsNothingThatIsForbiddenAndNothingTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawFleet(t)
		out := Plan(in)
		seen := map[ID]bool{}
		for _, s := range slices.Concat(out.Starts, out.Waiting) {
			require.False(t, seen[s.ID], "twice")
			seen[s.ID] = true
			row := *of(in.Rows, s.Name)
			policy, _ := in.Policies.For(s.ID)
			tries := in.Histories[s.ID].Tries(s.Action)
			assert.True(t, policy.Maintain && policy.Paused == "")
			_, inside := policy.QuietWindow.Contains(noon)
			assert.False(t, inside, "inside the quiet window")
			assert.GreaterOrEqual(t, noon, tries.LastAt+policy.Cooldown(tries.Failures).Milliseconds(), "cooling down")
			assert.True(t, row.Known && !row.Failing() && row.MissingRounds == 0)
			assert.False(t, in.Running[s.ID])
			if lastWrite, retired := in.Retired[s.ID]; retired {
				assert.Greater(t, row.LastWrite, lastWrite)
			}
			assert.NotEmpty(t, s.Reason)
		}
	})
}

func TestBudgetsHoldAndTheWorstComeFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawFleet(t)
		out := Plan(in)
		for kind, budget := range map[Todo]int{DoMerge: in.Budgets.Merge, DoCompact: in.Budgets.Compact, DoRetire: in.Budgets.Retire} {
			started := ofKind(out.Starts, kind)
			assert.LessOrEqual(t, len(started), budget)
			for _, w := range ofKind(out.Waiting, kind) {
				assert.Len(t, started, budget, "one waits although there is room")
				for _, s := range started {
					if keepsFailing(in, w) == keepsFailing(in, s) {
						assert.GreaterOrEqual(t, s.Score, w.Score)
					} else {
						assert.True(t, keepsFailing(in, w))
					}
				}
			}
		}
	})
}

func keepsFailing(in PlanInput, s Start) bool {
	return in.Histories[s.ID].Tries(s.Action).Failures >= in.Policies.Default.CooldownAfter
}

func ofKind(starts []Start, kind Todo) []Start {
	var found []Start
	for _, s := range starts {
		if s.Action == kind {
			found = append(found, s)
		}
	}
	return found
}

// However many experiments need one kind of maintenance, and however badly, the
// starts of another kind are as many as without them.
func TestNoKindStarvesAnother(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := planOf()
		in.Budgets = Budgets{2, 2, 2}
		rowOf := map[Todo]func(string, int64) Row{DoMerge: merging, DoCompact: compacting, DoRetire: retiring}
		kinds := []Todo{DoMerge, DoCompact, DoRetire}
		due := map[Todo]int{}
		for _, kind := range kinds {
			due[kind] = rapid.IntRange(0, 6).Draw(t, string(kind))
			for i := range due[kind] {
				in.Rows = append(in.Rows, rowOf[kind](string(kind)+strconv.Itoa(i), rapid.Int64Range(16, 5000).Draw(t, "how bad")))
			}
		}
		out := Plan(in)
		for _, kind := range kinds {
			assert.Len(t, ofKind(out.Starts, kind), min(due[kind], 2), kind)
		}
	})
}

func TestAPlanDoesNotDependOnTheOrderOfRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawFleet(t)
		want := Plan(in)
		in.Rows = rapid.Permutation(in.Rows).Draw(t, "rows")
		assert.Equal(t, want, Plan(in))
	})
}

func TestEveryExperimentIsAccountedForOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawFleet(t)
		out := Plan(in)
		retired := 0
		for _, r := range in.Rows {
			if lastWrite, ok := in.Retired[r.ID]; ok && r.LastWrite <= lastWrite && !in.Running[r.ID] {
				retired++
			}
		}
		assert.Equal(t, len(in.Rows), len(out.Starts)+len(out.Waiting)+len(out.Blocked)+out.NotDue+out.Running+retired)
	})
}

// Twenty-five thousand experiments that turn cold at once retire fifty a round.
func TestAFleetThatTurnsColdAtOnceRetiresWithinItsBudget(t *testing.T) {
	in := planOf()
	for i := range 25_000 {
		in.Rows = append(in.Rows, retiring("r"+strconv.Itoa(i), 8))
	}
	out := Plan(in)
	assert.Len(t, out.Starts, 50)
	assert.Len(t, out.Waiting, 24_950)
}

func BenchmarkPlan30k(b *testing.B) {
	in := planOf()
	for i := range 10_000 {
		in.Rows = append(in.Rows, merging("m"+strconv.Itoa(i), 9), retiring("r"+strconv.Itoa(i), 8), needing("q"+strconv.Itoa(i), func(*Row) {}))
	}
	for b.Loop() {
		Plan(in)
	}
}
