package worker

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"lancefleet/control"
	"lancefleet/fleet"
	"lancefleet/workflows"
)

// intervalsUntilHelp is how many intervals may pass without a round before a worker
// starts one itself.
const intervalsUntilHelp = 3

// Journal kinds.
const (
	kindPause    = "pause"
	kindResume   = "resume"
	kindRestored = "schedule-restored"

	byWatchdog = "lancefleet"               // of what the watchdog did by itself
	byTemporal = "temporal schedule toggle" // of what it noticed: Temporal tells no author
)

// watchdog keeps the schedule alive and the journal true to it. Every worker has
// one; what several of them do at once comes to the same.
type watchdog struct {
	schedule scheduler
	journal  journal
	rounds   rounds
	args     workflows.ScanArgs
	metrics  counters
	log      *slog.Logger
	now      func() time.Time
	since    int64 // when it began to look, or last helped, unix ms
}

// scheduler is the part of control.Control that the watchdog needs.
type scheduler interface {
	Schedule(ctx context.Context) (control.ScheduleState, error)
	EnsureSchedule(ctx context.Context, args workflows.ScanArgs, remembered *control.Pause) (bool, error)
	StartScanWith(ctx context.Context, args workflows.ScanArgs, full bool, by string) (control.Started, error)
	ScanNowRunning(ctx context.Context) (bool, error)
}

type journal interface {
	LastOf(ctx context.Context, kinds ...string) (*fleet.Action, error)
	Append(ctx context.Context, entries ...fleet.Action) error
}

type rounds interface {
	Latest(ctx context.Context, n int) ([]fleet.RoundRecord, error)
}

type counters interface {
	SelfHealed()
	ScheduleRestored()
}

func (w *Worker) watchdog(args workflows.ScanArgs) *watchdog {
	return &watchdog{
		schedule: w.control, journal: w.journal, rounds: w.rounds, args: args,
		metrics: w.deps.Metrics, log: w.deps.Log, now: w.deps.Now, since: w.deps.Now().UnixMilli(),
	}
}

func (d *watchdog) run(ctx context.Context, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := d.look(ctx); err != nil && ctx.Err() == nil {
			d.log.WarnContext(ctx, "look after the schedule", "error", err)
		}
	}
}

// look does one tour. The journal is read before the schedule: so a difference
// means that the schedule is newer.
func (d *watchdog) look(ctx context.Context) error {
	last, err := d.journal.LastOf(ctx, kindPause, kindResume)
	if err != nil {
		return fmt.Errorf("read the journal: %w", err)
	}
	state, err := d.schedule.Schedule(ctx)
	if err != nil {
		return err
	}
	if !state.Exists {
		return d.ensure(ctx)
	}
	if err := d.remember(ctx, state, last); err != nil {
		return err
	}
	return d.help(ctx, state)
}

// ensure makes the schedule what it should be. One that is missing comes back in
// the state that the journal remembers.
func (d *watchdog) ensure(ctx context.Context) error {
	last, err := d.journal.LastOf(ctx, kindPause, kindResume)
	if err != nil {
		return fmt.Errorf("read the journal: %w", err)
	}
	remembered := rememberedPause(last)
	created, err := d.schedule.EnsureSchedule(ctx, d.args, remembered)
	if err != nil || !created {
		return err
	}
	known, err := d.rounds.Latest(ctx, 1)
	if err != nil {
		return fmt.Errorf("read _rounds: %w", err)
	}
	if len(known) == 0 && last == nil {
		return nil // a new fleet's first schedule
	}
	d.log.WarnContext(ctx, "the schedule was missing and is there again", "paused", remembered != nil)
	d.metrics.ScheduleRestored()
	entry := fleet.Action{
		ID: uuid.NewString(), At: d.now().UnixMilli(), Kind: kindRestored, Outcome: "done", By: byWatchdog,
		Why: "temporal had lost the schedule",
	}
	if remembered != nil {
		entry.After = `{"paused":true}`
	}
	return d.journal.Append(ctx, entry)
}

func rememberedPause(last *fleet.Action) *control.Pause {
	if last == nil || last.Kind != kindPause {
		return nil
	}
	return &control.Pause{EntryID: last.ID, By: last.By, Reason: last.Why, At: last.At}
}

// remember journals a pause or resume that the journal does not know: one made
// with Temporal's own tools, or one whose entry was lost on its way.
func (d *watchdog) remember(ctx context.Context, state control.ScheduleState, last *fleet.Action) error {
	if state.Paused == (rememberedPause(last) != nil) {
		return nil
	}
	entry := d.noticed(state, last)
	if err := d.journal.Append(ctx, entry); err != nil {
		return fmt.Errorf("journal a %s: %w", entry.Kind, err)
	}
	d.log.InfoContext(ctx, "noticed a change of the schedule", "kind", entry.Kind, "by", entry.By, "why", entry.Why)
	return nil
}

// noticed has an id that every worker makes alike.
func (d *watchdog) noticed(state control.ScheduleState, last *fleet.Action) fleet.Action {
	entry := fleet.Action{ID: state.EntryID, At: state.Since, Kind: kindResume, Outcome: "done", By: state.By, Why: state.Reason}
	if state.Paused {
		entry.Kind = kindPause
	}
	if entry.ID != "" && (last == nil || last.ID != entry.ID) {
		return entry
	}
	// Made by another tool. The note of an unpause may still be the pause's own.
	entry.By, entry.At = byTemporal, d.now().UnixMilli()
	before := "none"
	if last != nil {
		before = last.ID
		if before == state.EntryID {
			entry.Why = ""
		}
	}
	entry.ID = uuid.NewSHA1(uuid.NameSpaceOID, []byte(d.args.FleetID+"/"+entry.Kind+"/after/"+before)).String()
	return entry
}

// help starts a round when the schedule has stood still for too long. A schedule
// that starts rounds which fail does not stand still: those fail loudly enough.
func (d *watchdog) help(ctx context.Context, state control.ScheduleState) error {
	if state.Paused || state.IntervalSecs <= 0 || state.Running > 0 {
		return nil
	}
	last, err := d.rounds.Latest(ctx, 1)
	if err != nil {
		return fmt.Errorf("read _rounds: %w", err)
	}
	alive := max(d.since, state.CreatedAt, state.LastAt, state.Since)
	if len(last) > 0 {
		alive = max(alive, last[0].FinishedAt)
	}
	now := d.now().UnixMilli()
	if now-alive < intervalsUntilHelp*state.IntervalSecs*1000 {
		return nil
	}
	if running, err := d.schedule.ScanNowRunning(ctx); err != nil || running {
		return err
	}
	started, err := d.schedule.StartScanWith(ctx, d.args, false, byWatchdog)
	if err != nil {
		return err
	}
	d.since = now
	if !started.AlreadyRunning {
		d.metrics.SelfHealed()
		d.log.WarnContext(ctx, "the schedule stands still: started a round", "idle_ms", now-alive, "run", started.RunID)
	}
	return nil
}
