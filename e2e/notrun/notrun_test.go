package notrun_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"lancefleet/e2e/notrun"
)

// recorder stands in for a test and says how it ended.
type recorder struct {
	testing.TB
	failed, skipped string
}

func (r *recorder) Helper()                   {}
func (r *recorder) Name() string              { return "TestOfSomething" }
func (r *recorder) Fatalf(f string, a ...any) { r.failed = f; runtime.Goexit() }
func (r *recorder) Skipf(f string, a ...any)  { r.skipped = f; runtime.Goexit() }
func (r *recorder) run(f func(tb testing.TB)) {
	done := make(chan struct{})
	go func() { defer close(done); f(r) }()
	<-done
}
func skip(tb testing.TB) { notrun.Skip(tb, "a browser", "none found") }

func TestAMissingThingSkipsAndIsNoted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "not-run")
	t.Setenv(notrun.FileVariable, file)
	t.Setenv(notrun.RequireAllVariable, "")
	for range 2 {
		r := &recorder{}
		r.run(skip)
		if r.skipped == "" || r.failed != "" {
			t.Fatalf("skipped %q, failed %q", r.skipped, r.failed)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Repeat("TestOfSomething\ta browser\tnone found\n", 2); string(text) != want {
		t.Fatalf("noted %q, want %q", text, want)
	}
}

func TestWhereAllMustRunAMissingThingFails(t *testing.T) {
	t.Setenv(notrun.RequireAllVariable, "1")
	r := &recorder{}
	r.run(skip)
	if r.failed == "" || r.skipped != "" {
		t.Fatalf("skipped %q, failed %q", r.skipped, r.failed)
	}
}
