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
	f := fleettest.New(t, "SCAN_PAGE_SIZE=20", "SCAN_PAGES_AT_ONCE=1", "SCAN_CONCURRENCY=1")
	f.Make("--experiments", "600")
	first := f.Worker()
	f.Web()

	waiting := fleettest.Start(t, []string{"LANCEFLEET_SERVER=" + f.Server()}, "scan", "--wait", "--json")
	require.Eventually(t, func() bool { return len(staged(t, f.DataDir)) > 0 }, patience, time.Millisecond)
	first.Kill()
	require.NoDirExists(t, filepath.Join(f.DataDir, "_stats.rollout.lance"), "the round was over already: nothing was shown")
	f.Worker()

	require.Zero(t, waiting.Exit(), waiting.Output())
	require.EqualValues(t, 600, roundOf(t, waiting.Stdout()).Hot)
	require.Eventually(t, func() bool { return len(staged(t, f.DataDir)) == 0 }, patience, 100*time.Millisecond, "staged pages are left")
	require.EqualValues(t, 600, f.Scan().Skipped, "the next round knows everything")
}

// staged are pages of rounds that wait for their commit.
func staged(t *testing.T, dataDir string) []string {
	t.Helper()
	var found []string
	// Objects come and go while this looks.
	_ = filepath.WalkDir(filepath.Join(dataDir, "_lancefleet"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.HasPrefix(entry.Name(), "page-") {
			found = append(found, path)
		}
		return nil
	})
	return found
}
