package e2e

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"lancefleet/e2e/fleettest"
	"lancefleet/lance"
)

// examined is what scripts read of `doctor --json`.
type examined struct {
	Checks []struct {
		Check, Status, Found, Means, Do string
	}
	Fail int
}

func examine(t *testing.T, f *fleettest.Fleet, args ...string) (examined, int) {
	t.Helper()
	env := append(append(f.Temporal.Env(), f.Env...), "LANCEFLEET_NATIVE="+fleettest.Native(t), "SCAN_CONCURRENCY=16")
	text, exit := fleettest.Run(t, env, append([]string{"doctor", "--json"}, args...)...)
	var report examined
	require.NoError(t, json.Unmarshal([]byte(text), &report), text)
	return report, exit
}

func statusOf(t *testing.T, r examined, check string) string {
	t.Helper()
	for _, f := range r.Checks {
		if f.Check == check {
			return f.Status
		}
	}
	require.Fail(t, "no check "+check, "%+v", r)
	return ""
}

func TestTheDoctorTellsAFleetThatRunsFromOneThatDoesNot(t *testing.T) {
	f := fleettest.New(t, "SOURCES=folder", "SCAN_INTERVAL=5m")
	_, err := fleetEngine(t).MakeDataset(t.Context(), lance.DatasetSpec{URI: uriOf(f, "a"), Kind: "rollout", Rows: 5, Fragments: 1, Seed: 1})
	require.NoError(t, err)

	report, exit := examine(t, f)
	require.Equal(t, 1, exit, "nobody works")
	require.Equal(t, "fail", statusOf(t, report, "workers"))
	require.Equal(t, "warn", statusOf(t, report, "identity"))
	require.Equal(t, "ok", statusOf(t, report, "conditional writes"))

	f.Worker()
	report, exit = examine(t, f)
	for _, check := range []string{"native library", "data directory", "identity", "sources", "experiments", "conditional writes", "temporal", "namespace", "search attributes", "schedule", "workers", "temporal clock"} {
		require.Equal(t, "ok", statusOf(t, report, check), "%+v", report)
	}
	require.Zero(t, report.Fail, "%+v", report)
	require.Zero(t, exit)

	report, _ = examine(t, f, "--read-only")
	require.Equal(t, "skipped", statusOf(t, report, "conditional writes"))
	report, exit = examine(t, f, "--fleet", "blue")
	require.Equal(t, 1, exit)
	require.Equal(t, "fail", statusOf(t, report, "identity"))
}
