package lance

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Class says what kind of failure an [Error] is, and so what a caller should do.
type Class string

// The classes. All but Library and Memory come from the native library.
const (
	Invalid     Class = "invalid"     // bad request, uri or argument: trying again does not help
	Gone        Class = "gone"        // the dataset, version or object does not exist
	Exists      Class = "exists"      // put-if-absent met an object
	Conflict    Class = "conflict"    // somebody else committed first: read again, decide again
	Corrupt     Class = "corrupt"     // it is there and cannot be decoded
	Unsupported Class = "unsupported" // a format or feature this library does not know
	Denied      Class = "denied"      // the store refused the credentials or the operation
	Unreachable Class = "unreachable" // no answer, refused connection, 5xx, throttled: try later
	Timeout     Class = "timeout"     // a deadline passed, the context's or a target's own
	Cancelled   Class = "cancelled"   // the context was cancelled
	Closed      Class = "closed"      // the engine is closed
	Panic       Class = "panic"       // a bug of the native library
	Internal    Class = "internal"    // anything else
	Library     Class = "library"     // the native library could not be loaded
	Memory      Class = "memory"      // a child process used more memory than it may: see package subprocess
)

// Sentinels for errors.Is, one for each class.
var (
	ErrInvalid     error = sentinel(Invalid)
	ErrGone        error = sentinel(Gone)
	ErrExists      error = sentinel(Exists)
	ErrConflict    error = sentinel(Conflict)
	ErrCorrupt     error = sentinel(Corrupt)
	ErrUnsupported error = sentinel(Unsupported)
	ErrDenied      error = sentinel(Denied)
	ErrUnreachable error = sentinel(Unreachable)
	ErrTimeout     error = sentinel(Timeout)   // matches context.DeadlineExceeded too
	ErrCancelled   error = sentinel(Cancelled) // matches context.Canceled too
	ErrClosed      error = sentinel(Closed)
	ErrPanic       error = sentinel(Panic)
	ErrInternal    error = sentinel(Internal)
	ErrLibrary     error = sentinel(Library)
	ErrMemory      error = sentinel(Memory)
)

type sentinel Class

func (s sentinel) Error() string        { return string(s) }
func (s sentinel) Is(target error) bool { return isContextError(Class(s), target) }

// Error is what every call of this package fails with.
type Error struct {
	Class   Class
	Op      string // the operation, as native/README.md names it
	URI     string // what it was about; "" = no single dataset
	Message string // the cause, in the words of the library or the store
}

// Error names the action, what it was about, the class and the cause.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(strings.ReplaceAll(e.Op, "_", " "))
	if e.URI != "" {
		b.WriteString(" " + e.URI)
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	b.WriteString(string(e.Class))
	if e.Message != "" {
		b.WriteString(": " + e.Message)
	}
	return b.String()
}

// Is makes errors.Is match the sentinel of the class, and the errors of package
// context for [Cancelled] and [Timeout].
func (e *Error) Is(target error) bool {
	if s, ok := target.(sentinel); ok {
		return Class(s) == e.Class
	}
	return isContextError(e.Class, target)
}

func isContextError(c Class, target error) bool {
	switch c {
	case Cancelled:
		return errors.Is(target, context.Canceled)
	case Timeout:
		return errors.Is(target, context.DeadlineExceeded)
	}
	return false
}

// ClassOf returns the class of err: "" for nil, and [Internal] for an error that
// is neither from this package nor from a context.
func ClassOf(err error) Class {
	var e *Error
	var s sentinel
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e) && e != nil:
		return e.Class
	case errors.As(err, &s):
		return Class(s)
	case errors.Is(err, context.Canceled):
		return Cancelled
	case errors.Is(err, context.DeadlineExceeded):
		return Timeout
	}
	return Internal
}

// maxMessage bounds an error's text in bytes: stores answer with whole pages, and
// errors are kept in tables and histories.
const maxMessage = 2048

func shorten(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage], "") + "..."
}

// wireError is an error as the native library writes it.
type wireError struct {
	Class   Class  `json:"class"`
	Message string `json:"message"`
	URI     string `json:"uri"`
}

// err turns w into an Error. The uri of the request stands in where the library
// names none; a class this version does not know is Internal.
func (w wireError) err(op, uri string) *Error {
	e := &Error{Class: w.Class, Op: op, URI: w.URI, Message: shorten(w.Message)}
	if e.URI == "" {
		e.URI = uri
	}
	if !w.Class.known() {
		e.Class = Internal
		e.Message = fmt.Sprintf("unknown class %q: %s", w.Class, e.Message)
	}
	return e
}

func (c Class) known() bool {
	switch c {
	case Invalid, Gone, Exists, Conflict, Corrupt, Unsupported, Denied, Unreachable,
		Timeout, Cancelled, Closed, Panic, Internal:
		return true
	}
	return false
}

// contextError is the Error for a context that has ended.
func contextError(ctx context.Context, op, uri string) *Error {
	e := &Error{Class: Cancelled, Op: op, URI: uri}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		e.Class = Timeout
	}
	if cause := context.Cause(ctx); cause != nil {
		e.Message = cause.Error()
	}
	return e
}
