package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"lancefleet/web"
)

// TestAWrongValueIsNamedWithItsOwnSettingAlone is about settings that are checked
// together.
func TestAWrongValueIsNamedWithItsOwnSettingAlone(t *testing.T) {
	clean(t)
	dir := t.TempDir()
	file, empty := filepath.Join(dir, "file"), filepath.Join(dir, "empty")
	require.NoError(t, os.WriteFile(file, []byte("a:viewer:short"), 0o600))
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	for _, c := range []struct{ flag, value, says string }{
		{"--session-time", "0", "1m to 30d is allowed"},
		{"--session-time", "99999d", "1m to 30d is allowed"},
		{"--trusted-proxies", "foo", `"foo": addresses such as 10.0.0.1, and networks such as 10.0.0.0/8, are allowed`},
		{"--storage-reads-per-minute", "-1", "0 and more are allowed"},
		{"--tokens-file", filepath.Join(dir, "nowhere"), "no such file"},
		{"--tokens-file", dir, "is a directory"},
		{"--tokens-file", empty, "it has no token"},
		{"--tokens-file", file, "5 characters: 24 to 256 are allowed"},
	} {
		text := refused(t, "web", "--http-addr", "127.0.0.1:0", "--data-dir", dir, c.flag, c.value)
		require.Contains(t, text, "lancefleet: "+c.flag+" (")
		require.Contains(t, text, c.says)
		for _, other := range []string{"--session-time", "--trusted-proxies", "--storage-reads-per-minute", "--tokens-file"} {
			if other != c.flag {
				require.NotContains(t, text, other)
			}
		}
		require.NotContains(t, text, "netip")
		require.NotContains(t, text, "short", "no error has in it what might be a secret")
	}
}

func TestADataDirectoryThatIsAFileIsRefusedBeforeTemporalIsAwaited(t *testing.T) {
	clean(t)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, command := range [][]string{{"worker"}, {"web", "--http-addr", "127.0.0.1:0"}} {
		text := refused(t, append(command, "--data-dir", file, "--temporal-address", "127.0.0.1:1")...)
		require.Contains(t, text, "--data-dir (DATA_DIR)")
		require.Contains(t, text, "it is no folder; a folder, or a bucket, is allowed")
	}
}

func TestDevNamesThePlaceOrProgramThatItCannotUse(t *testing.T) {
	clean(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	dev := []string{"dev", "--http-addr", "127.0.0.1:0", "--temporal-addr", "127.0.0.1:0", "--temporal-ui-addr", "127.0.0.1:0"}
	require.Contains(t, refused(t, append(dev, "--temporal", os.Args[0], "--state-dir", file)...), "--state-dir (LANCEFLEET_STATE_DIR)")
	for _, program := range []string{file, dir, filepath.Join(dir, "nowhere")} {
		text := refused(t, append(dev, "--state-dir", filepath.Join(dir, "state"), "--temporal", program)...)
		require.Contains(t, text, "--temporal (LANCEFLEET_TEMPORAL)")
		require.Contains(t, text, program)
		require.NoDirExists(t, filepath.Join(dir, "state", "demo", "data"), "nothing was made")
	}
}

func TestAFileOfSettingsThatCannotBeReadIsNamedByItsFlag(t *testing.T) {
	clean(t)
	dir := t.TempDir()
	for _, path := range []string{dir, filepath.Join(dir, "nowhere")} {
		require.Contains(t, refused(t, "worker", "--config", path), "--config \""+path+"\"")
		t.Setenv(configVariable, path)
		require.Contains(t, refused(t, "worker"), configVariable+"=\""+path+"\"")
		require.NoError(t, os.Unsetenv(configVariable))
	}
}

func TestAFleetThatNoMachineHoldsIsRefused(t *testing.T) {
	clean(t)
	for _, flag := range []string{"--experiments", "--shards", "--generations", "--fragments", "--rows"} {
		args := []string{"make-fleet", "--data-dir", t.TempDir(), "--experiments", "1", flag, "99999999999"}
		text := refused(t, args...)
		require.Contains(t, text, flag+" 99999999999: at most")
	}
	require.Contains(t, refused(t, "dev", "--demo-experiments", "99999999999", "--state-dir", t.TempDir()), "--demo-experiments 99999999999: at most")
}

func TestAServerThatIsNoLancefleetIsNotTakenForAnExperimentThatIsMissing(t *testing.T) {
	clean(t)
	for _, status := range []int{http.StatusNotFound, http.StatusOK} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte("<html>Welcome"))
		}))
		defer server.Close()
		var out, errs bytes.Buffer
		require.Equal(t, exitFailed, run(t.Context(), []string{"show", "x", "--server", server.URL}, &out, &errs), errs.String())
		require.Contains(t, errs.String(), server.URL+"/api/v1/experiments/x")
		require.Contains(t, errs.String(), "is --server right?")
	}
}

func TestAnEmptyHistorySaysSo(t *testing.T) {
	out, _, exit, _ := command(t, http.StatusOK, web.History{ID: "table:x", Actions: []web.Done{}}, "history", "x")
	require.Equal(t, exitOK, exit)
	require.Equal(t, "nothing was done with it yet, as far as the journal goes back (90 days)\n", out)
}

func TestOneFolderIsLookedAtByOneDevWhateverItsStateDir(t *testing.T) {
	data := t.TempDir()
	first, second := devPlace{state: t.TempDir(), dataDir: data}, devPlace{state: t.TempDir(), dataDir: data}
	unlock, err := first.lock()
	require.NoError(t, err)
	_, err = second.lock()
	require.ErrorContains(t, err, "looks at "+data)
	require.Equal(t, exitUsage, exitCode(err))
	unlock()
	unlock, err = second.lock()
	require.NoError(t, err)
	unlock()
	entries, err := os.ReadDir(data)
	require.NoError(t, err)
	require.Empty(t, entries, "nothing is written for it")
	bucket := devPlace{state: t.TempDir(), dataDir: "s3://bucket/prefix"}
	unlock, err = bucket.lock()
	require.NoError(t, err)
	unlock()
}
