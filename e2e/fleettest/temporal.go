package fleettest

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lancefleet/e2e/temporaltest"
)

// Temporal is a development server whose database outlives it.
type Temporal struct {
	tb      testing.TB
	options temporaltest.Options
	server  *temporaltest.Server
}

// StartTemporal starts a server with a fresh database.
func StartTemporal(tb testing.TB) *Temporal {
	tb.Helper()
	options := temporaltest.Options{DBFile: filepath.Join(tb.TempDir(), "temporal.db"), Address: temporaltest.FreeAddress(tb)}
	return &Temporal{tb: tb, options: options, server: temporaltest.Start(tb, options)}
}

// Restart stops the server and starts it again on the same database and port.
func (t *Temporal) Restart() {
	t.tb.Helper()
	t.server.Stop()
	t.server = temporaltest.Start(t.tb, t.options)
}

// Stop stops the server until the next Restart.
func (t *Temporal) Stop() {
	t.tb.Helper()
	t.server.Stop()
}

// Address is host:port.
func (t *Temporal) Address() string { return t.options.Address }

// Env points lancefleet at this server.
func (t *Temporal) Env() []string { return []string{"TEMPORAL_ADDRESS=" + t.Address()} }

// CLI runs the temporal command against this server and returns what it printed.
func (t *Temporal) CLI(args ...string) string {
	t.tb.Helper()
	cmd := exec.Command(temporaltest.Binary(t.tb), append(args, "--address", t.Address())...)
	cmd.Env = CleanEnv()
	out, err := cmd.CombinedOutput()
	require.NoError(t.tb, err, "temporal %s: %s", strings.Join(args, " "), out)
	return string(out)
}

// CLIJSON is CLI with its JSON answer.
func (t *Temporal) CLIJSON(into any, args ...string) {
	t.tb.Helper()
	require.NoError(t.tb, json.Unmarshal([]byte(t.CLI(append(args, "--output", "json")...)), into))
}
