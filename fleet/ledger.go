package fleet

import (
	"cmp"
	"maps"
	"slices"
)

// LedgerState is what an entry of the ledger says of its experiment.
type LedgerState string

// The states. Anything else reads as returned: hot is the safe side.
const (
	LedgerRetired  LedgerState = "retired"  // nothing was left behind, by the evidence
	LedgerReturned LedgerState = "returned" // written again, or woken
	LedgerGone     LedgerState = "gone"     // its source did not name it in two rounds running
)

// LedgerEntry is one row of `_retired`. Entries are only ever added; of each
// experiment the newest counts, see Supersedes.
type LedgerEntry struct {
	Experiment
	State    LedgerState `json:"state"`
	Evidence Evidence    `json:"evidence"` // of a returned one: that of its last retirement

	LastWrite        int64 `json:"last_write"` // when rows last arrived, unix ms
	RowCount         int64 `json:"row_count"`  // -1 unknown, as all numbers here
	Bytes            int64 `json:"bytes"`
	FragmentCount    int64 `json:"fragment_count"`
	LastCompaction   int64 `json:"last_compaction"` // unix ms; -1 never
	TotalCompactions int64 `json:"total_compactions"`

	MissingSince int64 `json:"missing_since,omitempty"` // start of the round that first missed its name, unix ms; 0 = it is named

	At        int64 `json:"at"`         // of this entry, unix ms
	RetiredAt int64 `json:"retired_at"` // when it retired: a renewal keeps it
	CheckedAt int64 `json:"checked_at"` // when its evidence was last found true, or renewed

	By         string `json:"by,omitempty"`
	Why        string `json:"why,omitempty"`
	WorkflowID string `json:"workflow_id,omitempty"`
	RunID      string `json:"run_id"`
}

// Key makes an append that is tried again recognisable: one run retires or
// returns an experiment once, and renews its evidence once per moment.
func (e LedgerEntry) Key() string {
	key := e.RunID + "/" + e.String() + "/" + string(e.State)
	if e.Renewal() {
		key += "/renewed/" + itoa(e.At)
	}
	return key
}

// Renewal says whether an entry only renews the evidence of a retirement, or notes
// whether its source names it.
func (e LedgerEntry) Renewal() bool { return e.Retired() && e.At > e.RetiredAt }

// Retired says whether an entry stands for a retirement in force.
func (e LedgerEntry) Retired() bool { return e.State == LedgerRetired }

// Row is what the ledger knows of a retired experiment, for readers that show
// rows. Nobody looks at it any more as at a hot one, so most of it is unknown.
func (e LedgerEntry) Row() Row {
	row := UnknownRow(e.Experiment)
	row.Known, row.LastWrite, row.RowCount, row.Bytes = true, e.LastWrite, e.RowCount, e.Bytes
	row.FragmentCount, row.LastCompaction, row.TotalCompactions = e.FragmentCount, e.LastCompaction, e.TotalCompactions
	row.PendingWAL, row.PendingRows, row.TailEntries, row.StrandedEntries = 0, 0, -1, 0
	row.RowsExact = e.RowCount >= 0
	row.LastBaseWrite = e.LastWrite // at the latest: else our own last commit would look like a write
	row.Fingerprint, row.Version = e.Evidence.Fingerprint, -1
	if v := e.Evidence.Fingerprint.Version; v > 0 {
		row.Version = int64(v)
	}
	row.ObservedAt, row.ScannedAt = e.Evidence.VerifiedAt, max(e.CheckedAt, e.Evidence.VerifiedAt)
	return row
}

// Supersedes says whether e counts rather than o, of the same experiment: the
// later one; of the same moment a return, which is the safe side.
func (e LedgerEntry) Supersedes(o LedgerEntry) bool {
	return cmp.Or(
		cmp.Compare(e.At, o.At),
		cmp.Compare(count(!e.Retired()), count(!o.Retired())),
		cmp.Compare(e.Key(), o.Key()),
	) > 0
}

// Newest keeps the entry that counts of each experiment, sorted by ID, in
// whatever order and however often entries were added.
func Newest(entries []LedgerEntry) []LedgerEntry {
	newest := make(map[ID]int, len(entries))
	for i := range entries {
		at, seen := newest[entries[i].ID]
		if !seen || entries[i].Supersedes(entries[at]) {
			newest[entries[i].ID] = i
		}
	}
	kept := make([]LedgerEntry, 0, len(newest))
	for _, i := range slices.Sorted(maps.Values(newest)) {
		kept = append(kept, entries[i])
	}
	slices.SortFunc(kept, func(a, b LedgerEntry) int { return a.Compare(b.ID) })
	return kept
}

// NewRetirement is the entry that retires an experiment. last is the ledger's
// newest entry of it, nil if there is none: an entry is always later than the one
// it follows, whatever the clocks of two machines say.
func NewRetirement(r Row, e Evidence, last *LedgerEntry, now int64) LedgerEntry {
	at := laterThan(last, now)
	return LedgerEntry{
		Experiment: r.Experiment, State: LedgerRetired, Evidence: e,
		LastWrite: r.LastWrite, RowCount: e.Rows, Bytes: e.Bytes, FragmentCount: e.Fragments,
		LastCompaction: r.LastCompaction, TotalCompactions: r.TotalCompactions,
		At: at, RetiredAt: at, CheckedAt: e.VerifiedAt,
	}
}

// Return is the entry that makes a retired experiment hot again: it was written
// at lastWrite, or somebody woke it (then lastWrite is the entry's own).
func (e LedgerEntry) Return(lastWrite, now int64) LedgerEntry {
	last := e
	e.State, e.At, e.CheckedAt = LedgerReturned, laterThan(&last, now), now
	e.LastWrite, e.MissingSince = max(e.LastWrite, lastWrite), 0
	e.By, e.Why, e.WorkflowID, e.RunID = "", "", "", ""
	return e
}

// Renew is the entry with new evidence after maintenance by somebody else. The
// last write stays: nothing was written.
func (e LedgerEntry) Renew(evidence Evidence, now int64) LedgerEntry {
	last := e
	e.At, e.CheckedAt, e.Evidence = laterThan(&last, now), evidence.VerifiedAt, evidence
	e.RowCount, e.Bytes, e.FragmentCount = evidence.Rows, evidence.Bytes, evidence.Fragments
	e.By, e.Why, e.WorkflowID, e.RunID = "", "", "", ""
	return e
}

// Unnamed are the entries to add after a round whose sources named listed: a name
// that is missed for the first time is marked, one that is named again is not any
// more, and one that a later round misses too is gone, as a row of `_stats` would be
// (see MergeRound). entries are the newest of each experiment. RunID is the caller's to set.
func Unnamed(entries []LedgerEntry, listed []Experiment, roundStarted, now int64) []LedgerEntry {
	named := make(map[ID]bool, len(listed))
	for _, exp := range listed {
		named[exp.ID] = true
	}
	var add []LedgerEntry
	for _, e := range entries {
		next := e
		switch missing := !named[e.ID]; {
		case !e.Retired() || !missing && e.MissingSince == 0:
			continue // nothing new
		case !missing && roundStarted > e.MissingSince:
			next.MissingSince = 0
		case missing && e.MissingSince == 0 && roundStarted > e.RetiredAt:
			next.MissingSince = roundStarted
		case missing && e.MissingSince > 0 && roundStarted > e.At:
			next.State, next.Why = LedgerGone, "no source names it any more"
		default:
			continue // an older round knows less
		}
		next.At = laterThan(&e, now)
		add = append(add, next)
	}
	return add
}

func laterThan(last *LedgerEntry, now int64) int64 {
	if last == nil {
		return now
	}
	return max(now, last.At+1)
}
