package workflows

import (
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// TablesWorkflow keeps our own tables small. No round waits for it, and it has a
// queue of its own: it may hang or fail for days without hurting one, and says so.
func TablesWorkflow(ctx workflow.Context, args TablesArgs) (TablesResult, error) {
	names, started := Names{Fleet: args.Fleet}, workflow.Now(ctx)
	workflow.SetCurrentDetails(ctx, "Compacting our own tables, removing their old versions.")
	in := UpkeepRecord{Args: args, StartedAt: started.UnixMilli()}
	err := endedBy(ctx, workflow.ExecuteActivity(upkeep(ctx, names.TablesQueue()), UpkeepName, args).Get(ctx, &in.Upkeep))
	if err != nil {
		in.Error, in.ErrorClass = Sentence(err), ErrorClass(err)
	}
	if ctx.Err() != nil {
		ctx, _ = workflow.NewDisconnectedContext(ctx)
	}
	in.FinishedAt = workflow.Now(ctx).UnixMilli()
	var result TablesResult
	actx := workflow.WithTaskQueue(step(ctx, recordTimeout, recordAttempts, "append to _journal"), names.MaintenanceQueue())
	if recorded := workflow.ExecuteActivity(actx, RecordUpkeepName, in).Get(ctx, &result); recorded != nil && err == nil {
		err = recorded
	}
	if err == nil && result.Outcome == OutcomeFailed {
		err = temporal.NewNonRetryableApplicationError(result.Sentence, result.ErrorClass, nil)
	}
	workflow.SetCurrentDetails(ctx, result.Sentence)
	setOutcome(ctx, outcomeOf(err))
	if err != nil {
		return result, failed("upkeep", err)
	}
	return result, nil
}

// upkeep makes the options of the one long step. It is tried once: the next pass
// comes by itself.
func upkeep(ctx workflow.Context, queue string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:           queue,
		StartToCloseTimeout: heavyTimeout,
		HeartbeatTimeout:    heavyHeartbeat,
		WaitForCancellation: true,
		Summary:             "compact our tables, remove old versions",
		RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: 1},
	})
}
