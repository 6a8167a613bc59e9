package fleettest

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
	"lancefleet/web"
)

// Fleet is a data directory with a Temporal server, and programs started for it.
type Fleet struct {
	tb       testing.TB
	DataDir  string
	Temporal *Temporal
	Env      []string // settings of all its programs
	Token    string   // what client commands send
	server   string   // address of its web server
}

// New makes an empty data directory and a Temporal server. Rounds run when asked
// for, unless env says otherwise.
func New(tb testing.TB, env ...string) *Fleet {
	tb.Helper()
	f := &Fleet{tb: tb, DataDir: tb.TempDir(), Temporal: StartTemporal(tb)}
	f.Env = append([]string{"DATA_DIR=" + f.DataDir, "SCAN_INTERVAL=0"}, env...)
	return f
}

// Make fills the data directory by make-fleet.
func (f *Fleet) Make(args ...string) {
	f.tb.Helper()
	_, exit := Run(f.tb, nil, append([]string{"make-fleet", "--data-dir", f.DataDir}, args...)...)
	require.Zero(f.tb, exit, "make-fleet")
}

func (f *Fleet) env() []string { return append(f.Temporal.Env(), f.Env...) }

// Worker starts a worker and waits until it takes work.
func (f *Fleet) Worker(env ...string) *Process {
	f.tb.Helper()
	p := Start(f.tb, append(f.env(), env...), "worker")
	p.Said("worker runs")
	return p
}

// Web starts a web server on a free port and waits until it answers.
func (f *Fleet) Web() *Process {
	f.tb.Helper()
	p := Start(f.tb, append(f.env(), "LOG_FORMAT=json"), "web", "--http-addr", "127.0.0.1:0")
	var line struct{ Address string }
	require.NoError(f.tb, json.Unmarshal([]byte(`{"msg":`+strings.SplitN(p.Line(`err: {"time"`), `"msg":`, 2)[1]), &line))
	f.server = line.Address
	return p
}

// Server is the address of the web server that was started last.
func (f *Fleet) Server() string { return f.server }

// Client runs a client command; its exit code must be 0.
func (f *Fleet) Client(args ...string) string {
	f.tb.Helper()
	out, exit := f.TryClient(args...)
	require.Zero(f.tb, exit, "lancefleet %s", strings.Join(args, " "))
	return out
}

// TryClient runs a client command.
func (f *Fleet) TryClient(args ...string) (stdout string, exit int) {
	f.tb.Helper()
	return Run(f.tb, []string{"LANCEFLEET_SERVER=" + f.server, "LANCEFLEET_TOKEN=" + f.Token}, args...)
}

// Scan runs a round that starts now and returns its result.
func (f *Fleet) Scan(args ...string) fleet.RoundRecord {
	f.tb.Helper()
	var round fleet.RoundRecord
	f.json(&round, append([]string{"scan", "--wait"}, args...)...)
	return round
}

// List returns experiments as `ls` does.
func (f *Fleet) List(args ...string) web.ExperimentList {
	f.tb.Helper()
	var list web.ExperimentList
	f.json(&list, append([]string{"ls"}, args...)...)
	return list
}

// Show returns one experiment as `show` does.
func (f *Fleet) Show(name string, args ...string) web.Detail {
	f.tb.Helper()
	var detail web.Detail
	f.json(&detail, append([]string{"show", name}, args...)...)
	return detail
}

func (f *Fleet) json(into any, args ...string) {
	f.tb.Helper()
	text := f.Client(append(args, "--json")...)
	decoder := json.NewDecoder(strings.NewReader(text))
	require.NoError(f.tb, decoder.Decode(into), text)
	require.False(f.tb, decoder.More(), "more than one document on stdout: %s", text)
}

// ListOf returns the list as it is once the round's commit is shown: pages look for
// new versions of the table every now and then.
func (f *Fleet) ListOf(round fleet.RoundRecord, args ...string) web.ExperimentList {
	f.tb.Helper()
	if round.CommittedVersion == nil {
		return f.List(args...)
	}
	var list web.ExperimentList
	require.Eventually(f.tb, func() bool {
		list = f.List(args...)
		return list.Version >= *round.CommittedVersion
	}, patience, 100*time.Millisecond)
	return list
}
