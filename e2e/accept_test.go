package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/e2e/fleettest"
	"lancefleet/web"
)

// accepted decides about an experiment that merges refuse: its base table then holds
// the wanted rows, and it retires as any other.
func accepted(t *testing.T, f *fleettest.Fleet, name string, want [][2]string) {
	t.Helper()
	uri := uriOf(f, name)
	var plan web.MaintenancePlan
	require.NoError(t, json.Unmarshal([]byte(f.Client("accept", name, "--dry-run", "--json")), &plan))
	require.True(t, plan.Start, plan.Reason)
	require.Len(t, plan.Accept.Shards, 1)
	t.Log(plan.Accept.Shards[0].Sentences)
	require.Equal(t, want, readRows(t, uri).Listed, "looking changed something")

	result := maintain(t, f, "accept", name, "--yes", "--by", "ada", "--why", "it was meant so")
	require.Equal(t, "done", result.Outcome, result.Sentence)
	there := readRows(t, uri)
	require.Equal(t, want, there.Base, "a plain reader finds what lance-context listed before")
	require.Equal(t, want, there.Listed)

	var history web.History
	require.NoError(t, json.Unmarshal([]byte(f.Client("history", name, "--json")), &history))
	require.Equal(t, "accept", history.Actions[0].Kind)
	require.Equal(t, "ada", history.Actions[0].By)
	require.Contains(t, history.Actions[0].Why, "it was meant so")
	_, exit := f.TryClient("accept", name, "--yes", "--why", "again")
	require.Equal(t, 1, exit, "nothing stands refused any more")

	f.Scan("--full")
	<-time.After(1100 * time.Millisecond) // silent for a second
	result = maintain(t, f, "retire", name)
	require.Equal(t, "done", result.Outcome, result.Sentence)
	require.Equal(t, want, readRows(t, uri).Base)
}

// Its user restores a table to before a merge, and lance-context writes on. Nothing is
// merged until somebody decides, whether the journal remembers the merge or not.
func TestARestoredTableIsMergedOnceSomebodyAcceptsIt(t *testing.T) {
	for _, journal := range []string{"remembers", "is lost"} {
		t.Run("the journal "+journal, func(t *testing.T) {
			f := fleettest.New(t, cold()...)
			uri := uriOf(f, "restored")
			var nothing struct{}
			for i := range 3 {
				python(t, &nothing, "rows.py", "add", uri, fmt.Sprintf("old-%d", i))
			}
			f.Worker()
			f.Web()
			f.Scan()
			<-time.After(1100 * time.Millisecond) // silent for a second
			merged := maintain(t, f, "optimize", "restored")
			require.Equal(t, "done", merged.Outcome, merged.Sentence)
			require.Len(t, readRows(t, uri).Base, 3)

			python(t, &nothing, "rows.py", "restore", uri, strconv.FormatInt(merged.Before.Version, 10))
			require.Empty(t, readRows(t, uri).Base)
			for i := range 2 {
				python(t, &nothing, "rows.py", "add", uri, fmt.Sprintf("new-%d", i))
			}
			want := readRows(t, uri).Listed
			require.Len(t, want, 2)
			if journal == "is lost" {
				require.NoError(t, os.RemoveAll(filepath.Join(f.DataDir, "_journal.lance")))
			}

			f.Scan("--full")
			<-time.After(1100 * time.Millisecond) // silent for a second
			refused := fleettest.Start(t, []string{"LANCEFLEET_SERVER=" + f.Server()}, "retire", "restored", "--force", "--wait")
			require.Equal(t, 1, refused.Exit())
			require.Contains(t, refused.Output(), "overwritten or restored")
			require.Contains(t, refused.Output(), "accept")
			require.Empty(t, readRows(t, uri).Base, "nothing was merged")
			accepted(t, f, "restored", want)
		})
	}
}
