package control

import (
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
	Action     string   `json:"action"` // retire, optimize, seal, wake
	Wanted     string   `json:"wanted"` // merge, compact, retire, ...: what it was started for
	WorkflowID string   `json:"workflow_id"`
	RunID      string   `json:"run_id"`
	StartedAt  int64    `json:"started_at"` // unix ms
}

// Temporal's list is limited to some ten requests a second for everybody, so all
// callers of a process share one that is this old at most. It lags by itself.
const (
	runningFor  = 3 * time.Second
	runningPage = 1000
)

// runningList is the newest list, shared.
type runningList struct {
	mu   sync.Mutex
	at   time.Time
	list []Running
}

// RunningMaintenance lists the maintenance workflows that run, by id. It may lag by
// some seconds. It is shared: read only.
func (c *Control) RunningMaintenance(ctx context.Context) ([]Running, error) {
	c.running.mu.Lock()
	defer c.running.mu.Unlock()
	if c.running.list != nil && c.now().Sub(c.running.at) < runningFor {
		return c.running.list, nil
	}
	asked := c.now()
	list, err := c.listRunning(ctx)
	if err != nil {
		return nil, wrap("list running maintenance", "", err)
	}
	c.running.at, c.running.list = asked, list
	return list, nil
}

func (c *Control) listRunning(ctx context.Context) ([]Running, error) {
	query := fmt.Sprintf("TaskQueue = '%s' AND ExecutionStatus = 'Running'", c.names.MaintenanceQueue())
	list := []Running{}
	var next []byte
	for {
		page, err := c.client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Query: query, PageSize: runningPage, NextPageToken: next,
		})
		if err != nil {
			return nil, err
		}
		for _, e := range page.GetExecutions() {
			if r, ok := c.readRunning(e); ok {
				list = append(list, r)
			}
		}
		if next = page.GetNextPageToken(); len(next) == 0 {
			break
		}
	}
	slices.SortFunc(list, func(a, b Running) int { return a.ID.Compare(b.ID) })
	return list, nil
}

// readRunning reads one; those that are about no experiment are left out.
func (c *Control) readRunning(e *workflowpb.WorkflowExecutionInfo) (Running, bool) {
	workflowID := e.GetExecution().GetWorkflowId()
	id, err := fleet.ParseStatsName(workflowID[strings.LastIndex(workflowID, "/")+1:])
	if err != nil || workflowID != c.names.Maintenance(id) && workflowID != c.names.Wake(id) {
		return Running{}, false
	}
	return Running{
		ID: id, Action: attributeText(e, workflows.AttrAction), Wanted: memoText(e.GetMemo(), memoWanted),
		WorkflowID: workflowID, RunID: e.GetExecution().GetRunId(), StartedAt: e.GetStartTime().AsTime().UnixMilli(),
	}, true
}

func attributeText(e *workflowpb.WorkflowExecutionInfo, name string) string {
	var text string
	if p := e.GetSearchAttributes().GetIndexedFields()[name]; p != nil {
		_ = converter.GetDefaultDataConverter().FromPayload(p, &text) // not ours: no text
	}
	return text
}
