package e2e

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lancefleet/e2e/fleettest"
)

func TestClientCommandsSpeakToAServer(t *testing.T) {
	f := fleettest.New(t, "SOURCES=registry,folder")
	f.Make("--experiments", "9", "--kinds", "rollout,generic,table", "--generations", "4", "--cold-share", "0.3")
	f.Worker()
	f.Web()

	t.Run("scan --wait --json prints the round and nothing else", func(t *testing.T) {
		var document map[string]any
		require.NoError(t, json.Unmarshal([]byte(f.Client("scan", "--wait", "--json")), &document))
		for _, field := range []string{"round_id", "observed", "skipped", "failed", "hot", "committed_version", "storage_requests", "duration_seconds"} {
			require.Contains(t, document, field)
		}
		require.EqualValues(t, 9, document["observed"])
		require.EqualValues(t, 9, document["hot"])
		require.EqualValues(t, 0, document["failed"])
		for _, op := range []string{"list", "head", "get", "put", "delete"} {
			require.Contains(t, document["storage_requests"], op)
		}
	})
	t.Run("a round in which nothing changed commits nothing", func(t *testing.T) {
		round := f.Scan()
		require.Nil(t, round.CommittedVersion)
		require.EqualValues(t, 9, round.Skipped)
	})
	t.Run("scan --full skips nothing", func(t *testing.T) {
		require.EqualValues(t, 9, f.Scan("--full").Observed)
	})
	t.Run("ls pages, sorts and searches", func(t *testing.T) {
		list := f.List("--limit", "2", "--sort", "name", "--order", "asc")
		require.Len(t, list.Experiments, 2)
		require.Equal(t, 9, list.Total)
		require.Less(t, list.Experiments[0].Name, list.Experiments[1].Name)
		require.Equal(t, 3, f.List("--search", "GENERIC:").Total)
	})
	t.Run("show takes bare and prefixed names", func(t *testing.T) {
		name := f.List("--search", "generic:").Experiments[0].Name
		require.Equal(t, name, f.Show(name).ID)
		require.EqualValues(t, 4, *f.Show(name).PendingWAL)
		require.NotEmpty(t, f.Show(name).Reason)
	})
	t.Run("exit codes tell what went wrong", func(t *testing.T) {
		for name, test := range map[string]struct {
			args []string
			want int
		}{
			"no such experiment":  {[]string{"show", "rollout:nobody"}, 4},
			"no such command":     {[]string{"frobnicate"}, 2},
			"no such flag":        {[]string{"ls", "--colour"}, 2},
			"a limit too large":   {[]string{"ls", "--limit", "501"}, 2},
			"pause has no reason": {[]string{"pause"}, 2},
			"nobody listens":      {[]string{"ls", "--server", "http://127.0.0.1:1"}, 3},
			"not an address":      {[]string{"ls", "--server", "here"}, 2},
			"an unknown column":   {[]string{"ls", "--sort", "colour"}, 2},
		} {
			out, exit := f.TryClient(test.args...)
			require.Equal(t, test.want, exit, name)
			require.Empty(t, out, name)
		}
	})
}

func TestMakeFleetMakesTheSameFleetFromTheSameSeed(t *testing.T) {
	names := func(args ...string) []string {
		dir := t.TempDir()
		_, exit := fleettest.Run(t, nil, append([]string{"make-fleet", "--data-dir", dir}, args...)...)
		require.Zero(t, exit)
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		var found []string
		for _, entry := range entries {
			if !strings.HasPrefix(entry.Name(), "_registry") {
				found = append(found, entry.Name())
			}
		}
		return found
	}
	small := names("--experiments", "5", "--seed", "7")
	require.Len(t, small, 5)
	require.Equal(t, small, names("--experiments", "5", "--seed", "7"))
	require.NotEqual(t, small, names("--experiments", "5", "--seed", "8"))
	require.Subset(t, names("--experiments", "8", "--seed", "7"), small)
}

func TestSettingsAreRefusedAtStartWithNameAndValue(t *testing.T) {
	for _, test := range []struct {
		env  []string
		args []string
		want []string
	}{
		{nil, []string{"worker", "--scan-interval", "soon"}, []string{"--scan-interval", "soon", "5s"}},
		{[]string{"STATS_SCAN_INTERVAL_SECS=-5"}, []string{"worker"}, []string{"STATS_SCAN_INTERVAL_SECS", "-5"}},
		{[]string{"SOURCES=everywhere"}, []string{"worker"}, []string{"--sources", "everywhere", "registry"}},
		{[]string{"LOG_LEVEL=loud"}, []string{"version"}, []string{"--log-level", "loud", "warn"}},
		{[]string{"FLEET=not a name"}, []string{"worker"}, []string{"FLEET", "not a name"}},
		{nil, []string{"worker", "--scan-concurrency", "0"}, []string{"SCAN_CONCURRENCY", "0", "1 to"}},
		{nil, []string{"web", "--http-addr", "0.0.0.0:0"}, []string{"0.0.0.0:0", "insecure"}},
		{nil, []string{"make-fleet", "--data-dir", "/x", "--experiments", "0"}, []string{"--experiments", "0", "at least 1"}},
		{nil, []string{"make-fleet", "--data-dir", "/x", "--experiments", "1", "--kinds", "rollup"}, []string{"--kinds", "rollup", "table"}},
	} {
		p := fleettest.Start(t, test.env, test.args...)
		require.Equal(t, 2, p.Exit(), "%v %v\n%s", test.env, test.args, p.Output())
		for _, words := range test.want {
			require.Contains(t, p.Output(), words)
		}
		require.Empty(t, p.Stdout())
	}
}
