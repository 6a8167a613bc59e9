package fleet

import "slices"

// ActionProperty is the transaction property that every commit of lancefleet
// carries. Its value names the action: merge, compact, ...
const ActionProperty = "lancefleet.action"

// WalkPast tells the native library which commits can't have brought rows, so
// that it looks further back for the newest one that may have.
type WalkPast struct {
	Operations []string `json:"operations"` // Lance's names
	Marks      bool     `json:"marks"`      // also an Update that records compacted generations
	Property   string   `json:"property"`   // also anything with this transaction property
}

// MaintenanceWalk is the WalkPast that agrees with IsMaintenance.
func MaintenanceWalk() WalkPast {
	return WalkPast{Operations: maintenanceOperations(), Marks: true, Property: ActionProperty}
}

// IsMaintenance says whether a commit only rearranged what was there. What can't
// be told (the transaction is gone, an operation unknown here, a foreign merge
// that looks like an append) is a write: that only delays retirement.
func IsMaintenance(c Commit) bool {
	if c.Action != "" {
		return true
	}
	if c.Operation == "Update" {
		return c.Marks
	}
	return slices.Contains(maintenanceOperations(), c.Operation)
}

// maintenanceOperations are those of Lance's operations that never carry rows in.
func maintenanceOperations() []string {
	return []string{"Rewrite", "CreateIndex", "ReserveFragments", "UpdateConfig", "UpdateMemWalState"}
}
