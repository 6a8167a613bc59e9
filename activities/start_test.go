package activities

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/workflows"
)

// fakeStarter is Temporal as StartMaintenance sees it.
type fakeStarter struct {
	mu      sync.Mutex
	started []fleet.Start
	running map[fleet.ID]fleet.Todo
	open    map[fleet.ID]bool // run although the list does not say so yet
	tables  int
	err     error
}

func (s *fakeStarter) Start(_ context.Context, what fleet.Start) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return false, s.err
	}
	if s.open[what.ID] {
		return true, nil
	}
	s.started = append(s.started, what)
	return false, nil
}

func (s *fakeStarter) StartTables(context.Context) (bool, error) {
	s.tables++
	return s.tables > 1, s.err
}

func (s *fakeStarter) Running(context.Context) (map[fleet.ID]fleet.Todo, error) {
	return s.running, nil
}

func (w *fakeWorld) starts(s *fakeStarter) *Starts {
	return &Starts{
		Scan: w.scan(), Journal: fakeJournal{w}, Policies: fleet.Policies{Default: fleet.DefaultPolicy()}, Budgets: fleet.DefaultBudgets(),
		Paused:  func(context.Context) (string, error) { return w.paused, nil },
		Starter: s, TablesEvery: 12, Maintain: true,
	}
}

// coldFleet is one of so many experiments that nobody has written for ever longer.
func coldFleet(n int) *fakeWorld {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("e%04d", i))
	}
	w := newWorld(names...)
	w.now = time.UnixMilli(1_800_000_000_000)
	rows := make([]fleet.Row, n)
	for i, name := range names {
		rows[i] = fleet.Observed(exp(name), nil, *w.observation(1), w.now.UnixMilli())
		rows[i].LastWrite = w.now.Add(-8*24*time.Hour).UnixMilli() - int64(i)
	}
	w.put(rows, "")
	return w
}

func start(t *testing.T, s *Starts, round workflows.Round) workflows.StartMaintenanceResult {
	t.Helper()
	r, err := do[workflows.StartMaintenanceResult](t, s.StartMaintenance, workflows.StartMaintenanceInput{FleetID: "fleet", Round: round})
	require.NoError(t, err)
	return r
}

func TestARoundStartsTheWorstWithinItsBudgetAndSaysHowManyWait(t *testing.T) {
	w, s := coldFleet(120), &fakeStarter{}

	r := start(t, w.starts(s), w.round())

	require.Equal(t, workflows.StartMaintenanceResult{Retirements: 50, Waiting: 70}, r)
	require.Len(t, s.started, 50)
	for _, started := range s.started {
		require.GreaterOrEqual(t, started.Name, "e0070", "the fifty that are idle longest")
		require.Equal(t, fleet.DoRetire, started.Action)
	}
}

func TestWhatRunsAlreadyIsNormalAndWhatIsRetiredIsLeftAlone(t *testing.T) {
	w := coldFleet(4)
	row, _ := w.head().Row(exp("e0000").ID)
	entry := fleet.NewRetirement(*row, w.evidence(1), nil, w.now.UnixMilli())
	entry.RunID = "before"
	w.ledger = append(w.ledger, entry)
	s := &fakeStarter{running: map[fleet.ID]fleet.Todo{exp("e0001").ID: fleet.DoRetire}, open: map[fleet.ID]bool{exp("e0002").ID: true}}

	r := start(t, w.starts(s), w.round())

	require.Equal(t, workflows.StartMaintenanceResult{Retirements: 1, AlreadyRunning: 1}, r)
	require.Equal(t, "e0003", s.started[0].Name)
}

func TestWhatIsOpenCountsAgainstItsOwnBudgetOnly(t *testing.T) {
	w := coldFleet(100)
	running := map[fleet.ID]fleet.Todo{}
	for i := range 195 {
		running[fleet.ID{Kind: fleet.Table, Name: strconv.Itoa(i)}] = fleet.DoRetire
	}
	s := &fakeStarter{running: running}
	require.Equal(t, 5, start(t, w.starts(s), w.round()).Retirements)

	for id := range running {
		running[id] = fleet.DoMerge
	}
	s = &fakeStarter{running: running}
	require.Equal(t, 50, start(t, w.starts(s), w.round()).Retirements)

	for id := range running {
		running[id] = fleet.DoNothing
	}
	for i := len(running); i < mostOpen-7; i++ {
		running[fleet.ID{Kind: fleet.Generic, Name: strconv.Itoa(i)}] = fleet.DoNothing
	}
	s = &fakeStarter{running: running}
	require.Equal(t, 7, start(t, w.starts(s), w.round()).Retirements, "those that wait hold nobody back, until there are too many for Temporal")
}

func TestNothingIsStartedWhilePausedOrWhereMaintenanceIsOff(t *testing.T) {
	w, s := coldFleet(3), &fakeStarter{}
	w.paused = "disk is full"
	round := w.round()
	round.Number = 12
	require.Equal(t, workflows.StartMaintenanceResult{Nothing: "paused: disk is full"}, start(t, w.starts(s), round))
	require.Zero(t, s.tables)

	w.paused = ""
	off := w.starts(s)
	off.Maintain = false
	r := start(t, off, round)
	require.Equal(t, "maintenance is off: observe only", r.Nothing)
	require.True(t, r.Tables, "our own tables grow all the same")
	require.Empty(t, s.started)
}

func TestUpkeepOfOurTablesIsStartedEverySoManyRounds(t *testing.T) {
	w := newWorld()
	for n, want := range map[int64]int{11: 0, 12: 1, 13: 0, 24: 1} {
		s := &fakeStarter{}
		round := w.round()
		round.Number = n
		start(t, w.starts(s), round)
		require.Equal(t, want, s.tables, "round %d", n)
	}
	never := w.starts(&fakeStarter{})
	never.TablesEvery = 0
	require.False(t, start(t, never, workflows.Round{Number: 12}).Tables)
}

func TestOneThatKeepsFailingCoolsDown(t *testing.T) {
	w, s := coldFleet(1), &fakeStarter{}
	for i := range int64(3) {
		w.journal = append(w.journal, fleet.Action{
			ID: strconv.FormatInt(i, 10), At: w.now.UnixMilli() - i, Kind: fleet.ActRetire, Target: "rollout:e0000", Outcome: fleet.OutcomeFailed, Error: "conflict",
		})
	}
	r := start(t, w.starts(s), w.round())
	require.Equal(t, workflows.StartMaintenanceResult{CoolingDown: 1, Blocked: 1}, r)
}

func TestAStartThatFailsIsTriedAgainByTheNextAttempt(t *testing.T) {
	w := coldFleet(1)
	s := &fakeStarter{err: &lance.Error{Class: lance.Unreachable, Message: "no temporal"}}
	_, err := do[workflows.StartMaintenanceResult](t, w.starts(s).StartMaintenance, workflows.StartMaintenanceInput{FleetID: "fleet", Round: w.round()})
	require.Equal(t, "unreachable", workflows.ErrorClass(errors.Unwrap(err)))
}

// slow is a Temporal that answers nobody until it may.
type slow struct {
	*fakeStarter
	asked atomic.Int64
	may   chan struct{}
}

func (s *slow) Start(ctx context.Context, what fleet.Start) (bool, error) {
	s.asked.Add(1)
	<-s.may
	return s.fakeStarter.Start(ctx, what)
}

func TestARoundAsksEightThingsAtATimeOfASlowTemporalAndSaysHowFarItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{fakeStarter: &fakeStarter{}, may: make(chan struct{})}
		var l lease
		var result workflows.StartMaintenanceResult
		var done sync.WaitGroup
		done.Go(func() {
			starts := make([]fleet.Start, 20)
			for i := range starts {
				starts[i] = fleet.Start{ID: exp(strconv.Itoa(i)).ID, Action: fleet.DoMerge}
			}
			assert.NoError(t, (&Starts{Starter: s}).startAll(t.Context(), starts, &l, &result))
		})
		synctest.Wait()
		require.EqualValues(t, startsAtOnce, s.asked.Load())
		close(s.may)
		done.Wait()
		require.Equal(t, 20, result.Merges)
		require.Equal(t, Progress{Step: "start", Done: 20, Of: 20}, *l.progress.Load())
	})
}
