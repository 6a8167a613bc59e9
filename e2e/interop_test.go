package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"lancefleet/e2e/fleettest"
)

// told is what another tool says about an experiment; see interop/produce.py.
type told struct {
	URI       string    `json:"uri"`
	Rows      int64     `json:"rows"`
	Fragments int64     `json:"fragments"`
	Version   int64     `json:"version"`
	Pending   int64     `json:"pending"`
	LastWrite *[2]int64 `json:"last_write"` // earliest, latest; unix ms
}

func python(t *testing.T, into any, script string, args ...string) {
	t.Helper()
	cmd := exec.Command(fleettest.Python(t), append([]string{filepath.Join("interop", script)}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s %v", script, args)
	require.NoError(t, json.Unmarshal(out, into), string(out))
}

func TestWhatOtherToolsWroteIsObservedAsTheySayItIs(t *testing.T) {
	f := fleettest.New(t, "SOURCES=registry,folder")
	var facts map[string]told
	python(t, &facts, "produce.py", f.DataDir)
	require.Len(t, facts, 6)

	f.Worker()
	f.Web()
	round := f.Scan()
	require.EqualValues(t, len(facts), round.Observed)
	require.Zero(t, round.Failed)
	require.Equal(t, len(facts), f.ListOf(round).Total)

	for name, want := range facts {
		t.Run(name, func(t *testing.T) {
			got := f.Show(name)
			require.Equal(t, want.URI, got.URI)
			require.Equal(t, want.Rows, *got.RowCount, "rows")
			require.Equal(t, want.Fragments, *got.FragmentCount, "fragments")
			require.Equal(t, want.Version, *got.Version, "version")
			require.Equal(t, want.Pending, *got.PendingWAL, "pending generations")
			if want.LastWrite != nil {
				require.GreaterOrEqual(t, *got.LastWrite, want.LastWrite[0], "last write")
				require.LessOrEqual(t, *got.LastWrite, want.LastWrite[1], "last write")
			}
		})
	}
	require.Zero(t, f.Scan().Observed, "looking changed something")
}
