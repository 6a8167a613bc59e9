package e2e

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/e2e/fleettest"
)

func TestARoundIsFinishedByAnotherWorkerWhenOneIsKilled(t *testing.T) {
	f := fleettest.New(t, "PAGE_SIZE=20", "SCAN_CONCURRENCY=1")
	f.Make("--experiments", "200")
	first := f.Worker("LOG_LEVEL=debug")
	f.Web()

	waiting := fleettest.Start(t, []string{"LANCEFLEET_SERVER=" + f.Server()}, "scan", "--wait", "--json")
	first.Said("page observed") // in the middle of the round
	first.Kill()
	f.Worker()

	require.Zero(t, waiting.Exit(), waiting.Output())
	require.EqualValues(t, 200, roundOf(t, waiting.Stdout()).Hot)
	require.Eventually(t, func() bool { return len(staged(t, f.DataDir)) == 0 }, patience, 100*time.Millisecond, "staged pages are left")
	require.EqualValues(t, 200, f.Scan().Skipped, "the next round knows everything")
}

// staged are pages of rounds that wait for their commit.
func staged(t *testing.T, dataDir string) []string {
	t.Helper()
	var found []string
	require.NoError(t, filepath.WalkDir(filepath.Join(dataDir, "_lancefleet"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.Contains(path, "page") {
			found = append(found, path)
		}
		return nil
	}))
	return found
}
