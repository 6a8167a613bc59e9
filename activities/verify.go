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
		return a.reword(ctx, in.Target, h, &evidence)
	})
	return evidence, err
}

// reword tells entries whose writer may live from stranded ones: they stop a
// retirement alike, but only the latter need anybody's attention.
func (a *Maintenance) reword(ctx context.Context, t workflows.Target, h Heavy, e *fleet.Evidence) error {
	if e.Stranded == 0 {
		return nil
	}
	tails, err := h.ClassifyTail(ctx, t.URI)
	if err != nil {
		return fmt.Errorf("classify the WAL tails of %s: %w", t.ID, err)
	}
	policy, _ := a.Policies.For(t.ID)
	e.Blocking = policy.Reach().Reword(e.Blocking, lance.SeenTails(tails), a.Scan.nowMS())
	return nil
}
