package fleet

import (
	"cmp"
	"encoding/json"
	"slices"
)

// lookedAt is the newest time at which somebody whom a source had named it to
// looked at the experiment, with or without an answer.
func lookedAt(r *Row) int64 { return max(r.ScannedAt, r.FailedAt) }

// Join combines two rows of one experiment: the numbers of the newer observation,
// the failure state of the newer attempt, the larger of what only grows (last
// writes too: an id moved to another uri just retires later). It is
// commutative, associative and idempotent but for the marks of missing rounds,
// which stay as a has them: only a listing can tell.
func Join(a, b Row) Row {
	row := a
	if compareObservation(b, a) > 0 {
		row = b
	}
	row = withFailureOf(row, a)
	if compareAttempt(b, a) > 0 {
		row = withFailureOf(row, b)
	}
	row.ScannedAt = max(a.ScannedAt, b.ScannedAt)
	row.LastCompaction = max(a.LastCompaction, b.LastCompaction)
	row.TotalCompactions = max(a.TotalCompactions, b.TotalCompactions)
	if a.Known && b.Known {
		row.LastWrite = max(a.LastWrite, b.LastWrite)
		row.LastBaseWrite = max(a.LastBaseWrite, b.LastBaseWrite)
		row.LastMaintenance = max(a.LastMaintenance, b.LastMaintenance)
	}
	row.MissingRounds, row.MissingSince, row.MissingSeenAt = a.MissingRounds, a.MissingSince, a.MissingSeenAt
	return row
}

// compareObservation orders by ObservedAt, and rows that were never observed by
// when somebody last looked. Different rows of the same moment need some order,
// any, so that all agree on the winner. ScannedAt can't give it: a joined row has
// the newest of both, also where that came with older numbers.
func compareObservation(a, b Row) int {
	newer := cmp.Compare(a.ObservedAt, b.ObservedAt)
	if newer == 0 && a.ObservedAt == 0 {
		newer = cmp.Compare(lookedAt(&a), lookedAt(&b))
	}
	if newer != 0 || sameNumbers(a, b) {
		return newer
	}
	return compareText(a, b)
}

// compareAttempt orders by when somebody last looked.
func compareAttempt(a, b Row) int {
	return cmp.Or(
		cmp.Compare(lookedAt(&a), lookedAt(&b)),
		cmp.Compare(a.FailedAt, b.FailedAt),
		cmp.Compare(a.Failures, b.Failures),
		cmp.Compare(a.FailingSince, b.FailingSince),
		cmp.Compare(a.NextAttemptAt, b.NextAttemptAt),
		cmp.Compare(a.ErrorClass, b.ErrorClass),
		cmp.Compare(a.Error, b.Error),
		cmp.Compare(a.FailedURI, b.FailedURI),
	)
}

func withFailureOf(row, from Row) Row {
	row.Failures, row.FailingSince, row.FailedAt = from.Failures, from.FailingSince, from.FailedAt
	row.FailedURI, row.NextAttemptAt = from.FailedURI, from.NextAttemptAt
	row.ErrorClass, row.Error = from.ErrorClass, from.Error
	return row
}

// compareText is the slow last resort, over what only an observation tells: what
// Join takes from elsewhere must not decide. Rows are plain values: they encode.
func compareText(a, b Row) int {
	left, _ := json.Marshal(observedOnly(a))  //nolint:errchkjson // plain values
	right, _ := json.Marshal(observedOnly(b)) //nolint:errchkjson // plain values
	return slices.Compare(left, right)
}

func observedOnly(r Row) Row {
	r = withFailureOf(r, Row{})
	r.ScannedAt, r.LastCompaction, r.TotalCompactions = 0, 0, 0
	r.LastWrite, r.LastBaseWrite, r.LastMaintenance = 0, 0, 0
	r.MissingRounds, r.MissingSince, r.MissingSeenAt = 0, 0, 0
	return r
}
