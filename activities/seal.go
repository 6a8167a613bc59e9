package activities

import (
	"context"
	"fmt"

	"lancefleet/lance"
	"lancefleet/workflows"
)

// SealShard replays the stranded WAL entries of one shard into a generation.
func (a *Maintenance) SealShard(ctx context.Context, in workflows.SealInput) (workflows.SealResult, error) {
	var r workflows.SealResult
	err := a.heavy(ctx, in.Target, func(ctx context.Context, _ *lease, h Heavy) error {
		sealed, err := h.SealShard(ctx, lance.SealSpec{
			URI: in.Target.URI, Shard: in.Shard, SilentFor: millis(in.Limits.SilentFor), AllowUnknown: in.AllowUnknown,
		})
		if err != nil {
			return fmt.Errorf("seal shard %s of %s: %w", in.Shard, in.Target.ID, err)
		}
		r = workflows.SealResult{Entries: len(sealed.Entries), Rows: sealed.Rows, Generation: sealed.Generation}
		if sealed.Refused != nil {
			r = workflows.SealResult{Refused: sealed.Refused.Sentence}
		}
		return nil
	})
	return r, err
}
