package control

import (
	"context"
	"errors"
	"fmt"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"lancefleet/fleet"
	"lancefleet/workflows"
)

// startTries bounds how often a round that must begin after the call waits for
// one that began before it.
const startTries = 3

// Started says which workflow does what was asked for.
type Started struct {
	WorkflowID     string `json:"workflow_id"`
	RunID          string `json:"run_id"`
	AlreadyRunning bool   `json:"already_running"` // it had begun before the call
}

// ErrNoSchedule means that no worker of this fleet has ever run against this Temporal, so
// nobody knows what a round should look at.
var ErrNoSchedule = errors.New("there is no schedule: start a worker of this fleet first")

// StartScan starts a round outside the schedule, also while it is paused. If one
// that was started so is still running, that one is the answer. Scheduled rounds
// may run beside it: their commits are merged.
func (c *Control) StartScan(ctx context.Context, full bool, by string) (Started, error) {
	args, err := c.scanArgs(ctx)
	if err != nil {
		return Started{}, err
	}
	return c.StartScanWith(ctx, args, full, by)
}

// StartScanWith is StartScan for a caller that knows the fleet's settings.
func (c *Control) StartScanWith(ctx context.Context, args workflows.ScanArgs, full bool, by string) (Started, error) {
	want := newWanted(c.names, args)
	args = want.args
	args.Full, args.By = full, by
	return c.start(ctx, client.StartWorkflowOptions{
		ID:                       c.names.ScanNow(),
		TaskQueue:                c.names.ScanQueue(),
		WorkflowExecutionTimeout: want.timeout(),
		TypedSearchAttributes:    actionAttribute(workflows.ActionScan),
		StaticSummary:            summary("asked for by " + by + ": round over " + args.DataDir),
	}, workflows.ScanWorkflowName, args)
}

// StartScanAfterNow starts a round that begins after the call: what was written
// before is seen by it. It waits for a direct round that runs already.
func (c *Control) StartScanAfterNow(ctx context.Context, full bool, by string) (Started, error) {
	return c.afterNow(ctx, func() (Started, error) { return c.StartScan(ctx, full, by) })
}

// WaitRound waits until a round ends. A failed round is an *Error with the class
// of its cause.
func (c *Control) WaitRound(ctx context.Context, s Started) (fleet.RoundRecord, error) {
	var record fleet.RoundRecord
	err := c.client.GetWorkflow(ctx, s.WorkflowID, s.RunID).Get(ctx, &record)
	return record, wrap("round", s.WorkflowID+"/"+s.RunID, err)
}

// Round returns the record of a round, nil while it runs. A failed one is an
// *Error with the class of its cause, an unknown one of ClassGone.
func (c *Control) Round(ctx context.Context, workflowID, runID string) (*fleet.RoundRecord, error) {
	id := workflowID + "/" + runID
	if !c.isRound(workflowID) {
		return nil, &Error{Class: ClassGone, Op: "round", ID: id, Err: errors.New("not a round of this fleet")}
	}
	d, err := c.client.DescribeWorkflow(ctx, workflowID, runID)
	if err != nil {
		return nil, wrap("describe round", id, err)
	}
	if d.Status == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return nil, nil
	}
	record, err := c.WaitRound(ctx, Started{WorkflowID: workflowID, RunID: runID})
	if err != nil {
		return nil, err
	}
	return &record, nil
}

// isRound keeps callers from reading other workflows through a round's address.
func (c *Control) isRound(workflowID string) bool {
	return workflowID == c.names.ScanNow() || strings.HasPrefix(workflowID, c.names.ScanSchedule()+"-")
}

// ScanNowRunning says whether a directly started round runs.
func (c *Control) ScanNowRunning(ctx context.Context) (bool, error) {
	d, err := c.client.DescribeWorkflow(ctx, c.names.ScanNow(), "")
	if isGone(err) {
		return false, nil
	}
	if err != nil {
		return false, wrap("describe round", c.names.ScanNow(), err)
	}
	return d.Status == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, nil
}

// scanArgs asks the schedule what a round should look at. A busy server may let one
// question wait for longer than a call may take, most of all just after the
// schedule was created, so it is asked again.
func (c *Control) scanArgs(ctx context.Context) (workflows.ScanArgs, error) {
	state, err := c.Schedule(ctx)
	for range startTries - 1 {
		if ClassOf(err) != ClassUnreachable || ctx.Err() != nil {
			break
		}
		state, err = c.Schedule(ctx)
	}
	if err != nil {
		return workflows.ScanArgs{}, err
	}
	if !state.Exists {
		return workflows.ScanArgs{}, &Error{Class: ClassGone, Op: "start round", ID: c.names.ScanNow(), Err: ErrNoSchedule}
	}
	return state.args, nil
}

// start starts a workflow unless one of that id runs, and says which it is.
func (c *Control) start(ctx context.Context, o client.StartWorkflowOptions, name string, args any) (Started, error) {
	o.WorkflowIDConflictPolicy = enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL
	o.WorkflowExecutionErrorWhenAlreadyStarted = true
	run, err := c.client.ExecuteWorkflow(ctx, o, name, args)
	var already *serviceerror.WorkflowExecutionAlreadyStarted
	switch {
	case errors.As(err, &already):
		return Started{WorkflowID: o.ID, RunID: already.RunId, AlreadyRunning: true}, nil
	case err != nil:
		return Started{}, wrap("start", o.ID, err)
	}
	return Started{WorkflowID: run.GetID(), RunID: run.GetRunID()}, nil
}

// afterNow starts a workflow that begins after the call. One that ran before is
// waited for, however it ends; one that somebody else started meanwhile will do.
func (c *Control) afterNow(ctx context.Context, start func() (Started, error)) (Started, error) {
	var before string
	for range startTries {
		s, err := start()
		if err != nil {
			return Started{}, err
		}
		if !s.AlreadyRunning || (before != "" && s.RunID != before) {
			return s, nil
		}
		before = s.RunID
		_ = c.client.GetWorkflow(ctx, s.WorkflowID, s.RunID).Get(ctx, nil)
		if ctx.Err() != nil {
			return Started{}, wrap("wait for", s.WorkflowID, ctx.Err())
		}
	}
	return Started{}, &Error{Class: ClassConflict, Op: "start", ID: c.names.ScanNow(),
		Err: fmt.Errorf("an older one was still running after %d tries", startTries)}
}
