package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/e2e/fleettest"
	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/web"
	"lancefleet/workflows"
)

// cold makes everything cold at once and graces short.
func cold() []string {
	return []string{
		"MAINTENANCE=on", "STATS_COLD_RETIRE_SECS=1", "LIVE_WITHIN=1s", "GENERATION_GRACE_SECS=0",
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
	return sorted(kept)
}

func sorted(rows map[string]string) [][2]string {
	pairs := make([][2]string, 0, len(rows))
	for id, run := range rows {
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

// lived is what interop/live.py prints.
type lived struct {
	Acknowledged map[string]string `json:"acknowledged"`
	Writes       int               `json:"writes"`
	Errors       []string          `json:"errors"`
}

// Merging beside a busy writer of lance-context: none of its writes is refused, and
// none of its rows is lost, doubled or set back.
func TestMergingBesideALiveWriterLosesNothing(t *testing.T) {
	const seconds = "20"
	f := fleettest.New(t, cold()...)
	uri := uriOf(f, "busy")
	wrote := make(chan lived, 1)
	go func() {
		defer close(wrote)
		var told lived
		python(t, &told, "live.py", uri, seconds)
		wrote <- told
	}()
	require.Eventually(t, func() bool { _, err := os.Stat(filepath.Join(uri, "_mem_wal")); return err == nil }, patience, 10*time.Millisecond)
	f.Worker()
	f.Web()
	f.Scan()

	var told lived
	var merges []int64 // versions of the base, merge by merge
	for writing := true; writing; {
		select {
		case told = <-wrote:
			writing = false
		default:
			if result := maintain(t, f, "optimize", "busy"); result.Outcome == "done" {
				merges = append(merges, result.After.Version)
			}
		}
	}
	require.Empty(t, told.Errors, "the writer was disturbed")
	require.Greater(t, told.Writes, 100)
	require.Greater(t, len(merges), 1, "merges beside the writer")

	<-time.After(1100 * time.Millisecond) // silent for a second
	require.Equal(t, "done", maintain(t, f, "retire", "busy").Outcome)
	there := readRows(t, uri)
	require.Equal(t, sorted(told.Acknowledged), there.Base)
	require.Equal(t, sorted(told.Acknowledged), there.Listed)
	t.Logf("%d writes, %d rows, %d merges beside them, base versions %v", told.Writes, len(told.Acknowledged), len(merges), merges)
}

// On object storage, what only writers of Lance 14 leave behind: several shards, all
// of them orphans, deletes, and entries that were never flushed.
func TestOrphansDeletesAndStrandedEntriesAreRetiredOnS3(t *testing.T) {
	b := newBucket(t, cold()...)
	facts, err := b.engine.MakeDataset(t.Context(), lance.DatasetSpec{
		URI: b.uri("many"), Kind: fleet.Rollout, Shards: 3, Generations: 4, Rows: 6, Fragments: 5, Tombstones: true, Stranded: true, Seed: 11,
	})
	require.NoError(t, err)
	require.Positive(t, facts.Tombstones)
	require.Positive(t, facts.StrandedRows)
	b.register("many")
	b.Worker()
	b.Web()
	b.Scan()

	// Right after its last write its stranded entries may still be somebody's.
	out, exit := b.TryClient("verify", "many", "--json")
	require.Equal(t, 1, exit, "something is pending")
	var seen web.Verification
	require.NoError(t, json.Unmarshal([]byte(out), &seen))
	require.Equal(t, facts.Generations, seen.Pending)
	require.Positive(t, seen.Stranded)
	require.NotEmpty(t, seen.Blocking)

	<-time.After(1100 * time.Millisecond) // silent for a second
	result := maintain(t, b.Fleet, "retire", "many")
	require.Equal(t, "done", result.Outcome, result.Sentence)
	require.NoError(t, json.Unmarshal([]byte(b.Client("verify", "many", "--deep", "--json")), &seen))
	require.True(t, seen.Clean)
	require.Equal(t, facts.Keys+facts.StrandedRows, seen.Rows, "every acknowledged row, once")
	require.Equal(t, seen.Rows, seen.DistinctKeys)
	require.Len(t, seen.Shards, 3)
	require.EqualValues(t, 1, seen.Fragments)
	require.Equal(t, web.State("retired"), seen.State)
}

// Somebody removes a shard and writes on under its id: its generations count from 1
// again, past the mark of those that were merged before. None of them is taken for
// merged, however far they count.
func TestAShardThatWasMadeAnewIsNeverTakenForMerged(t *testing.T) {
	f := fleettest.New(t, cold()...)
	uri := uriOf(f, "anew")
	var nothing struct{}
	for i := range 3 {
		python(t, &nothing, "rows.py", "add", uri, fmt.Sprintf("old-%d", i))
	}
	f.Worker()
	f.Web()
	f.Scan()
	<-time.After(1100 * time.Millisecond) // silent for a second
	require.Equal(t, "done", maintain(t, f, "retire", "anew").Outcome)

	shards, err := filepath.Glob(filepath.Join(uri, "_mem_wal", "*"))
	require.NoError(t, err)
	require.Len(t, shards, 1)
	require.NoError(t, os.RemoveAll(shards[0]))
	for i := range 8 {
		python(t, &nothing, "rows.py", "add", uri, fmt.Sprintf("new-%d", i))
	}
	want := readRows(t, uri).Listed
	require.Len(t, want, 11)

	f.Scan("--full")
	<-time.After(1100 * time.Millisecond) // silent for a second
	out, exit := f.TryClient("retire", "anew", "--wait", "--json")
	require.Equal(t, 1, exit, out)
	require.Contains(t, out, "made anew")
	require.Equal(t, want, readRows(t, uri).Listed, "a row was lost")
	require.Equal(t, web.State("hot"), f.Show("anew").State)

	accepted(t, f, "anew", want)
}
