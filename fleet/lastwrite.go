package fleet

// LastWrite tells when rows last arrived by any path, and the two base times it
// rests on, all in unix ms: the newest of when the shards were written and the
// newest base commit that is not maintenance.
//
// It never falls below what prev knew: generations get drained, and an
// observation lists commits only down to the version that was known. lastBaseWrite
// is 0 and lastMaintenance -1 when there was none or nobody knows.
func LastWrite(o Observation, prev *Row) (lastWrite, lastBaseWrite, lastMaintenance int64) {
	if prev != nil && !prev.Known {
		prev = nil
	}
	lastMaintenance = -1
	if prev != nil {
		lastWrite, lastMaintenance = prev.LastWrite, prev.LastMaintenance
	}
	lastBaseWrite = baseWrite(o, prev)
	lastWrite = max(lastWrite, lastBaseWrite)
	for _, s := range o.Shards {
		lastWrite = max(lastWrite, s.Written())
	}
	for _, c := range o.Commits {
		if IsMaintenance(c) {
			lastMaintenance = max(lastMaintenance, c.Time)
		}
	}
	return lastWrite, lastBaseWrite, lastMaintenance
}

// Written is when rows last arrived in a shard, unix ms; 0 unknown. Entries of the
// WAL are never collected, so the newest one with rows tells. The time of the
// newest generation only counts where no entry is known: a flush, a replay after a
// crash and our own seal make generations of what was written before.
func (s Shard) Written() int64 {
	if s.NewestEntryTime > 0 {
		return s.NewestEntryTime
	}
	return s.NewestGenTime
}

// baseWrite is the time of the newest base commit that may have brought rows.
// Where the listed commits are all maintenance and don't reach back to what prev
// knew, what lies between is unknown and counts as a write, as late as it can have
// been: at the oldest listed commit. That only delays retirement.
func baseWrite(o Observation, prev *Row) int64 {
	var known int64
	if prev != nil {
		known = prev.LastBaseWrite
	}
	for _, c := range o.Commits {
		if !IsMaintenance(c) {
			return max(known, c.Time)
		}
	}
	if known > 0 && reachesBack(o, prev.Version) {
		return known
	}
	if n := len(o.Commits); n > 0 {
		return max(known, o.Commits[n-1].Time)
	}
	return max(known, o.ManifestTime)
}

// reachesBack says whether every commit since version is listed.
func reachesBack(o Observation, version int64) bool {
	head := int64(o.Fingerprint.Version)
	if head <= version || len(o.Commits) == 0 {
		return head == version
	}
	return int64(o.Commits[len(o.Commits)-1].Version) <= version+1
}
