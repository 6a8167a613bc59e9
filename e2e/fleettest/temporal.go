package fleettest

import (
	"encoding/json"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Temporal is a development server whose database outlives it.
type Temporal struct {
	tb      testing.TB
	program string
	db      string
	port    int
	process *Process
}

// StartTemporal starts a server with a fresh database.
func StartTemporal(tb testing.TB) *Temporal {
	tb.Helper()
	t := &Temporal{tb: tb, program: TemporalCLI(tb), db: filepath.Join(tb.TempDir(), "temporal.db"), port: freePort(tb)}
	t.start()
	return t
}

func freePort(tb testing.TB) int {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func (t *Temporal) start() {
	t.tb.Helper()
	cmd := exec.Command(t.program, "server", "start-dev", "--headless", "--ip", "127.0.0.1",
		"--port", strconv.Itoa(t.port), "--db-filename", t.db, "--log-level", "warn")
	t.process = start(t.tb, "temporal", cmd, nil)
	t.process.Said("Server:") // printed when it serves
}

// Restart stops the server as a machine that goes down does and starts it again on
// the same database and port.
func (t *Temporal) Restart() {
	t.tb.Helper()
	t.process.Signal(syscall.SIGTERM)
	t.process.Exit()
	t.start()
}

// Address is host:port.
func (t *Temporal) Address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(t.port)) }

// Env points lancefleet at this server.
func (t *Temporal) Env() []string { return []string{"TEMPORAL_ADDRESS=" + t.Address()} }

// CLI runs the temporal command against this server and returns what it printed.
func (t *Temporal) CLI(args ...string) string {
	t.tb.Helper()
	cmd := exec.Command(t.program, append(args, "--address", t.Address())...)
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
