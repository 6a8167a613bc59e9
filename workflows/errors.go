package workflows

import (
	"errors"

	"go.temporal.io/sdk/temporal"
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
