package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/e2e/fleettest"
)

// fuzzConfig takes 503 as an answer: storage or Temporal may be away. Any other 5xx
// is a bug.
const fuzzConfig = `
[checks]
not_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", "503"]
`

const fuzzSecret = "5b1f7c20d9e3468aa0c1d2e3f4051627"

// fuzz sends requests made from the server's own description for some time. What it
// looks for: 5xx, statuses, headers and bodies that are not described, answers
// without a token, wrong answers to methods that there are not.
func fuzz(t *testing.T, server string, duration time.Duration, config string) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "schemathesis.toml"), []byte(fuzzConfig+config), 0o600))
	cmd := exec.Command(fleettest.Schemathesis(t), "--config-file", filepath.Join(dir, "schemathesis.toml"), "run", server+"/api/v1/openapi.json",
		"--header", "Authorization: Bearer "+fuzzSecret, "--max-time", duration.String()[:len(duration.String())-1], "--phases", "examples,coverage,fuzzing",
		"--exclude-checks", "positive_data_acceptance,negative_data_rejection", // more is refused than types say, with a 422; an empty parameter is none, as forms send it
		"--workers", "1", // in threads, Python 3.11 fails at times in its own parser
		"--continue-on-failure", "--no-shrink", "--no-color", "--request-timeout", "40", "--seed", "7")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, shortened(out))
	require.Regexp(t, `Tested: [1-9]`, string(out), "it has tried nothing")
}

// shortened keeps lines short enough for a test's message: requests may be 10 kB long.
func shortened(out []byte) string {
	const longest = 400
	var text strings.Builder
	for line := range bytes.Lines(out) {
		line = bytes.TrimRight(line, "\n")
		if len(line) > longest {
			line = append(bytes.Clone(line[:longest]), "..."...)
		}
		fmt.Fprintf(&text, "%s\n", line)
	}
	return text.String()
}

func TestNoRequestMadeFromTheDescriptionIsAnsweredOtherwise(t *testing.T) {
	fleettest.Schemathesis(t)
	tokens := "LANCEFLEET_TOKENS=fuzz:operator:" + fuzzSecret
	f := fleettest.New(t, tokens, "SOURCES=registry,folder", "STORAGE_READS_PER_MINUTE=0", "MAINTENANCE=on")
	f.Token = fuzzSecret
	f.Make("--experiments", "5", "--generations", "2")
	worker := f.Worker()
	web := f.Web()
	round := f.Scan()
	name := f.ListOf(round).Experiments[0].ID

	t.Run("of an experiment that there is", func(t *testing.T) {
		fuzz(t, f.Server(), 40*time.Second, "[parameters]\nname = \""+name+"\"\n")
	})
	t.Run("without Temporal", func(t *testing.T) {
		worker.Kill()
		f.Temporal.Stop()
		fuzz(t, f.Server(), 20*time.Second, "")
	})
	require.NotContains(t, web.Output(), `"level":"ERROR"`, "what is logged as an error is a bug")
}
