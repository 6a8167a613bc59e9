package workflows

import "go.temporal.io/sdk/workflow"

// RetireWorkflow takes a cold experiment out of the hot set: everything that was
// acknowledged is moved into the base, proven to be there, and only then written to
// the ledger. A step that fails or is refused leaves it hot. The order is what makes
// it safe: see docs/retirement.md.
func RetireWorkflow(ctx workflow.Context, args MaintenanceArgs) (MaintenanceResult, error) {
	m := newMaintenance(ctx, ActionRetire, args)
	m.strict = true
	return m.run(ctx,
		stepOf{StepMergeWAL, m.mergeWAL},
		stepOf{StepCompact, m.compact},
		stepOf{StepCleanup, m.cleanup},
		stepOf{StepSweep, m.sweep},
		stepOf{StepVerify, m.verify},
		stepOf{StepDrop, m.drop},
	)
}
