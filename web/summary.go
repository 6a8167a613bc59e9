package web

import (
	"lancefleet/fleet"
)

// numberOf is null when it is unknown.
func numberOf(known bool, n int64) *int64 {
	if !known || n < 0 {
		return nil
	}
	return &n
}

// timeOf is null when it is never or unknown.
func timeOf(ms int64) *int64 {
	if ms <= 0 {
		return nil
	}
	return &ms
}

// shown is one experiment as it is told.
type shown struct {
	row      *fleet.Row
	decision fleet.Decision
	state    State
	entry    *fleet.LedgerEntry // of a retired one
	stored   bool               // in a table
	kept     int64              // when it was last maintained, as the journal has it; unix ms
}

// shown of one experiment.
func (v *view) shown(i int32, retiring map[fleet.ID]bool, now int64) shown {
	row := v.row(i)
	if v.isCold(i) {
		cold := fleet.UnknownRow(*v.experiment(i))
		row = &cold
	}
	return shown{row, v.decision(i, now), v.state(i, retiring), v.entry(i), !v.isCold(i), v.histories[row.ID].MaintainedAt}
}

// summarise makes the public shape of one experiment.
func summarise(e shown, now int64) Summary {
	row, d := e.row, e.decision
	k := row.Known
	s := Summary{
		Name:            row.StatsName(),
		URI:             row.URI,
		RowCount:        numberOf(k, row.RowCount),
		FragmentCount:   numberOf(k, row.FragmentCount),
		LastUpdated:     timeOf(row.LastWrite),
		PendingWAL:      numberOf(k, row.PendingWAL),
		LastCompaction:  timeOf(row.LastCompaction),
		Compactions:     numberOf(k, row.TotalCompactions),
		ScannedAt:       timeOf(row.ScannedAt),
		ID:              row.String(),
		Kind:            row.Kind,
		State:           e.state,
		Evidence:        evidenceOf(e.entry),
		LastWrite:       timeOf(row.LastWrite),
		LastMaintenance: timeOf(row.LastMaintenance),
		Action:          string(d.Action),
		Reason:          d.Reason,
		NotBefore:       timeOf(d.NotBefore),
		PendingRows:     numberOf(k, row.PendingRows),
		SmallFragments:  numberOf(k, row.SmallFragments),
		DeletedRows:     numberOf(k, row.DeletedRows),
		TailEntries:     numberOf(k, row.TailEntries),
		Stranded:        numberOf(k, row.StrandedEntries),
		Bytes:           numberOf(k, row.Bytes),
		Version:         numberOf(k, row.Version),
		ObservedAt:      timeOf(row.ObservedAt),
		Failures:        row.Failures,
		FailingSince:    timeOf(row.FailingSince),
		NextAttemptAt:   timeOf(row.NextAttempt(now)),
		ErrorClass:      row.ErrorClass,
		Error:           row.Error,
		MissingRounds:   row.MissingRounds,
		Stored:          e.stored,
	}
	if k {
		exact := row.RowsExact
		s.RowsExact = &exact
	}
	if row.ObservedAt > 0 && e.entry == nil {
		s.Shards = numberOf(k, int64(len(row.Shards)))
	}
	if e.entry != nil {
		s.atRest(e)
	}
	if row.ScannedAt > 0 {
		age := max(now-row.ScannedAt, 0) / 1000
		s.Staleness = &age
	}
	return s
}

func evidenceOf(e *fleet.LedgerEntry) *Evidence {
	if e == nil {
		return nil
	}
	return &Evidence{
		RetiredAt: e.RetiredAt, VerifiedAt: e.Evidence.VerifiedAt, CheckedAt: e.CheckedAt, Version: e.Evidence.Fingerprint.Version,
		Rows: e.Evidence.Rows, Fragments: e.Evidence.Fragments, Shards: len(e.Evidence.Shards),
		By: e.By, Why: e.Why, WorkflowID: e.WorkflowID, RunID: e.RunID,
	}
}

// describe makes the public shape of everything known about one experiment.
func describe(e shown, now int64) Detail {
	row := e.row
	out := Detail{
		Summary:   summarise(e, now),
		Source:    row.Source,
		CreatedAt: timeOf(row.CreatedAt),
		Health:    health(e, now),
		Indexes:   list(row.Indexes),
		Tags:      list(row.Tags),
		Branches:  list(row.Branches),
	}
	if row.ObservedAt > 0 {
		fingerprint := row.Fingerprint
		out.Fingerprint = &fingerprint
	}
	if e.entry != nil {
		out.WALShards = shardsAtRest(e.entry.Evidence)
	} else if row.ObservedAt > 0 {
		out.WALShards = make([]Shard, len(row.Shards))
		for i := range row.Shards {
			out.WALShards[i] = shardOf(&row.Shards[i])
		}
	}
	return out
}

// atRest fills in what a row of a retired one does not keep: the evidence has counted
// it, and the journal remembers what was done.
func (s *Summary) atRest(e shown) {
	if e.entry.Evidence.Fingerprint.IsZero() {
		return // the evidence is lost
	}
	shards, tails := int64(len(e.entry.Evidence.Shards)), int64(0)
	for _, shard := range e.entry.Evidence.Shards {
		tails += tailOf(shard)
	}
	s.Shards, s.TailEntries = &shards, &tails
	s.LastMaintenance = timeOf(max(e.row.LastMaintenance, e.entry.LastCompaction, e.kept))
}

// tailOf is how many entries are past the flush cursor; all of them are accounted for.
func tailOf(s fleet.ShardEvidence) int64 {
	return s.Contained + s.InBase + s.Superseded + s.Stranded + s.Unknown
}

// shardsAtRest are the shards as the verification before the retirement saw them.
func shardsAtRest(e fleet.Evidence) []Shard {
	if e.Fingerprint.IsZero() {
		return nil
	}
	marks := make(map[string]fleet.ShardMark, len(e.Fingerprint.Shards))
	for _, mark := range e.Fingerprint.Shards {
		marks[mark.ID] = mark
	}
	out := make([]Shard, len(e.Shards))
	for i, s := range e.Shards {
		none, tail := int64(0), tailOf(s)
		out[i] = Shard{
			ID: s.ID, Status: "at rest", Epoch: s.Epoch, Manifest: marks[s.ID].Manifest, WALNext: marks[s.ID].WALNext, CompactedMark: s.Mark,
			Pending: s.Pending, PendingRows: &none, PendingBytes: &none, TailEntries: &tail,
		}
	}
	return out
}

func shardOf(s *fleet.Shard) Shard {
	return Shard{
		ID:                s.ID,
		Status:            s.Status,
		Epoch:             s.Epoch,
		Manifest:          s.Manifest,
		CurrentGeneration: s.CurrentGeneration,
		CompactedMark:     s.CompactedMark,
		Pending:           s.Pending,
		PendingRows:       numberOf(true, s.PendingRows),
		PendingBytes:      numberOf(true, s.PendingBytes),
		Tombstones:        s.Tombstones,
		FlushCursor:       s.FlushCursor,
		WALNext:           s.WALNext,
		TailEntries:       numberOf(true, s.TailEntries),
		TailRows:          numberOf(true, s.TailRows),
		NewestEntry:       timeOf(s.NewestEntryTime),
		NewestGeneration:  timeOf(s.NewestGenTime),
	}
}

// list keeps JSON arrays arrays.
func list(in []string) []string {
	if in == nil {
		return []string{}
	}
	return in
}
