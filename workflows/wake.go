package workflows

import "go.temporal.io/sdk/workflow"

// WakeWorkflow looks at a retired experiment now instead of at its next slice. One
// that was written since is hot again; one that was not stays retired.
func WakeWorkflow(ctx workflow.Context, args MaintenanceArgs) (MaintenanceResult, error) {
	m := newMaintenance(ctx, ActionWake, args)
	return m.result, m.end(ctx, m.wake(ctx))
}

func (m *maintenance) wake(ctx workflow.Context) error {
	m.describe(ctx, "Looking whether it was written since it was retired.")
	var r WakeResult
	actx := m.light(ctx, "probe against the evidence; written: hot again")
	if err := workflow.ExecuteActivity(actx, WakeName, m.args).Get(ctx, &r); err != nil {
		return err
	}
	m.result.After = r.Facts
	m.finish(r.Outcome, r.Sentence)
	return nil
}
