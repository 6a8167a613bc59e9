package fleet

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

// seen is a healthy row, confirmed five minutes and observed an hour before noon.
func seen(id ID) Row {
	return Row{
		Experiment: Experiment{ID: id, URI: "/data/" + id.Folder()}, Known: true,
		ObservedAt: noon - hour, ScannedAt: noon - 5*min1, Fingerprint: Fingerprint{Version: 4},
	}
}

func TestWhatARoundDoesWithOneExperiment(t *testing.T) {
	id := ID{Rollout, "x"}
	policy := DefaultProbePolicy(5 * time.Minute)
	light := RoundClock{Now: noon, Number: lightRound(id)}
	deep := RoundClock{Now: noon, Number: lightRound(id) + 1}
	with := func(change func(*Row)) *Row {
		row := seen(id)
		change(&row)
		return &row
	}
	moved := func(r *Row) { r.URI = "s3://elsewhere/x" }
	failing := func(next int64) func(*Row) {
		return func(r *Row) {
			r.Failures, r.FailingSince, r.FailedAt, r.NextAttemptAt, r.FailedURI = 1, noon-min1, noon-min1, next, r.URI
		}
	}
	both := func(a, b func(*Row)) func(*Row) { return func(r *Row) { a(r); b(r) } }
	none := func(*Row) {}
	for why, c := range map[string]struct {
		row   *Row
		clock RoundClock
		want  ProbePlan // without Why
	}{
		"never seen is observed":                    {nil, light, ProbePlan{Observe: true}},
		"stored by lance-context only is observed":  {with(func(r *Row) { r.Known, r.Fingerprint = false, Fingerprint{} }), light, ProbePlan{Observe: true}},
		"known without a fingerprint is observed":   {with(func(r *Row) { r.Fingerprint = Fingerprint{} }), light, ProbePlan{Observe: true}},
		"another uri is observed":                   {with(moved), light, ProbePlan{Observe: true}},
		"a full round observes":                     {with(none), RoundClock{Now: noon, Full: true}, ProbePlan{Observe: true}},
		"a full round forgets back-offs":            {with(failing(noon + hour)), RoundClock{Now: noon, Full: true}, ProbePlan{Observe: true}},
		"failing and not yet due is skipped":        {with(failing(noon + hour)), light, ProbePlan{Skip: true}},
		"failing and due is probed":                 {with(failing(noon)), light, ProbePlan{}},
		"failing but its source moved it":           {with(both(failing(noon+hour), moved)), light, ProbePlan{Observe: true}},
		"older than a day is observed":              {with(func(r *Row) { r.ObservedAt = noon - 24*hour }), light, ProbePlan{Observe: true}},
		"younger than three quarters of a day":      {with(func(r *Row) { r.ObservedAt = noon - 18*hour + 1 }), light, ProbePlan{}},
		"an ordinary round probes lightly":          {with(none), light, ProbePlan{}},
		"every fourth round probes deeply":          {with(none), deep, ProbePlan{Deep: true}},
		"deep where tags exist lists":               {with(func(r *Row) { r.Fingerprint.Refs = true }), deep, ProbePlan{Deep: true, ListVersions: true}},
		"deep where versions have gaps lists":       {with(func(r *Row) { r.Fingerprint.Gaps = true }), deep, ProbePlan{Deep: true, ListVersions: true}},
		"light where tags exist stays light":        {with(func(r *Row) { r.Fingerprint.Refs = true }), light, ProbePlan{}},
		"half a day without an answer lists":        {with(func(r *Row) { r.ScannedAt = noon - 12*hour }), light, ProbePlan{Deep: true, ListVersions: true}},
		"a little less than half a day stays light": {with(func(r *Row) { r.ScannedAt = noon - 12*hour + 1 }), light, ProbePlan{}},
	} {
		t.Run(why, func(t *testing.T) {
			exp := seen(id).Experiment
			if why == "failing but its source moved it" {
				exp.URI = "s3://a-third-place/x"
			}
			got := PlanProbe(c.row, exp, c.clock, policy)
			assert.NotEmpty(t, got.Why)
			got.Why = ""
			assert.Equal(t, c.want, got)
		})
	}
}

// lightRound is the number of a round before one that probes id deeply.
func lightRound(id ID) int64 {
	return int64(3 - stagger(id)%4)
}

func TestEachExperimentIsProbedDeeplyOnceInFourRounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		row := seen(drawID(t))
		first := rapid.Int64Range(0, 1<<40).Draw(t, "round")
		deep := 0
		for i := range int64(4) {
			deep += int(count(PlanProbe(&row, row.Experiment, RoundClock{Now: noon, Number: first + i}, ProbePolicy{}).Deep))
		}
		assert.Equal(t, 1, deep)
	})
}

func TestAboutAQuarterOfTheFleetIsProbedDeeplyEachRound(t *testing.T) {
	for round := range int64(4) {
		deep := 0
		for i := range 10_000 {
			row := seen(ID{Rollout, fmt.Sprintf("experiment-%05d", i)})
			deep += int(count(PlanProbe(&row, row.Experiment, RoundClock{Now: noon, Number: round}, ProbePolicy{}).Deep))
		}
		assert.InDelta(t, 2500, deep, 250)
	}
}

func TestADailyObservationOfAFleetRegisteredAtOnceIsSpreadOverHours(t *testing.T) {
	const interval = 5 * min1
	perRound := make(map[int64]int)
	for i := range 10_000 {
		age := fullAfter(ID{Rollout, fmt.Sprintf("experiment-%05d", i)}, 24*time.Hour)
		assert.Greater(t, age, 18*hour-1)
		assert.LessOrEqual(t, age, 24*hour)
		perRound[age/interval]++
	}
	for _, n := range perRound {
		assert.Less(t, n, 250, "of 10,000 in one round")
	}
}
