package worker

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/control"
	"lancefleet/fleet"
	"lancefleet/workflows"
)

const minute = int64(60_000)

// fakeFleet is schedule, journal, rounds and counters in one.
type fakeFleet struct {
	state      control.ScheduleState
	created    *control.Pause
	creations  int
	started    []string
	nowRunning bool
	entries    []fleet.Action
	records    []fleet.RoundRecord
	healed     int
	restored   int
	now        int64
}

func (f *fakeFleet) Schedule(context.Context) (control.ScheduleState, error) { return f.state, nil }

func (f *fakeFleet) EnsureSchedule(_ context.Context, _ workflows.ScanArgs, remembered *control.Pause) (bool, error) {
	if f.state.Exists {
		return false, nil
	}
	f.creations++
	f.created = remembered
	f.state = control.ScheduleState{Exists: true, Paused: remembered != nil, IntervalSecs: 60, CreatedAt: f.now}
	return true, nil
}

func (f *fakeFleet) StartScanWith(_ context.Context, _ workflows.ScanArgs, _ bool, by string) (control.Started, error) {
	f.started = append(f.started, by)
	return control.Started{RunID: "run"}, nil
}

func (f *fakeFleet) ScanNowRunning(context.Context) (bool, error) { return f.nowRunning, nil }

func (f *fakeFleet) LastOf(_ context.Context, kinds ...string) (*fleet.Action, error) {
	for i := len(f.entries) - 1; i >= 0; i-- {
		for _, kind := range kinds {
			if f.entries[i].Kind == kind {
				return &f.entries[i], nil
			}
		}
	}
	return nil, nil
}

func (f *fakeFleet) Append(_ context.Context, entries ...fleet.Action) error {
	for _, e := range entries {
		known := false
		for _, old := range f.entries {
			known = known || old.ID == e.ID
		}
		if !known {
			f.entries = append(f.entries, e)
		}
	}
	return nil
}

func (f *fakeFleet) Latest(context.Context, int) ([]fleet.RoundRecord, error) { return f.records, nil }

func (f *fakeFleet) SelfHealed() { f.healed++ }

func (f *fakeFleet) ScheduleRestored() { f.restored++ }

func (f *fakeFleet) dog() *watchdog {
	return &watchdog{
		schedule: f, journal: f, rounds: f, metrics: f, args: workflows.ScanArgs{FleetID: "id"},
		log: slog.New(slog.DiscardHandler), since: 0,
		now: func() time.Time { return time.UnixMilli(f.now) },
	}
}

// running is a fleet whose schedule runs every minute.
func running() *fakeFleet {
	return &fakeFleet{now: 100 * minute, state: control.ScheduleState{Exists: true, IntervalSecs: 60, LastAt: 100 * minute}}
}

func TestALostScheduleComesBackInTheStateThatTheJournalRemembers(t *testing.T) {
	pause := fleet.Action{ID: "p", Kind: kindPause, By: "alice", Why: "moving", At: 5}
	resume := fleet.Action{ID: "r", Kind: kindResume, At: 6}
	for name, c := range map[string]struct {
		entries []fleet.Action
		rounds  []fleet.RoundRecord
		want    *control.Pause
		counted int
	}{
		"paused":          {entries: []fleet.Action{pause}, want: &control.Pause{EntryID: "p", By: "alice", Reason: "moving", At: 5}, counted: 1},
		"resumed":         {entries: []fleet.Action{pause, resume}, counted: 1},
		"never paused":    {rounds: []fleet.RoundRecord{{Number: 1}}, counted: 1},
		"of a new fleet":  {counted: 0},
		"other entries":   {entries: []fleet.Action{pause, {ID: "s", Kind: "scan"}}, want: &control.Pause{EntryID: "p", By: "alice", Reason: "moving", At: 5}, counted: 1},
		"paused, resumed": {entries: []fleet.Action{pause, resume, {ID: "p2", Kind: kindPause}}, want: &control.Pause{EntryID: "p2"}, counted: 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakeFleet{entries: c.entries, records: c.rounds}
			require.NoError(t, f.dog().look(t.Context()))
			require.Equal(t, 1, f.creations)
			require.Equal(t, c.want, f.created)
			require.Equal(t, c.counted, f.restored)
		})
	}
}

func TestAPauseMadeWithTemporalsToolIsJournalledOnceHoweverManyLook(t *testing.T) {
	f := running()
	f.state.Paused, f.state.Reason = true, "moving"

	for range 3 {
		require.NoError(t, f.dog().look(t.Context()))
	}

	require.Len(t, f.entries, 1)
	require.Equal(t, kindPause, f.entries[0].Kind)
	require.Equal(t, byTemporal, f.entries[0].By)
	require.Equal(t, "moving", f.entries[0].Why)

	f.state.Paused = false
	require.NoError(t, f.dog().look(t.Context()))
	require.Len(t, f.entries, 2)
	require.Equal(t, kindResume, f.entries[1].Kind)
	f.state.Paused = true
	require.NoError(t, f.dog().look(t.Context()))
	require.Len(t, f.entries, 3, "a second pause is another entry")
}

func TestAPauseWhoseEntryWasLostIsJournalledUnderItsOwnId(t *testing.T) {
	f := running()
	f.state.Paused, f.state.EntryID, f.state.By, f.state.Reason, f.state.Since = true, "entry", "alice", "moving", 42

	require.NoError(t, f.dog().look(t.Context()))

	require.Equal(t, []fleet.Action{{ID: "entry", At: 42, Kind: kindPause, Outcome: "done", By: "alice", Why: "moving"}}, f.entries)
}

func TestAnUnpauseThatLeftThePausesNoteIsNotTakenForIt(t *testing.T) {
	f := running()
	f.entries = []fleet.Action{{ID: "entry", Kind: kindPause, By: "alice", Why: "moving"}}
	f.state.EntryID, f.state.By, f.state.Reason = "entry", "alice", "moving"

	require.NoError(t, f.dog().look(t.Context()))

	require.Len(t, f.entries, 2)
	require.Equal(t, kindResume, f.entries[1].Kind)
	require.Equal(t, byTemporal, f.entries[1].By)
	require.Empty(t, f.entries[1].Why)
}

func TestAScheduleThatStandsStillIsHelpedAndNoOther(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*fakeFleet)
		helped bool
	}{
		"nothing for three intervals":          {func(f *fakeFleet) { f.state.LastAt = 97 * minute }, true},
		"nothing for almost three":             {func(f *fakeFleet) { f.state.LastAt = 97*minute + 1 }, false},
		"a round finished since":               {func(f *fakeFleet) { f.state.LastAt = 0; f.records = []fleet.RoundRecord{{FinishedAt: 99 * minute}} }, false},
		"paused":                               {func(f *fakeFleet) { f.state.LastAt = 0; f.state.Paused = true }, false},
		"off":                                  {func(f *fakeFleet) { f.state.LastAt = 0; f.state.IntervalSecs = 0 }, false},
		"a scheduled round runs":               {func(f *fakeFleet) { f.state.LastAt = 0; f.state.Running = 1 }, false},
		"a direct round runs":                  {func(f *fakeFleet) { f.state.LastAt = 0; f.nowRunning = true }, false},
		"resumed a moment ago":                 {func(f *fakeFleet) { f.state.LastAt = 0; f.state.Since = 99 * minute }, false},
		"created a moment ago":                 {func(f *fakeFleet) { f.state.LastAt = 0; f.state.CreatedAt = 99 * minute }, false},
		"rounds start and fail":                {func(f *fakeFleet) { f.records = []fleet.RoundRecord{{FinishedAt: minute}} }, false},
		"never started one, finished long ago": {func(f *fakeFleet) { f.state.LastAt = 0; f.records = []fleet.RoundRecord{{FinishedAt: minute}} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := running()
			c.change(f)
			d := f.dog()
			require.NoError(t, d.look(t.Context()))
			require.NoError(t, d.look(t.Context())) // at once again: it has helped already
			if c.helped {
				require.Equal(t, []string{byWatchdog}, f.started)
				require.Equal(t, 1, f.healed)
			} else {
				require.Empty(t, f.started)
			}
		})
	}
}

func TestAWorkerThatJustStartedWaitsBeforeItHelps(t *testing.T) {
	f := running()
	f.state.LastAt = 0
	d := f.dog()
	d.since = 99 * minute
	require.NoError(t, d.look(t.Context()))
	require.Empty(t, f.started)
}
