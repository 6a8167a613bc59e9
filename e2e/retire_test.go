package e2e

import (
	"encoding/json"
	"path/filepath"
	"sort"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/e2e/fleettest"
	"lancefleet/workflows"
)

// cold makes everything cold at once and graces short.
func cold() []string {
	return []string{
		"MAINTENANCE=on", "STATS_COLD_RETIRE_SECS=1", "SEAL_SILENT_FOR=1s", "GENERATION_GRACE_SECS=0",
		// Nothing by itself: each test starts what it looks at.
		"RETIRE_BUDGET=0", "MERGE_BUDGET=0", "COMPACT_BUDGET=0",
	}
}

// rows are pairs of id and rollout id, as interop/rows.py prints them.
type rows struct {
	Listed [][2]string `json:"listed"` // by lance-context
	Base   [][2]string `json:"base"`   // by pylance: the base table alone
}

func promised(t *testing.T, uri string) [][2]string {
	t.Helper()
	var kept map[string]string
	python(t, &kept, "rows.py", "strand", uri)
	pairs := make([][2]string, 0, len(kept))
	for id, run := range kept {
		pairs = append(pairs, [2]string{id, run})
	}
	sort.Slice(pairs, func(i, j int) bool { return pairs[i][0] < pairs[j][0] })
	return pairs
}

func readRows(t *testing.T, uri string) rows {
	t.Helper()
	var there rows
	python(t, &there, "rows.py", "read", uri)
	return there
}

func maintain(t *testing.T, f *fleettest.Fleet, args ...string) workflows.MaintenanceResult {
	t.Helper()
	var result workflows.MaintenanceResult
	require.NoError(t, json.Unmarshal([]byte(f.Client(append(args, "--wait", "--json")...)), &result))
	return result
}

// The whole promise: what lance-context acknowledged, flushed or not, is what it
// and a plain reader find after a retirement; writing again makes it hot again.
func TestARetiredExperimentHasEveryAcknowledgedRowAndReturnsWhenWritten(t *testing.T) {
	f := fleettest.New(t, cold()...)
	uri := uriOf(f, "story")
	want := promised(t, uri)
	f.Worker()
	f.Web()
	f.Scan()
	<-time.After(1100 * time.Millisecond) // to have been silent for a second is a condition of what is tested

	result := maintain(t, f, "retire", "story")
	require.Equal(t, "done", result.Outcome, result.Sentence)

	require.Equal(t, "retired", string(f.Show("story").State))
	round := f.Scan()
	require.Zero(t, round.Hot, "the next round takes the row out")
	there := readRows(t, uri)
	require.Equal(t, want, there.Base, "a plain reader finds what was acknowledged")
	require.Equal(t, want, there.Listed, "lance-context finds what was acknowledged")

	// Looking at it by lance-context moves its shard manifest; it is no write.
	require.Zero(t, f.Scan("--full").Hot, "looking made it hot")

	var nothing struct{}
	python(t, &nothing, "rows.py", "add", uri, "new")
	require.EqualValues(t, 1, f.Scan("--full").Hot, "written again")
	require.Equal(t, "hot", string(f.Show("story").State))
	require.Len(t, readRows(t, uri).Listed, len(want)+1)
}

// A worker that is killed leaves children, half-made passes and open activities of
// several retirements behind. Another one ends them all, and every row is there once.
func TestAWorkerKilledInTheMiddleOfRetirementsLosesNothing(t *testing.T) {
	f := fleettest.New(t, cold()...)
	names := []string{"first", "second", "third", "fourth"}
	want := map[string][][2]string{}
	for _, name := range names {
		want[name] = promised(t, uriOf(f, name))
	}
	worker := f.Worker("HEAVY_SLOTS=2")
	f.Web()
	f.Scan()
	<-time.After(1100 * time.Millisecond) // silent for a second
	for _, name := range names {
		f.Client("retire", name, "--json")
	}
	// The first of them has merged something: its base has moved.
	moved := func() bool {
		for _, name := range names {
			if versions, _ := filepath.Glob(filepath.Join(uriOf(f, name), "_versions", "*.manifest")); len(versions) > 2 {
				return true
			}
		}
		return false
	}
	require.Eventually(t, moved, patience, 5*time.Millisecond)
	worker.Kill()
	f.Worker("HEAVY_SLOTS=2")

	for _, name := range names {
		require.Eventually(t, func() bool { return f.Show(name).State == "retired" }, 3*time.Minute, time.Second, name)
		there := readRows(t, uriOf(f, name))
		require.Equal(t, want[name], there.Base, name)
		require.Equal(t, want[name], there.Listed, name)
	}
}

func uriOf(f *fleettest.Fleet, name string) string {
	return filepath.Join(f.DataDir, name+".rollout.lance")
}
