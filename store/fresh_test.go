package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNobodyGetsAnAnswerThatIsOlderThanTheQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var world, runs atomic.Int64
		gate := make(chan struct{})
		f := &fresh[int, int64]{work: func(context.Context, []int) (int64, error) {
			runs.Add(1)
			seen := world.Load()
			<-gate
			return seen, nil
		}}
		answers := make(chan int64, 100)
		ask := func() {
			go func() {
				v, err := f.do(t.Context(), 0)
				if err != nil {
					t.Error(err)
				}
				answers <- v
			}()
			synctest.Wait()
		}
		ask()
		world.Store(1) // moved after the first run looked
		for range 50 {
			ask()
		}
		gate <- struct{}{}
		require.Zero(t, <-answers)
		gate <- struct{}{}
		for range 50 {
			require.EqualValues(t, 1, <-answers)
		}
		require.EqualValues(t, 2, runs.Load(), "fifty who came meanwhile share one run")
	})
}

func TestWhatEachCallerBringsIsInExactlyOneRun(t *testing.T) {
	var mu sync.Mutex
	seen := map[int]int{}
	f := &fresh[int, int]{work: func(_ context.Context, brought []int) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		for _, b := range brought {
			seen[b]++
		}
		return len(brought), nil
	}}
	var wg sync.WaitGroup
	for i := range 500 {
		wg.Go(func() {
			if _, err := f.do(t.Context(), i); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.Len(t, seen, 500)
	for i, n := range seen {
		require.Equal(t, 1, n, i)
	}
}

func TestACallerThatLeavesDoesNotEndTheWorkOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		f := &fresh[int, string]{work: func(ctx context.Context, _ []int) (string, error) {
			select {
			case <-gate:
				return "done", nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}}
		impatient, cancel := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() {
			_, err := f.do(impatient, 0)
			left <- err
		}()
		synctest.Wait()
		got := make(chan string, 2)
		for range 2 { // wait for the next run
			go func() {
				v, err := f.do(t.Context(), 0)
				if err != nil {
					t.Error(err)
				}
				got <- v
			}()
		}
		synctest.Wait()
		hasty, leave := context.WithCancel(t.Context())
		go func() { // waits for the next run too, and leaves before it begins
			_, err := f.do(hasty, 0)
			left <- err
		}()
		synctest.Wait()
		leave()
		require.ErrorIs(t, <-left, context.Canceled)
		cancel() // nobody waits for the first run any more: it ends, the next begins
		require.ErrorIs(t, <-left, context.Canceled)
		gate <- struct{}{}
		require.Equal(t, "done", <-got)
		require.Equal(t, "done", <-got)
	})
}

func TestAFailedRunFailsItsCallersAndNoOthers(t *testing.T) {
	n := 0
	f := &fresh[int, int]{work: func(context.Context, []int) (int, error) {
		n++
		if n == 1 {
			return 0, errors.New("no")
		}
		return n, nil
	}}
	_, err := f.do(t.Context(), 0)
	require.ErrorContains(t, err, "no")
	v, err := f.do(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, 2, v)
}

func TestSharedWorkEndsAtItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fresh[int, int]{work: func(ctx context.Context, _ []int) (int, error) {
			<-ctx.Done()
			return 0, fmt.Errorf("hung: %w", ctx.Err())
		}}
		began := time.Now()
		_, err := f.do(t.Context(), 0)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, sharedWorkLimit, time.Since(began))
	})
}
