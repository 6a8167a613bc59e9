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
	Ledger  *store.Ledger  // nil = not told
	Journal *store.Journal // nil = not told
	Control *control.Control
	Reader  *lance.Reader
	Policy  fleet.Policy // for how long failures are cooled down; the zero Policy = the default one
}

var _ metrics.Shared = Shared{}

// Shared is the state that this worker's metrics tell.
func (w *Worker) Shared() Shared {
	return Shared{
		Stats: w.stats, Rounds: w.rounds.Rounds, Ledger: w.ledger.Ledger, Journal: w.journal.Journal,
		Control: w.control, Reader: w.deps.Engine.ReadOnly(), Policy: w.config.Policies.Default,
	}
}

// Snapshot implements metrics.Shared.
func (s Shared) Snapshot(ctx context.Context) (metrics.Snapshot, error) {
	snapshot, err := s.Stats.Latest(ctx)
	if err != nil {
		return metrics.Snapshot{}, err
	}
	return metrics.Snapshot{Version: snapshot.Version, CommittedAt: snapshot.CommittedAt, Rows: snapshot.Rows}, nil
}

// Maintenance implements metrics.Shared.
func (s Shared) Maintenance(ctx context.Context) (*metrics.Maintenance, error) {
	if s.Ledger == nil || s.Journal == nil {
		return nil, nil
	}
	ledger, err := s.Ledger.Latest(ctx)
	if err != nil {
		return nil, err
	}
	histories, err := s.Journal.History(ctx)
	if err != nil {
		return nil, err
	}
	upkeep, err := s.Journal.Upkeep(ctx)
	if err != nil {
		return nil, err
	}
	policy := s.Policy
	if policy == (fleet.Policy{}) {
		policy = fleet.DefaultPolicy()
	}
	return &metrics.Maintenance{Retired: ledger.Retired(), Histories: histories, Upkeep: upkeep, Policy: policy}, nil
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
