package activities

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
)

// Heart tells Temporal that an attempt is alive; client.Client is one.
type Heart interface {
	RecordActivityHeartbeat(ctx context.Context, taskToken []byte, details ...any) error
}

var (
	errStopping  = errors.New("the worker is stopping")
	errLeaseLost = errors.New("no heartbeat reached temporal in time: another attempt may run by now")
	errTaken     = errors.New("temporal gave the attempt up")
)

// Progress is what a heartbeat tells about an attempt, for people who look at a
// pending activity.
type Progress struct {
	Step    string `json:"step"`
	Done    int    `json:"done"`
	Of      int    `json:"of"`
	Counted bool   `json:"counted,omitempty"` // this activity's effect is in a counter: see once
}

// lease keeps one attempt's right to run. The SDK does not cancel an attempt whose
// heartbeats reach nobody, so the lease does, before the server's heartbeat timeout
// lets the next attempt start.
type lease struct {
	heart    Heart
	token    []byte
	timeout  time.Duration // the server's heartbeat timeout
	progress atomic.Pointer[Progress]
	cancel   context.CancelCauseFunc
	done     chan struct{}
}

// A heartbeat every quarter of the timeout; the attempt ends after two thirds of
// it without one that arrived. The rest is for ending.
const (
	beatsPerTimeout   = 4
	leaseNumerator    = 2
	leaseDenominator  = 3
	noHeartbeatNeeded = time.Duration(0)
)

// holdLease starts the lease of the attempt that ctx belongs to. The context it
// returns ends when the lease does; release it when the attempt is over.
func holdLease(ctx context.Context, heart Heart) (context.Context, *lease) {
	info := activity.GetInfo(ctx)
	leased, cancel := context.WithCancelCause(ctx)
	l := &lease{heart: heart, token: info.TaskToken, timeout: info.HeartbeatTimeout, cancel: cancel, done: make(chan struct{})}
	l.report(Progress{Step: "start"})
	go l.keep(leased, activity.GetWorkerStopChannel(ctx))
	return leased, l
}

// report says how far the attempt is. The next heartbeat carries it.
func (l *lease) report(p Progress) { l.progress.Store(&p) }

// once counts an activity's effect, by the first attempt that comes so far. Temporal
// is told before the counter moves: an attempt that can't reach it doesn't count,
// since the next one will, and one that is told so doesn't either.
func (l *lease) once(ctx context.Context, count func()) error {
	if countedBefore(ctx) {
		return nil
	}
	l.report(Progress{Step: "done", Counted: true})
	if l.timeout != noHeartbeatNeeded && l.heart != nil {
		if err := l.heart.RecordActivityHeartbeat(ctx, l.token, l.progress.Load()); err != nil {
			return fmt.Errorf("tell temporal that the step is done: %w", err)
		}
	}
	count()
	return nil
}

func countedBefore(ctx context.Context) bool {
	var told Progress
	return activity.HasHeartbeatDetails(ctx) && activity.GetHeartbeatDetails(ctx, &told) == nil && told.Counted
}

// release ends the lease and waits for its goroutine.
func (l *lease) release() {
	l.cancel(context.Canceled)
	<-l.done
}

func (l *lease) keep(ctx context.Context, stop <-chan struct{}) {
	defer close(l.done)
	if l.timeout == noHeartbeatNeeded || l.heart == nil {
		l.watch(ctx, stop)
		return
	}
	ticker := time.NewTicker(l.timeout / beatsPerTimeout)
	defer ticker.Stop()
	allowed := l.timeout * leaseNumerator / leaseDenominator
	deadline := time.Now().Add(allowed)
	for {
		select {
		case <-ctx.Done():
			return
		case <-stop:
			l.cancel(errStopping)
			return
		case <-time.After(time.Until(deadline)):
			l.cancel(errLeaseLost)
			return
		case <-ticker.C:
		}
		asked := time.Now()
		if err := l.beat(ctx, deadline); err == nil {
			deadline = asked.Add(allowed)
		} else if cause := lost(err, deadline); cause != nil {
			l.cancel(cause)
			return
		}
	}
}

func (l *lease) watch(ctx context.Context, stop <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-stop:
		l.cancel(errStopping)
	}
}

func (l *lease) beat(ctx context.Context, deadline time.Time) error {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	return l.heart.RecordActivityHeartbeat(ctx, l.token, l.progress.Load())
}

// lost says why the attempt must end, or nil while there is time to try again.
func lost(err error, deadline time.Time) error {
	var gone *serviceerror.NotFound
	switch {
	case temporal.IsCanceledError(err):
		return err
	case errors.As(err, &gone), errors.Is(err, activity.ErrActivityPaused), errors.Is(err, activity.ErrActivityReset):
		return errTaken
	case !time.Now().Before(deadline):
		return errLeaseLost
	}
	return nil
}

// leaseError replaces what a step returned by the reason its lease ended for, if
// that was why: an error of a cancelled call says nothing about its target.
func leaseError(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errStopping):
		return classError(typeStopping, cause)
	case errors.Is(cause, errLeaseLost), errors.Is(cause, errTaken):
		return classError(typeLeaseLost, cause)
	case temporal.IsCanceledError(cause), errors.Is(cause, context.Canceled):
		return temporal.NewCanceledError()
	}
	return err
}
