package workflows

import (
	"errors"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// ClassUnknown is the class of an error that carries none.
const ClassUnknown = "internal"

// ErrorClass is the class that an activity gave its error (native/README.md), as
// it arrives through Temporal.
func ErrorClass(err error) string {
	var app *temporal.ApplicationError
	var timeout *temporal.TimeoutError
	switch {
	case errors.As(err, &app) && app.Type() != "":
		return app.Type()
	case errors.As(err, &timeout):
		return "timeout"
	case temporal.IsCanceledError(err):
		return "cancelled"
	default:
		return ClassUnknown
	}
}

// endedBy is what ended a step that its run waited for. A run that was
// cancelled waits for its step to end, and is told of the cancellation only by a
// worker that lives: where that is gone, or ends the attempt for another reason that
// another attempt would mend, Temporal starts no other one and says what the last one
// came to. It is the cancellation that ended such a step. A failure that no attempt
// could have mended stays one.
func endedBy(ctx workflow.Context, err error) error {
	if err == nil || ctx.Err() == nil || temporal.IsCanceledError(err) || isFinal(err) {
		return err
	}
	return temporal.NewCanceledError(Sentence(err))
}

// isFinal says whether no further attempt could have helped.
func isFinal(err error) bool {
	var app *temporal.ApplicationError
	return errors.As(err, &app) && app.NonRetryable()
}

// Sentence is the innermost message of an error that came through Temporal:
// without the SDK's words about activity types and attempts.
func Sentence(err error) string {
	var app *temporal.ApplicationError
	if errors.As(err, &app) {
		return app.Message()
	}
	var timeout *temporal.TimeoutError
	if errors.As(err, &timeout) {
		return "no worker finished it in time: " + timeout.TimeoutType().String()
	}
	if err == nil {
		return ""
	}
	return err.Error()
}

// failed ends a workflow with the class and sentence of the step that failed.
// A cancelled workflow stays a cancelled one.
func failed(what string, err error) error {
	if temporal.IsCanceledError(err) {
		return err
	}
	return temporal.NewNonRetryableApplicationError(what+": "+Sentence(err), ErrorClass(err), err)
}
