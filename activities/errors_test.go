package activities

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"lancefleet/lance"
)

func TestEveryClassOfErrorHasItsRetry(t *testing.T) {
	final := map[lance.Class]bool{
		lance.Invalid: true, lance.Gone: true, lance.Corrupt: true, lance.Unsupported: true, lance.Denied: true, lance.Library: true, lance.Memory: true,
	}
	for _, class := range []lance.Class{
		lance.Invalid, lance.Gone, lance.Exists, lance.Conflict, lance.Corrupt, lance.Unsupported, lance.Denied,
		lance.Unreachable, lance.Timeout, lance.Cancelled, lance.Closed, lance.Panic, lance.Internal, lance.Library, lance.Memory,
	} {
		t.Run(string(class), func(t *testing.T) {
			require.Contains(t, behaviours, string(class))
			err := temporalError(fmt.Errorf("look at it: %w", &lance.Error{Class: class, Op: "probe", Message: "why"}))
			var app *temporal.ApplicationError
			require.ErrorAs(t, err, &app)
			require.Equal(t, string(class), app.Type())
			require.Equal(t, final[class], app.NonRetryable())
		})
	}
}

func TestAConflictIsBenignAndTriedAgainSoon(t *testing.T) {
	var app *temporal.ApplicationError
	require.ErrorAs(t, temporalError(&lance.Error{Class: lance.Conflict}), &app)
	require.Equal(t, temporal.ApplicationErrorCategoryBenign, app.Category())
	require.GreaterOrEqual(t, app.NextRetryDelay().Seconds(), 1.0)
	require.LessOrEqual(t, app.NextRetryDelay().Seconds(), 5.0)
}

func TestCancellationAndTypedErrorsPassUnchanged(t *testing.T) {
	for _, err := range []error{nil, temporal.NewCanceledError(), temporal.NewApplicationError("m", "t")} {
		require.Equal(t, err, temporalError(err))
	}
}
