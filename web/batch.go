package web

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"lancefleet/control"
	"lancefleet/fleet"
	"lancefleet/workflows"
)

// A batch asks for the same maintenance of many experiments. Each becomes a run of its
// own, which waits for the workers' slots as any other; the batch is the id that their
// memos in Temporal and their entries in the journal have in common.
const (
	batchMost    = 500 // runs of one batch
	batchConfirm = 20  // above it the number must be said
	batchAtOnce  = 8   // questions to Temporal
	batchSample  = 5   // names told of each cause
)

// BatchRequest asks for maintenance of many experiments: those named, or all that a
// query finds.
type BatchRequest struct {
	Action  string   `json:"action" enum:"optimize,retire"`
	IDs     []string `json:"ids,omitempty" maxItems:"500" nullable:"false" doc:"kind:name each"`
	Q       *string  `json:"q,omitempty" maxLength:"1000" doc:"All that this query text finds, as the list's q; an empty one is every hot experiment"`
	By      string   `json:"by,omitempty" maxLength:"100" doc:"Who asks"`
	Why     string   `json:"why,omitempty" maxLength:"500" doc:"Kept in the journal"`
	Confirm int      `json:"confirm,omitempty" doc:"How many the dry run said would start; needed above 20"`
}

// BatchPlan says what a batch would do.
type BatchPlan struct {
	Action  string       `json:"action"`
	Asked   int          `json:"asked" doc:"Experiments it is about"`
	Start   int          `json:"start" doc:"Runs that it would start"`
	Left    int          `json:"left" doc:"Would start too, but a batch has at most 500 runs: ask again afterwards"`
	Refused int          `json:"refused" doc:"Would not start; see causes"`
	Running int          `json:"running" doc:"Are being worked on already"`
	Confirm bool         `json:"confirm" doc:"The request must say the number"`
	Causes  []BatchCause `json:"causes" doc:"Why not, most frequent first"`
	Sample  []string     `json:"sample" doc:"Some of those that would start"`
	starts  []target
}

// BatchCause is one reason for which experiments of a batch are refused.
type BatchCause struct {
	Reason string   `json:"reason"`
	Count  int      `json:"count"`
	Sample []string `json:"sample" doc:"Some of them"`
}

// BatchStarted says what a batch did.
type BatchStarted struct {
	BatchPlan
	ID       string       `json:"id" doc:"Of the batch"`
	Started  int          `json:"started"`
	Already  int          `json:"already_running" doc:"Something else began to work on them meanwhile"`
	Failed   []BatchCause `json:"failed" doc:"Could not be started, or it is not known"`
	Location string       `json:"location" doc:"Path to follow it"`
}

// Batch is what became of a batch so far.
type Batch struct {
	ID       string         `json:"id"`
	Found    bool           `json:"found" doc:"false: no run of it is known. Temporal lists one some seconds after it was started, the journal keeps 90 days"`
	By       string         `json:"by,omitempty"`
	Running  []Running      `json:"running" doc:"As Temporal lists them: it may lag by seconds"`
	Ended    []Done         `json:"ended" doc:"From the journal, newest first"`
	Outcomes map[string]int `json:"outcomes" doc:"Of those that ended: done, noop, refused, failed"`
}

// planBatch finds what a batch is about and what would become of each.
func (s *Server) planBatch(ctx context.Context, m moment, r BatchRequest) (BatchPlan, error) {
	targets, unknown, err := s.batchTargets(ctx, m, r)
	if err != nil {
		return BatchPlan{}, err
	}
	plan := BatchPlan{Action: r.Action, Asked: len(targets) + len(unknown), Causes: []BatchCause{}, Sample: []string{}}
	causes := causeCounter{}
	for _, id := range unknown {
		causes.add("it has no row: no round has reached it, or no source names it", id)
	}
	for _, t := range targets {
		if m.runningOf(t.exp.ID) != nil {
			plan.Running++
			continue
		}
		v := s.verdict(m, t, asked{action: r.Action})
		switch {
		case !v.start:
			first, _, _ := strings.Cut(v.reason, ";")
			causes.add(first, t.exp.String())
		case len(plan.starts) == batchMost:
			plan.Left++
		default:
			plan.starts = append(plan.starts, t)
		}
	}
	plan.Start, plan.Causes = len(plan.starts), causes.sorted()
	for _, c := range plan.Causes {
		plan.Refused += c.Count
	}
	plan.Confirm = plan.Start > batchConfirm
	for _, t := range plan.starts[:min(len(plan.starts), batchSample)] {
		plan.Sample = append(plan.Sample, t.exp.String())
	}
	return plan, nil
}

// batchTargets are the rows that a request means, in the order of its list. Names
// without a row are answered apart.
func (s *Server) batchTargets(_ context.Context, m moment, r BatchRequest) (targets []target, unknown []string, err error) {
	switch {
	case r.Action != workflows.ActionOptimize && r.Action != workflows.ActionRetire:
		return nil, nil, refuse(http.StatusUnprocessableEntity, "action: "+quoted(r.Action)+" is none; allowed: optimize, retire")
	case (r.Q == nil) == (len(r.IDs) == 0):
		return nil, nil, refuse(http.StatusUnprocessableEntity, "ids, or q, must be given: one of them")
	case r.Q != nil:
		return s.batchQuery(m, *r.Q)
	}
	seen := map[fleet.ID]bool{}
	for _, name := range r.IDs {
		id, err := fleet.ParseStatsName(name)
		if err != nil {
			return nil, nil, refuse(http.StatusUnprocessableEntity, "ids: "+sentence(err))
		}
		if seen[id] {
			continue
		}
		seen[id] = true
		if at, ok := m.view.find(id); ok {
			targets = append(targets, m.view.target(at))
		} else {
			unknown = append(unknown, id.String())
		}
	}
	return targets, unknown, nil
}

func (v *view) target(at int32) target {
	return target{exp: v.Rows[at].Experiment, row: v.Rows[at], at: at}
}

func (s *Server) batchQuery(m moment, text string) (targets []target, unknown []string, err error) {
	q, _ := parseQuery(nil)
	if mistakes := q.read(strings.TrimSpace(text)); len(mistakes) > 0 {
		return nil, nil, refuseQuery(mistakes)
	}
	q.Limit = -1
	for _, at := range q.run(&asking{m, s.now().UnixMilli()}).rows {
		if m.view.isCold(at) {
			unknown = append(unknown, m.view.experiment(at).String())
		} else {
			targets = append(targets, m.view.target(at))
		}
	}
	return targets, unknown, nil
}

// causeCounter puts together why not, by what stands in the way.
type causeCounter map[string]*batchCause

type batchCause struct {
	BatchCause
	words wording
}

// add takes in what is said about one.
func (c causeCounter) add(reason, id string) {
	words := wordingOf(reason, id)
	one := c[words.key()]
	if one == nil {
		one = &batchCause{BatchCause{Sample: []string{}}, words}
		c[words.key()] = one
	}
	one.Reason = one.words.with(words)
	if one.Count++; len(one.Sample) < batchSample {
		one.Sample = append(one.Sample, id)
	}
}

func (c causeCounter) sorted() []BatchCause {
	out := []BatchCause{}
	for _, one := range c {
		out = append(out, one.BatchCause)
	}
	slices.SortFunc(out, func(a, b BatchCause) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reason, b.Reason))
	})
	return out
}

// startBatch starts what a plan made now would start.
func (s *Server) startBatch(ctx context.Context, r BatchRequest) (BatchStarted, error) {
	m := s.feed.moment()
	if m.view == nil {
		return BatchStarted{}, notLoaded(m)
	}
	plan, err := s.planBatch(ctx, m, r)
	if err != nil {
		return BatchStarted{}, err
	}
	switch {
	case s.steer == nil:
		return BatchStarted{}, noTemporal()
	case plan.Start == 0:
		return BatchStarted{}, refuse(http.StatusConflict, "nothing would be started: "+plan.words())
	case plan.Confirm && r.Confirm != plan.Start:
		return BatchStarted{}, refuse(http.StatusConflict, fmt.Sprintf("confirm: it would start %d runs now; say so by confirm=%d", plan.Start, plan.Start))
	}
	out := BatchStarted{BatchPlan: plan, ID: newBatchID()}
	out.Location = apiPrefix + "/batches/" + out.ID
	s.startAll(ctx, &out, author(ctx, r.By), r.Why)
	poke(s.feed.reschedule)
	return out, nil
}

// words sum a plan's refusals up.
func (p BatchPlan) words() string {
	var said []string
	if p.Running > 0 {
		said = append(said, fmt.Sprintf("%d are being worked on", p.Running))
	}
	for _, c := range p.Causes {
		said = append(said, fmt.Sprintf("%d: %s", c.Count, c.Reason))
	}
	if len(said) == 0 {
		return "it is about no experiment"
	}
	return strings.Join(said, "; ")
}

func newBatchID() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails
	return "b" + hex.EncodeToString(b[:])
}

// batchWhy is how the journal tells which batch an entry belongs to.
func batchWhy(id, why string) string {
	if why = line(why); why != "" {
		return "batch " + id + ": " + why
	}
	return "batch " + id
}

func (s *Server) startAll(ctx context.Context, out *BatchStarted, by, why string) {
	var mu sync.Mutex
	failed := causeCounter{}
	next := make(chan target)
	var starting sync.WaitGroup
	for range batchAtOnce {
		starting.Go(func() {
			for t := range next {
				started, err := s.startOne(ctx, out.Action, control.MaintenanceRequest{ID: t.exp.ID, By: by, Why: batchWhy(out.ID, why), Batch: out.ID})
				mu.Lock()
				switch {
				case err != nil:
					failed.add(s.explain(ctx, uncertain("starting it", err)).Message, t.exp.String())
				case started.AlreadyRunning:
					out.Already++
				default:
					out.Started++
				}
				mu.Unlock()
			}
		})
	}
	for _, t := range out.starts {
		next <- t
	}
	close(next)
	starting.Wait()
	out.Failed = failed.sorted()
}

func (s *Server) startOne(ctx context.Context, action string, r control.MaintenanceRequest) (control.Started, error) {
	if err := ctx.Err(); err != nil { // the request's time is up: the rest is not even tried
		return control.Started{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*temporalTimeout)
	defer cancel()
	return s.steer.Maintain(ctx, action, r)
}

// batch tells what became of one.
func (s *Server) batch(ctx context.Context, id string) (Batch, error) {
	out := Batch{ID: id, Running: []Running{}, Ended: []Done{}, Outcomes: map[string]int{}}
	m := s.feed.moment()
	for _, r := range m.running {
		if r.Batch == id {
			out.Running = append(out.Running, s.running(r))
		}
	}
	d, err := s.journalled(ctx)
	if err != nil {
		return out, err
	}
	for i := range d.actions {
		if a := &d.actions[i]; ofBatch(a.Why, id) {
			out.Ended, out.By = append(out.Ended, s.done(*a)), or(out.By, a.By)
			out.Outcomes[a.Outcome]++
		}
	}
	out.Found = len(out.Running)+len(out.Ended) > 0
	return out, nil
}

// ofBatch reads what batchWhy has written. A run's own words may follow it.
func ofBatch(why, id string) bool {
	rest, ok := strings.CutPrefix(why, "batch "+id)
	return ok && (rest == "" || rest[0] == ':' || rest[0] == ';' || rest[0] == ' ')
}
