// Package e2e shows what lancefleet promises to its users, with the built program,
// a real Temporal server and data on disk.
package e2e

import (
	"os"
	"testing"

	"lancefleet/e2e/fleettest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	fleettest.Clean()
	os.Exit(code)
}
