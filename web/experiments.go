package web

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"lancefleet/fleet"
)

// listInput documents the query; Resolve reads it, so that pages and API
// understand the same words.
type listInput struct {
	Q       string   `query:"q" doc:"Words and terms, as the page's text box takes them: gsm8k state:retired pending:>=100 last-write:<7d failing"`
	Search  string   `query:"search" doc:"Literal, case-insensitive part of the name"`
	Limit   int      `query:"limit" doc:"Clamped to 1..500" default:"50"`
	Offset  int      `query:"offset" default:"0"`
	Sort    string   `query:"sort" doc:"Any number, time or name of an experiment, as spelled in the answer" default:"last_write"`
	Order   string   `query:"order" doc:"asc or desc; unknown values come last either way"`
	Kind    []string `query:"kind" doc:"Only these kinds"`
	State   []string `query:"state" doc:"Only these states"`
	Failing string   `query:"failing" doc:"true: only those whose last observation failed"`
	Backlog string   `query:"backlog" doc:"true: only those with pending generations"`
	Unseen  string   `query:"unseen" doc:"true: only those never observed"`
	Match   string   `header:"If-None-Match"`

	query Query
}

// Resolve implements huma.Resolver.
func (in *listInput) Resolve(ctx huma.Context) []error {
	u := ctx.URL()
	query, mistakes := parseQuery(u.Query())
	in.query = query
	var errs []error
	for _, m := range mistakes {
		errs = append(errs, m)
	}
	return errs
}

type listOutput struct {
	ETag string `header:"ETag"`
	Body ExperimentList
}

func (s *Server) listExperiments(ctx context.Context, in *listInput) (*listOutput, error) {
	m := s.forSearch(ctx, in.query)
	if m.view == nil {
		return nil, notLoaded(m)
	}
	now := s.now().UnixMilli()
	tag := m.tagOf(in.query.href("/experiments"), now)
	if in.query.wantsCold() {
		tag = "" // what is looked at for an answer is in no version of anything
	}
	if tag != "" && matches(in.Match, tag) {
		return nil, huma.ErrorWithHeaders(huma.Status304NotModified(), http.Header{"Etag": {tag}})
	}
	return &listOutput{ETag: tag, Body: s.list(ctx, m, in.query)}, nil
}

// list answers a query from memory, and looks at those of its page that no table has.
func (s *Server) list(ctx context.Context, m moment, q Query) ExperimentList {
	out, found := m.list(q, s.now().UnixMilli())
	s.lookAtPage(ctx, m, found.rows, &out)
	return out
}

// list answers a query from memory alone.
func (m moment) list(q Query, now int64) (ExperimentList, selection) {
	found := q.run(&asking{m, now})
	out := ExperimentList{
		Experiments: make([]Summary, len(found.rows)),
		Total:       found.total,
		AsOf:        timeOf(m.asOf()),
		Version:     m.view.Version,
		Limit:       q.Limit,
		Offset:      q.Offset,
		Sort:        q.Sort,
		Order:       q.order(),
		Totals:      found.totals,
	}
	out.Stale, out.StaleWhy = m.stale(now)
	if q.wantsCold() {
		out.PartialWhy, out.NamesAsOf = m.named.partial(now), m.named.asOf()
		out.Partial = len(out.PartialWhy) > 0
	}
	for i, at := range found.rows {
		out.Experiments[i] = summarise(m.view.shown(at, m.retiring, now), now)
	}
	return out, found
}

func notLoaded(m moment) *ErrorBody {
	message := "the fleet's table has not been read yet"
	if m.storageProblem != "" {
		message += ": " + m.storageProblem
	}
	return refuse(http.StatusServiceUnavailable, message)
}

type experimentInput struct {
	Name  string `path:"name" doc:"kind:name, or bare: the rollout, else the only one of that name" example:"rollout:exp-1"`
	Fresh bool   `query:"fresh" doc:"Observe now; nothing is stored"`
}

type experimentOutput struct {
	Body Detail
}

func (s *Server) getExperiment(ctx context.Context, in *experimentInput) (*experimentOutput, error) {
	d, err := s.experiment(ctx, in.Name, in.Fresh)
	if err != nil {
		return nil, err
	}
	return &experimentOutput{Body: d}, nil
}

// experiment answers one experiment: its row, or what looking at it now shows.
func (s *Server) experiment(ctx context.Context, name string, fresh bool) (Detail, error) {
	m := s.feed.moment()
	if m.view == nil {
		return Detail{}, notLoaded(m)
	}
	t, err := s.resolve(ctx, m.view, name)
	if err != nil {
		return Detail{}, err
	}
	switch {
	case fresh:
		return s.lookAt(ctx, t)
	case t.row == nil:
		return s.sharedLook(ctx, t)
	}
	return s.stored(m, t), nil
}

// stored describes a row.
func (s *Server) stored(m moment, t target) Detail {
	now := s.now().UnixMilli()
	d := describe(m.view.shown(t.at, m.retiring, now), now)
	d.AsOf = timeOf(m.asOf())
	d.Stale, _ = m.stale(now)
	s.surround(&d, m, t.row)
	return d
}

// surround adds what is not in the row: the policy in force, what runs, and whether
// somebody has to decide.
func (s *Server) surround(d *Detail, m moment, row *fleet.Row) {
	d.Policy = s.policyOf(row.ID)
	d.AwaitsDecision = d.State != Retired && fleet.AwaitsDecision(row, m.view.histories[row.ID])
	if r := m.runningOf(row.ID); r != nil {
		running := s.running(*r)
		d.Running = &running
	}
}

// observeTimeout bounds one observation on demand.
const observeTimeout = 20 * time.Second

// lookAt observes now and stores nothing.
func (s *Server) lookAt(ctx context.Context, t target) (Detail, error) {
	if err := s.mayLook(ctx); err != nil {
		return Detail{}, err
	}
	return s.look(ctx, t)
}

// sharedLook is for who opens the page of one that has no row: all who do so at once
// get what one look shows.
func (s *Server) sharedLook(ctx context.Context, t target) (Detail, error) {
	if err := s.mayLook(ctx); err != nil {
		return Detail{}, err
	}
	type answer struct {
		d   Detail
		err error
	}
	shared := s.looks.DoChan(t.exp.String()+" "+t.exp.URI, func() (any, error) {
		a, made := attempt(func() (a answer) { a.d, a.err = s.look(s.stopping, t); return a }) // one who leaves ends it for nobody
		if !made {
			return Detail{}, fmt.Errorf("observing %s: the look broke off", t.exp.ID)
		}
		return a.d, a.err
	})
	select {
	case l := <-shared:
		d, _ := l.Val.(Detail)
		return d, l.Err
	case <-ctx.Done():
		return Detail{}, fmt.Errorf("observing %s: %w", t.exp.ID, ctx.Err())
	}
}

func (s *Server) mayLook(ctx context.Context) error {
	if s.observer == nil {
		return refuse(http.StatusServiceUnavailable, "this server cannot observe: it runs without the native library")
	}
	return s.spend(ctx)
}

// look takes one of the few slots: people who browse must not take the store away
// from rounds.
func (s *Server) look(ctx context.Context, t target) (Detail, error) {
	ctx, cancel := context.WithTimeout(ctx, observeTimeout)
	defer cancel()
	back, err := s.slot(ctx)
	if err != nil {
		return Detail{}, err
	}
	defer back()
	o, err := s.observer.Observe(ctx, t.exp, t.row)
	if err != nil {
		return Detail{}, fmt.Errorf("observing %s: %w", t.exp.ID, err)
	}
	now := s.now().UnixMilli()
	m := s.feed.moment()
	e := s.seen(m, t, o, now)
	s.classify(ctx, e.row, now)
	d := describe(e, now)
	d.Fresh, d.AsOf = true, &now
	s.surround(&d, m, e.row)
	return d, nil
}

// classify says of entries that a silent writer has left whether they are stranded:
// where nothing is maintained nobody else ever does. What can't be told stays unknown.
func (s *Server) classify(ctx context.Context, row *fleet.Row, now int64) {
	if s.inspect == nil || row.TailEntries <= 0 || row.StrandedEntries >= 0 || now-row.LastWrite <= silent.Milliseconds() {
		return
	}
	tails, err := s.inspect.ClassifyTail(ctx, row.URI)
	if err != nil {
		s.log.WarnContext(ctx, "look at a write-ahead log", "experiment", row.ID.String(), "error", err)
		return
	}
	var stranded, unknown int64
	for _, tail := range tails {
		stranded += tail.Stranded
		unknown += tail.Unknown
	}
	if stranded > 0 || unknown == 0 {
		row.StrandedEntries = stranded
	}
}

// seen is an experiment as a look at it just now shows it. A retired one that was
// written since is hot, although nobody has said so to the ledger yet.
func (s *Server) seen(m moment, t target, o fleet.Observation, now int64) shown {
	row := fleet.Observed(t.exp, t.row, o, now)
	e := shown{row: &row, state: Hot}
	if t.row != nil {
		e.state, e.entry, e.stored = m.view.state(t.at, m.retiring), m.view.retired[t.at], true
	}
	if e.entry != nil {
		e.decision = fleet.Decision{Action: fleet.DoNothing, Reason: retiredWords(e.entry, now)}
		if verdict, why := fleet.OnRetiredObservation(*e.entry, o); verdict == fleet.Write {
			e.decision.Reason = "retired, but written since (" + why + "): wake it, or wait for its turn within the hour"
			e.state, e.entry = Hot, nil
		}
		return e
	}
	policy, _ := s.policies.For(t.exp.ID)
	e.decision = fleet.Decide(row, policy, m.view.histories[t.exp.ID], now)
	return e
}

type nameInput struct {
	Name string `path:"name"`
	By   string `query:"by" maxLength:"100" doc:"Who asks"`
}

type rescanOutput struct {
	Body Rescanned
}

func (s *Server) rescanExperiment(ctx context.Context, in *nameInput) (*rescanOutput, error) {
	out, err := s.rescanOne(ctx, in.Name, in.By)
	if err != nil {
		return nil, err
	}
	return &rescanOutput{Body: out}, nil
}

// rescanOne has a worker observe and store one experiment, and waits until the
// result is what this server shows.
func (s *Server) rescanOne(ctx context.Context, name, by string) (Rescanned, error) {
	m := s.feed.moment()
	if m.view == nil {
		return Rescanned{}, notLoaded(m)
	}
	t, err := s.resolve(ctx, m.view, name)
	if err != nil {
		return Rescanned{}, err
	}
	if s.steer == nil {
		return Rescanned{}, noTemporal()
	}
	ctx, cancel := context.WithTimeout(ctx, longestPoll)
	defer cancel()
	result, err := s.steer.Refresh(ctx, t.exp.ID, author(ctx, by))
	if err != nil {
		return Rescanned{}, uncertain("refreshing "+t.exp.String(), err)
	}
	if result.Version != nil {
		m = s.untilLooked(ctx)
	}
	if why := result.Failed[t.exp.String()]; why != "" {
		return Rescanned{}, s.refreshFailed(m, t, why)
	}
	return s.rescanned(ctx, m, t, result.Version), nil
}

// rescanned is the answer after a refresh. That has taken effect: what can't be
// shown now is a warning.
func (s *Server) rescanned(ctx context.Context, m moment, t target, version *uint64) Rescanned {
	out := Rescanned{ID: t.exp.String(), CommittedVersion: version}
	if version != nil && m.view.Version < *version {
		out.Warning = fmt.Sprintf("it was stored in version %d of the table; this server has not read that yet", *version)
		return out
	}
	if at, ok := m.view.find(t.exp.ID); ok {
		d := s.stored(m, target{exp: t.exp, row: m.view.Rows[at], at: at})
		out.Experiment = &d
		return out
	}
	d, err := s.lookAt(ctx, t)
	if err != nil {
		out.Warning = "it was observed and is not in the table; looking at it now: " + s.explain(ctx, err).Message
		return out
	}
	out.Experiment = &d
	return out
}

// refreshFailed takes the class from the row, where the refresh has stored it.
func (s *Server) refreshFailed(m moment, t target, why string) error {
	status := http.StatusServiceUnavailable
	if at, ok := m.view.find(t.exp.ID); ok && m.view.Rows[at].ErrorClass != "" {
		status = statusOfClass(m.view.Rows[at].ErrorClass)
	}
	if status == http.StatusInternalServerError {
		status = http.StatusServiceUnavailable
	}
	return refuse(status, fmt.Sprintf("observing %s: %s", t.exp.ID, why))
}

func noTemporal() *ErrorBody {
	return refuse(http.StatusServiceUnavailable, "this server has no connection to Temporal")
}
