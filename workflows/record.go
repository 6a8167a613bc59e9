package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"lancefleet/fleet"
)

// RecordWorkflow appends an operator's action to the journal. It exists because
// only activities write: a browser or a command line holds no handle that can.
func RecordWorkflow(ctx workflow.Context, entry fleet.Action) error {
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("%s %s by %s: %s", entry.Kind, entry.Target, entry.By, entry.Why))
	actx := step(ctx, recordTimeout, recordAttempts, "append to _journal: "+entry.Kind)
	err := workflow.ExecuteActivity(actx, RecordActionName, entry).Get(ctx, nil)
	if err != nil {
		err = failed("record "+entry.Kind, err)
	}
	setOutcome(ctx, outcomeOf(err))
	return err
}
