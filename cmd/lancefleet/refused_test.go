package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// refused runs the program and expects a usage error.
func refused(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	require.Equal(t, exitUsage, run(t.Context(), args, &out, &errs), "%v\n%s", args, errs.String())
	require.Empty(t, out.String())
	return errs.String()
}

func TestAWrongSettingIsRefusedByFlagAndVariable(t *testing.T) {
	clean(t)
	data := t.TempDir()
	for _, c := range []struct {
		args []string
		says []string
	}{
		{[]string{"worker", "--fleet", "Not A Name"}, []string{"--fleet (FLEET)", `"Not A Name"`, "lower-case"}},
		{[]string{"web", "--fleet", "Not A Name"}, []string{"--fleet (FLEET)", `"Not A Name"`, "lower-case"}},
		{[]string{"worker", "--scan-concurrency", "0"}, []string{"--scan-concurrency (SCAN_CONCURRENCY) 0", "1 to 4096"}},
		{[]string{"worker", "--scan-interval", "1500ms"}, []string{"--scan-interval (SCAN_INTERVAL, STATS_SCAN_INTERVAL_SECS) 1.5s", "whole seconds"}},
		{[]string{"worker", "--fleet", "A", "--scan-page-size", "0"}, []string{"--fleet (FLEET)", "--scan-page-size (SCAN_PAGE_SIZE)"}},
		{[]string{"worker", "--sources", ","}, []string{"--sources (SOURCES)", `","`, "registry,folder"}},
		{[]string{"web", "--sources", "registry,registry"}, []string{"--sources (SOURCES)", "registry,registry"}},
		{[]string{"worker", "--data-dir", "http://foo"}, []string{"--data-dir (DATA_DIR)", "http://foo", "s3://"}},
		{[]string{"web", "--data-dir", "s3:/bucket"}, []string{"--data-dir (DATA_DIR)", "s3:/bucket"}},
		{[]string{"worker", "--temporal-address", "http://localhost:7233"}, []string{"--temporal-address (TEMPORAL_ADDRESS)", "host:port"}},
		{[]string{"worker", "--metrics-addr", "nowhere"}, []string{"--metrics-addr", "nowhere", "host:port"}},
		{[]string{"web", "--temporal-ui", "javascript:alert(1)"}, []string{"--temporal-ui (TEMPORAL_UI_URL)", "http"}},
		{[]string{"web", "--allowed-hosts", "https://fleet.example"}, []string{"--allowed-hosts (ALLOWED_HOSTS)", "https://fleet.example"}},
		{[]string{"web", "--http-addr", "nowhere"}, []string{"--http-addr (HTTP_ADDR", "nowhere", "host:port"}},
		{[]string{"make-fleet", "--data-dir", data, "--experiments", "1", "--cold-share", "NaN"}, []string{"--cold-share", "NaN"}},
		{[]string{"make-fleet", "--data-dir", data, "--experiments", "1", "--cold-share=-1"}, []string{"--cold-share", "-1", "0 to 1"}},
		{[]string{"make-fleet", "--data-dir", data, "--experiments", "1", "--kinds", ",table"}, []string{"--kinds", `""`}},
		{[]string{"make-fleet", "--data-dir", "http://foo", "--experiments", "1"}, []string{"--data-dir (DATA_DIR)", "http://foo"}},
	} {
		text := refused(t, c.args...)
		for _, words := range c.says {
			require.Contains(t, text, words, c.args)
		}
	}
}

func TestANegativeValueIsRefusedAsAValue(t *testing.T) {
	clean(t)
	for _, args := range [][]string{
		{"worker", "--scan-interval", "-5s"}, {"worker", "--scan-interval", "-5"}, {"dev", "--probe-timeout", "-.5s"}, {"ls", "--limit", "-1"},
		{"ls", "--offset", "-1"}, {"make-fleet", "--data-dir", "x", "--experiments", "-3"},
		{"make-fleet", "--data-dir", "x", "--experiments", "1", "--cold-share", "-Inf"},
	} {
		text := refused(t, args...)
		require.Contains(t, text, args[len(args)-2], args)
		require.Contains(t, text, args[len(args)-1], args)
		require.Contains(t, text, "allowed", args)
		require.NotContains(t, text, "perhaps", args)
	}
	require.Equal(t, []string{"a", "--", "--b", "-3"}, joinNegatives([]string{"a", "--", "--b", "-3"}))
	require.Equal(t, []string{"--a=1", "-3", "x", "-4"}, joinNegatives([]string{"--a=1", "-3", "x", "-4"}))
}

func TestAValueOfTheWrongKindIsNamedWithoutTheDefault(t *testing.T) {
	clean(t)
	for _, c := range []struct{ flag, value, says string }{
		{"--scan-concurrency", "many", "a whole number is allowed"}, {"--scan-interval", "soon", "a duration such as 5s"},
		{"--scan-interval", "99999999999999", "a duration such as 5s"}, {"--scan-page-size", "1.5", "a whole number is allowed"},
	} {
		text := refused(t, "worker", c.flag, c.value)
		require.Contains(t, text, c.flag+`: "`+c.value+`": `+c.says)
	}
	t.Setenv("SCAN_CONCURRENCY", "many")
	text := refused(t, "worker")
	require.Contains(t, text, "--scan-concurrency")
	require.Contains(t, text, `SCAN_CONCURRENCY="many"`)
	require.NotContains(t, text, "bit int")
}

func TestThePortOfLanceContextIsNamedAsItWasGiven(t *testing.T) {
	clean(t)
	for _, port := range []string{"abc", "-1", "65536"} {
		t.Setenv("MASTER_PORT", port)
		text := refused(t, "web")
		require.Contains(t, text, `MASTER_PORT "`+port+`"`)
		require.NotContains(t, text, "--master-port")
	}
}

func TestANameThatCanNameNothingIsAUsageError(t *testing.T) {
	clean(t)
	for _, name := range []string{"", " ", "rollout:", "blue:x", "../x", "_stats"} {
		text := refused(t, "show", name, "--server", "http://127.0.0.1:1")
		require.NotContains(t, text, "no answer", "no server was asked")
	}
}

func TestDevRefusesEverySettingBeforeAnythingStarts(t *testing.T) {
	clean(t)
	for flag, value := range map[string]string{
		"--fleet (FLEET)": "Not A Name", "--sources (SOURCES)": ",", "--scan-concurrency (SCAN_CONCURRENCY)": "0", "--data-dir (DATA_DIR)": "http://foo",
		"--observe-timeout (OBSERVE_TIMEOUT)": "1h", "--demo-experiments": "0", "--temporal-addr": "nowhere", "--http-addr (HTTP_ADDR": "nowhere",
		"--scan-interval (SCAN_INTERVAL, STATS_SCAN_INTERVAL_SECS)": "48h",
	} {
		state := filepath.Join(t.TempDir(), "state")
		name, _, _ := bytes.Cut([]byte(flag), []byte(" "))
		text := refused(t, "dev", "--state-dir", state, "--temporal", os.Args[0], "--http-addr", "127.0.0.1:0", "--temporal-addr", "127.0.0.1:0",
			"--temporal-ui-addr", "127.0.0.1:0", string(name), value)
		require.Contains(t, text, flag)
		require.Contains(t, text, value[:1])
		require.NoFileExists(t, filepath.Join(state, "demo", "temporal.log"))
		require.NoDirExists(t, filepath.Join(state, "demo", "data"))
	}
}
