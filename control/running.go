package control

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"lancefleet/fleet"
	"lancefleet/workflows"
)

// Running is one maintenance workflow that runs.
type Running struct {
	ID         fleet.ID `json:"id"`
	Action     string   `json:"action"` // retire, optimize, seal, accept, wake
	Wanted     string   `json:"wanted"` // merge, compact, retire, ...: what it was started for
	Batch      string   `json:"batch"`  // that it belongs to; "" = none
	WorkflowID string   `json:"workflow_id"`
	RunID      string   `json:"run_id"`
	StartedAt  int64    `json:"started_at"` // unix ms
	Waiting    bool     `json:"waiting"`    // for a grace to pass: it needs no slot
}

// Temporal's list is limited to some ten requests a second for everybody, so all
// callers of a process share one that is this old at most. It lags by itself.
const (
	runningFor  = 3 * time.Second
	runningPage = 1000
)

// RunningRound is a round that runs.
type RunningRound struct {
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"`
	StartedAt  int64  `json:"started_at"` // unix ms
}

// runningList is the newest list, shared.
type runningList struct {
	mu     sync.Mutex
	at     time.Time
	list   []Running
	rounds []RunningRound
}

// RunningMaintenance lists the maintenance workflows that run, by id. It may lag by
// some seconds. It is shared: read only.
func (c *Control) RunningMaintenance(ctx context.Context) ([]Running, error) {
	list, _, err := c.whatRuns(ctx)
	return list, wrap("list running maintenance", "", err)
}

// RunningRounds lists the rounds that run, the oldest first: usually one or none. It
// may lag by some seconds. It is shared: read only.
func (c *Control) RunningRounds(ctx context.Context) ([]RunningRound, error) {
	_, rounds, err := c.whatRuns(ctx)
	return rounds, wrap("list running rounds", "", err)
}

func (c *Control) whatRuns(ctx context.Context) ([]Running, []RunningRound, error) {
	r := &c.running
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.list != nil && c.now().Sub(r.at) < runningFor {
		return r.list, r.rounds, nil
	}
	asked := c.now()
	list, rounds, err := c.listRunning(ctx)
	if err != nil {
		return nil, nil, err
	}
	r.at, r.list, r.rounds = asked, list, rounds
	return list, rounds, nil
}

func (c *Control) listRunning(ctx context.Context) ([]Running, []RunningRound, error) {
	query := fmt.Sprintf("TaskQueue IN ('%s', '%s') AND ExecutionStatus = 'Running'", c.names.MaintenanceQueue(), c.names.ScanQueue())
	list, rounds := []Running{}, []RunningRound{}
	var next []byte
	for {
		page, err := c.client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Query: query, PageSize: runningPage, NextPageToken: next,
		})
		if err != nil {
			return nil, nil, err
		}
		for _, e := range page.GetExecutions() {
			if r, ok := c.readRunning(e); ok {
				list = append(list, r)
			}
			if r, ok := c.readRound(e); ok {
				rounds = append(rounds, r)
			}
		}
		if next = page.GetNextPageToken(); len(next) == 0 {
			break
		}
	}
	slices.SortFunc(list, func(a, b Running) int { return a.ID.Compare(b.ID) })
	slices.SortFunc(rounds, func(a, b RunningRound) int { return cmp.Compare(a.StartedAt, b.StartedAt) })
	return list, rounds, nil
}

func (c *Control) readRound(e *workflowpb.WorkflowExecutionInfo) (RunningRound, bool) {
	x := e.GetExecution()
	return RunningRound{WorkflowID: x.GetWorkflowId(), RunID: x.GetRunId(), StartedAt: e.GetStartTime().AsTime().UnixMilli()},
		e.GetType().GetName() == workflows.ScanWorkflowName && c.isRound(x.GetWorkflowId())
}

// readRunning reads one; those that are about no experiment are left out.
func (c *Control) readRunning(e *workflowpb.WorkflowExecutionInfo) (Running, bool) {
	workflowID := e.GetExecution().GetWorkflowId()
	id, err := fleet.ParseStatsName(workflowID[strings.LastIndex(workflowID, "/")+1:])
	if err != nil || workflowID != c.names.Maintenance(id) && workflowID != c.names.Wake(id) {
		return Running{}, false
	}
	return Running{
		ID: id, Action: attributeText(e, workflows.AttrAction), Wanted: memoText(e.GetMemo(), memoWanted), Batch: memoText(e.GetMemo(), memoBatch),
		WorkflowID: workflowID, RunID: e.GetExecution().GetRunId(), StartedAt: e.GetStartTime().AsTime().UnixMilli(),
		Waiting: attributeText(e, workflows.AttrOutcome) == workflows.OutcomeWaiting,
	}, true
}

func attributeText(e *workflowpb.WorkflowExecutionInfo, name string) string {
	var text string
	if p := e.GetSearchAttributes().GetIndexedFields()[name]; p != nil {
		_ = converter.GetDefaultDataConverter().FromPayload(p, &text) // not ours: no text
	}
	return text
}
