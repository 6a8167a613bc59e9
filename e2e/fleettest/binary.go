// Package fleettest runs lancefleet as its users do: the built program, a real
// Temporal server, data on disk. Tests wait on lines and answers, not on time.
package fleettest

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"lancefleet/e2e/notrun"
)

// build makes the program once per test process, without the race detector: other
// tests run the same packages with it.
var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "lancefleet-e2e-")
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "lancefleet")
	cmd := exec.Command("go", "build", "-o", program, "./cmd/lancefleet")
	cmd.Dir = root()
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return program, cmd.Run()
})

// programVariable names a program that was built already.
const programVariable = "LANCEFLEET_PROGRAM"

// Program is the path of the built lancefleet.
func Program(tb testing.TB) string {
	tb.Helper()
	if named := os.Getenv(programVariable); named != "" {
		return named
	}
	program, err := build()
	require.NoError(tb, err, "build lancefleet")
	return program
}

// Clean removes what Program made. Call it from TestMain.
func Clean() {
	if os.Getenv(programVariable) != "" {
		return
	}
	if program, err := build(); err == nil {
		_ = os.RemoveAll(filepath.Dir(program))
	}
}

func root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..")
}

func cache() string {
	if dir := os.Getenv("LANCEFLEET_CACHE"); dir != "" {
		return dir
	}
	if dir := os.Getenv("XDG_CACHE_HOME"); dir != "" {
		return filepath.Join(dir, "lancefleet")
	}
	home, _ := os.UserHomeDir()
	return filepath.Join(home, ".cache", "lancefleet")
}

// Native is the path of the native library.
func Native(tb testing.TB) string {
	tb.Helper()
	target := os.Getenv("CARGO_TARGET_DIR")
	if target == "" {
		target = filepath.Join(cache(), "target")
	}
	return tool(tb, "the native library", "LANCEFLEET_NATIVE", filepath.Join(target, "fast", "liblancefleet_native.so"))
}

// Python is an interpreter that has lance-context and pylance.
func Python(tb testing.TB) string {
	tb.Helper()
	return tool(tb, "Python with lance-context and pylance", "LANCEFLEET_PYTHON", filepath.Join(cache(), "venv", "bin", "python"))
}

// Schemathesis is the program that makes requests from an API's description.
func Schemathesis(tb testing.TB) string {
	tb.Helper()
	return tool(tb, "schemathesis", "LANCEFLEET_SCHEMATHESIS", filepath.Join(cache(), "venv-schemathesis", "bin", "schemathesis"))
}

// tool finds a file; a test that can't have it is noted as not run.
func tool(tb testing.TB, what, variable, usual string) string {
	tb.Helper()
	for _, path := range []string{os.Getenv(variable), usual} {
		if info, err := os.Stat(path); path != "" && err == nil && !info.IsDir() {
			return path
		}
	}
	notrun.Skip(tb, what, "not at "+usual+"; ./task native setup makes it, "+variable+" names another")
	return ""
}
