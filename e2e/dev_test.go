package e2e

import (
	"encoding/json"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/e2e/fleettest"
	"lancefleet/e2e/temporaltest"
	"lancefleet/web"
)

const patience = 5 * time.Minute

// startDev starts the first command of the README on free ports.
func startDev(t *testing.T, stateDir string, args ...string) *fleettest.Process {
	t.Helper()
	args = append([]string{
		"dev", "--http-addr", "127.0.0.1:0", "--temporal-addr", "127.0.0.1:0", "--temporal-ui-addr", "127.0.0.1:0",
		"--state-dir", stateDir, "--temporal", temporaltest.Binary(t), "--scan-interval", "1s",
	}, args...)
	return fleettest.Start(t, nil, args...)
}

func get(t *testing.T, address string) (int, string) {
	t.Helper()
	answer, err := http.Get(address)
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, string(text)
}

func list(t *testing.T, server string) web.ExperimentList {
	t.Helper()
	status, text := get(t, server+"/api/v1/experiments")
	require.Equal(t, http.StatusOK, status, text)
	var found web.ExperimentList
	require.NoError(t, json.Unmarshal([]byte(text), &found))
	return found
}

func TestDevShowsALiveFleetWhenItSaysReady(t *testing.T) {
	dev := startDev(t, t.TempDir(), "--demo-experiments", "12")
	server := dev.Line("ready: ")

	found := list(t, server)
	require.Equal(t, 12, found.Total)
	status, page := get(t, server+"/")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, page, found.Experiments[0].Name)

	_, metrics := get(t, server+"/metrics")
	require.Contains(t, metrics, "lancefleet_round_price_dollars_per_day 0\n", "requests to local disk cost nothing")

	// The demo's writers make it live: a later round shows a newer write.
	newest := *found.Experiments[0].LastWrite
	require.Eventually(t, func() bool { return *list(t, server).Experiments[0].LastWrite > newest }, patience, 200*time.Millisecond)
	require.Equal(t, "ready: "+server, dev.Stdout(), "only this line belongs on stdout")
}

func TestNothingOfDevIsLeftHoweverItEnds(t *testing.T) {
	ends := map[string]func(*fleettest.Process){
		"Ctrl-C, which reaches the whole group": func(p *fleettest.Process) { p.SignalGroup(syscall.SIGINT) },
		"SIGINT to dev alone":                   func(p *fleettest.Process) { p.Signal(syscall.SIGINT) },
		"SIGTERM":                               func(p *fleettest.Process) { p.Signal(syscall.SIGTERM) },
	}
	state := t.TempDir()
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			dev := startDev(t, state, "--demo-experiments", "3")
			dev.Line("ready: ")
			end(dev)
			require.Zero(t, dev.Exit(), dev.Output())
			require.True(t, dev.GroupIsGone(), "a process was left")
		})
	}
	t.Run("kill -9", func(t *testing.T) {
		dev := startDev(t, state, "--demo-experiments", "3")
		dev.Line("ready: ")
		dev.Kill()
		require.Eventually(t, dev.GroupIsGone, patience, 20*time.Millisecond, "a process was left")
	})
}

func TestDevRefusesABusyPortWithTheFlagThatChangesIt(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer busy.Close()
	for _, flag := range []string{"--http-addr", "--temporal-addr", "--temporal-ui-addr"} {
		t.Run(flag, func(t *testing.T) {
			dev := startDev(t, t.TempDir(), flag, busy.Addr().String())
			require.Equal(t, 2, dev.Exit())
			require.Contains(t, dev.Output(), busy.Addr().String()+" is in use")
			require.Contains(t, dev.Output(), flag)
		})
	}
}

func TestDevLooksAtOwnDataAndChangesNothing(t *testing.T) {
	data := t.TempDir()
	_, exit := fleettest.Run(t, nil, "make-fleet", "--data-dir", data, "--experiments", "6", "--kinds", "rollout,generic,table", "--tombstones")
	require.Zero(t, exit)
	before := files(t, data)

	dev := startDev(t, t.TempDir(), "--data-dir", data, "--sources", "registry,folder")
	server := dev.Line("ready: ")
	require.Equal(t, 6, list(t, server).Total)
	dev.Signal(syscall.SIGTERM)
	require.Zero(t, dev.Exit())

	require.Equal(t, before, files(t, data), "files of the data's owner")
}

// files is every file that is not lancefleet's own, with its size and time.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	own := []string{"_stats.rollout.lance", "_rounds.lance", "_journal.lance", "_samples.lance", "_retired.lance", "_lancefleet"}
	found := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		for _, ours := range own {
			if name == ours {
				return filepath.SkipDir
			}
		}
		if !entry.IsDir() {
			info, err := entry.Info()
			if err != nil {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			found[name] = info.ModTime().String() + string(text)
		}
		return nil
	}))
	require.NotEmpty(t, found)
	return found
}

func TestDevRefusesADataDirThatIsNotThere(t *testing.T) {
	dev := startDev(t, t.TempDir(), "--data-dir", filepath.Join(t.TempDir(), "typo"))
	require.Equal(t, 2, dev.Exit())
	require.Contains(t, dev.Output(), "--data-dir")
	require.Contains(t, dev.Output(), "typo")
}

func TestAPauseOutlivesARestartOfDev(t *testing.T) {
	state := t.TempDir()
	dev := startDev(t, state, "--demo-experiments", "3")
	client := []string{"LANCEFLEET_SERVER=" + dev.Line("ready: ")}
	out, exit := fleettest.Run(t, client, "pause", "--reason", "moving house", "--by", "a test")
	require.Zero(t, exit)
	require.Contains(t, out, "moving house")
	dev.Signal(syscall.SIGTERM)
	require.Zero(t, dev.Exit())

	again := startDev(t, state, "--demo-experiments", "3")
	server := again.Line("ready: ") // a direct round may run while paused
	status, text := get(t, server+"/api/v1/schedule")
	require.Equal(t, http.StatusOK, status)
	var schedule web.Schedule
	require.NoError(t, json.Unmarshal([]byte(text), &schedule))
	require.True(t, schedule.Paused)
	require.Equal(t, "moving house", schedule.Reason)
	require.Equal(t, "a test", schedule.By)

	_, exit = fleettest.Run(t, []string{"LANCEFLEET_SERVER=" + server}, "resume")
	require.Zero(t, exit)
	_, text = get(t, server+"/api/v1/schedule")
	require.NotContains(t, strings.ReplaceAll(text, " ", ""), `"paused":true`)
}
