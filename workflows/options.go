package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// Limits of the activities. A heartbeat timeout bounds how long a dead worker
// holds a step; the attempt itself ends earlier when it can't reach the server.
const (
	heartbeatTimeout = 30 * time.Second
	beginTimeout     = 5 * time.Minute
	observeTimeout   = 10 * time.Minute
	commitTimeout    = 5 * time.Minute
	recordTimeout    = time.Minute
	refreshTimeout   = 5 * time.Minute
	startTimeout     = 5 * time.Minute
	lightTimeout     = 5 * time.Minute
	heavyTimeout     = 30 * time.Minute // an attempt stops starting passes long before
	heavyHeartbeat   = time.Minute

	observeAttempts = 3
	beginAttempts   = 3
	commitAttempts  = 10
	recordAttempts  = 10
	refreshAttempts = 3
	startAttempts   = 3
	lightAttempts   = 10
	heavyAttempts   = 5
)

// step makes the options of one activity. ScheduleToStart stays unset: a queue
// without workers waits, it does not fail.
func step(ctx workflow.Context, limit time.Duration, attempts int32, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: limit,
		HeartbeatTimeout:    heartbeatTimeout,
		Summary:             summary,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval:    time.Second,
			BackoffCoefficient: 2,
			MaximumInterval:    30 * time.Second,
			MaximumAttempts:    attempts,
		},
	})
}

// heavy makes the options of a step that rewrites data or reads much of it. The next
// attempt waits until the one before has surely ended, and a cancelled run waits for
// its step.
func heavy(ctx workflow.Context, queue, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:           queue,
		StartToCloseTimeout: heavyTimeout,
		HeartbeatTimeout:    heavyHeartbeat,
		WaitForCancellation: true,
		Summary:             summary,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval:    10 * time.Second,
			BackoffCoefficient: 2,
			MaximumInterval:    2 * time.Minute,
			MaximumAttempts:    heavyAttempts,
		},
	})
}

var outcomeKey = temporal.NewSearchAttributeKeyKeyword(AttrOutcome)

// setOutcome makes the end of a workflow findable: `LfOutcome="partial"`.
func setOutcome(ctx workflow.Context, outcome string) {
	if err := workflow.UpsertTypedSearchAttributes(ctx, outcomeKey.ValueSet(outcome)); err != nil {
		workflow.GetLogger(ctx).Warn("set outcome", "outcome", outcome, "error", err)
	}
}

// clearOutcome is for a run that goes on.
func clearOutcome(ctx workflow.Context) {
	if err := workflow.UpsertTypedSearchAttributes(ctx, outcomeKey.ValueUnset()); err != nil {
		workflow.GetLogger(ctx).Warn("clear outcome", "error", err)
	}
}

// outcomeOf tells a cancelled workflow from a failed one.
func outcomeOf(err error) string {
	switch {
	case err == nil:
		return OutcomeDone
	case temporal.IsCanceledError(err):
		return OutcomeCancelled
	default:
		return OutcomeFailed
	}
}
