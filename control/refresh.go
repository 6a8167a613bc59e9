package control

import (
	"context"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"lancefleet/fleet"
	"lancefleet/workflows"
)

// Refresh observes one experiment in full, after the call, stores its row if it is
// hot, and waits for that.
func (c *Control) Refresh(ctx context.Context, id fleet.ID, by string) (workflows.RefreshResult, error) {
	var result workflows.RefreshResult
	s, err := c.afterNow(ctx, func() (Started, error) { return c.startRefresh(ctx, id, by) })
	if err != nil {
		return result, err
	}
	err = c.client.GetWorkflow(ctx, s.WorkflowID, s.RunID).Get(ctx, &result)
	return result, wrap("refresh", id.String(), err)
}

func (c *Control) startRefresh(ctx context.Context, id fleet.ID, by string) (Started, error) {
	attributes := temporal.NewSearchAttributes(
		temporal.NewSearchAttributeKeyKeyword(workflows.AttrAction).ValueSet(workflows.ActionRefresh),
		temporal.NewSearchAttributeKeyKeyword(workflows.AttrExperiment).ValueSet(id.String()),
	)
	return c.start(ctx, client.StartWorkflowOptions{
		ID:                    c.names.Refresh(id),
		TaskQueue:             c.names.ScanQueue(),
		TypedSearchAttributes: attributes,
		StaticSummary:         summary("asked for by " + by + ": observe " + id.String()),
	}, workflows.RefreshWorkflowName, workflows.RefreshArgs{Fleet: c.names.Fleet, IDs: []fleet.ID{id}, By: by})
}
