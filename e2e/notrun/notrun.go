// Package notrun is for tests that need something which a machine may not have: a
// browser, a Python environment, an S3 server. Where it can't be had the test is
// skipped, but never silently: the test command lists it at the end as not run,
// and continuous integration makes it a failure.
package notrun

import (
	"fmt"
	"os"
	"testing"
)

const (
	// FileVariable names the file to which a line is appended for each test that
	// is not run: its name, what was missing and why, separated by tabs.
	FileVariable = "LANCEFLEET_NOT_RUN_FILE"
	// RequireAllVariable makes, when it is 1, a test that can't run a failure.
	RequireAllVariable = "LANCEFLEET_REQUIRE_ALL"
)

// Skip ends the test: as skipped and noted, or as failed where all must run. what
// is the thing that was missing, why the reason it could not be had.
func Skip(tb testing.TB, what, why string) {
	tb.Helper()
	if os.Getenv(RequireAllVariable) == "1" {
		tb.Fatalf("not run, but %s=1: %s: %s", RequireAllVariable, what, why)
	}
	if err := note(tb.Name(), what, why); err != nil {
		tb.Fatalf("note that this test is not run: %v", err)
	}
	tb.Skipf("not run: %s: %s", what, why)
}

// note appends in one write, so that lines of packages tested side by side don't mix.
func note(name, what, why string) error {
	path := os.Getenv(FileVariable)
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(f, "%s\t%s\t%s\n", name, what, why); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}
