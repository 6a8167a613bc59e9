package fleet

import "time"

// BackoffPolicy says how long an experiment that could not be observed is left alone.
type BackoffPolicy struct {
	Interval time.Duration // after the first failure, usually that between rounds; 0 = 5 min
	Cap      time.Duration // at most; 0 = 1 h
}

// DefaultBackoff starts with the given interval and stops growing at one hour.
func DefaultBackoff(interval time.Duration) BackoffPolicy {
	return BackoffPolicy{Interval: interval, Cap: time.Hour}
}

// Failed is the row of an experiment that was asked and gave no answer: the old
// numbers, and one more failure. Every class backs off, permanent ones too: what
// is gone or corrupt today may be mended by its owner tomorrow.
//
// When the source names another uri than the row's, the row keeps its own: its
// numbers and fingerprint belong to it. FailedURI remembers which one was asked.
func Failed(exp Experiment, prev *Row, class, sentence string, now int64, p BackoffPolicy) Row {
	row := UnknownRow(exp)
	if prev != nil {
		row = *prev
	}
	if !row.Known {
		row.Experiment = exp
	}
	if row.Failures == 0 || row.FailingSince == 0 {
		row.FailingSince = now
	}
	row.Failures++
	row.FailedAt, row.FailedURI = now, exp.URI
	row.ErrorClass, row.Error = class, sentence
	row.NextAttemptAt = now + p.wait(now-row.FailingSince)
	return row
}

// wait is as long again as it has been failing, plus one interval: 1, 2, 4, 8
// intervals when each attempt is made in time. It needs no counter, so attempts
// whose count was never committed don't slow the back-off down.
func (p BackoffPolicy) wait(failingMS int64) int64 {
	return min(max(failingMS, 0)+p.interval(), p.limit())
}

// due says whether a failing row is asked in a round at now (unix ms). Rounds
// start and reach a page a little earlier or later than an interval apart: a tenth
// of an interval early is in time.
func (p BackoffPolicy) due(row *Row, now, lastRoundAt int64) bool {
	early := p.interval() / 10
	return now+early >= p.nextAttempt(row, lastRoundAt+early)
}

// nextAttempt is when a failing row is asked again. Failure counters alone are no
// reason to commit, so a row may say "due" although a finished round has asked it
// since: such attempts are stepped over.
func (p BackoffPolicy) nextAttempt(row *Row, asked int64) int64 {
	if row.NextAttemptAt <= 0 {
		return 0
	}
	next := row.NextAttemptAt
	for next <= asked {
		next += p.wait(next - row.FailingSince)
	}
	return next
}

// NextAttempt is when a failing experiment is asked again at the latest, as seen at
// now; 0 = with the next round. The row's own time may have passed: another failure
// alone is no reason to commit, and the back-off has moved on since. How it moves on
// is in the row too.
func (r *Row) NextAttempt(now int64) int64 {
	if r.NextAttemptAt > now || r.NextAttemptAt <= 0 || r.FailedAt <= 0 || r.FailingSince <= 0 {
		return r.NextAttemptAt
	}
	interval := (r.NextAttemptAt - r.FailedAt) - (r.FailedAt - r.FailingSince) // less where it is capped: then it does not matter
	return BackoffPolicy{Interval: time.Duration(interval) * time.Millisecond}.nextAttempt(r, now)
}

// interval in ms, at least 1 so that a wait always moves on.
func (p BackoffPolicy) interval() int64 {
	if p.Interval <= 0 {
		return (5 * time.Minute).Milliseconds()
	}
	return max(p.Interval.Milliseconds(), 1)
}

func (p BackoffPolicy) limit() int64 {
	if p.Cap <= 0 {
		return time.Hour.Milliseconds()
	}
	return max(p.Cap.Milliseconds(), 1)
}
