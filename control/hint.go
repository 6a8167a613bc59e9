package control

import (
	"context"
	"fmt"

	"go.temporal.io/sdk/client"

	"lancefleet/fleet"
	"lancefleet/workflows"
)

// MostHints is how many experiments one call of Hint may name: with names of the
// greatest length they still fit into what Temporal carries.
const MostHints = 500

// Hint hands in experiments of which events said that they were written. Only one
// such run is under way at a time: when AlreadyRunning is set, these were not taken,
// and the caller keeps them for later.
func (c *Control) Hint(ctx context.Context, ids []fleet.ID) (Started, error) {
	if len(ids) > MostHints {
		return Started{}, &Error{Class: ClassInvalid, Op: "hint", ID: c.names.Hints(), Err: fmt.Errorf("%d experiments: at most %d are allowed", len(ids), MostHints)}
	}
	scan, err := c.scanArgs(ctx)
	if err != nil {
		return Started{}, err
	}
	return c.start(ctx, client.StartWorkflowOptions{
		ID:                    c.names.Hints(),
		TaskQueue:             c.names.ScanQueue(),
		TypedSearchAttributes: actionAttribute(workflows.ActionHint),
		StaticSummary:         summary(fmt.Sprintf("events named %d experiments", len(ids))),
	}, workflows.HintWorkflowName, workflows.HintArgs{Fleet: c.names.Fleet, FleetID: scan.FleetID, IDs: ids})
}
