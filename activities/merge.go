package activities

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/workflows"
)

const refusalsTold = 8 // sentences of one call

// MergeWAL drains every shard, orphans included, pass by pass, until nothing is
// pending or the attempt's time is over. Entries that a dead writer never flushed
// are made a generation first. What a lost attempt did stays done: the next one
// reads the marks afresh.
func (a *Maintenance) MergeWAL(ctx context.Context, in workflows.MergeInput) (workflows.MergeResult, error) {
	m := &mergeRun{maintenance: a, in: in}
	err := a.heavy(ctx, in.Target, func(ctx context.Context, l *lease, h Heavy) error {
		m.lease, m.heavy = l, h
		return m.run(ctx)
	})
	return m.result, err
}

// mergeRun is one attempt.
type mergeRun struct {
	maintenance *Maintenance
	in          workflows.MergeInput
	heavy       Heavy
	lease       *lease
	until       time.Time
	now         int64 // when the tails were looked at, unix ms
	result      workflows.MergeResult
}

func (m *mergeRun) run(ctx context.Context) error {
	m.until = m.maintenance.until()
	m.result = workflows.MergeResult{Marks: maps.Clone(m.in.Marks)}
	if m.result.Marks == nil {
		m.result.Marks = map[string]uint64{}
	}
	var err error
	if m.now, err = m.clock(ctx); err != nil {
		return err
	}
	tails, err := m.heavy.ClassifyTail(ctx, m.in.Target.URI)
	if err != nil {
		return fmt.Errorf("classify the WAL tails of %s: %w", m.in.Target.ID, err)
	}
	oldestFirst(tails)
	for i, tail := range tails {
		m.lease.report(Progress{Step: "merge shard " + tail.Shard, Done: i, Of: len(tails)})
		if err := m.shard(ctx, tail); err != nil {
			return err
		}
		if m.result.More {
			return nil
		}
	}
	return m.count(ctx, tails)
}

// clock is the time, and not later than the storage's where a live shard must be left
// to its worker: by a clock that is ahead none would look live. Sealing goes by the
// storage's clock in any case (native/README.md).
func (m *mergeRun) clock(ctx context.Context) (int64, error) {
	now := m.maintenance.Scan.nowMS()
	if m.in.Limits.LeaveWrittenWithin <= 0 {
		return now, nil
	}
	storage, err := m.maintenance.Scan.Staging.StorageNow(ctx)
	return min(now, storage), err
}

// oldestFirst orders shards by when they were last written: where two of them hold
// the same key, the one written later shall have the last word.
func oldestFirst(tails []lance.Tail) {
	slices.SortStableFunc(tails, func(a, b lance.Tail) int { return cmp.Compare(a.NewestTime, b.NewestTime) })
}

// shard seals one shard if it has stranded entries, and merges what is pending.
func (m *mergeRun) shard(ctx context.Context, tail lance.Tail) error {
	switch m.in.Limits.Reach().Step(tail.Seen(), m.now) {
	case fleet.LeaveShard:
		m.result.Live++
		return nil
	case fleet.SealShard:
		if err := m.seal(ctx, tail); err != nil {
			return err
		}
	}
	return m.drain(ctx, tail.Shard)
}

func (m *mergeRun) seal(ctx context.Context, tail lance.Tail) error {
	sealed, err := m.heavy.SealShard(ctx, lance.SealSpec{URI: m.in.Target.URI, Shard: tail.Shard, SilentFor: millis(m.in.Limits.SilentFor)})
	if err != nil {
		return fmt.Errorf("seal shard %s of %s: %w", tail.Shard, m.in.Target.ID, err)
	}
	m.result.Requests = m.result.Requests.Add(sealed.Requests)
	if sealed.Refused != nil {
		m.refused(sealed.Refused)
	} else if len(sealed.Entries) > 0 {
		m.result.Sealed++
		m.result.SealedRows += sealed.Rows
	}
	return nil
}

// drain makes passes over one shard until what it began with is merged. A busy
// writer flushes as fast as we merge: what came since is another run's.
func (m *mergeRun) drain(ctx context.Context, shard string) error {
	merged, todo := false, int64(-1)
	for {
		pass, err := m.pass(ctx, shard)
		if err != nil {
			return fmt.Errorf("merge shard %s of %s: %w", shard, m.in.Target.ID, err)
		}
		if !merged && pass.Generations > 0 {
			merged = true
			m.result.Shards++
		}
		if todo < 0 {
			todo = pass.Generations + pass.Left
		}
		todo -= pass.Generations
		moved := pass.Generations > 0 || pass.Drained > 0
		if pass.Refused != nil || pass.Left == 0 || todo <= 0 || !moved {
			m.result.Left += pass.Left
			return nil
		}
		if m.maintenance.over(m.until) {
			m.result.Left += pass.Left
			m.result.More = true
			return nil
		}
	}
}

func (m *mergeRun) pass(ctx context.Context, shard string) (lance.Merged, error) {
	limits := m.in.Limits
	pass, err := m.heavy.MergeWAL(ctx, lance.MergeSpec{
		URI: m.in.Target.URI, Shard: shard, RememberedMark: m.result.Marks[shard],
		MaxGenerations: limits.MergeGenerations, MaxBytes: limits.MergeBytes,
	})
	if err != nil {
		return pass, err
	}
	r := &m.result
	r.Requests = r.Requests.Add(pass.Requests)
	if pass.Refused != nil {
		m.refused(pass.Refused)
		return pass, nil
	}
	if pass.Generations > 0 || pass.Drained > 0 {
		r.Passes++
	}
	r.Generations += pass.Generations
	r.Rows += pass.Rows
	r.Deletes += pass.Deletes
	r.Drained += pass.Drained
	r.Version = max(r.Version, pass.Version)
	r.Marks[shard] = max(r.Marks[shard], pass.Mark)
	m.lease.report(Progress{Step: "merge shard " + shard, Done: r.Passes})
	return pass, nil
}

func (m *mergeRun) refused(r *lance.Refusal) {
	if len(m.result.Refused) < refusalsTold {
		m.result.Refused = append(m.result.Refused, r.Sentence)
	}
}

// count says what the tails are now. Only sealing and merging change what they are.
func (m *mergeRun) count(ctx context.Context, tails []lance.Tail) error {
	if m.result.Sealed > 0 || m.result.Drained > 0 {
		var err error
		if tails, err = m.heavy.ClassifyTail(ctx, m.in.Target.URI); err != nil {
			return fmt.Errorf("classify the WAL tails of %s again: %w", m.in.Target.ID, err)
		}
	}
	reach, now := m.in.Limits.Reach(), m.maintenance.Scan.nowMS()
	for _, tail := range tails {
		m.result.Stranded += tail.Stranded
		if reach.Live(tail.Seen(), now) {
			m.result.Unflushed += tail.Stranded
		}
		m.result.Unknown += tail.Unknown
	}
	return nil
}
