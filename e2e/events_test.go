package e2e

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/e2e/fleettest"
	"lancefleet/lance"
	"lancefleet/web"
)

// sendEvents does what a bucket's notification does.
func sendEvents(t *testing.T, f *fleettest.Fleet, body any) web.EventsTaken {
	t.Helper()
	text, err := json.Marshal(body)
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.Server()+"/api/v1/events", bytes.NewReader(text))
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Equal(t, http.StatusAccepted, answer.StatusCode)
	var taken web.EventsTaken
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&taken))
	return taken
}

func TestEventsBringBackWhatWasWrittenAndEndABackOff(t *testing.T) {
	f := fleettest.New(t, append(cold(), "SOURCES=folder")...)
	engine := fleetEngine(t)
	for i, name := range []string{"written", "quiet", "broken"} {
		_, err := engine.MakeDataset(t.Context(), lance.DatasetSpec{URI: uriOf(f, name), Kind: "rollout", Shards: 1, Generations: 1, Rows: 5, Fragments: 1, Seed: int64(i + 1)})
		require.NoError(t, err)
	}
	f.Worker()
	f.Web()
	f.Scan()
	<-time.After(1100 * time.Millisecond) // silent for a second, so cold
	for _, name := range []string{"written", "quiet"} {
		require.Equal(t, "done", maintain(t, f, "retire", name).Outcome)
	}
	restore := breakManifests(t, uriOf(f, "broken"))
	require.EqualValues(t, 1, f.Scan().Failed)
	restore()
	require.EqualValues(t, 1, f.Scan().BackingOff, "mended, and nobody looks")
	_, err := engine.MakeWrites(t.Context(), lance.WritesSpec{URI: uriOf(f, "written"), Rows: 4, Seed: 99})
	require.NoError(t, err)

	taken := sendEvents(t, f, []map[string]any{
		{"uri": filepath.Join(uriOf(f, "written"), "_mem_wal", "s", "wal", "1")},
		{"uri": uriOf(f, "quiet")}, {"name": "broken"}, {"name": "nobody"},
	})

	require.Equal(t, web.EventsTaken{Events: 4, Taken: 3, Experiments: 3, Unknown: 1}, taken)
	require.Eventually(t, func() bool { return f.Show("written").State == web.Hot }, patience, 100*time.Millisecond, "without a round")
	require.Equal(t, web.Retired, f.Show("quiet").State, "an event alone makes nothing hot")
	waiting := filepath.Join(f.DataDir, "_lancefleet", "hints", "*.json.gz")
	require.Eventually(t, func() bool { found, _ := filepath.Glob(waiting); return len(found) == 1 }, patience, 50*time.Millisecond)
	round := f.Scan()
	require.Zero(t, round.BackingOff)
	require.Zero(t, round.Failed)
	require.EqualValues(t, 2, round.Hot, "written and broken")
	left, err := filepath.Glob(waiting)
	require.NoError(t, err)
	require.Empty(t, left, "the round took them")
}

// breakManifests cuts every manifest of a dataset, and returns how to mend them.
func breakManifests(t *testing.T, uri string) (restore func()) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(uri, "_versions", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	kept := map[string][]byte{}
	for _, file := range files {
		kept[file], err = os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, os.Truncate(file, 3))
	}
	return func() {
		for file, body := range kept {
			require.NoError(t, os.WriteFile(file, body, 0o644))
		}
	}
}

func fleetEngine(t *testing.T) *lance.Engine {
	t.Helper()
	engine, err := lance.Open(lance.Options{Library: fleettest.Native(t)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	return engine
}
