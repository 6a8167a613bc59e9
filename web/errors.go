package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"lancefleet/control"
	"lancefleet/lance"
)

// refuse is an error with its status; the message is shown as it is.
func refuse(status int, message string) *ErrorBody {
	return &ErrorBody{Message: message, status: status}
}

// with adds a header to the answer.
func (e *ErrorBody) with(name, value string) *ErrorBody {
	e.GetHeaders().Set(name, value)
	return e
}

// GetHeaders are what the answer says besides its body; huma asks for them, and adds
// to them.
func (e *ErrorBody) GetHeaders() http.Header {
	if e.header == nil {
		e.header = http.Header{}
	}
	return e.header
}

// statusOfClass says what a class of the native library means to a caller. 404 is
// kept for names that no source knows.
func statusOfClass(class string) int {
	switch lance.Class(class) {
	case lance.Invalid, lance.Gone, lance.Corrupt, lance.Unsupported:
		return http.StatusUnprocessableEntity
	case lance.Conflict, lance.Exists:
		return http.StatusConflict
	case lance.Denied, lance.Unreachable, lance.Timeout, lance.Cancelled, lance.Closed, lance.Library:
		return http.StatusServiceUnavailable
	default:
		return http.StatusInternalServerError
	}
}

// statusOfSteering says what a failure of Temporal, or of a workflow, means.
func statusOfSteering(e *control.Error) int {
	switch {
	case errors.Is(e, control.ErrNoSchedule):
		return http.StatusServiceUnavailable
	case e.Class == control.ClassGone && e.Op != "refresh":
		return http.StatusNotFound
	case e.Class == control.ClassInternal:
		return http.StatusInternalServerError
	default:
		return statusOfClass(e.Class)
	}
}

// answerOf makes any error one with a status.
func answerOf(err error) *ErrorBody {
	var body *ErrorBody
	if errors.As(err, &body) {
		return body
	}
	var steering *control.Error
	if errors.As(err, &steering) {
		return refuse(statusOfSteering(steering), sentence(err))
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return refuse(http.StatusServiceUnavailable, "no answer in time: "+sentence(err))
	}
	return refuse(statusOfClass(string(lance.ClassOf(err))), sentence(err))
}

// sentence is an error on one line of bearable length.
func sentence(err error) string {
	s := strings.Join(strings.Fields(strings.ToValidUTF8(err.Error(), "?")), " ")
	const most = 400
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return strings.TrimRight(s, ".") // the words around it end with their own
}

// uncertain words a failure of something that was asked to change: no answer does
// not mean that nothing happened.
func uncertain(doing string, err error) error {
	if !noAnswer(err) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return fmt.Errorf("%s: %w; whether it took effect is not known", doing, err)
}

func noAnswer(err error) bool {
	return control.ClassOf(err) == control.ClassUnreachable || errors.Is(err, context.DeadlineExceeded)
}
