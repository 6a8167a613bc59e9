package store

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// sharedWorkLimit ends work that several callers wait for: none of their
// deadlines may end it, since another may have more time.
const sharedWorkLimit = 5 * time.Minute

// fresh shares work among callers, like singleflight, except that nobody gets the
// result of work that began before they asked: who arrives while it runs waits for
// the next run, together with all others who arrive meanwhile. So a reader sees
// its own earlier commit, and any number of callers cost at most two runs. What
// each caller brings along is handed to the run in one piece.
type fresh[A, T any] struct {
	work func(context.Context, []A) (T, error)

	mu            sync.Mutex
	running, next *flight[A, T]
}

type flight[A, T any] struct {
	ctx     context.Context // values of the first caller, without its deadline
	cancel  context.CancelFunc
	brought []A
	waiters int
	done    chan struct{}
	value   T
	err     error
}

// do returns the result of a run that begins after the call. When the caller's
// context ends it leaves; the work is cancelled when nobody waits any more.
func (f *fresh[A, T]) do(ctx context.Context, bring A) (T, error) {
	fl := f.join(ctx, bring)
	select {
	case <-fl.done:
		return fl.value, fl.err
	case <-ctx.Done():
		f.leave(fl)
		var none T
		return none, ctx.Err()
	}
}

func (f *fresh[A, T]) join(ctx context.Context, bring A) *flight[A, T] {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.next == nil {
		shared, cancel := context.WithCancel(context.WithoutCancel(ctx))
		f.next = &flight[A, T]{ctx: shared, cancel: cancel, done: make(chan struct{})}
	}
	fl := f.next
	fl.waiters++
	fl.brought = append(fl.brought, bring)
	f.startNext()
	return fl
}

func (f *fresh[A, T]) leave(fl *flight[A, T]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if fl.waiters--; fl.waiters > 0 {
		return
	}
	fl.cancel()
	if f.next == fl {
		f.next = nil
	}
}

// startNext starts the waiting flight if none is in the air. The lock is held.
func (f *fresh[A, T]) startNext() {
	if f.running != nil || f.next == nil {
		return
	}
	fl := f.next
	f.running, f.next = fl, nil
	go func() {
		limited, cancel := context.WithTimeout(fl.ctx, sharedWorkLimit)
		fl.value, fl.err = f.work(limited, fl.brought)
		cancel()
		fl.cancel()
		f.mu.Lock()
		defer f.mu.Unlock()
		f.running = nil
		close(fl.done)
		f.startNext()
	}()
}

const (
	conflictAttempts = 20
	firstBackoff     = 10 * time.Millisecond
	longestBackoff   = time.Second
)

// backOff waits before another attempt after a conflict: doubling, with as much
// chance in it that two writers don't meet again.
func backOff(ctx context.Context, attempt int) error {
	longest := min(firstBackoff<<min(attempt, 10), longestBackoff)
	timer := time.NewTimer(time.Duration(rand.Int64N(int64(longest))) + firstBackoff/2)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
