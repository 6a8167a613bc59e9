package lance

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// buildFake compiles the stand-in for the native library.
func buildFake(t testing.TB, flags ...string) string {
	t.Helper()
	return compileFake(t, t.TempDir(), flags...)
}

func compileFake(t testing.TB, dir string, flags ...string) string {
	t.Helper()
	path := filepath.Join(dir, libraryName())
	args := append([]string{"-shared", "-fPIC", "-pthread", "-Wall", "-Werror", "-o", path}, flags...)
	out, err := exec.Command("cc", append(args, filepath.Join("testdata", "fake_native.c"))...).CombinedOutput()
	require.NoError(t, err, "compile the stand-in library: %s", out)
	return path
}

// compiled holds the stand-in without flags, compiled once.
var compiled struct {
	once  sync.Once
	bytes []byte
}

// copyFake is the stand-in in a file of its own: the loader takes it for another
// library, with its own state.
func copyFake(t testing.TB) string {
	t.Helper()
	compiled.once.Do(func() {
		var err error
		compiled.bytes, err = os.ReadFile(compileFake(t, t.TempDir()))
		require.NoError(t, err)
	})
	require.NotEmpty(t, compiled.bytes, "the stand-in was not compiled")
	path := filepath.Join(t.TempDir(), libraryName())
	require.NoError(t, os.WriteFile(path, compiled.bytes, 0o700))
	return path
}

// fake is an engine over the stand-in.
type fake struct {
	*Engine
	t testing.TB
}

func openFake(t testing.TB) fake {
	t.Helper()
	engine, err := Open(Options{Library: copyFake(t)})
	require.NoError(t, err)
	t.Cleanup(func() { _ = engine.Close() })
	return fake{engine, t}
}

// run makes a call past the gate that limits the number of calls.
func (f fake) run(op string, body []byte, read outcome) {
	f.t.Helper()
	require.NoError(f.t, f.session.run(context.Background(), op, "", struct{}{}, body, read))
}

func (f fake) ignore(_, _ []byte) error { return nil }

// answers makes every operation succeed with this JSON from now on.
func (f fake) answers(js string) {
	f.t.Helper()
	f.run("script_ok", []byte(js), f.ignore)
}

// fails makes every operation fail with this JSON from now on.
func (f fake) fails(js string) {
	f.t.Helper()
	f.run("script_fail", []byte(js), f.ignore)
}

// last is the JSON and the body of the last request.
func (f fake) last() (js string, body []byte) {
	f.t.Helper()
	f.run("last", nil, func(j, b []byte) error {
		js, body = string(j), append([]byte{}, b...)
		return nil
	})
	return js, body
}

type fakeCounts struct {
	Allocated   int64 `json:"allocated"`
	Freed       int64 `json:"freed"`
	Nulls       int64 `json:"nulls"`
	Peak        int64 `json:"peak"`
	TokensMade  int64 `json:"tokens_made"`
	TokensFreed int64 `json:"tokens_freed"`
}

func (f fake) counts() fakeCounts {
	f.t.Helper()
	var c fakeCounts
	f.run("counts", nil, func(js, _ []byte) error { return json.Unmarshal(js, &c) })
	return c
}
