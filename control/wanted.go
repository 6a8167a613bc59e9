package control

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"lancefleet/workflows"
)

const (
	catchupWindow   = 60 * time.Second // a tick missed for longer is not made up for: the next one comes anyway
	shortestTimeout = time.Hour
	timeoutInRounds = 12 // a round may take that many intervals, or an hour, before Temporal ends it

	memoFleetID = "lancefleet_fleet_id"
	memoDataDir = "lancefleet_data_dir"
)

// wantedSchedule is what the schedule of a fleet should be, but for its state.
type wantedSchedule struct {
	names workflows.Names
	args  workflows.ScanArgs
}

func newWanted(names workflows.Names, args workflows.ScanArgs) wantedSchedule {
	args.Full, args.By, args.ConfigHash = false, "", ""
	w := wantedSchedule{names: names, args: args}
	w.args.ConfigHash = w.hash()
	return w
}

// hash tells two wanted schedules apart. It is kept in an argument of the action,
// because the server gives back what it stored in a form of its own.
func (w wantedSchedule) hash() string {
	text, _ := json.Marshal(struct { //nolint:errchkjson // plain values: they always encode
		Args    workflows.ScanArgs
		Queue   string
		Catchup time.Duration
		Timeout time.Duration
		Form    int // raise it when the rest of action, spec or policy changes
	}{w.args, w.names.ScanQueue(), catchupWindow, w.timeout(), 1})
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

func (w wantedSchedule) interval() time.Duration {
	return time.Duration(w.args.IntervalSecs) * time.Second
}

func (w wantedSchedule) timeout() time.Duration {
	return max(shortestTimeout, timeoutInRounds*w.interval())
}

// spec has no interval when scheduled rounds are off: such a schedule never fires,
// but keeps its pause and what fleet it belongs to.
func (w wantedSchedule) spec() client.ScheduleSpec {
	if w.args.IntervalSecs <= 0 {
		return client.ScheduleSpec{}
	}
	return client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: w.interval()}}}
}

// action has no retry policy: a round that failed is followed by the next one, and
// a retry policy together with SKIP can hold a schedule for ever.
func (w wantedSchedule) action() *client.ScheduleWorkflowAction {
	return &client.ScheduleWorkflowAction{
		ID:                       w.names.ScanSchedule(),
		Workflow:                 workflows.ScanWorkflowName,
		Args:                     []any{w.args},
		TaskQueue:                w.names.ScanQueue(),
		WorkflowExecutionTimeout: w.timeout(),
		TypedSearchAttributes:    actionAttribute(workflows.ActionScan),
		StaticSummary:            summary("round over " + w.args.DataDir),
	}
}

func (w wantedSchedule) policy() *client.SchedulePolicies {
	return &client.SchedulePolicies{
		Overlap:       enumspb.SCHEDULE_OVERLAP_POLICY_SKIP,
		CatchupWindow: catchupWindow,
	}
}

// options creates the schedule. A running one starts its first round at once.
func (w wantedSchedule) options(remembered *Pause) client.ScheduleOptions {
	o := client.ScheduleOptions{
		ID:                 w.names.ScanSchedule(),
		Spec:               w.spec(),
		Action:             w.action(),
		Overlap:            w.policy().Overlap,
		CatchupWindow:      catchupWindow,
		TriggerImmediately: remembered == nil && w.args.IntervalSecs > 0,
		Memo:               map[string]any{memoFleetID: w.args.FleetID, memoDataDir: w.args.DataDir},
	}
	if remembered != nil {
		o.Paused, o.Note = true, remembered.note()
	}
	return o
}

// change applies what is wanted to what is there and keeps its state: a restart
// must never un-pause.
func (w wantedSchedule) change(there client.Schedule) *client.Schedule {
	spec := w.spec()
	there.Action, there.Spec, there.Policy = w.action(), &spec, w.policy()
	return &there
}

func actionAttribute(action string) temporal.SearchAttributes {
	return temporal.NewSearchAttributes(temporal.NewSearchAttributeKeyKeyword(workflows.AttrAction).ValueSet(action))
}

// summaryLimit is the server's, in bytes: a longer one fails the start.
const summaryLimit = 200

// summary is a workflow's one line for Temporal's UI.
func summary(text string) string { return cut(text, summaryLimit) }
