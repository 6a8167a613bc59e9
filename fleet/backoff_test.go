package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var fiveMinutes = DefaultBackoff(5 * time.Minute)

func TestAFailureKeepsTheOldNumbers(t *testing.T) {
	prev := Row{Experiment: exp1, Known: true, RowCount: 5, ScannedAt: 10, ObservedAt: 9, Fingerprint: Fingerprint{Version: 4}}
	row := Failed(exp1, &prev, "denied", "access denied", noon, fiveMinutes)
	assert.True(t, sameNumbers(prev, row))
	assert.EqualValues(t, 10, row.ScannedAt, "nothing was confirmed")
	assert.EqualValues(t, 1, row.Failures)
	assert.Equal(t, noon, row.FailingSince)
	assert.Equal(t, "denied", row.ErrorClass)
	assert.Equal(t, "access denied", row.Error)
	assert.Equal(t, noon+5*min1, row.NextAttemptAt)
	assert.Zero(t, prev.Failures, "the old row is not touched")
}

func TestAnExperimentThatFailsBeforeItWasEverObservedHasARowWithoutNumbers(t *testing.T) {
	row := Failed(exp1, nil, "gone", "no manifest", noon, fiveMinutes)
	assert.False(t, row.Known)
	assert.EqualValues(t, -1, row.RowCount)
	assert.EqualValues(t, -1, row.PendingWAL)
	assert.Equal(t, exp1, row.Experiment)
}

func TestARowThatCannotFollowItsSourceKeepsTheURIItsNumbersBelongTo(t *testing.T) {
	moved := exp1
	moved.URI = "s3://bucket/x"
	prev := Row{Experiment: exp1, Known: true, RowCount: 5}
	row := Failed(moved, &prev, "denied", "access denied", noon, fiveMinutes)
	assert.Equal(t, exp1.URI, row.URI)
	assert.Equal(t, moved.URI, row.FailedURI)
	unseen := Failed(exp1, nil, "gone", "no manifest", noon, fiveMinutes)
	assert.Equal(t, moved.URI, Failed(moved, &unseen, "gone", "no manifest", noon+1, fiveMinutes).URI)
}

// rounds runs one experiment that always fails through n rounds and returns those
// in which it was asked. Without commits the row is never stored after its first
// failure.
func roundsAsked(n int, interval time.Duration, class string, commit func(round int) bool) []int {
	var stored *Row
	var asked []int
	policy := DefaultProbePolicy(interval)
	var last int64
	for i := range n {
		clock := RoundClock{Number: int64(i), Now: noon + int64(i)*interval.Milliseconds(), LastRoundAt: last}
		last = clock.Now
		if PlanProbe(stored, exp1, clock, policy).Skip {
			continue
		}
		asked = append(asked, i)
		row := Failed(exp1, stored, class, "", clock.Now+2000, policy.Backoff)
		if stored == nil || commit(i) {
			stored = &row
		}
	}
	return asked
}

func TestAFailingExperimentIsAskedLessAndLessOftenUpToOnceAnHour(t *testing.T) {
	always := func(int) bool { return true }
	for _, class := range []string{"unreachable", "gone", "corrupt", "unsupported", "denied", "timeout"} {
		asked := roundsAsked(60, 5*time.Minute, class, always)
		assert.Equal(t, []int{0, 1, 3, 7, 15, 27, 39, 51}, asked, class)
	}
}

func TestBackOffAlsoGrowsWhenNothingElseGivesAReasonToCommit(t *testing.T) {
	never := func(int) bool { return false }
	assert.Equal(t, []int{0, 1, 3, 7, 15, 27, 39, 51}, roundsAsked(60, 5*time.Minute, "gone", never))
	everyThird := func(round int) bool { return round%3 == 0 }
	assert.LessOrEqual(t, len(roundsAsked(60, 5*time.Minute, "gone", everyThird)), 9)
}

func TestTheWaitIsNeverLongerThanAnHourNorShorterThanAnInterval(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := DefaultBackoff(time.Duration(rapid.Int64Range(1, 3600).Draw(t, "interval")) * time.Second)
		since := rapid.Int64Range(0, 1000*hour).Draw(t, "failing for")
		prev := Failed(exp1, nil, "gone", "", noon, p)
		row := Failed(exp1, &prev, "gone", "", noon+since, p)
		wait := row.NextAttemptAt - (noon + since)
		assert.LessOrEqual(t, wait, hour)
		assert.GreaterOrEqual(t, wait, min(p.Interval.Milliseconds(), hour))
		assert.EqualValues(t, 2, row.Failures)
		assert.Equal(t, noon, row.FailingSince)
	})
}

func TestAnHourWithoutRoundsDoesNotDelayTheNextAttempt(t *testing.T) {
	row := Failed(exp1, nil, "gone", "", noon, fiveMinutes)
	clock := RoundClock{Now: noon + 3*hour, LastRoundAt: noon}
	assert.False(t, PlanProbe(&row, exp1, clock, DefaultProbePolicy(5*time.Minute)).Skip)
}

func TestAFailingRowWithoutATimeIsAskedAtOnce(t *testing.T) {
	row := UnknownRow(exp1)
	row.Failures = 3
	assert.False(t, PlanProbe(&row, exp1, RoundClock{Now: noon, LastRoundAt: noon - 1}, ProbePolicy{}).Skip)
}

func TestTheNextAttemptIsNeverInThePastAlthoughFailuresAloneAreNotCommitted(t *testing.T) {
	p := DefaultBackoff(5 * time.Minute)
	at := func(minutes int64) int64 { return noon + minutes*min1 }
	row := Failed(exp1, nil, "unreachable", "no answer", at(0), p)
	asked := row // as the worker knows it; the row above is what was committed
	for now := at(1); now < at(600); now += min1 {
		next := row.NextAttempt(now)
		require.Greater(t, next, now)
		if now >= asked.NextAttemptAt {
			asked = Failed(exp1, &asked, "unreachable", "no answer", asked.NextAttemptAt, p)
		}
		require.Equal(t, asked.NextAttemptAt, next, "%d min", (now-noon)/min1)
	}
	require.Equal(t, row.NextAttemptAt, row.NextAttempt(at(1)))
	require.Zero(t, (&Row{}).NextAttempt(at(1)))
	require.Equal(t, at(5), (&Row{NextAttemptAt: at(5)}).NextAttempt(at(9)), "a row that does not say how it backs off")

	d := Decide(row, DefaultPolicy(), History{}, at(7))
	require.Equal(t, "unreachable since 12:00, next try by 12:15: no answer", d.Reason)
	require.Equal(t, at(15), d.NotBefore)
	bare := row
	bare.FailedAt = 0
	require.Contains(t, Decide(bare, DefaultPolicy(), History{}, at(7)).Reason, "next try with the next round")
}
