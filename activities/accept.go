package activities

import (
	"context"
	"fmt"

	"go.temporal.io/sdk/activity"

	"lancefleet/lance"
	"lancefleet/workflows"
)

// AcceptShards makes an operator's decision count by one commit to the table, and
// only if everything is as the operator saw it. The decision goes by the run's id: an
// attempt after this finds what it did.
func (a *Maintenance) AcceptShards(ctx context.Context, in workflows.AcceptInput) (workflows.AcceptResult, error) {
	r := workflows.AcceptResult{Marks: map[string]uint64{}}
	err := a.heavy(ctx, in.Target, func(ctx context.Context, _ *lease, h Heavy) error {
		accepted, err := h.AcceptShards(ctx, lance.AcceptSpec{
			URI: in.Target.URI, RememberedMarks: in.Marks, LeaveOut: in.LeaveOut, Seen: in.Seen,
			Decision: activity.GetInfo(ctx).WorkflowExecution.RunID,
		})
		if err != nil {
			return fmt.Errorf("accept %s as it is: %w", in.Target.ID, err)
		}
		if accepted.Refused != nil {
			r.Refused = accepted.Refused.Sentence
			return nil
		}
		r.Version = accepted.Version
		for _, shard := range accepted.Shards {
			r.Marks[shard.Shard] = shard.Mark
			r.Generations += shard.Generations
		}
		return nil
	})
	return r, err
}
