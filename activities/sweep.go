package activities

import (
	"context"
	"fmt"

	"lancefleet/lance"
	"lancefleet/workflows"
)

// SweepGenerations deletes the folders of merged generations whose grace is over.
// The library looks again at each just before it goes.
func (a *Maintenance) SweepGenerations(ctx context.Context, in workflows.SweepInput) (workflows.SweepResult, error) {
	var r workflows.SweepResult
	err := a.heavy(ctx, in.Target, func(ctx context.Context, _ *lease, h Heavy) error {
		swept, err := h.SweepGenerations(ctx, lance.SweepSpec{
			URI: in.Target.URI, Grace: millis(in.Limits.Grace), UnknownGrace: millis(in.Limits.UnknownGrace),
		})
		if err != nil {
			return fmt.Errorf("sweep generations of %s: %w", in.Target.ID, err)
		}
		r = workflows.SweepResult{Deleted: len(swept.Deleted), Bytes: swept.Bytes, Kept: len(swept.Kept), Requests: swept.Requests}
		for _, folder := range swept.Kept {
			if folder.Due > 0 && (r.NextDue == 0 || folder.Due < r.NextDue) {
				r.NextDue = folder.Due
			}
		}
		return nil
	})
	return r, err
}
