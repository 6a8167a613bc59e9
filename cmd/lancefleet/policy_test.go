package main

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
	"lancefleet/worker"
)

func policiesOf(t *testing.T, args ...string) fleet.Policies {
	t.Helper()
	cli, err := parse(t, append([]string{"worker", "--maintenance", "on"}, args...)...)
	require.NoError(t, err)
	p, err := cli.Worker.policies(cli.Worker.on())
	require.NoError(t, err)
	return p
}

func TestTheDefaultsAreThePolicyOfTheFleet(t *testing.T) {
	clean(t)
	require.Equal(t, fleet.DefaultPolicy(), policiesOf(t).Default)
	cli, err := parse(t, "worker", "--data-dir", "/d", "--maintenance", "on")
	require.NoError(t, err)
	config, err := cli.Worker.config(cli.Worker.dataFlags, cli.Worker.ScanInterval, func(c *worker.Config) error {
		return cli.Worker.into(c, cli.Worker.policyFlags, true)
	})
	require.NoError(t, err)
	want := worker.DefaultConfig()
	want.DataDir, want.Maintenance = "/d", true
	require.Equal(t, want, config, "flags and worker agree on every default")
}

func TestLanceContextsNamesOfPoliciesAreUnderstood(t *testing.T) {
	clean(t)
	for name, value := range map[string]string{
		"STATS_COLD_RETIRE_SECS": "86400", "MERGE_WAL_MIN_GENERATIONS": "4", "MIN_FRAGMENTS": "9", "TARGET_ROWS_PER_FRAGMENT": "1000",
		"COMPACTION_MAX_BYTES_PER_FILE": "1048576", "TASK_COOLDOWN_AFTER_FAILURES": "5", "TASK_COOLDOWN_BASE_SECS": "60", "TASK_COOLDOWN_MAX_SECS": "120",
	} {
		t.Setenv(name, value)
	}
	p := policiesOf(t).Default
	require.Equal(t, 24*time.Hour, p.RetireAfter)
	require.EqualValues(t, 4, p.MergeMinGenerations)
	require.EqualValues(t, 9, p.CompactMinFragments)
	require.EqualValues(t, 1000, p.TargetRows)
	require.EqualValues(t, 1<<20, p.TargetBytes)
	require.EqualValues(t, 5, p.CooldownAfter)
	require.Equal(t, []time.Duration{time.Minute, 2 * time.Minute}, []time.Duration{p.CooldownBase, p.CooldownMax})
}

func TestPoliciesAreWrittenAsPeopleThink(t *testing.T) {
	clean(t)
	p := policiesOf(t, "--retire-after", "30d", "--cleanup-older-than", "12h", "--target-bytes-per-fragment", "256MiB", "--quiet-window", "22:30-06:00").Default
	require.Equal(t, 30*24*time.Hour, p.RetireAfter)
	require.Equal(t, 12*time.Hour, p.CleanupOlderThan)
	require.EqualValues(t, 256<<20, p.TargetBytes)
	require.Equal(t, fleet.Window{From: 22*time.Hour + 30*time.Minute, To: 6 * time.Hour}, p.QuietWindow)
}

const overridesYAML = `
retire-after: 7d
overrides:
  - pattern: eval-*
    kind: generic
    retire-after: 30d
    live_shards: leave
    merge-min-generations: 2
    target-bytes-per-fragment: 64MiB
  - {pattern: keep-*, maintenance: off, paused: "under audit", quiet-window: "08:00-18:00"}
`

func TestOverridesOfTheFileChangeWhatTheyMatch(t *testing.T) {
	clean(t)
	p := policiesOf(t, "--config", writeFile(t, overridesYAML))
	eval, from := p.For(fleet.ID{Kind: fleet.Generic, Name: "eval-3"})
	require.Equal(t, []int{0}, from)
	require.Equal(t, 30*24*time.Hour, eval.RetireAfter)
	require.Equal(t, fleet.LeaveLiveShards, eval.LiveShards)
	require.EqualValues(t, 2, eval.MergeMinGenerations)
	require.EqualValues(t, 64<<20, eval.TargetBytes)
	kept, _ := p.For(fleet.ID{Kind: fleet.Rollout, Name: "keep-1"})
	require.False(t, kept.Maintain)
	require.Equal(t, "under audit", kept.Paused)
	other, from := p.For(fleet.ID{Kind: fleet.Rollout, Name: "eval-3"})
	require.Empty(t, from)
	require.Equal(t, p.Default, other)

	t.Setenv("OVERRIDES", `[{"pattern":"x-*","retire-after":"1h"}]`)
	require.Len(t, policiesOf(t, "--config", writeFile(t, overridesYAML)).Overrides, 1, "the environment goes first")
}

func TestWhereMaintenanceIsOffNoOverrideTurnsItOn(t *testing.T) {
	clean(t)
	cli, err := parse(t, "worker", "--overrides", `[{pattern: "*", maintenance: on}]`)
	require.NoError(t, err)
	p, err := cli.Worker.policies(cli.Worker.on())
	require.NoError(t, err)
	one, _ := p.For(fleet.ID{Kind: fleet.Rollout, Name: "a"})
	require.False(t, one.Maintain)
}

func TestAPolicyThatCanNotBeMeantIsRefusedByName(t *testing.T) {
	clean(t)
	for _, c := range []struct {
		args []string
		says []string
	}{
		{[]string{"--retire-after", "-1d"}, []string{"--retire-after", "-1d", "7d"}},
		{[]string{"--retire-after", "soon"}, []string{"--retire-after", "soon"}},
		{[]string{"--merge-min-generations", "-1"}, []string{"--merge-min-generations", "-1", "at least 0"}},
		{[]string{"--target-rows-per-fragment", "0"}, []string{"--target-rows-per-fragment", "at least 1"}},
		{[]string{"--target-bytes-per-fragment", "1 parsec"}, []string{"--target-bytes-per-fragment", "1 parsec", "512MiB"}},
		{[]string{"--live-shards", "kill"}, []string{"--live-shards", "merge", "leave"}},
		{[]string{"--quiet-window", "22-6"}, []string{"--quiet-window", "22:00-06:00"}},
		{[]string{"--heavy-slots", "1000"}, []string{"--heavy-slots (HEAVY_SLOTS) 1000", "1 to 64"}},
		{[]string{"--merge-budget", "1000000"}, []string{"--merge-budget (MERGE_BUDGET)", "0 to 10000"}},
		{[]string{"--stats-history", "10000d"}, []string{"--stats-history (STATS_HISTORY, STATS_HISTORY_TTL_SECS)"}},
		{[]string{"--overrides", "eval-*"}, []string{"--overrides", "list of mappings"}},
		{[]string{"--overrides", "[{pattern: a, retire-aftr: 1d}]"}, []string{"--overrides", "override 1", "retire-aftr", "retire-after"}},
		{[]string{"--overrides", "[{pattern: a}, {kind: rollup}]"}, []string{"override 2", "rollup"}},
		{[]string{"--overrides", "[{retire-after: 1d}]"}, []string{"override 1", "neither pattern nor kind"}},
		{[]string{"--overrides", "[{pattern: '[', retire-after: 1d}]"}, []string{"override 1", "pattern"}},
		{[]string{"--overrides", "[{pattern: a, retire-after: -1}]"}, []string{"override 1", "retire-after", "-1"}},
		{[]string{"--overrides", "[{pattern: a, maintenance: perhaps}]"}, []string{"maintenance", "on or off"}},
	} {
		text := refused(t, append([]string{"worker"}, c.args...)...)
		for _, words := range c.says {
			require.Contains(t, text, words, c.args)
		}
	}
	require.Contains(t, refused(t, "web", "--overrides", "[{retire-after: 1d}]"), "override 1", "the web server explains by the same")
}

func TestDevMaintainsItsDemoAndNobodysDataUnlessTold(t *testing.T) {
	clean(t)
	data := t.TempDir()
	t.Setenv("MAINTENANCE", "on")
	for _, c := range []struct {
		args []string
		want bool
	}{
		{nil, true}, {[]string{"--no-maintain"}, false}, {[]string{"--data-dir", data}, false}, {[]string{"--data-dir", data, "--maintain"}, true},
		{[]string{"--data-dir", data, "--no-maintain"}, false},
	} {
		cli, err := parse(t, append([]string{"dev", "--state-dir", filepath.Join(t.TempDir(), "s")}, c.args...)...)
		require.NoError(t, err)
		place, err := cli.Dev.place()
		require.NoError(t, err)
		config, err := cli.Dev.settings(place)
		require.NoError(t, err)
		require.Equal(t, c.want, config.Maintenance, c.args)
		require.Equal(t, c.want, config.Policies.Default.Maintain, c.args)
		if place.demo {
			require.LessOrEqual(t, config.GenerationGrace, demoGrace, "a retirement is seen within minutes")
		} else {
			require.Equal(t, 5*time.Minute, config.GenerationGrace)
		}
	}
}

func TestSettingsWithoutEffectAreTold(t *testing.T) {
	t.Setenv("COMPACTION_INTERVAL_SECS", "60")
	var said strings.Builder
	warnWithoutEffect(slog.New(slog.NewTextHandler(&said, nil)))
	require.Contains(t, said.String(), "COMPACTION_INTERVAL_SECS")
	require.NotContains(t, said.String(), "MERGE_WAL_INTERVAL_SECS")
}

// One setting says when a shard has lost its writer: what a page promises about
// unflushed entries is what the worker does.
func TestWhatIsLiveAndWhatIsSilentIsOneSetting(t *testing.T) {
	clean(t)
	t.Setenv("LIVE_WITHIN", "90s")
	require.Equal(t, 90*time.Second, policiesOf(t).Default.LiveWithin)

	for name, give := range map[string]func(t *testing.T) []string{
		"flag":     func(*testing.T) []string { return []string{"--seal-silent-for", "1h"} },
		"variable": func(t *testing.T) []string { t.Setenv("SEAL_SILENT_FOR", "1h"); return nil },
		"file":     func(t *testing.T) []string { return []string{"--config", writeFile(t, "seal-silent-for: 1h\n")} },
	} {
		t.Run(name, func(t *testing.T) {
			for _, command := range []string{"worker", "web", "dev"} {
				_, err := parse(t, append([]string{command}, give(t)...)...)
				require.ErrorContains(t, err, "LIVE_WITHIN", command)
			}
		})
	}
}
