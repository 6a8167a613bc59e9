package activities

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"lancefleet/lance"
	"lancefleet/workflows"
)

const timeout = 30 * time.Second

// heart answers heartbeats as f says.
type heart struct {
	beats atomic.Int64
	f     func(ctx context.Context, n int64) error
}

func (h *heart) RecordActivityHeartbeat(ctx context.Context, _ []byte, _ ...any) error {
	return h.f(ctx, h.beats.Add(1))
}

// held runs a lease against a heart and tells when and why its context ended.
func held(t *testing.T, h *heart, stop <-chan struct{}, atMost time.Duration) (ended bool, after time.Duration, cause error) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	l := &lease{heart: h, timeout: timeout, cancel: cancel, done: make(chan struct{})}
	l.report(Progress{Step: "start"})
	began := time.Now()
	go l.keep(ctx, stop)
	select {
	case <-ctx.Done():
		ended, after, cause = true, time.Since(began), context.Cause(ctx)
	case <-time.After(atMost):
	}
	l.release()
	return ended, after, cause
}

func TestAnAttemptThatCannotReachTemporalEndsBeforeTheServerStartsTheNext(t *testing.T) {
	for name, f := range map[string]func(ctx context.Context, n int64) error{
		"refused": func(context.Context, int64) error { return serviceerror.NewUnavailable("no connection") },
		"hanging": func(ctx context.Context, _ int64) error {
			<-ctx.Done()
			return ctx.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ended, after, cause := held(t, &heart{f: f}, nil, time.Hour)
				require.True(t, ended)
				require.ErrorIs(t, cause, errLeaseLost)
				require.Less(t, after, timeout)
			})
		})
	}
}

func TestALostHeartbeatOrTwoDoNotEndAnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &heart{f: func(_ context.Context, n int64) error {
			if n%3 != 0 {
				return serviceerror.NewUnavailable("no connection")
			}
			return nil
		}}
		// Every third beat arrives: one in 22.5 s, later than the allowed 20 s.
		ended, _, _ := held(t, h, nil, time.Hour)
		require.True(t, ended)

		h = &heart{f: func(_ context.Context, n int64) error {
			if n%2 != 0 {
				return serviceerror.NewUnavailable("no connection")
			}
			return nil
		}}
		ended, _, _ = held(t, h, nil, time.Hour)
		require.False(t, ended)
		require.Greater(t, h.beats.Load(), int64(400))
	})
}

func TestAnAttemptEndsAtOnceWhenTemporalGivesItUp(t *testing.T) {
	for name, c := range map[string]struct {
		answer error
		class  string
	}{
		"cancelled":           {temporal.NewCanceledError(), ""},
		"another attempt ran": {serviceerror.NewNotFound("no such activity"), typeLeaseLost},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &heart{f: func(context.Context, int64) error { return c.answer }}
				ended, after, cause := held(t, h, nil, time.Hour)
				require.True(t, ended)
				require.Equal(t, timeout/beatsPerTimeout, after)
				ctx, cancel := context.WithCancelCause(context.Background())
				cancel(cause)
				err := leaseError(ctx, &lance.Error{Class: lance.Cancelled})
				if c.class == "" {
					require.True(t, temporal.IsCanceledError(err))
				} else {
					require.Equal(t, c.class, workflows.ErrorClass(err))
				}
			})
		})
	}
}

func TestAnAttemptEndsAtOnceWhenItsWorkerStopsAndIsTriedElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		close(stop)
		ended, after, cause := held(t, &heart{f: func(context.Context, int64) error { return nil }}, stop, time.Hour)
		require.True(t, ended)
		require.Zero(t, after)
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(cause)
		var app *temporal.ApplicationError
		require.ErrorAs(t, leaseError(ctx, context.Canceled), &app)
		require.Equal(t, typeStopping, app.Type())
		require.False(t, app.NonRetryable())
		require.Equal(t, temporal.ApplicationErrorCategoryBenign, app.Category())
	})
}

func TestAnErrorOfItsOwnIsNotBlamedOnTheLease(t *testing.T) {
	own := errors.New("own")
	require.Equal(t, own, leaseError(context.Background(), own))
}
