package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/e2e/fleettest"
	"lancefleet/web"
)

func schedule(t *testing.T, f *fleettest.Fleet) web.Schedule {
	t.Helper()
	_, text := get(t, f.Server()+"/api/v1/schedule")
	var found web.Schedule
	decode(t, text, &found)
	return found
}

func TestTemporalsOwnTogglePausesAndSurvivesRestartsOfEverything(t *testing.T) {
	f := fleettest.New(t, "SCAN_INTERVAL=1")
	f.Make("--experiments", "3")
	worker := f.Worker()
	web := f.Web()

	f.Temporal.CLI("schedule", "toggle", "--schedule-id", "lancefleet-scan", "--pause", "--reason", "quarter end")
	paused := schedule(t, f)
	require.True(t, paused.Paused)
	require.Equal(t, "quarter end", paused.Reason)

	worker.Kill()
	web.Kill()
	f.Temporal.Restart()
	f.Worker()
	f.Web()
	again := schedule(t, f)
	require.True(t, again.Paused, "a restart has resumed rounds")
	require.Equal(t, "quarter end", again.Reason)
	require.Eventually(t, func() bool {
		_, page := get(t, f.Server()+"/")
		return strings.Contains(page, "quarter end")
	}, patience, 100*time.Millisecond, "the list says why there are no rounds")

	// No round starts by itself while paused: three intervals bring none.
	before := again.LastAt
	require.Never(t, func() bool { return !same(before, schedule(t, f).LastAt) }, 3*time.Second, 500*time.Millisecond)

	f.Temporal.CLI("schedule", "toggle", "--schedule-id", "lancefleet-scan", "--unpause", "--reason", "done")
	require.Eventually(t, func() bool { return !same(before, schedule(t, f).LastAt) }, patience, 200*time.Millisecond)
}

func same(a, b *int64) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
