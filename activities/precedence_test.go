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
		require.Equal(t, 3*time.Second, took(t.Context()), "until the last activity is done")

		done := p.round()
		require.Equal(t, mostYield, took(t.Context()), "a long round shares")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.Equal(t, time.Second, took(ctx), "a step that is cancelled does not wait")

		for range 3 { // all who wait go on
			go func() { p.yield(context.Background()) }()
		}
		synctest.Wait()
		done()
		synctest.Wait()
		require.Zero(t, took(t.Context()))
	})
}

func TestStepsOfMaintenanceYieldBeforeTheyBegin(t *testing.T) {
	w := newWorld("a").seen()
	m := w.maintenance(&fakeHeavy{fakeWorld: w, verify: func() (fleet.Evidence, error) { return w.evidence(1), nil }})
	start := m.StartHeavy
	m.StartHeavy = func(ctx context.Context) (Heavy, error) {
		require.Nil(t, m.Scan.first.whenQuiet(), "a process is started when no round works here")
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
		done, ended := m.Scan.first.round(), make(chan struct{})
		go func() { defer close(ended); begin() }()
		waits := func() bool {
			m.Scan.first.mu.Lock()
			defer m.Scan.first.mu.Unlock()
			return m.Scan.first.quiet != nil
		}
		require.Eventually(t, waits, 10*time.Second, time.Millisecond, step)
		done()
		<-ended
	}
}
