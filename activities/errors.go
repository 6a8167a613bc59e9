package activities

import (
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"

	"lancefleet/lance"
)

// Types of errors that are not classes of the native library.
const (
	typeForeignFleet = "foreign-fleet"   // this worker serves another data directory
	typeStopping     = "worker-stopping" // the attempt ended because its worker is going away
	typeLeaseLost    = "lease-lost"      // the attempt ended because Temporal could not be reached
)

// behaviour is what Temporal does with an error.
type behaviour struct {
	final  bool          // no further attempt: trying again can't help within this round
	benign bool          // part of normal life: not counted as a failure, not logged as one
	delay  time.Duration // before the next attempt; 0 = as the retry policy says
}

// behaviours is the one table from error class to retry. A class that is missing
// here is retried as the policy says; a test keeps it complete.
var behaviours = map[string]behaviour{
	string(lance.Invalid):     {final: true},
	string(lance.Gone):        {final: true},
	string(lance.Corrupt):     {final: true},
	string(lance.Unsupported): {final: true},
	string(lance.Denied):      {final: true},
	string(lance.Library):     {final: true},
	string(lance.Memory):      {final: true}, // the same step would need it again
	string(lance.Exists):      {benign: true, delay: time.Second},
	string(lance.Conflict):    {benign: true, delay: 2 * time.Second},
	string(lance.Closed):      {benign: true, delay: time.Second}, // another worker, or this one restarted
	string(lance.Cancelled):   {benign: true, delay: time.Second},
	string(lance.Unreachable): {},
	string(lance.Timeout):     {},
	string(lance.Panic):       {},
	string(lance.Internal):    {},
	typeForeignFleet:          {final: true},
	typeStopping:              {benign: true, delay: time.Second},
	typeLeaseLost:             {benign: true, delay: time.Second},
}

// temporalError turns an error into one whose type is its class, and whose retry
// is what the table says. Cancellation passes as it is.
func temporalError(err error) error {
	var app *temporal.ApplicationError
	if err == nil || temporal.IsCanceledError(err) || errors.As(err, &app) {
		return err
	}
	return classError(string(lance.ClassOf(err)), err)
}

func classError(class string, err error) error {
	b := behaviours[class]
	o := temporal.ApplicationErrorOptions{NonRetryable: b.final, NextRetryDelay: b.delay, Cause: err}
	if b.benign {
		o.Category = temporal.ApplicationErrorCategoryBenign
	}
	return temporal.NewApplicationErrorWithOptions(err.Error(), class, o)
}
