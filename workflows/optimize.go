package workflows

import "go.temporal.io/sdk/workflow"

// OptimizeWorkflow merges, compacts and cleans up a hot experiment. A shard that
// can't be merged does not keep the rest from being compacted.
func OptimizeWorkflow(ctx workflow.Context, args MaintenanceArgs) (MaintenanceResult, error) {
	m := newMaintenance(ctx, ActionOptimize, args)
	return m.run(ctx,
		stepOf{StepMergeWAL, m.mergeWAL},
		stepOf{StepCompact, m.compact},
		stepOf{StepCleanup, m.cleanup},
		stepOf{StepSweep, m.sweep},
		stepOf{stepRefresh, m.refresh},
	)
}
