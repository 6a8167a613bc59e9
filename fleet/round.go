package fleet

import (
	"maps"
	"slices"
	"time"
)

// DefaultFreshness is how old `scanned_at` may grow before an unchanged fleet is
// committed all the same.
const DefaultFreshness = 15 * time.Minute

// MergeInput is everything that CommitRound knows.
type MergeInput struct {
	Latest       []Row         // of `_stats` now, sorted by ID
	Pinned       []Row         // of `_stats` as the round began; nil = unknown. Rows removed since stay removed
	Staged       []Row         // what the pages found: observed, failed, or well again; attempts may repeat rows
	Listed       []Experiment  // what the sources named at the round's start
	Unasked      map[ID]bool   // listed, but their page never finished: they keep their ScannedAt; nil = none
	RoundStarted int64         // unix ms
	Now          int64         // unix ms
	Freshness    time.Duration // between commits that only move ScannedAt; 0 = DefaultFreshness
	LastCommitAt int64         // of `_stats`, unix ms; 0 = never
	Retired      map[ID]int64  // in the ledger: last write by the evidence, unix ms; newer rows stay
}

// MergeOutput is what to commit. Rows are sorted by ID and complete whether or
// not a commit is due.
type MergeOutput struct {
	Rows          []Row
	Changed       bool // a commit is due
	FreshnessOnly bool // Changed, but only because ScannedAt has grown old
	Added         int
	Dropped       int // missing from the sources in two rounds, or retired
	MissingOnce   int // missing for the first time in this round
}

// MergeRound folds one round's findings into the latest rows. Per row the newer
// observation wins, so rounds and attempts may arrive in any order and repeatedly.
// See docs/decisions/0003-merging-a-round.md.
func MergeRound(in MergeInput) MergeOutput {
	m := newMerger(in)
	m.foldStaged()
	m.foldListing()
	m.takeOut()
	return m.output()
}

// MergeRefresh folds freshly observed rows of single experiments into the latest
// ones. A row that latest lacks is added only with addMissing: the experiment is
// hot, or somebody asked for it to be.
func MergeRefresh(latest []Row, rows []Row, addMissing bool) []Row {
	m := newMerger(MergeInput{Latest: latest})
	for _, fresh := range rows {
		if _, known := m.rows[fresh.ID]; known || addMissing {
			m.put(fresh)
		}
	}
	return m.sorted()
}

// merger holds the rows of one merge by ID.
type merger struct {
	in      MergeInput
	rows    map[ID]*Row
	before  map[ID]*Row // latest
	carried map[ID]bool // asked by this round, and nothing had changed
	dropped int
	missing int
}

func newMerger(in MergeInput) *merger {
	m := &merger{in: in, rows: make(map[ID]*Row, len(in.Latest)), before: make(map[ID]*Row, len(in.Latest))}
	for i := range in.Latest {
		row := in.Latest[i]
		m.before[row.ID] = &in.Latest[i]
		m.rows[row.ID] = &row
	}
	return m
}

// put joins a row with the one that is there.
func (m *merger) put(row Row) {
	if old, ok := m.rows[row.ID]; ok {
		row = Join(*old, row)
	} else {
		row.MissingRounds, row.MissingSince, row.MissingSeenAt = 0, 0, 0
	}
	m.rows[row.ID] = &row
}

// foldStaged joins the round's findings in. A row that was there when the round
// began and is not any more was dropped or retired meanwhile, knowing more than
// this round did: it is not brought back. A retirement knows less than a round that
// saw a write after its evidence.
func (m *merger) foldStaged() {
	pinned := make(map[ID]bool, len(m.in.Pinned))
	m.carried = make(map[ID]bool, len(m.in.Pinned))
	for i := range m.in.Pinned {
		row := &m.in.Pinned[i]
		pinned[row.ID] = true
		m.carried[row.ID] = row.Known && !row.Failing() && !m.in.Unasked[row.ID]
	}
	for _, row := range m.in.Staged {
		delete(m.carried, row.ID)
		if m.before[row.ID] != nil || !pinned[row.ID] || m.writtenSince(&row) {
			m.put(row)
		}
	}
}

// writtenSince says whether a row knows of a write that a retirement did not.
func (m *merger) writtenSince(row *Row) bool {
	lastWrite, retired := m.in.Retired[row.ID]
	return retired && row.Known && row.LastWrite > lastWrite
}

// foldListing notes which rows the sources named and which they did not.
func (m *merger) foldListing() {
	listed := make(map[ID]bool, len(m.in.Listed))
	for _, exp := range m.in.Listed {
		listed[exp.ID] = true
	}
	for id, row := range m.rows {
		if listed[id] {
			m.named(row)
		} else if m.unnamed(row) {
			delete(m.rows, id)
			m.dropped++
		}
	}
}

// named clears the mark of a round that missed the row before, and confirms the
// row as of the round's start. A row whose last attempt failed keeps its time,
// unless that was before this round asked, found it unchanged and so staged nothing.
func (m *merger) named(row *Row) {
	if row.MissingRounds > 0 && max(m.in.RoundStarted, lookedAt(row)) > row.MissingSince {
		row.MissingRounds, row.MissingSince, row.MissingSeenAt = 0, 0, 0
	}
	if m.carried[row.ID] && row.FailedAt < m.in.RoundStarted {
		*row = clearFailure(*row)
	}
	if !row.Failing() && !m.in.Unasked[row.ID] {
		row.ScannedAt = max(row.ScannedAt, m.in.RoundStarted)
	}
}

// unnamed marks a row that the sources did not name, and says whether to drop it:
// only if it was marked by a round that had committed before this one began.
// Racing rounds, which may have read the same gap, count as one.
func (m *merger) unnamed(row *Row) (drop bool) {
	switch {
	case lookedAt(row) > m.in.RoundStarted:
		return false // somebody who began later knew it
	case row.MissingRounds == 0:
		row.MissingRounds, row.MissingSince, row.MissingSeenAt = 1, m.in.RoundStarted, m.in.Now
		m.missing++
		return false
	case m.in.RoundStarted > row.MissingSeenAt:
		return true
	}
	row.MissingSince = max(row.MissingSince, m.in.RoundStarted)
	return false
}

// takeOut removes what the ledger says is retired, unless written since.
func (m *merger) takeOut() {
	for id, lastWrite := range m.in.Retired {
		if row := m.rows[id]; row != nil && row.LastWrite <= lastWrite {
			delete(m.rows, id)
			m.dropped++
		}
	}
}

func (m *merger) output() MergeOutput {
	out := MergeOutput{Rows: m.sorted(), Dropped: m.dropped, MissingOnce: m.missing, Changed: m.dropped > 0}
	for id, row := range m.rows {
		old := m.before[id]
		if old == nil {
			out.Added++
		}
		out.Changed = out.Changed || old == nil || !SameContent(*old, *row)
	}
	if !out.Changed && m.stale() {
		out.Changed, out.FreshnessOnly = true, true
	}
	return out
}

// stale says whether ScannedAt has grown too old to mean anything.
func (m *merger) stale() bool {
	freshness := m.in.Freshness
	if freshness <= 0 {
		freshness = DefaultFreshness
	}
	return len(m.rows) > 0 && m.in.Now-m.in.LastCommitAt >= freshness.Milliseconds()
}

func (m *merger) sorted() []Row {
	order := slices.SortedFunc(maps.Values(m.rows), func(a, b *Row) int { return a.Compare(b.ID) })
	rows := make([]Row, len(order))
	for i, row := range order {
		rows[i] = *row
	}
	return rows
}
