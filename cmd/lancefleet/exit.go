package main

import "errors"

// Exit codes; docs/cli.md tells them to users.
const (
	exitOK          = 0
	exitFailed      = 1 // it was tried and did not work
	exitUsage       = 2 // a flag, a setting or an argument is wrong
	exitUnreachable = 3 // the server gives no answer, or not yet
	exitNotFound    = 4 // no such experiment
	exitAmbiguous   = 5 // a bare name has several matches
)

// usageError is a mistake of who called, seen before anything was done.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// coded is an error that knows its exit code.
type coded interface{ exitCode() int }

func exitCode(err error) int {
	var usage usageError
	var known coded
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &known):
		return known.exitCode()
	default:
		return exitFailed
	}
}
