package activities

import (
	"context"
	"fmt"

	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/workflows"
)

// VerifyZeroPending reopens everything without caches. What it saw is the evidence
// that a retirement rests on.
func (a *Maintenance) VerifyZeroPending(ctx context.Context, in workflows.VerifyInput) (fleet.Evidence, error) {
	var evidence fleet.Evidence
	err := a.heavy(ctx, in.Target, func(ctx context.Context, _ *lease, h Heavy) (err error) {
		if evidence, err = h.Verify(ctx, in.Target.URI, lance.VerifyOptions{}); err != nil {
			return fmt.Errorf("verify %s: %w", in.Target.ID, err)
		}
		return nil
	})
	return evidence, err
}
