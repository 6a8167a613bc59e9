// Package temporaltest starts a real Temporal dev server for tests.
//
// The program is the one named by LANCEFLEET_TEMPORAL, else the one that the test
// command builds into the user's cache. Where there is none, tests are noted as not
// run, never silently skipped.
package temporaltest

import (
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"

	"lancefleet/e2e/notrun"
)

// BinaryVariable names the environment variable with the path of the program.
const BinaryVariable = "LANCEFLEET_TEMPORAL"

// startLimit is generous: test machines are busy.
const startLimit = 3 * time.Minute

// Options of a server.
type Options struct {
	DBFile  string // kept over restarts; "" = a file that goes with the test
	Address string // host:port; "" = a free port
}

// Server is a running dev server with the namespace default.
type Server struct {
	Client  client.Client
	Address string
	dev     *testsuite.DevServer
	stopped bool
}

// Binary is the path of the server's program. Without one the test is not run.
func Binary(tb testing.TB) string {
	tb.Helper()
	path := os.Getenv(BinaryVariable)
	if path == "" {
		path = filepath.Join(cacheDir(tb), "bin", "temporal")
	}
	if _, err := os.Stat(path); err != nil {
		notrun.Skip(tb, "temporal dev server", err.Error()+"; tools/ensure temporal builds it")
	}
	return path
}

func cacheDir(tb testing.TB) string {
	tb.Helper()
	if dir := os.Getenv("LANCEFLEET_CACHE"); dir != "" {
		return dir
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		notrun.Skip(tb, "temporal dev server", err.Error())
	}
	return filepath.Join(dir, "lancefleet")
}

// Start starts a server that ends with the test, unless it is stopped before.
func Start(tb testing.TB, o Options) *Server {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	if o.DBFile == "" {
		// Never in memory: there, the database is one connection of the server, and
		// ends with it (https://github.com/temporalio/temporal/issues/8017).
		o.DBFile = filepath.Join(tb.TempDir(), "temporal.db")
	}
	dev, err := testsuite.StartDevServer(ctx, testsuite.DevServerOptions{
		ExistingPath:  Binary(tb),
		ClientOptions: &client.Options{HostPort: o.Address, Logger: Quiet()},
		DBFilename:    o.DBFile,
		LogLevel:      "error",
		ExtraArgs:     []string{"--sqlite-pragma", "synchronous=OFF"}, // no test pulls the plug of the machine
		Stdout:        io.Discard,
		Stderr:        LastWords(tb, "the temporal dev server"),
	})
	if err != nil {
		tb.Fatalf("start the temporal dev server: %v", err)
	}
	s := &Server{Client: dev.Client(), Address: dev.FrontendHostPort(), dev: dev}
	tb.Cleanup(s.Stop)
	return s
}

// Stop ends the server. A second call does nothing.
func (s *Server) Stop() {
	if s.stopped {
		return
	}
	s.stopped = true
	s.Client.Close()
	_ = s.dev.Stop() // it was told to end; its exit status says no more
}

// Dial makes another client, which ends with the test.
func (s *Server) Dial(tb testing.TB, o client.Options) client.Client {
	tb.Helper()
	o.HostPort = s.Address
	if o.Logger == nil {
		o.Logger = Quiet()
	}
	c, err := client.Dial(o)
	if err != nil {
		tb.Fatalf("dial the temporal dev server: %v", err)
	}
	tb.Cleanup(c.Close)
	return c
}

// FreeAddress is a loopback address that nobody listened on a moment ago: for a
// server that is started again under the same one.
func FreeAddress(tb testing.TB) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("find a free port: %v", err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Quiet is a logger for clients and workers in tests: only errors are told.
func Quiet() log.Logger {
	return log.NewStructuredLogger(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})))
}
