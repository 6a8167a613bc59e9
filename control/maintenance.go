package control

import (
	"context"
	"errors"
	"strings"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"lancefleet/fleet"
	"lancefleet/workflows"
)

// MaintenanceRequest asks for maintenance of one experiment.
type MaintenanceRequest struct {
	ID           fleet.ID
	By           string // who asks; "" = a round's plan
	Why          string
	Force        bool   // of Retire: skips only the age
	Shard        string // of Seal
	AllowUnknown bool   // of Seal: entries of unknown state are replayed too
	Batch        string // that it belongs to; "" = none
	Seen         string // of Accept: what was looked at
	LeaveOut     bool   // of Accept: what is listed is taken out, not merged
}

// Retire starts the retirement of an experiment. Which one runs already is the
// answer when one does: an experiment has at most one of Retire, Optimize, Seal and Accept.
func (c *Control) Retire(ctx context.Context, r MaintenanceRequest) (Started, error) {
	return c.maintain(ctx, r, workflows.ActionRetire, workflows.RetireWorkflowName)
}

// Optimize starts merging, compaction and cleanup of an experiment.
func (c *Control) Optimize(ctx context.Context, r MaintenanceRequest) (Started, error) {
	return c.maintain(ctx, r, workflows.ActionOptimize, workflows.OptimizeWorkflowName)
}

// Seal starts the replay of one shard's stranded WAL entries.
func (c *Control) Seal(ctx context.Context, r MaintenanceRequest) (Started, error) {
	return c.maintain(ctx, r, workflows.ActionSeal, workflows.SealWorkflowName)
}

// Accept starts what an operator decided about shards that every merge refuses.
func (c *Control) Accept(ctx context.Context, r MaintenanceRequest) (Started, error) {
	return c.maintain(ctx, r, workflows.ActionAccept, workflows.AcceptWorkflowName)
}

// Wake starts a look at a retired experiment: one that was written since is hot
// again when it ends.
func (c *Control) Wake(ctx context.Context, r MaintenanceRequest) (Started, error) {
	return c.maintain(ctx, r, workflows.ActionWake, workflows.WakeWorkflowName)
}

// maintain starts a workflow for a person, who doesn't know the fleet's id: the
// schedule does.
func (c *Control) maintain(ctx context.Context, r MaintenanceRequest, action, workflow string) (Started, error) {
	scan, err := c.scanArgs(ctx)
	if err != nil {
		return Started{}, err
	}
	return c.startMaintenance(ctx, scan.FleetID, r, action, workflow, action)
}

// StartPlanned starts what a round's plan wants, for a fleet whose id is known.
func (c *Control) StartPlanned(ctx context.Context, fleetID string, s fleet.Start) (Started, error) {
	r := MaintenanceRequest{ID: s.ID, Why: s.Reason}
	if s.Action == fleet.DoRetire {
		return c.startMaintenance(ctx, fleetID, r, workflows.ActionRetire, workflows.RetireWorkflowName, string(s.Action))
	}
	return c.startMaintenance(ctx, fleetID, r, workflows.ActionOptimize, workflows.OptimizeWorkflowName, string(s.Action))
}

// memoWanted keeps what a run was started for: a merge and a compaction are both an
// optimization, but have budgets of their own.
const memoWanted = "lancefleet_wanted"

// memoBatch keeps which batch a run belongs to.
const memoBatch = "lancefleet_batch"

func (c *Control) startMaintenance(ctx context.Context, fleetID string, r MaintenanceRequest, action, workflow, wanted string) (Started, error) {
	id := c.names.Maintenance(r.ID)
	if action == workflows.ActionWake {
		id = c.names.Wake(r.ID)
	}
	memo := map[string]any{memoWanted: wanted}
	if r.Batch != "" {
		memo[memoBatch] = r.Batch
	}
	return c.start(ctx, client.StartWorkflowOptions{
		ID:        id,
		TaskQueue: c.names.MaintenanceQueue(),
		TypedSearchAttributes: temporal.NewSearchAttributes(
			temporal.NewSearchAttributeKeyKeyword(workflows.AttrAction).ValueSet(action),
			temporal.NewSearchAttributeKeyKeyword(workflows.AttrExperiment).ValueSet(r.ID.String()),
		),
		StaticSummary: summary(requestWords(r, action)),
		Memo:          memo,
	}, workflow, workflows.MaintenanceArgs{
		Fleet: c.names.Fleet, FleetID: fleetID, ID: r.ID, By: r.By, Why: r.Why,
		Force: r.Force, Shard: r.Shard, AllowUnknown: r.AllowUnknown, Seen: r.Seen, LeaveOut: r.LeaveOut,
	})
}

func requestWords(r MaintenanceRequest, action string) string {
	words := action + " " + r.ID.String()
	if r.By != "" {
		words += ", asked for by " + r.By
	}
	if r.Why != "" {
		words += ": " + r.Why
	}
	return words
}

// StartTables starts the upkeep of our own tables.
func (c *Control) StartTables(ctx context.Context, fleetID, by string) (Started, error) {
	return c.start(ctx, client.StartWorkflowOptions{
		ID:                    c.names.Tables(),
		TaskQueue:             c.names.MaintenanceQueue(),
		TypedSearchAttributes: actionAttribute(workflows.ActionTables),
		StaticSummary:         summary("upkeep of our own tables"),
	}, workflows.TablesWorkflowName, workflows.TablesArgs{Fleet: c.names.Fleet, FleetID: fleetID, By: by})
}

// AwaitMaintenance waits until a run ends, and tells what became of it. A failed one
// is an *Error with the class of its cause.
func (c *Control) AwaitMaintenance(ctx context.Context, workflowID, runID string) (workflows.MaintenanceResult, error) {
	var result workflows.MaintenanceResult
	if !c.isMaintenance(workflowID) {
		return result, &Error{Class: ClassGone, Op: "wait for", ID: workflowID, Err: errors.New("not maintenance of this fleet")}
	}
	err := c.client.GetWorkflow(ctx, workflowID, runID).Get(ctx, &result)
	return result, wrap("wait for", workflowID, err)
}

// MaintenanceProgress asks a run how far it is. Only a worker can answer.
func (c *Control) MaintenanceProgress(ctx context.Context, workflowID, runID string) (workflows.MaintenanceProgress, error) {
	var p workflows.MaintenanceProgress
	if !c.isMaintenance(workflowID) || workflowID == c.names.Tables() {
		return p, &Error{Class: ClassGone, Op: "ask", ID: workflowID, Err: errors.New("not maintenance of an experiment of this fleet")}
	}
	answer, err := c.client.QueryWorkflow(ctx, workflowID, runID, workflows.ProgressQuery)
	if err == nil {
		err = answer.Get(&p)
	}
	return p, wrap("ask", workflowID, err)
}

// isMaintenance keeps callers from reading other workflows through this.
func (c *Control) isMaintenance(workflowID string) bool {
	if workflowID == c.names.Tables() {
		return true
	}
	id, err := fleet.ParseStatsName(workflowID[strings.LastIndex(workflowID, "/")+1:])
	return err == nil && (workflowID == c.names.Maintenance(id) || workflowID == c.names.Wake(id))
}
