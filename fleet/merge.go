package fleet

import "strings"

// wantsMerge is about pending generations, and about stranded WAL entries that a
// merge replays.
func wantsMerge(r Row, p Policy, h History, now int64) Decision {
	m := mergeable(r, p, h, now)
	words := Count(m.pending, "pending generation")
	tails := due(r.LastWrite, p.MergeTailsAfter.Milliseconds())
	switch {
	case m.pending > 0 && p.MergeMinGenerations > 0 && m.pending >= p.MergeMinGenerations:
		return do(DoMerge, words+", merged from "+Number(p.MergeMinGenerations)+" on")
	case m.pending > 0 && tails > 0 && now >= tails:
		return do(DoMerge, words+", nothing written for "+Age(span(r.LastWrite, now)))
	case r.PendingWAL <= 0 && tails > 0 && now >= tails && strandedEntries(r, h) > 0:
		return do(DoMerge, stranded(r, h)+", nothing written for "+Age(span(r.LastWrite, now)))
	case m.refused > 0 && m.pending == 0 && m.left == 0:
		return refused(DoMerge, m.refusal, 0)
	case m.left > 0 && m.pending == 0:
		return none(sentence(Count(m.left, "pending generation")+leftTo(h), m.refusal), m.leftUntil)
	case r.PendingWAL == 0:
		return none("", strandedDue(r, h, tails))
	case m.pending < 0:
		return none(words, strandedDue(r, h, tails))
	case p.MergeMinGenerations > 0:
		words += ", below " + Number(p.MergeMinGenerations)
	case tails > 0:
		words += ", merged after " + Age(p.MergeTailsAfter) + " without a write"
	default:
		words += ", never merged"
	}
	return none(sentence(words, m.refusal), earliest(tails, m.leftUntil))
}

// mergeables counts pending generations by what may be done with them.
type mergeables struct {
	pending   int64 // may be merged now; -1 unknown
	left      int64 // of live shards, left to the workers that write them
	leftUntil int64 // when the first of those shards is live no longer, unix ms; 0 none
	refused   int64 // must not be merged
	refusal   string
}

// mergeable sorts the pending generations. Rows without shards (stored by
// lance-context) know the sum only.
func mergeable(r Row, p Policy, h History, now int64) mergeables {
	m := mergeables{pending: r.PendingWAL}
	if r.PendingWAL <= 0 {
		return m
	}
	marks := h.Marks(&r)
	for _, s := range r.Shards {
		if s.Pending <= 0 {
			continue
		}
		refusal := mergeRefused(s, marks[s.ID])
		switch {
		case refusal != "":
			m.refused += s.Pending
			if m.refusal == "" {
				m.refusal = notMerged + refusal
				if s.Status != "sealed" {
					m.refusal += acceptHint
				}
			}
		case p.Leaves(s, now):
			m.left += s.Pending
			m.leftUntil = earliest(m.leftUntil, s.Written()+p.LiveWithin.Milliseconds())
		}
	}
	m.pending -= m.left + m.refused
	return m
}

// How a refusal begins that a cause follows.
const (
	notMerged  = "not merged: "
	notRetired = "not retired: "
)

// acceptHint ends the sentence of a refusal that waiting does not lift. Those of the
// native library begin like it (acceptWords).
const (
	acceptWords = "; accept shows what is there and lets "
	acceptHint  = acceptWords + "you decide"
)

// AwaitsDecision says whether merges of an experiment stand refused until somebody
// decides: its table was overwritten or restored, or a shard was made anew. Some of
// that the row shows; the rest only a merge has found, and the journal tells of it.
func AwaitsDecision(r *Row, h History) bool {
	for _, tries := range []Tries{h.Merge, h.Retire} {
		if strings.Contains(tries.Error, acceptWords) {
			return true
		}
	}
	marks := h.Marks(r)
	for _, s := range r.Shards {
		erased := s.CompactedMark < marks[s.ID]
		if s.Status != "sealed" && (erased || s.Pending > 0 && mergeRefused(s, marks[s.ID]) != "") {
			return true
		}
	}
	return false
}

// mergeRefused says why the pending generations of a shard must not be merged, ""
// if they may. remembered is the newest mark that we ever saw of it.
func mergeRefused(s Shard, remembered uint64) string {
	switch {
	case s.Status == "sealed":
		return "shard " + s.ID + " is sealed"
	case s.CompactedMark < remembered:
		return "the table was overwritten or restored by its user, the merge mark of shard " + s.ID + " fell from " +
			utoa(remembered) + " to " + utoa(s.CompactedMark)
	case s.CurrentGeneration <= s.CompactedMark:
		return "shard " + s.ID + " restarted its generation counter"
	}
	return ""
}

// Leaves says whether a shard is its live worker's business: it was written
// lately, and the policy leaves such shards alone.
func (p Policy) Leaves(s Shard, now int64) bool {
	return p.LiveShards == LeaveLiveShards && s.Written() > 0 && span(s.Written(), now) < p.LiveWithin
}

// Knowing is the policy in the light of an experiment's history: where somebody
// else merges too, live shards are left to them.
func (p Policy) Knowing(h History) Policy {
	if h.ForeignDrain {
		p.LiveShards = LeaveLiveShards
	}
	return p
}

func leftTo(h History) string {
	if h.ForeignDrain {
		return " left to their live writer, which merges by itself"
	}
	return " left to their live writer"
}

// DrainedByOthers names the shards of which generations went out of the manifest
// between two observations without the base having recorded them: somebody else
// merges there, appending without a mark. A table that was made anew is not meant.
func DrainedByOthers(before, after []Shard) []string {
	was := make(map[string]Shard, len(before))
	for _, s := range before {
		was[s.ID] = s
	}
	var drained []string
	for _, s := range after {
		old, known := was[s.ID]
		if !known || s.Epoch < old.Epoch || s.CurrentGeneration < old.CurrentGeneration || s.CompactedMark < old.CompactedMark {
			continue
		}
		if old.Pending < 0 || s.Pending < 0 {
			continue
		}
		merged := int64(s.CompactedMark - old.CompactedMark)
		flushed := int64(s.CurrentGeneration - old.CurrentGeneration)
		if s.Pending < old.Pending+flushed-merged {
			drained = append(drained, s.ID)
		}
	}
	return drained
}

// strandedEntries is how many WAL entries are known to be in no generation and not
// in the base: by the row, or by the last look at the tails.
func strandedEntries(r Row, h History) int64 {
	if r.StrandedEntries >= 0 {
		return r.StrandedEntries
	}
	return max(h.Stranded, 0)
}

// stranded words WAL entries that are in no generation. While their writer lives
// they are just not flushed yet, so the word for them promises no more than that.
func stranded(r Row, h History) string {
	n := strandedEntries(r, h)
	if n <= 0 {
		return ""
	}
	return Count(n, "unflushed WAL entry")
}

// strandedDue is when stranded entries alone are worth a merge; 0 = never.
func strandedDue(r Row, h History, tails int64) int64 {
	if strandedEntries(r, h) <= 0 {
		return 0
	}
	return tails
}

// due is when so many ms have passed since an event; 0 = never: no wait was
// given, or nobody knows when the event was.
func due(since, waitMS int64) int64 {
	if since <= 0 || waitMS <= 0 {
		return 0
	}
	return since + waitMS
}
