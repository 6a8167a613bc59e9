package fleet

import "slices"

// Row is what `_stats` keeps of one experiment. The first ten fields after the
// experiment are lance-context's columns with its meaning; the rest is ours and
// nullable in the table: a table without a column reads as unknown.
type Row struct {
	Experiment

	RowCount         int64 // base + pending rows; -1 unknown
	FragmentCount    int64 // -1 unknown
	LastWrite        int64 // upstream `last_updated`: when rows last arrived by any path, unix ms; 0 unknown
	PendingWAL       int64 // upstream `pending_wal_generations`; -1 unknown
	LastCompaction   int64 // unix ms; -1 never
	TotalCompactions int64
	ScannedAt        int64 // when a round or refresh last confirmed this row, unix ms
	Version          int64 // base version; -1 unknown

	Known bool // observed at least once: without it the numbers mean nothing

	RowsExact       bool  // RowCount is exact; else an upper bound: keys may repeat between base and WAL
	PendingRows     int64 // -1 unknown
	SmallFragments  int64 // -1 unknown
	DeletedRows     int64 // -1 unknown
	Bytes           int64 // -1 unknown
	TailEntries     int64 // WAL entries with rows past the flush cursor, all shards; -1 unknown
	StrandedEntries int64 // proven to be in no generation and not in the base; -1 unknown (not classified)
	LastMaintenance int64 // newest maintenance commit, by anybody; -1 never seen
	LastBaseWrite   int64 // newest base commit that is not maintenance; 0 none or unknown
	ObservedAt      int64 // last full observation; 0 never
	Fingerprint     Fingerprint
	Shards          []Shard
	Indexes         []string
	Tags            []string
	Branches        []string

	Failures      int64  // observations that failed in a row; a lower bound, see SameContent
	FailingSince  int64  // unix ms; 0 = not failing
	FailedAt      int64  // last failed attempt, unix ms; 0 never
	FailedURI     string // that the last failed attempt asked; differs from URI when the source moved it
	NextAttemptAt int64  // not asked before this; unix ms
	ErrorClass    string // class of the last failure, see native/README.md
	Error         string // its sentence

	MissingRounds int64 // rounds in a row in which the source did not name it: 0 or 1, the second drops the row
	MissingSince  int64 // start of the round that first missed it, unix ms; 0 = it is named
	MissingSeenAt int64 // when that was committed; only a round started later can drop the row
}

// UnknownRow is the row of an experiment that nobody has observed: every number
// is unknown, none is 0.
func UnknownRow(exp Experiment) Row {
	return Row{
		Experiment:      exp,
		RowCount:        -1,
		FragmentCount:   -1,
		PendingWAL:      -1,
		LastCompaction:  -1,
		Version:         -1,
		PendingRows:     -1,
		SmallFragments:  -1,
		DeletedRows:     -1,
		Bytes:           -1,
		TailEntries:     -1,
		StrandedEntries: -1,
		LastMaintenance: -1,
	}
}

// Failing says whether the last attempt to observe it gave no answer.
func (r *Row) Failing() bool { return r.Failures > 0 }

// Confirmed is the row after a probe found its fingerprint unchanged: scanned
// now, and no longer failing.
func Confirmed(row Row, now int64) Row {
	row.ScannedAt = max(row.ScannedAt, now)
	return clearFailure(row)
}

func clearFailure(row Row) Row {
	row.Failures, row.FailingSince, row.NextAttemptAt, row.FailedAt = 0, 0, 0, 0
	row.FailedURI, row.ErrorClass, row.Error = "", "", ""
	return row
}

// SameContent says whether two rows tell a reader the same. Times of looking
// (ScannedAt, ObservedAt, MissingSince, ...), failure counters and the wording of
// an error are no content; to begin or cease to fail, and its class, are.
func SameContent(a, b Row) bool {
	return a.Failing() == b.Failing() && a.ErrorClass == b.ErrorClass &&
		a.MissingRounds == b.MissingRounds && sameNumbers(a, b)
}

// sameNumbers compares what an observation measures.
func sameNumbers(a, b Row) bool {
	return a.Fingerprint.Equal(b.Fingerprint) && slices.Equal(a.Shards, b.Shards) &&
		slices.Equal(a.Indexes, b.Indexes) && slices.Equal(a.Tags, b.Tags) &&
		slices.Equal(a.Branches, b.Branches) && scalarsOf(a) == scalarsOf(b)
}

// scalars are the measured fields of a Row that == can compare.
type scalars struct {
	exp                                            Experiment
	rows, fragments, lastWrite, pending, version   int64
	lastCompaction, totalCompactions               int64
	known, exact                                   bool
	pendingRows, small, deleted, bytes             int64
	tail, stranded, lastMaintenance, lastBaseWrite int64
}

func scalarsOf(r Row) scalars {
	return scalars{
		exp: r.Experiment, known: r.Known, exact: r.RowsExact,
		rows: r.RowCount, fragments: r.FragmentCount, lastWrite: r.LastWrite,
		pending: r.PendingWAL, version: r.Version,
		lastCompaction: r.LastCompaction, totalCompactions: r.TotalCompactions,
		pendingRows: r.PendingRows, small: r.SmallFragments, deleted: r.DeletedRows, bytes: r.Bytes,
		tail: r.TailEntries, stranded: r.StrandedEntries,
		lastMaintenance: r.LastMaintenance, lastBaseWrite: r.LastBaseWrite,
	}
}
