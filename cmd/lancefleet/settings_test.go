package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
)

// parse reads flags, environment and file as the program does.
func parse(t *testing.T, args ...string) (CLI, error) {
	t.Helper()
	var cli CLI
	parser, err := newParser(&cli, &bytes.Buffer{}, &bytes.Buffer{}, func(int) {})
	if err != nil {
		return cli, err
	}
	_, err = parser.Parse(args)
	return cli, err
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lancefleet.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// clean takes away settings of whoever runs the tests.
func clean(t *testing.T) {
	t.Helper()
	for _, name := range append(settingVariables(), configVariable) {
		t.Setenv(name, "")
		require.NoError(t, os.Unsetenv(name))
	}
}

func TestAFlagGoesBeforeTheEnvironmentAndThatBeforeTheFile(t *testing.T) {
	clean(t)
	file := writeFile(t, "scan-interval: 3m\ndata-dir: /from/file\nFLEET: filed\n")
	cli, err := parse(t, "worker", "--config", file)
	require.NoError(t, err)
	require.Equal(t, 3*time.Minute, time.Duration(cli.Worker.ScanInterval))
	require.Equal(t, "/from/file", cli.Worker.DataDir)
	require.Equal(t, "filed", cli.Worker.Fleet)

	t.Setenv("STATS_SCAN_INTERVAL_SECS", "120")
	cli, err = parse(t, "worker", "--config", file)
	require.NoError(t, err)
	require.Equal(t, 2*time.Minute, time.Duration(cli.Worker.ScanInterval))

	cli, err = parse(t, "worker", "--config", file, "--scan-interval", "1m")
	require.NoError(t, err)
	require.Equal(t, time.Minute, time.Duration(cli.Worker.ScanInterval))
}

func TestTheFileMayBeNamedByTheEnvironment(t *testing.T) {
	clean(t)
	t.Setenv(configVariable, writeFile(t, "allowed-hosts: [a.example, b.example]\nscan-interval: 60\n"))
	cli, err := parse(t, "web")
	require.NoError(t, err)
	require.Equal(t, []string{"a.example", "b.example"}, cli.Web.AllowedHosts)
	cli, err = parse(t, "worker")
	require.NoError(t, err)
	require.Equal(t, time.Minute, time.Duration(cli.Worker.ScanInterval))

	t.Setenv(configVariable, filepath.Join(t.TempDir(), "none.yaml"))
	_, err = parse(t, "web")
	require.ErrorContains(t, err, "none.yaml")
}

func TestAFileWithAMistakeIsRefused(t *testing.T) {
	clean(t)
	for text, want := range map[string][]string{
		"scan-intervall: 3m\n":   {"scan-intervall"},
		"scan-interval: soon\n":  {"--scan-interval", "soon"},
		"log-level: loud\n":      {"--log-level", "loud", "warn"},
		"scan-interval\n":        {"config file"},
		"scan-concurrency: many": {"--scan-concurrency", "many"},
		"fleet: a\nFLEET: b\n":   {"fleet is given twice"},
	} {
		_, err := parse(t, "worker", "--config", writeFile(t, text))
		for _, words := range want {
			require.ErrorContains(t, err, words, text)
		}
	}
}

func TestAVariableThatIsEmptyCountsAsNotSet(t *testing.T) {
	clean(t)
	t.Setenv("SCAN_INTERVAL", "")
	t.Setenv("DATA_DIR", "")
	cli, err := parse(t, "worker")
	require.NoError(t, err)
	require.Equal(t, 5*time.Minute, time.Duration(cli.Worker.ScanInterval))
	require.Equal(t, defaultDataDir, cli.Worker.DataDir)
}

func TestLanceContextsNamesOfTheAddressAreUnderstood(t *testing.T) {
	clean(t)
	address := func() string {
		cli, err := parse(t, "web")
		require.NoError(t, err)
		found, err := cli.Web.addr()
		require.NoError(t, err)
		return found
	}
	require.Equal(t, "127.0.0.1:8090", address())
	t.Setenv("MASTER_PORT", "9000")
	require.Equal(t, "127.0.0.1:9000", address())
	t.Setenv("MASTER_HOST", "::1")
	require.Equal(t, "[::1]:9000", address())
	t.Setenv("HTTP_ADDR", "127.0.0.1:7000")
	require.Equal(t, "127.0.0.1:7000", address(), "our name goes first")
}

func TestEveryFlagOfEveryCommandHasHelp(t *testing.T) {
	clean(t)
	parser, err := newParser(&CLI{}, &bytes.Buffer{}, &bytes.Buffer{}, func(int) {})
	require.NoError(t, err)
	require.NoError(t, kong.Visit(parser.Model, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok {
			require.NotEmpty(t, flag.Help, flag.Name)
		}
		return next(nil)
	}))
}

func TestHelpIsAnswered(t *testing.T) {
	var out, errs bytes.Buffer
	require.Zero(t, run(context.Background(), []string{"ls", "--help"}, &out, &errs))
	require.Contains(t, out.String(), "--sort")
	require.Empty(t, errs.String())
}
