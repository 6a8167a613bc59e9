package workflows

import (
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"
)

// RefreshWorkflow observes some experiments in full, now, whatever their
// fingerprint says, and stores the rows of those that are hot.
func RefreshWorkflow(ctx workflow.Context, args RefreshArgs) (RefreshResult, error) {
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("Observing %d experiments in full.", len(args.IDs)))
	var result RefreshResult
	actx := step(ctx, refreshTimeout, refreshAttempts, "observe in full, store the rows")
	err := workflow.ExecuteActivity(actx, RefreshRowsName, args).Get(ctx, &result)
	if err != nil {
		err = failed("refresh", err)
		workflow.SetCurrentDetails(ctx, "Failed: "+Sentence(err))
	} else {
		workflow.SetCurrentDetails(ctx, describeRefresh(args, result))
	}
	setOutcome(ctx, refreshOutcome(result, err))
	return result, err
}

func refreshOutcome(result RefreshResult, err error) string {
	if err == nil && len(result.Failed) > 0 {
		return OutcomePartial
	}
	return outcomeOf(err)
}

func describeRefresh(args RefreshArgs, result RefreshResult) string {
	told := []string{fmt.Sprintf("%d of %d observed.", len(args.IDs)-len(result.Failed), len(args.IDs))}
	for _, id := range args.IDs { // in the order asked: a map's order would differ on replay
		if why := result.Failed[string(id.Kind)+":"+id.Name]; why != "" {
			told = append(told, fmt.Sprintf("%s:%s: %s.", id.Kind, id.Name, why))
		}
	}
	return strings.Join(told, " ")
}
