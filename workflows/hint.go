package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"lancefleet/fleet"
)

// HintArgs is the input of HintWorkflow.
type HintArgs struct {
	Fleet   string     `json:"fleet"`
	FleetID string     `json:"fleet_id"`
	IDs     []fleet.ID `json:"ids"` // each once, as many as fit: see control
}

// HintResult says what became of them.
type HintResult struct {
	Waiting  int `json:"waiting"`  // the next round looks at them first
	Retired  int `json:"retired"`  // looked at now
	Returned int `json:"returned"` // of these: written, hot again
	Unknown  int `json:"unknown"`  // no source names them
}

// HintWorkflow takes in which experiments events have named: retired ones are looked
// at now, the others by the next round. One run stands for many events.
func HintWorkflow(ctx workflow.Context, args HintArgs) (HintResult, error) {
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("Events named %d experiments.", len(args.IDs)))
	var r HintResult
	actx := step(ctx, lightTimeout, lightAttempts, "look at retired ones, keep the rest for the next round")
	err := workflow.ExecuteActivity(actx, TakeHintsName, args).Get(ctx, &r)
	if err != nil {
		err = failed("take hints", err)
		workflow.SetCurrentDetails(ctx, "Failed: "+Sentence(err))
	} else {
		workflow.SetCurrentDetails(ctx, r.sentence())
	}
	setOutcome(ctx, outcomeOf(err))
	return r, err
}

func (r HintResult) sentence() string {
	return fmt.Sprintf("%d wait for the next round; %d of %d retired ones were written and are hot again; %d are named by no source.",
		r.Waiting, r.Returned, r.Retired, r.Unknown)
}
