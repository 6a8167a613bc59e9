package fleet

import "strings"

// Todo is what Decide wants done with an experiment.
type Todo string

// What an experiment may need.
const (
	DoNothing Todo = "none"
	DoMerge   Todo = "merge"   // fold pending generations into the base
	DoCompact Todo = "compact" // rewrite small fragments
	DoRetire  Todo = "retire"  // merge, compact, verify, drop the row
)

// History is what the journal remembers of an experiment's maintenance. The zero
// History is that of one that was never maintained.
type History struct {
	Failures      int64  // of maintenance, in a row
	LastFailureAt int64  // unix ms
	LastError     string // in words: "commit conflict"
	NoOpVersion   int64  // base version whose compaction plan was empty; 0 = none
	NoOpMinimum   int64  // CompactMinFragments at that time: other options, other plan
	MarkErased    bool   // the base's mark is below the one we recorded: overwritten or restored
}

// Decision is what to do next, why in one sentence, and the earliest time (unix
// ms) at which the answer may change by waiting alone; 0 = waiting changes nothing.
type Decision struct {
	Action    Todo   `json:"action"`
	Reason    string `json:"reason"`
	NotBefore int64  `json:"not_before"`
}

// Decide says what an experiment needs. It looks at its row only: whoever acts
// observes afresh before it touches anything.
func Decide(r Row, p Policy, h History, now int64) Decision {
	if d, unfit := unfit(r, now); unfit {
		return d
	}
	wish := wanted(r, p, h, now)
	if wish.Action == DoNothing {
		return wish
	}
	if d, held := held(p, h, now); held {
		d.Reason += "; " + wish.Reason
		return d
	}
	return wish
}

// unfit stops everything for an experiment that we can't see well enough.
func unfit(r Row, now int64) (Decision, bool) {
	switch {
	case r.Failing():
		return none(failing(r, now), r.NextAttemptAt), true
	case !r.Known:
		return none("not observed yet", 0), true
	case r.MissingRounds > 0:
		return none("its source did not name it in the last round", 0), true
	}
	return Decision{}, false
}

// failing words an observation's failure: "unreachable since 14:05, next try 14:10: ...".
func failing(r Row, now int64) string {
	class := r.ErrorClass
	if class == "" {
		class = "failing"
	}
	s := class + " since " + Clock(r.FailingSince, now) + ", next try " + Clock(r.NextAttemptAt, now)
	if r.Error != "" {
		s += ": " + r.Error
	}
	return s
}

// wanted is what would be done if nothing stood in the way: retirement first,
// since it merges and compacts by itself.
func wanted(r Row, p Policy, h History, now int64) Decision {
	merge := wantsMerge(r, p, h, now)
	retire := wantsRetire(r, p, now)
	if retire.Action != DoNothing {
		if refusal := mergeRefused(r, h); refusal != "" {
			return none(refusal+"; not retired while generations are pending", 0)
		}
		return retire
	}
	if merge.Action != DoNothing {
		return merge
	}
	compact := wantsCompact(r, p, h)
	if compact.Action != DoNothing {
		return compact
	}
	reason := sentence(merge.Reason, stranded(r), compact.Reason, retire.Reason, heldVersions(r, p))
	return none(reason, earliest(merge.NotBefore, retire.NotBefore))
}

func wantsRetire(r Row, p Policy, now int64) Decision {
	if r.LastWrite <= 0 {
		return none("last write unknown", 0)
	}
	written := "written " + Ago(r.LastWrite, now)
	due := r.LastWrite + p.RetireAfter.Milliseconds()
	switch {
	case p.RetireAfter <= 0:
		return none(written+", never retired", 0)
	case now < due:
		return none(written, due)
	}
	return Decision{Action: DoRetire, Reason: "not written for " + Age(span(r.LastWrite, now)) + ", retired after " + Age(p.RetireAfter)}
}

func wantsMerge(r Row, p Policy, h History, now int64) Decision {
	if r.PendingWAL == 0 {
		return none("", 0)
	}
	if refusal := mergeRefused(r, h); refusal != "" {
		return none(refusal, 0)
	}
	pending, left := mergeable(r, p, now)
	words := Count(pending, "pending generation")
	tails := r.LastWrite + p.MergeTailsAfter.Milliseconds()
	switch {
	case pending < 0:
		return none(words, 0)
	case pending == 0:
		return none(Count(left, "pending generation")+" left to their live writer", 0)
	case p.MergeMinGenerations > 0 && pending >= p.MergeMinGenerations:
		return Decision{Action: DoMerge, Reason: words + ", merged from " + itoa(p.MergeMinGenerations) + " on"}
	case p.MergeTailsAfter > 0 && r.LastWrite > 0 && now >= tails:
		return Decision{Action: DoMerge, Reason: words + ", nothing written for " + Age(span(r.LastWrite, now))}
	case p.MergeMinGenerations <= 0:
		return none(words+", never merged", 0)
	}
	if p.MergeTailsAfter <= 0 || r.LastWrite <= 0 {
		tails = 0
	}
	return none(words+", below "+itoa(p.MergeMinGenerations), tails)
}

// stranded words WAL entries that nobody but we would ever flush.
func stranded(r Row) string {
	if r.StrandedEntries <= 0 {
		return ""
	}
	return Count(r.StrandedEntries, "stranded WAL entry")
}

// mergeRefused says why the pending generations must not be merged, "" if they may.
func mergeRefused(r Row, h History) string {
	if r.PendingWAL == 0 {
		return ""
	}
	if h.MarkErased {
		return "not merged: the table was overwritten or restored by its user, its merge mark is gone"
	}
	for _, s := range r.Shards {
		switch {
		case s.Pending == 0:
		case s.Status == "sealed":
			return "not merged: shard " + s.ID + " is sealed"
		case s.CurrentGeneration <= s.CompactedMark:
			return "not merged: shard " + s.ID + " restarted its generation counter"
		}
	}
	return ""
}

// mergeable counts pending generations that may be merged now, and those left to
// the workers that are writing them. Rows without shards (stored by
// lance-context) know the sum only.
func mergeable(r Row, p Policy, now int64) (pending, left int64) {
	if p.LiveShards != LeaveLiveShards || r.PendingWAL < 0 {
		return r.PendingWAL, 0
	}
	for _, s := range r.Shards {
		newest := max(s.NewestEntryTime, s.NewestGenTime)
		if newest > 0 && span(newest, now) < p.LiveWithin {
			left += s.Pending
		}
	}
	return r.PendingWAL - left, left
}

func wantsCompact(r Row, p Policy, h History) Decision {
	words := Count(r.FragmentCount, "fragment")
	minimum := itoa(p.CompactMinFragments)
	switch {
	case p.CompactMinFragments <= 0:
		return none(words+", never compacted", 0)
	case r.FragmentCount < 0:
		return none(words, 0)
	case r.FragmentCount < p.CompactMinFragments:
		return none(words+", below "+minimum, 0)
	case r.SmallFragments >= 0 && r.SmallFragments < p.CompactMinFragments:
		return none(words+", "+itoa(r.SmallFragments)+" of them small, below "+minimum, 0)
	case h.NoOpVersion > 0 && h.NoOpVersion == r.Version && h.NoOpMinimum == p.CompactMinFragments:
		return none(words+", nothing to compact in version "+itoa(r.Version), 0)
	}
	if r.SmallFragments >= 0 {
		words = Count(r.SmallFragments, "small fragment")
	}
	return Decision{Action: DoCompact, Reason: words + ", compacted from " + minimum + " on"}
}

// heldVersions says which tags keep old versions from the cleanup, if there is one.
func heldVersions(r Row, p Policy) string {
	if p.CleanupOlderThan <= 0 || len(r.Tags) == 0 {
		return ""
	}
	if len(r.Tags) == 1 {
		return "old versions held by tag " + r.Tags[0]
	}
	return "old versions held by tags " + strings.Join(r.Tags, ", ")
}

// held says what keeps a wish from being started now.
func held(p Policy, h History, now int64) (Decision, bool) {
	if !p.Maintain {
		return none("maintenance is off: observe only", 0), true
	}
	if p.Paused != "" {
		return none("paused: "+p.Paused, 0), true
	}
	if until := h.LastFailureAt + p.Cooldown(h.Failures).Milliseconds(); now < until {
		return none(coolingDown(h, until, now), until), true
	}
	if end, inside := p.QuietWindow.Contains(now); inside {
		return none("quiet until "+Clock(end, now), end), true
	}
	return Decision{}, false
}

// coolingDown words a pause after failures: "cooling down until 14:05 after 3
// failures: commit conflict".
func coolingDown(h History, until, now int64) string {
	s := "cooling down until " + Clock(until, now) + " after " + Count(h.Failures, "failure")
	if h.LastError != "" {
		s += ": " + h.LastError
	}
	return s
}

func none(reason string, notBefore int64) Decision {
	return Decision{Action: DoNothing, Reason: reason, NotBefore: notBefore}
}

// sentence joins the parts that say something.
func sentence(parts ...string) string {
	var said []string
	for _, part := range parts {
		if part != "" {
			said = append(said, part)
		}
	}
	return strings.Join(said, "; ")
}

// earliest is the smaller of two times, 0 meaning none.
func earliest(a, b int64) int64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
