package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/labstack/echo/v4"
)

// How long an answer may take, by what it is made from. The program that asks gives
// up later, and so does whatever passes the answer on.
const (
	fromMemory  = 10 * time.Second
	fromStorage = 40 * time.Second // or from Temporal
	fromAWorker = 70 * time.Second // or when somebody says to wait: longestPoll, and showing it
	fromEnd     = 85 * time.Second // everything of one experiment is reopened
	lastWords   = time.Second      // for a handler to say by itself that its time is over
)

// deadlines are those that differ from what is said of all.
var deadlines = map[string]time.Duration{
	"GET /api/v1/status":                           fromMemory,
	"GET /api/v1/plan":                             fromMemory,
	"POST /batch":                                  fromAWorker,
	"POST /api/v1/batches":                         fromAWorker,
	"GET /export.csv":                              fromStorage,
	"GET /export.json":                             fromStorage,
	"GET /experiments/:name/do/:action":            fromEnd,
	"POST /experiments/:name/do/:action":           fromEnd,
	"POST /experiments/:name/refresh":              fromAWorker,
	"POST /rounds/start":                           fromAWorker,
	"POST /api/v1/rescan":                          fromAWorker,
	"POST /api/v1/experiments/:name/rescan":        fromAWorker,
	"POST /api/v1/experiments/:name/retire":        fromEnd,
	"POST /api/v1/experiments/:name/optimize":      fromEnd,
	"POST /api/v1/experiments/:name/seal":          fromEnd,
	"POST /api/v1/experiments/:name/accept":        fromEnd,
	"GET /api/v1/experiments/:name/plan":           fromEnd,
	"GET /api/v1/experiments/:name/verify":         fromEnd,
	"GET /api/v1/rounds/:workflow_id/:run_id":      fromAWorker,
	"GET /api/v1/maintenance/:workflow_id/:run_id": fromAWorker,
}

// polls wait for something to end. When the server stops they are answered at once;
// everything else is finished.
var polls = map[string]bool{
	"GET /api/v1/rounds/:workflow_id/:run_id":      true,
	"GET /api/v1/maintenance/:workflow_id/:run_id": true,
	"POST /api/v1/rescan":                          true,
	"POST /api/v1/experiments/:name/rescan":        true,
	"POST /experiments/:name/refresh":              true,
	"POST /rounds/start":                           true,
}

func deadlineOf(route string) time.Duration {
	if d, ok := deadlines[route]; ok {
		return d
	}
	return fromStorage
}

// bounded gives every request its time.
func (s *Server) bounded(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		route := r.Method + " " + c.Path()
		ctx, cancel := context.WithTimeout(r.Context(), s.deadline(route))
		defer cancel()
		if polls[route] {
			defer context.AfterFunc(s.stopping, cancel)()
		}
		c.SetRequest(r.WithContext(ctx))
		return next(c)
	}
}

// inTime runs a handler and leaves it behind when it does not end although its time
// is over: a call that hangs in a store must not hang whoever asks.
func inTime[I, O any](ctx context.Context, in *I, h func(context.Context, *I) (*O, error)) (*O, error) {
	type answer struct {
		out   *O
		err   error
		panic any
	}
	done := make(chan answer, 1)
	go func() {
		var a answer
		defer func() {
			if p := recover(); p != nil {
				a.panic = fmt.Errorf("%v\n%s", p, debug.Stack())
			}
			done <- a
		}()
		a.out, a.err = h(ctx, in)
	}()
	a, ended := answer{}, false
	select {
	case a = <-done:
		ended = true
	case <-ctx.Done():
		last := time.NewTimer(lastWords)
		defer last.Stop()
		select {
		case a = <-done:
			ended = true
		case <-last.C:
		}
	}
	switch {
	case !ended:
		return nil, refuse(http.StatusServiceUnavailable, "no answer in time: storage or Temporal hangs")
	case a.panic != nil:
		panic(a.panic) //nolint:forbidigo // the handler's own, where recoverPanics sees it
	}
	return a.out, a.err
}

// stopped words what a poll ends with when the server does.
func (s *Server) stopped(err error) *ErrorBody {
	if s.stopping.Err() == nil || !errors.Is(err, context.Canceled) {
		return nil
	}
	return refuse(http.StatusServiceUnavailable, "this server is stopping: ask again").with("Retry-After", "2")
}

// busiest is how many may wait for a look at storage. More would only wait until
// their time is over.
const busiest = 32

// slot is the right to look at storage on somebody's behalf, until it is given back.
// Few at once: people who browse must not take the store away from rounds.
func (s *Server) slot(ctx context.Context) (back func(), err error) {
	tooBusy := refuse(http.StatusServiceUnavailable, "too many looks at storage at once: try again").with("Retry-After", "5")
	if s.waiting.Add(1) > busiest {
		s.waiting.Add(-1)
		return nil, tooBusy
	}
	defer s.waiting.Add(-1)
	select {
	case s.observing <- struct{}{}:
		return func() { <-s.observing }, nil
	case <-ctx.Done():
		return nil, tooBusy
	}
}
