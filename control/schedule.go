package control

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"lancefleet/fleet"
	"lancefleet/workflows"
)

// ScheduleState is what the schedule of rounds looks like now. Times are unix ms,
// 0 = none or unknown.
type ScheduleState struct {
	Exists         bool
	Paused         bool
	EntryID        string // of the journal entry of its newest pause or resume; "" = made by another tool
	Reason         string // of that
	By             string // "" = made by another tool, which tells no author
	Since          int64  // when it was paused or resumed; 0 when another tool did
	NextAt         int64  // next round; 0 = paused or none
	LastAt         int64  // newest start of a round
	CreatedAt      int64
	IntervalSecs   int64 // 0 = scheduled rounds are off
	SkippedOverlap int64 // ticks that passed while a round still ran, since the schedule was created
	MissedCatchup  int64 // ticks that passed while Temporal was away, since then
	Running        int   // rounds of the schedule that run now
	FleetID        string
	DataDir        string
	args           workflows.ScanArgs
}

// EnsureSchedule makes the schedule what args want. A missing one is created, in
// the paused state when remembered is set; an existing one keeps its state, and is
// only touched when its settings differ. It says whether the schedule was created.
func (c *Control) EnsureSchedule(ctx context.Context, args workflows.ScanArgs, remembered *Pause) (created bool, err error) {
	want := newWanted(c.names, args)
	_, err = c.client.ScheduleClient().Create(ctx, want.options(remembered))
	if err == nil {
		return true, nil
	}
	if !errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		return false, wrap("create schedule", c.names.ScanSchedule(), err)
	}
	state, err := c.Schedule(ctx)
	if err != nil || state.args.ConfigHash == want.args.ConfigHash {
		return false, err
	}
	err = c.handle(ctx).Update(ctx, client.ScheduleUpdateOptions{
		DoUpdate: func(in client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
			return &client.ScheduleUpdate{Schedule: want.change(in.Description.Schedule)}, nil
		},
	})
	return false, wrap("update schedule", c.names.ScanSchedule(), err)
}

// Schedule describes the schedule. A missing one is no error: Exists is false.
func (c *Control) Schedule(ctx context.Context) (ScheduleState, error) {
	d, err := c.handle(ctx).Describe(ctx)
	if isGone(err) {
		return ScheduleState{}, nil
	}
	if err != nil {
		return ScheduleState{}, wrap("describe schedule", c.names.ScanSchedule(), err)
	}
	state, err := readSchedule(d)
	return state, wrap("describe schedule", c.names.ScanSchedule(), err)
}

// Pause stops new rounds. Pausing a paused schedule replaces author and reason.
func (c *Control) Pause(ctx context.Context, by, reason string) error {
	return c.toggle(ctx, "pause", by, reason, func(note string) error {
		return c.handle(ctx).Pause(ctx, client.SchedulePauseOptions{Note: note})
	})
}

// Resume lets rounds start again.
func (c *Control) Resume(ctx context.Context, by, reason string) error {
	return c.toggle(ctx, "resume", by, reason, func(note string) error {
		return c.handle(ctx).Unpause(ctx, client.ScheduleUnpauseOptions{Note: note})
	})
}

// toggle changes the schedule first and journals afterwards. When the second half
// is lost, the worker's watchdog finds the entry's id in the note and makes up for it.
func (c *Control) toggle(ctx context.Context, kind, by, reason string, change func(note string) error) error {
	p := Pause{EntryID: uuid.NewString(), By: by, Reason: reason, At: c.now().UnixMilli()}
	err := change(p.note())
	if isGone(err) {
		err = &Error{Class: ClassGone, Op: kind + " schedule", ID: c.names.ScanSchedule(), Err: ErrNoSchedule}
	}
	if err != nil {
		return wrap(kind+" schedule", c.names.ScanSchedule(), err)
	}
	_ = c.Record(ctx, fleet.Action{ID: p.EntryID, At: p.At, Kind: kind, Outcome: "done", By: by, Why: reason})
	return nil
}

// Record has an entry appended to the journal, and does not wait until it is.
func (c *Control) Record(ctx context.Context, entry fleet.Action) error {
	id := c.names.Record(entry.ID)
	_, err := c.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID:                    id,
		TaskQueue:             c.names.ScanQueue(),
		TypedSearchAttributes: actionAttribute(workflows.ActionRecord),
		StaticSummary:         summary(entry.Kind + " by " + entry.By),
	}, workflows.RecordWorkflowName, entry)
	return wrap("record "+entry.Kind, id, err)
}

func (c *Control) handle(ctx context.Context) client.ScheduleHandle {
	return c.client.ScheduleClient().GetHandle(ctx, c.names.ScanSchedule())
}

func readSchedule(d *client.ScheduleDescription) (ScheduleState, error) {
	s := ScheduleState{
		Exists:         true,
		CreatedAt:      d.Info.CreatedAt.UnixMilli(),
		SkippedOverlap: int64(d.Info.NumActionsSkippedOverlap),
		MissedCatchup:  int64(d.Info.NumActionsMissedCatchupWindow),
		Running:        len(d.Info.RunningWorkflows),
	}
	if state := d.Schedule.State; state != nil {
		p := parseNote(state.Note)
		s.Paused = state.Paused
		s.EntryID, s.Reason, s.By, s.Since = p.EntryID, p.Reason, p.By, p.At
	}
	if d.Schedule.Spec != nil && len(d.Schedule.Spec.Intervals) > 0 {
		s.IntervalSecs = int64(d.Schedule.Spec.Intervals[0].Every.Seconds())
	}
	if next := d.Info.NextActionTimes; len(next) > 0 && !s.Paused {
		s.NextAt = next[0].UnixMilli()
	}
	for _, a := range d.Info.RecentActions {
		s.LastAt = max(s.LastAt, a.ActualTime.UnixMilli())
	}
	s.FleetID, s.DataDir = memoText(d.Memo, memoFleetID), memoText(d.Memo, memoDataDir)
	var err error
	s.args, err = ActionArgs(d.Schedule.Action)
	return s, err
}

func memoText(memo *commonpb.Memo, key string) string {
	var text string
	if p := memo.GetFields()[key]; p != nil {
		_ = converter.GetDefaultDataConverter().FromPayload(p, &text) // not ours: no text
	}
	return text
}

// ActionArgs decodes what a described schedule starts rounds with.
func ActionArgs(action client.ScheduleAction) (workflows.ScanArgs, error) {
	var args workflows.ScanArgs
	start, ok := action.(*client.ScheduleWorkflowAction)
	if !ok || len(start.Args) == 0 {
		return args, nil
	}
	payload, ok := start.Args[0].(*commonpb.Payload)
	if !ok {
		return args, fmt.Errorf("its first argument is a %T", start.Args[0])
	}
	err := converter.GetDefaultDataConverter().FromPayload(payload, &args)
	return args, err
}
