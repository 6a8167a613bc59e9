package fleet

// State says where an experiment stands.
type State string

// The states. Retiring is known only to those who know the running workflows.
const (
	Hot      State = "hot"
	Retiring State = "retiring" // its RetireWorkflow runs
	Retired  State = "retired"
	Unseen   State = "unknown" // registered, in neither table: hot, and to be observed
)

// StateOf tells an experiment's state by its row of `_stats` and its newest entry
// of the ledger; either may be nil. Neither table waits for the other: a row that
// a round has not taken out yet is retired all the same, and one that was written
// after the evidence is hot although the ledger does not say so yet.
func StateOf(row *Row, entry *LedgerEntry) State {
	retired := entry != nil && entry.Retired()
	switch {
	case retired && (row == nil || row.LastWrite <= entry.LastWrite):
		return Retired
	case row == nil:
		return Unseen
	}
	return Hot
}

// Verdict is what a look at a retired experiment means.
type Verdict string

// The verdicts.
const (
	Same        Verdict = "same"        // nothing moved
	Maintenance Verdict = "maintenance" // somebody rearranged it: verify, and renew the evidence
	Write       Verdict = "write"       // return to hot
)

// OnRetiredObservation says what a full observation of a retired experiment means,
// given the entry with its evidence, and why. The observation must list commits
// down to the version of the evidence. What can't be told is a write: that only
// makes it hot again. It compares positions and versions rather than times: clocks
// may differ.
func OnRetiredObservation(entry LedgerEntry, o Observation) (Verdict, string) {
	was := entry.Evidence.Fingerprint
	if was.IsZero() {
		return Write, "the ledger has no evidence of it"
	}
	if was.Equal(o.Fingerprint) {
		return Same, "nothing moved"
	}
	if why := writtenToBase(entry.Evidence, o); why != "" {
		return Write, why
	}
	marks := make(map[string]ShardMark, len(was.Shards))
	for _, m := range was.Shards {
		marks[m.ID] = m
	}
	for _, s := range o.Shards {
		if why := writtenToShard(marks[s.ID], s); why != "" {
			return Write, why
		}
	}
	return Maintenance, "moved without a write"
}

// writtenToBase says what in the base table is new, "" if nothing can be.
func writtenToBase(e Evidence, o Observation) string {
	was, is := e.Fingerprint, o.Fingerprint
	switch {
	case is.Version < was.Version:
		return "version " + utoa(is.Version) + " is older than " + utoa(was.Version) + ": another table"
	case is.Version == was.Version && is.ETag != was.ETag:
		return "version " + utoa(is.Version) + " is another one than before"
	}
	// An observation lists no commits beyond the first that is no maintenance: that it
	// does not reach back means something only where there is none.
	for _, c := range o.Commits {
		if c.Version > was.Version && !IsMaintenance(c) {
			return "version " + utoa(c.Version) + " may have brought rows"
		}
	}
	switch {
	case !reachesBack(o, int64(was.Version)):
		return "commits since version " + utoa(was.Version) + " are gone"
	case o.BaseRows != e.Rows:
		return Count(o.BaseRows, "row") + " instead of " + Number(e.Rows)
	}
	return ""
}

// entriesSought is how far back from a WAL's end an observation looks for the
// newest entry with rows.
const entriesSought = 64

// writtenToShard says what in a shard is new since was (zero: the whole shard).
func writtenToShard(was ShardMark, s Shard) string {
	switch {
	case s.Pending != 0:
		return Count(s.Pending, "pending generation") + " in shard " + s.ID
	case s.WALNext < was.WALNext:
		return "the WAL of shard " + s.ID + " was cut"
	case s.NewestEntry > 0 && s.NewestEntry >= was.WALNext:
		return "an entry was added to the WAL of shard " + s.ID
	case s.NewestEntry == 0 && s.WALNext-was.WALNext > entriesSought:
		return "the WAL of shard " + s.ID + " has grown"
	}
	return ""
}

// DueForCheck says whether a round looks at a retired experiment: each comes up
// once an hour, spread by name. It goes by the time since the last finished
// round, so that late rounds leave nobody out; where there is none, by the number.
func DueForCheck(id ID, r RoundClock, roundsPerHour int64) bool {
	const hour = 60 * 60 * 1000
	if r.Full || roundsPerHour <= 1 {
		return true
	}
	if r.LastRoundAt <= 0 || r.Now < r.LastRoundAt {
		return (stagger(id)+uint64(r.Number))%uint64(roundsPerHour) == 0
	}
	turn := int64(stagger(id) % hour)
	since := ((r.Now-turn)%hour + hour) % hour // since its last turn
	return since < r.Now-r.LastRoundAt
}
