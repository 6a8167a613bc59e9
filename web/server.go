package web

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"golang.org/x/sync/singleflight"

	"lancefleet/fleet"
)

const (
	longestPoll     = 60 * time.Second
	writeTimeout    = 90 * time.Second // longer than the longest poll
	stopGrace       = 8 * time.Second  // to finish what was begun; container engines give 10
	observersAtOnce = 4                // on-demand observations; more would let readers starve the store
)

// Server serves pages and API of one fleet.
type Server struct {
	config    Config
	fleet     string
	dataDir   string
	build     string
	policies  fleet.Policies
	origins   map[string]string // of the default policy's values, by their names in Policy
	budgets   fleet.Budgets
	now       func() time.Time
	log       *slog.Logger
	feed      *feed
	events    *eventQueue
	lookup    lookup    // nil = no sources
	observer  observer  // nil = nothing can be observed on demand
	inspect   inspector // nil = nothing can be looked at closely
	journal   journal
	samples   samples
	steer     steering // nil = no Temporal
	rounds    rounds
	authorise Authorise
	gate      *gate
	reads     *limits                    // of what goes to storage because somebody asks, by client
	address   func(*http.Request) string // of a client
	metrics   http.Handler
	measured  func(method, route string, status int, took time.Duration)

	echo      *echo.Echo
	handler   http.Handler
	access    map[string]Access      // "METHOD /path" as echo spells it
	strict    map[string]*parameters // likewise; those whose query may hold nothing else
	pages     *pages
	observing chan struct{}      // slots
	waiting   atomic.Int64       // for one of them
	digests   digests            // of the journal
	backlogs  backlogs           // of the fleet's series
	looks     singleflight.Group // at what has no row

	stopping context.Context // ended when the server stops: polls end with it
	stop     context.CancelFunc
	deadline func(route string) time.Duration

	cold *coldLooks // of what no table has
}

// parts is what a Server is made of, all behind interfaces.
type parts struct {
	snapshots snapshots
	lookup    lookup
	names     names // nil = no sources
	rounds    rounds
	ledger    ledger
	journal   journal
	samples   samples
	observer  observer
	inspect   inspector
	steer     steering
	policies  fleet.Policies
	origins   map[string]string
	budgets   fleet.Budgets
	fleet     string
	dataDir   string
	build     string
	now       func() time.Time
	log       *slog.Logger
	authorise Authorise
	metrics   http.Handler
	measured  func(method, route string, status int, took time.Duration)
	events    EventMetrics // nil = none kept
}

func newServer(config Config, p parts) (*Server, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	useErrorBody()
	pages, err := loadPages()
	if err != nil {
		return nil, err
	}
	gate, err := newGate(config, p.now, p.log)
	if err != nil {
		return nil, err
	}
	address, err := newAddresses(config.TrustedProxies)
	if err != nil {
		return nil, err
	}
	s := &Server{
		config: config, fleet: p.fleet, dataDir: p.dataDir, build: p.build, policies: p.policies, origins: p.origins, budgets: p.budgets, now: p.now, log: p.log,
		inspect: p.inspect, journal: p.journal, samples: p.samples, lookup: p.lookup, observer: p.observer, steer: p.steer, rounds: p.rounds, authorise: p.authorise,
		metrics: p.metrics, measured: p.measured, pages: pages,
		gate: gate, address: address, reads: newLimits(config.storageReads(), p.now),
		access: map[string]Access{}, strict: map[string]*parameters{}, observing: make(chan struct{}, observersAtOnce), cold: newColdLooks(p.observer, p.now),
		feed: &feed{
			snapshots: p.snapshots, names: p.names, rounds: p.rounds, ledger: p.ledger, journal: p.journal, steer: p.steer, policies: p.policies, now: p.now,
			every: config.RefreshEvery, log: p.log,
			reload: make(chan struct{}, 1), reschedule: make(chan struct{}, 1), rename: make(chan struct{}, 1), changed: make(chan struct{}),
		},
	}
	s.feed.prepare, s.feed.warm = s.prepare, s.warm
	s.journal, s.samples, s.rounds = soonJournal{p.journal, s.feed}, soonSamples{p.samples, s.feed}, soonRounds{p.rounds, s.feed}
	if p.steer != nil {
		s.steer = impatient{p.steer, s.feed}
	}
	s.deadline = deadlineOf
	s.stopping, s.stop = context.WithCancel(context.Background())
	var to hinter
	if p.steer != nil {
		to = p.steer
	}
	s.events = newEventQueue(to, p.events, p.log)
	s.route()
	return s, nil
}

// route wires middleware and routes once.
func (s *Server) route() {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.HTTPErrorHandler = s.answerError
	e.Use(s.measure, s.logged, middleware.GzipWithConfig(middleware.GzipConfig{MinLength: 1024}), unescapePath, s.guard, s.bounded, s.strictQuery, s.unchanged)
	s.echo = e
	s.routeAPI()
	s.routePages()
	s.handler = s.protect(e)
}

// Handler answers requests; Run must be running for it to have anything to show.
func (s *Server) Handler() http.Handler { return s.handler }

// Run keeps the data in memory new, and hands over what events named, until the
// context ends.
func (s *Server) Run(ctx context.Context) {
	var all sync.WaitGroup
	all.Go(func() { s.gate.watch(ctx) })
	all.Go(func() { s.feed.run(ctx) })
	all.Go(func() { s.events.run(ctx) })
	all.Wait()
}

// Serve answers requests on the listener, and keeps the data new, until the
// context ends. Long polls end with the context; other answers are finished, and cut
// off where that takes longer than stopGrace.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answering, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	server := &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: 20 * time.Second, // a busy machine reads late
		WriteTimeout:      writeTimeout,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(net.Listener) context.Context { return answering },
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx) })
	running.Go(func() {
		<-ctx.Done()
		s.stop()
		grace, done := context.WithTimeout(answering, stopGrace)
		defer done()
		if err := server.Shutdown(grace); err != nil {
			s.log.Warn("stopped with answers unfinished", "after", stopGrace)
			cut()
			_ = server.Close()
		}
	})
	err := server.Serve(l)
	cancel()
	running.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// unescapePath gives handlers path parameters as they were meant: the router
// matches the escaped path, so that a name may hold a slash.
func unescapePath(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if c.Request().URL.RawPath == "" {
			return next(c)
		}
		values := make([]string, len(c.ParamValues()))
		for i, v := range c.ParamValues() {
			plain, err := url.PathUnescape(v)
			if err != nil {
				return refuse(http.StatusBadRequest, "the path is not properly escaped")
			}
			values[i] = plain
		}
		c.SetParamValues(values...)
		return next(c)
	}
}

// measure counts by route, never by path: names would be labels without end.
func (s *Server) measure(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if s.measured == nil {
			return next(c)
		}
		start := s.now()
		if err := next(c); err != nil {
			c.Error(err)
		}
		route := c.Path()
		if route == "" {
			route = "none"
		}
		s.measured(c.Request().Method, route, c.Response().Status, s.now().Sub(start))
		return nil
	}
}

func (s *Server) logged(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		start := s.now()
		if err := next(c); err != nil {
			c.Error(err)
		}
		r := c.Request()
		s.log.Debug("served", "method", r.Method, "path", r.URL.Path, "status", c.Response().Status,
			"took", s.now().Sub(start), "request_id", requestID(r.Context()))
		return nil
	}
}

// answerError answers what handlers return as an error: as a page below /, as
// JSON below /api.
func (s *Server) answerError(err error, c echo.Context) {
	if c.Response().Committed {
		return
	}
	body := s.explain(c.Request().Context(), err)
	for name := range body.header {
		c.Response().Header().Set(name, body.header.Get(name))
	}
	if isAPI(c.Request().URL.Path) {
		_ = c.JSON(body.status, body) // the client may be gone
		return
	}
	s.errorPage(c, body)
}

func isAPI(path string) bool {
	return strings.HasPrefix(path, "/api/") || path == "/metrics" || path == "/healthz" || path == "/readyz"
}

// explain makes an error fit to be shown; a bug is logged and told neutrally.
func (s *Server) explain(ctx context.Context, err error) *ErrorBody {
	var he *echo.HTTPError
	if errors.As(err, &he) {
		switch he.Code {
		case http.StatusNotFound:
			return refuse(he.Code, "there is nothing at this address")
		case http.StatusMethodNotAllowed:
			return refuse(he.Code, "this address does not take that method")
		}
	}
	var told *ErrorBody
	if errors.As(err, &told) {
		return told
	}
	if body := s.stopped(err); body != nil {
		return body
	}
	body := answerOf(err)
	if body.status == http.StatusInternalServerError {
		s.log.Error("serving", "error", err, "request_id", requestID(ctx))
		return s.neutral(ctx)
	}
	return body
}

// handle registers one documented operation.
func handle[I, O any](s *Server, access Access, op huma.Operation, h func(context.Context, *I) (*O, error), api huma.API) {
	op.MaxBodyBytes = bodyLimit(op.Path)
	op.BodyReadTimeout = -1 // limitBody has read it
	op.Errors = slices.Clone(everyError)
	op.Security = securityOf(access)
	if fields := fieldsOf(reflect.TypeFor[I]()); len(fields) > 0 {
		op.Errors = append(op.Errors, http.StatusUnsupportedMediaType)
		op.Metadata = map[string]any{fieldsKey: fields}
	}
	s.access[op.Method+" "+echoPath(op.Path)] = access
	s.strict[op.Method+" "+echoPath(op.Path)] = parametersOf(reflect.TypeFor[I]())
	huma.Register(api, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := inTime(ctx, in, h)
		if err == nil {
			return out, nil
		}
		var unchanged huma.StatusError
		if errors.As(err, &unchanged) && unchanged.GetStatus() == http.StatusNotModified {
			return nil, err
		}
		return nil, s.explain(ctx, err)
	})
}

func echoPath(p string) string {
	return strings.NewReplacer("{", ":", "}", "").Replace(p)
}
