package fleet

// Observed is the row that a full observation gives. What the observation can't
// see any more (compactions before the listed commits, last writes whose
// generations were drained) is kept from prev; prev is nil for the first one.
func Observed(exp Experiment, prev *Row, o Observation, now int64) Row {
	row := UnknownRow(exp)
	if prev != nil {
		row.LastCompaction, row.TotalCompactions = prev.LastCompaction, prev.TotalCompactions
		row.MissingRounds, row.MissingSince, row.MissingSeenAt = prev.MissingRounds, prev.MissingSince, prev.MissingSeenAt
	}
	history := prev
	if prev != nil && prev.URI != exp.URI {
		history = nil // another dataset: its commits say nothing about this one
	}
	row.Known, row.ObservedAt, row.ScannedAt = true, o.ObservedAt, now
	row.LastWrite, row.LastBaseWrite, row.LastMaintenance = LastWrite(o, history)
	row.LastCompaction, row.TotalCompactions = compactions(o.Commits, row.LastCompaction, row.TotalCompactions)
	measure(&row, o)
	return row
}

// measure copies the numbers of an observation and sums those of its shards.
func measure(row *Row, o Observation) {
	row.Fingerprint, row.Version = o.Fingerprint, int64(o.Fingerprint.Version)
	row.FragmentCount, row.SmallFragments = o.Fragments, o.SmallFragments
	row.DeletedRows, row.Bytes = o.DeletedRows, o.Bytes
	row.Shards, row.Indexes, row.Tags, row.Branches = o.Shards, o.Indexes, o.Tags, o.Branches
	row.PendingWAL = sumShards(o.Shards, func(s Shard) int64 { return s.Pending })
	row.PendingRows = sumShards(o.Shards, func(s Shard) int64 { return s.PendingRows })
	row.TailEntries = sumShards(o.Shards, func(s Shard) int64 { return s.TailEntries })
	row.RowCount = addKnown(o.BaseRows, row.PendingRows)
	row.RowsExact = row.RowCount >= 0 && !mayRepeat(o, row.PendingWAL)
	if row.TailEntries == 0 {
		row.StrandedEntries = 0 // no entry is past a cursor, so none can be stranded
	}
}

// mayRepeat says whether a key may stand both in the base and in a pending
// generation, or a pending generation may hide rows: the sum of rows is then only
// an upper bound.
func mayRepeat(o Observation, pending int64) bool {
	if pending == 0 {
		return false
	}
	for _, s := range o.Shards {
		if s.Tombstones {
			return true
		}
	}
	return o.Keyed || pending < 0
}

// sumShards adds up one number of every shard; one unknown makes the sum unknown.
func sumShards(shards []Shard, number func(Shard) int64) int64 {
	var sum int64
	for _, s := range shards {
		sum = addKnown(sum, number(s))
	}
	return sum
}

func addKnown(a, b int64) int64 {
	if a < 0 || b < 0 {
		return -1
	}
	return a + b
}

// compactions counts the Rewrite commits that are newer than the last one known,
// so that seeing a commit twice counts it once. Neither number ever falls.
func compactions(commits []Commit, last, total int64) (newest, count int64) {
	newest, count = last, total
	for _, c := range commits {
		if c.Operation == "Rewrite" && c.Time > last {
			newest = max(newest, c.Time)
			count++
		}
	}
	return newest, count
}
