package control

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"lancefleet/workflows"
)

// Classes of an Error that are control's own. The failure of a round or a refresh
// carries the class of its cause (native/README.md), e.g. "denied".
const (
	ClassUnreachable = "unreachable" // Temporal gives no answer
	ClassGone        = "gone"        // no such workflow, or there is no schedule
	ClassDenied      = "denied"      // Temporal refused the credentials
	ClassInvalid     = "invalid"     // Temporal refused the request
	ClassConflict    = "conflict"    // somebody else was first, again and again
	ClassInternal    = "internal"
)

// Error is what every call of this package fails with.
type Error struct {
	Class string
	Op    string // what was tried
	ID    string // of the schedule or workflow; "" = neither
	Err   error
}

// Error names the action, the id and the cause.
func (e *Error) Error() string {
	if e.ID == "" {
		return fmt.Sprintf("%s: %s", e.Op, sentence(e.Err))
	}
	return fmt.Sprintf("%s %s: %s", e.Op, e.ID, sentence(e.Err))
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// ClassOf returns the class of err: "" for nil, ClassInternal for what is not of
// this package.
func ClassOf(err error) string {
	var e *Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return e.Class
	default:
		return ClassInternal
	}
}

func wrap(op, id string, err error) error {
	if err == nil {
		return nil
	}
	var known *Error
	if errors.As(err, &known) {
		return err
	}
	return &Error{Class: classify(err), Op: op, ID: id, Err: err}
}

func isGone(err error) bool {
	var gone *serviceerror.NotFound
	return errors.As(err, &gone)
}

func classify(err error) string {
	var (
		denied      *serviceerror.PermissionDenied
		invalid     *serviceerror.InvalidArgument
		unavailable *serviceerror.Unavailable
		deadline    *serviceerror.DeadlineExceeded
		exhausted   *serviceerror.ResourceExhausted
		execution   *temporal.WorkflowExecutionError
	)
	switch {
	case errors.As(err, &execution):
		return workflows.ErrorClass(err)
	case isGone(err):
		return ClassGone
	case errors.As(err, &denied):
		return ClassDenied
	case errors.As(err, &invalid):
		return ClassInvalid
	case errors.As(err, &unavailable), errors.As(err, &deadline), errors.As(err, &exhausted),
		errors.Is(err, context.DeadlineExceeded):
		return ClassUnreachable
	case errors.Is(err, context.Canceled):
		return "cancelled"
	default:
		return ClassInternal
	}
}

// sentence leaves out the SDK's words about types and attempts when a workflow
// failed: what the activity said is enough for people, the rest is in its history.
func sentence(err error) string {
	var execution *temporal.WorkflowExecutionError
	if errors.As(err, &execution) {
		return workflows.Sentence(err)
	}
	return err.Error()
}
