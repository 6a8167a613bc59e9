package activities

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"lancefleet/e2e/temporaltest"
)

// An attempt whose worker is cut off must have ended before the server lets the
// next one start elsewhere. The SDK alone does not see to that.
func TestACutOffAttemptHasEndedWhenTheNextOneStarts(t *testing.T) {
	t.Parallel()
	server := temporaltest.Start(t, temporaltest.Options{})
	proxy := newProxy(t, server.Address)
	cutOff, err := client.Dial(client.Options{HostPort: proxy.address(), Logger: temporaltest.Quiet()})
	require.NoError(t, err)
	t.Cleanup(cutOff.Close)

	first := newAttempts(cutOff)
	one := first.worker(cutOff)
	require.NoError(t, one.Start())
	t.Cleanup(one.Stop)
	_, err = server.Client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: queue}, leasedWorkflow)
	require.NoError(t, err)
	receive(t, first.began)
	proxy.cut()
	second := newAttempts(server.Client)
	second.finish = true
	two := second.worker(server.Client)
	require.NoError(t, two.Start())
	t.Cleanup(two.Stop)

	ended := receive(t, first.ended)
	began := receive(t, second.began)
	require.ErrorIs(t, ended.cause, errLeaseLost)
	require.True(t, ended.at.Before(began), "the old attempt ended %v after the new one began", ended.at.Sub(began))
	t.Logf("ended %v before the next began", began.Sub(ended.at))
}

func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(3 * time.Minute):
		t.Fatal("it never came")
		panic("unreachable") //nolint:forbidigo // Fatal does not return, which the compiler cannot know
	}
}

const queue = "leased"

func leasedWorkflow(ctx workflow.Context) error {
	return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 5 * time.Minute,
		HeartbeatTimeout:    15 * time.Second,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: time.Millisecond, MaximumAttempts: 20},
	}), "leased").Get(ctx, nil)
}

// attempts is an activity that tells when it begins and when its lease ends.
type attempts struct {
	heart  Heart
	finish bool // at once
	began  chan time.Time
	ended  chan end
}

type end struct {
	at    time.Time
	cause error
}

func newAttempts(heart Heart) *attempts {
	return &attempts{heart: heart, began: make(chan time.Time, 20), ended: make(chan end, 20)}
}

func (a *attempts) run(ctx context.Context) error {
	leased, l := holdLease(ctx, a.heart)
	defer l.release()
	a.began <- time.Now()
	if a.finish {
		return nil
	}
	<-leased.Done()
	a.ended <- end{at: time.Now(), cause: context.Cause(leased)}
	return leaseError(leased, leased.Err())
}

func (a *attempts) worker(c client.Client) worker.Worker {
	w := worker.New(c, queue, worker.Options{MaxConcurrentActivityExecutionSize: 1}) // while it works it asks for no more
	w.RegisterWorkflow(leasedWorkflow)
	w.RegisterActivityWithOptions(a.run, activity.RegisterOptions{Name: "leased"})
	return w
}

// proxy passes bytes to the server until it is cut: then connections stay open and
// nothing passes, as when a network goes away.
type proxy struct {
	listener net.Listener
	target   string
	gone     chan struct{}
	once     sync.Once
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{listener: listener, target: target, gone: make(chan struct{})}
	go p.accept()
	t.Cleanup(func() {
		p.cut()
		require.NoError(t, listener.Close())
	})
	return p
}

func (p *proxy) address() string { return p.listener.Addr().String() }

func (p *proxy) cut() { p.once.Do(func() { close(p.gone) }) }

func (p *proxy) accept() {
	for {
		inner, err := p.listener.Accept()
		if err != nil {
			return
		}
		outer, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = inner.Close()
			return
		}
		go p.pass(inner, outer)
		go p.pass(outer, inner)
	}
}

func (p *proxy) pass(to io.Writer, from io.Reader) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		select {
		case <-p.gone:
			return
		default:
		}
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
