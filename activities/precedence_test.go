package activities

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
	"lancefleet/workflows"
)

func TestMaintenanceYieldsToRoundsAndNotForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p precedence
		took := func(ctx context.Context) time.Duration {
			began := time.Now()
			p.yield(ctx)
			return time.Since(began)
		}
		require.Zero(t, took(t.Context()), "no round works here")

		first, second := p.round(), p.round()
		time.AfterFunc(time.Second, first)
		time.AfterFunc(3*time.Second, second)
		require.Equal(t, 3*time.Second+betweenActivities, took(t.Context()), "until the last activity is done, and no other came")

		page := p.round()
		page()
		commit := p.round()
		time.AfterFunc(500*time.Millisecond, commit)
		record := p.ends()
		time.AfterFunc(2*time.Second, record)
		require.Equal(t, 2*time.Second, took(t.Context()), "the last one ends the round")
		require.Zero(t, took(t.Context()))

		long := p.round()
		require.Equal(t, mostYield, took(t.Context()), "a long round shares")
		require.Zero(t, took(t.Context()), "with those, too, that come later")
		long()
		require.Zero(t, took(t.Context()), "nor does it go first between its activities")
		<-time.After(betweenActivities)

		done := p.round()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.Equal(t, time.Second, took(ctx), "a step that is cancelled does not wait")
		for range 3 { // all who wait go on
			go func() { p.yield(context.Background()) }()
		}
		synctest.Wait()
		done()
		<-time.After(betweenActivities)
		synctest.Wait()
		require.Zero(t, took(t.Context()))
	})
}

func TestNoStepBeginsJustBeforeARoundIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p precedence
		took := func() time.Duration {
			began := time.Now()
			p.yield(t.Context())
			return time.Since(began)
		}
		round := func(every time.Duration) {
			begin := p.begins(every)
			begin()
			p.ends()()
		}
		round(time.Minute)
		require.Zero(t, took(), "the next one is far")
		<-time.After(time.Minute - mostLead - 1)
		require.Zero(t, took())
		<-time.After(1)
		require.Equal(t, 2*mostLead, took(), "one that does not come is not waited for any longer")

		round(time.Minute)
		<-time.After(time.Minute - time.Second)
		time.AfterFunc(time.Second, func() { round(time.Minute) })
		require.Equal(t, time.Second, took(), "one that came is over")

		round(time.Second)
		<-time.After(time.Second - time.Second/leadShare - 1)
		require.Zero(t, took(), "where rounds are close, so is what keeps steps back")
		<-time.After(1)
		require.Equal(t, 2*time.Second/leadShare, took())

		round(time.Minute)
		<-time.After(30 * time.Second)
		round(0)
		<-time.After(29 * time.Second)
		require.Equal(t, 3*time.Second, took(), "one that was asked for moves no schedule")
	})
}

func TestStepsOfMaintenanceYieldBeforeTheyBegin(t *testing.T) {
	w := newWorld("a").seen()
	m := w.maintenance(&fakeHeavy{fakeWorld: w, verify: func() (fleet.Evidence, error) { return w.evidence(1), nil }})
	start := m.StartHeavy
	m.StartHeavy = func(ctx context.Context) (Heavy, error) {
		_, wait := m.Scan.first.wait(time.Now())
		require.Zero(t, wait, "a process is started when no round works here")
		return start(ctx)
	}
	for step, begin := range map[string]func(){
		"prepare": func() {
			_, err := do[workflows.Prepared](t, m.PrepareMaintenance, workflows.PrepareInput{Args: maintenanceArgs("a"), Action: workflows.ActionOptimize})
			require.NoError(t, err)
		},
		"verify": func() {
			_, err := do[fleet.Evidence](t, m.VerifyZeroPending, workflows.VerifyInput{Target: workflows.Target{FleetID: "fleet", ID: exp("a").ID, URI: exp("a").URI}})
			require.NoError(t, err)
		},
	} {
		done, ended := m.Scan.first.ends(), make(chan struct{})
		go func() { defer close(ended); begin() }()
		waits := func() bool {
			m.Scan.first.mu.Lock()
			defer m.Scan.first.mu.Unlock()
			return m.Scan.first.moved != nil
		}
		require.Eventually(t, waits, 10*time.Second, time.Millisecond, step)
		done()
		<-ended
	}
}

func TestARoundGoesFirstFromItsFirstActivityToItsLast(t *testing.T) {
	w := newWorld("a").seen()
	s := w.scan()
	held := func() time.Duration {
		_, wait := s.first.wait(time.Now())
		return wait
	}
	for by, due := range map[string]bool{"": true, "alice": false} {
		s.first = precedence{}
		_, err := do[workflows.Round](t, s.BeginRound, workflows.ScanArgs{FleetID: "fleet", IntervalSecs: 60, By: by})
		require.NoError(t, err)
		require.Positive(t, held(), "between the first and the next")
		require.Equal(t, due, s.first.due.has(time.Now().Add(time.Minute)), "only the schedule's own say when the next comes")
	}
	_, err := do[struct{}](t, s.RecordRound, fleet.RoundRecord{RoundID: "run", Number: 3})
	require.NoError(t, err)
	require.Zero(t, held(), "after the last")
}

func TestSomebodyWhoWaitsForAWakeWaitsForNoRound(t *testing.T) {
	w := newWorld("a").seen()
	m := w.maintenance(nil)
	defer m.Scan.first.round()()
	began := time.Now()
	_, err := do[workflows.WakeResult](t, m.WakeExperiment, maintenanceArgs("a"))
	require.NoError(t, err)
	require.Less(t, time.Since(began), mostYield/2)
}
