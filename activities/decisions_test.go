package activities

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/store"
	"lancefleet/workflows"
)

func classOf(err error) string { return workflows.ErrorClass(errors.Unwrap(err)) }

func TestWorkOfAnotherFleetIsNotTouched(t *testing.T) {
	w, s := coldFleet(2), &fakeStarter{}
	keeper := &fakeKeeper{results: wellKept}
	foreign := finished(workflows.OutcomeDone)
	foreign.Args.FleetID = "other"
	args := workflows.TablesArgs{FleetID: "other"}
	tables := w.tables(keeper, nil)
	for name, run := range map[string]func() error{
		"start": func() error {
			_, err := do[workflows.StartMaintenanceResult](t, w.starts(s).StartMaintenance, workflows.StartMaintenanceInput{FleetID: "other", Round: w.round()})
			return err
		},
		"upkeep": func() error { _, err := do[workflows.Upkeep](t, tables.UpkeepTables, args); return err },
		"record upkeep": func() error {
			_, err := do[workflows.TablesResult](t, tables.RecordUpkeep, workflows.UpkeepRecord{Args: args})
			return err
		},
		"record maintenance": func() error {
			_, err := do[struct{}](t, w.maintenance(nil).RecordMaintenance, foreign)
			return err
		},
	} {
		require.Equal(t, typeForeignFleet, classOf(run()), name)
	}
	require.Empty(t, s.started)
	require.Zero(t, s.tables)
	require.Zero(t, keeper.asked)
	require.Empty(t, w.journal)
	require.Empty(t, w.metrics.outcomes)
}

func TestWhatCannotBeReadStartsNothing(t *testing.T) {
	for _, part := range []string{"paused", "running", "_stats", "_retired", "_journal"} {
		t.Run(part, func(t *testing.T) {
			w := coldFleet(2)
			s := &fakeStarter{}
			w.unreadable = part
			a := w.starts(s)
			a.Paused = func(context.Context) (string, error) { return "", w.read("paused") }
			a.Starter = unlisted{s, w}

			_, err := do[workflows.StartMaintenanceResult](t, a.StartMaintenance, workflows.StartMaintenanceInput{FleetID: "fleet", Round: w.round()})

			require.Equal(t, "corrupt", classOf(err))
			require.Empty(t, s.started)
		})
	}
}

// unlisted is a Temporal that may fail to list what runs.
type unlisted struct {
	*fakeStarter
	w *fakeWorld
}

func (u unlisted) Running(context.Context) (map[fleet.ID]fleet.Todo, error) {
	return u.running, u.w.read("running")
}

func TestEveryKindOfMaintenanceIsCountedByItself(t *testing.T) {
	w, s := coldFleet(6), &fakeStarter{}
	rows := w.head().Rows
	for i := range rows {
		if i == 0 {
			continue // it is retired
		}
		rows[i].LastWrite = w.now.UnixMilli() - 3_600_000
		if i < 3 {
			rows[i].PendingWAL = 20
		} else {
			rows[i].FragmentCount, rows[i].SmallFragments = 40, 40
		}
	}
	r := start(t, w.starts(s), w.round())
	require.Equal(t, []int{2, 3, 1}, []int{r.Merges, r.Compactions, r.Retirements})
}

func TestAPassOverOurTablesThatRunsAlreadyWasNotStartedAndOneThatCannotBeStartedIsTriedAgain(t *testing.T) {
	w, s := newWorld(), &fakeStarter{}
	round := w.round()
	round.Number = 12
	require.True(t, start(t, w.starts(s), round).Tables)
	require.False(t, start(t, w.starts(s), round).Tables)

	s.err = &lance.Error{Class: lance.Unreachable, Message: "no temporal"}
	_, err := do[workflows.StartMaintenanceResult](t, w.starts(s).StartMaintenance, workflows.StartMaintenanceInput{FleetID: "fleet", Round: round})
	require.Equal(t, "unreachable", classOf(err))
}

func TestABudgetThatIsMoreThanUsedUpLeavesNothing(t *testing.T) {
	running := map[fleet.ID]fleet.Todo{}
	for _, e := range newWorld("a", "b", "c", "d", "e", "f").listing.Experiments {
		running[e.ID] = fleet.DoMerge
	}
	require.Equal(t, fleet.Budgets{Compact: 2, Retire: 3}, left(fleet.Budgets{Merge: 1, Compact: 2, Retire: 3}, running))
}

func TestAPassTellsWhatItDidToEachTable(t *testing.T) {
	w := newWorld("a").seen()
	k := &fakeKeeper{results: []store.UpkeepResult{
		{Table: "_journal.lance", Before: 9, After: 2, Removed: 7, Bytes: 100},
		{Table: "_rounds.lance", Before: -1, After: -1, Err: &lance.Error{Class: lance.Denied, Op: "cleanup", Message: "403"}},
	}}
	u, err := do[workflows.Upkeep](t, w.tables(k, nil).UpkeepTables, workflows.TablesArgs{FleetID: "fleet"})
	require.NoError(t, err)
	require.Equal(t, workflows.Upkeep{Tables: []workflows.TableUpkeep{
		{Table: "_journal.lance", Before: 9, After: 2, Removed: 7, Bytes: 100},
		{Table: "_rounds.lance", Before: -1, After: -1, Error: "cleanup: denied: 403", ErrorClass: "denied"},
	}}, u, "a pass that did not come to _stats cleaned no version of it")

	k.results = []store.UpkeepResult{{Table: statsTable, Err: lance.ErrDenied}}
	u, err = do[workflows.Upkeep](t, w.tables(k, nil).UpkeepTables, workflows.TablesArgs{FleetID: "fleet"})
	require.NoError(t, err)
	require.Zero(t, u.StatsVersion)
}

func TestAPassIsJournalledOnceWithWhoAskedAndItsNumbers(t *testing.T) {
	w := newWorld("a").seen()
	in := workflows.UpkeepRecord{
		Args: workflows.TablesArgs{FleetID: "fleet", By: "alice"}, StartedAt: 5, FinishedAt: 9,
		Upkeep: workflows.Upkeep{StatsVersion: 1, Tables: []workflows.TableUpkeep{
			{Table: "_journal.lance", After: 99, Removed: 2, Error: "first", ErrorClass: "denied"},
			{Table: statsTable, After: 3, Removed: 4, Error: "second", ErrorClass: "corrupt"},
		}},
	}
	for range 2 {
		r, err := do[workflows.TablesResult](t, w.tables(&fakeKeeper{versions: 50}, nil).RecordUpkeep, in)
		require.NoError(t, err)
		require.Equal(t, []string{"first", "denied"}, []string{r.Sentence, r.ErrorClass}, "the first failure is told")
		require.EqualValues(t, 50, r.Unreclaimed, "a table whose upkeep failed is counted anew")
	}
	require.Len(t, w.journal, 1)
	entry := w.journal[0]
	require.Equal(t, []string{"alice", "first", "denied", "first"}, []string{entry.By, entry.Why, entry.ErrorClass, entry.Error})
	require.EqualValues(t, 4, entry.DurationMS)
	require.Contains(t, entry.After, `"removed":6`)
	require.Contains(t, w.metrics.outcomes, "tables failed denied")
}

func TestAPassThatCannotBeJournalledFailsAndIsNotCounted(t *testing.T) {
	w := newWorld("a").seen()
	in := workflows.UpkeepRecord{Args: workflows.TablesArgs{FleetID: "fleet"}, Error: "timed out", ErrorClass: "timeout"}
	w.appendErr = lance.ErrUnreachable
	_, err := do[workflows.TablesResult](t, w.tables(&fakeKeeper{}, nil).RecordUpkeep, in)
	require.Equal(t, "unreachable", classOf(err))
	w.appendErr, w.unreadable = nil, "_journal"
	_, err = do[workflows.TablesResult](t, w.tables(&fakeKeeper{}, nil).RecordUpkeep, in)
	require.Equal(t, "corrupt", classOf(err))
	require.Zero(t, w.metrics.upkeepFailed)
}

func TestADamagedStatsKeepsNoOtherTableFromItsUpkeep(t *testing.T) {
	w, log := newWorld("a").seen(), &bytes.Buffer{}
	w.unreadable = "_stats"
	r := w.pass(t, &fakeKeeper{results: unkept, versions: 4}, log)
	require.Equal(t, int64(1), r.Removed)
	require.Contains(t, log.String(), "read _stats for its upkeep")
}

func TestARunThatCannotBeJournalledIsNotCounted(t *testing.T) {
	w := newWorld("a")
	w.appendErr = lance.ErrUnreachable
	_, err := do[struct{}](t, w.maintenance(nil).RecordMaintenance, finished(workflows.OutcomeDone))
	require.Equal(t, "unreachable", classOf(err))
	require.Empty(t, w.metrics.outcomes)
	require.Empty(t, w.metrics.retireTook)
}

func TestOnlyRetirementsAreTimedAndCleaningAndSweepingAreJournalledToo(t *testing.T) {
	w := newWorld("a")
	in := finished(workflows.OutcomeDone)
	in.Result.Action = workflows.ActionOptimize
	seen := facts(8, 0)
	in.Result.Steps = []workflows.StepResult{
		{Action: workflows.StepCleanup, Outcome: workflows.OutcomeDone, Sentence: "removed", Before: facts(7, 4), After: seen},
		{Action: workflows.StepSweep, Outcome: workflows.OutcomeDone, Sentence: "swept", Before: seen, After: seen},
		{Action: workflows.StepDrop, Outcome: workflows.OutcomeDone, Sentence: "dropped", Before: seen, After: seen},
	}
	in.FinishedAt = in.StartedAt // steps that took no time
	_, err := do[struct{}](t, w.maintenance(nil).RecordMaintenance, in)
	require.NoError(t, err)
	require.Equal(t, []string{"cleanup done ", "sweep done ", "optimize done "}, w.metrics.outcomes)
	require.Empty(t, w.metrics.retireTook)
	for i, a := range w.journal {
		require.Empty(t, a.Error)
		if i > 0 {
			require.Greater(t, a.At, w.journal[i-1].At, "in order")
		}
	}
	require.Equal(t, facts(7, 4), fleet.ParseFacts(w.journal[0].Before))
	require.Equal(t, seen, fleet.ParseFacts(w.journal[0].After))

	w = newWorld("a")
	in.Result.Outcome = workflows.OutcomeFailed
	_, err = do[struct{}](t, w.maintenance(nil).RecordMaintenance, in)
	require.NoError(t, err)
	require.Zero(t, w.metrics.retireFailed)
}
