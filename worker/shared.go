package worker

import (
	"context"

	"lancefleet/control"
	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/metrics"
	"lancefleet/store"
)

// Shared reads the state that all processes of a fleet see alike, for their
// metrics. It needs nothing that can write.
type Shared struct {
	Stats   *store.Stats
	Rounds  *store.Rounds
	Control *control.Control
	Reader  *lance.Reader
}

var _ metrics.Shared = Shared{}

// Shared is the state that this worker's metrics tell.
func (w *Worker) Shared() Shared {
	return Shared{Stats: w.stats, Rounds: w.rounds.Rounds, Control: w.control, Reader: w.deps.Engine.ReadOnly()}
}

// Snapshot implements metrics.Shared.
func (s Shared) Snapshot(ctx context.Context) (metrics.Snapshot, error) {
	snapshot, err := s.Stats.Latest(ctx)
	if err != nil {
		return metrics.Snapshot{}, err
	}
	return metrics.Snapshot{Version: snapshot.Version, CommittedAt: snapshot.CommittedAt, Rows: snapshot.Rows}, nil
}

// LastRound implements metrics.Shared.
func (s Shared) LastRound(ctx context.Context) (*fleet.RoundRecord, error) {
	last, err := s.Rounds.Latest(ctx, 1)
	if err != nil || len(last) == 0 {
		return nil, err
	}
	return &last[0], nil
}

// Schedule implements metrics.Shared.
func (s Shared) Schedule(ctx context.Context) (metrics.Schedule, error) {
	state, err := s.Control.Schedule(ctx)
	return metrics.Schedule{
		Exists: state.Exists, Paused: state.Paused, IntervalSecs: state.IntervalSecs,
		SkippedOverlap: state.SkippedOverlap, MissedCatchup: state.MissedCatchup,
	}, err
}

// Requests implements metrics.Shared.
func (s Shared) Requests(ctx context.Context) (fleet.Requests, error) {
	stats, err := s.Reader.Stats(ctx)
	return stats.Requests, err
}
