package web

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"lancefleet/control"
	"lancefleet/fleet"
	"lancefleet/workflows"
)

// Operation is one piece of work that was wanted: all attempts at it, up to the one
// that succeeded.
type Operation struct {
	Kind       string `json:"kind" doc:"retire, optimize, seal, wake, return, renew, tables, pause, resume, scan, ..."`
	Target     string `json:"target,omitempty" doc:"kind:name; none = the fleet"`
	Outcome    string `json:"outcome" enum:"running,done,noop,refused,failed,cancelled" doc:"Of the newest attempt"`
	Level      string `json:"level" enum:"ok,note,warn,bad" doc:"note: it passes by itself; warn: look when there is time; bad: somebody has to do something"`
	Attempts   int    `json:"attempts" doc:"1 = it was not tried before"`
	At         int64  `json:"at" doc:"When the newest attempt ended, or began if it runs"`
	FirstAt    int64  `json:"first_at" doc:"When the first one ended"`
	DurationMS int64  `json:"duration_ms" doc:"Of the newest attempt"`
	By         string `json:"by,omitempty"`
	Says       string `json:"says,omitempty" doc:"What it did, or what went wrong"`
	ErrorClass string `json:"error_class,omitempty"`
	RunID      string `json:"run_id,omitempty"`
	Link       string `json:"link,omitempty" doc:"In Temporal's UI"`
	Steps      []Done `json:"steps" doc:"Of the newest attempt"`
	Earlier    []Done `json:"earlier" doc:"Attempts before, newest first, cut at 20"`
}

const (
	outcomeRunning   = "running"
	earlierShown     = 20
	outcomeCancelled = workflows.OutcomeCancelled
)

// run is what the journal has of one attempt: its own entry, and its steps.
type run struct {
	own   *fleet.Action
	steps []*fleet.Action // in the order in which they were done
}

// operation is a run and those before it that did not succeed, newest first.
type operation struct {
	runs    []run
	running *control.Running // the newest attempt runs; runs may be empty
}

func (o *operation) newest() *fleet.Action { return o.runs[0].own }

// oldest attempt.
func (o *operation) oldest() *fleet.Action { return o.runs[len(o.runs)-1].own }

func (o *operation) kind() string {
	if o.running != nil {
		return o.running.Action
	}
	return o.newest().Kind
}

func (o *operation) outcome() string {
	if o.running != nil {
		return outcomeRunning
	}
	return o.newest().Outcome
}

// isStep says which kinds are parts of a larger run.
func isStep(kind string) bool {
	return slices.Contains([]string{fleet.ActMergeWAL, fleet.ActCompact, fleet.ActCleanup, fleet.ActSweep, fleet.ActForeign}, kind)
}

// runsOf puts the entries of each run together. actions are newest first, and so are
// the runs.
func runsOf(actions []fleet.Action) []run {
	type key struct{ run, target string }
	at := map[key]int{}
	var runs []run
	for i := range actions {
		a := &actions[i]
		k := key{a.RunID, a.Target}
		if j, seen := at[k]; seen && a.RunID != "" {
			runs[j].add(a)
			continue
		}
		at[k] = len(runs)
		runs = append(runs, run{own: a})
	}
	for i := range runs {
		slices.Reverse(runs[i].steps)
	}
	return runs
}

// add takes in an older entry of the run. Its own is the one that is no step.
func (r *run) add(a *fleet.Action) {
	if isStep(r.own.Kind) && !isStep(a.Kind) {
		r.own, a = a, r.own
	}
	r.steps = append(r.steps, a)
}

// operationsOf groups attempts: runs of one kind on one target up to the one that
// succeeded are one operation. actions and operations are newest first.
func operationsOf(actions []fleet.Action) []operation {
	type key struct{ kind, target string }
	open := map[key]int{} // the operation that an older failure belongs to
	var ops []operation
	for _, r := range runsOf(actions) {
		k := key{r.own.Kind, r.own.Target}
		if at, ok := open[k]; ok && !succeeded(r.own.Outcome) {
			ops[at].runs = append(ops[at].runs, r)
			continue
		}
		open[k] = len(ops)
		ops = append(ops, operation{runs: []run{r}})
	}
	return ops
}

func succeeded(outcome string) bool {
	return outcome == fleet.OutcomeDone || outcome == fleet.OutcomeNoOp
}

// withRunning puts what runs first: it is the newest attempt of what failed before.
func withRunning(ops []operation, running []control.Running) []operation {
	known := map[string]bool{}
	open := map[string]int{}
	for i := range ops {
		a := ops[i].newest()
		known[a.RunID] = true
		k := a.Kind + " " + a.Target
		if _, seen := open[k]; !seen {
			open[k] = i
		}
	}
	var first []operation
	taken := map[int]bool{}
	for i := range running {
		r := &running[i]
		if known[r.RunID] {
			continue // the journal knows its end already; the list lags
		}
		o := operation{running: r}
		if at, ok := open[r.Action+" "+r.ID.String()]; ok && !succeeded(ops[at].newest().Outcome) {
			o.runs, taken[at] = ops[at].runs, true
		}
		first = append(first, o)
	}
	slices.SortStableFunc(first, func(a, b operation) int { return cmp.Compare(b.running.StartedAt, a.running.StartedAt) })
	for i := range ops {
		if !taken[i] {
			first = append(first, ops[i])
		}
	}
	return first
}

// workQuery chooses operations.
type workQuery struct {
	Kind, Outcome string // "" = all
	Limit, Offset int
}

// Work is one page of operations, newest first.
type Work struct {
	Operations []Operation    `json:"operations"`
	Total      int            `json:"total" doc:"Of all that match"`
	Limit      int            `json:"limit"`
	Offset     int            `json:"offset"`
	Kinds      map[string]int `json:"kinds" doc:"Operations of each kind that the journal has, 90 days"`
	Outcomes   map[string]int `json:"outcomes" doc:"And of each outcome, of the kind that was asked for"`
}

// workCounts are how many operations there are, by kind and outcome.
type workCounts map[string]map[string]int

func countsOf(ops []operation) workCounts {
	counts := workCounts{}
	for i := range ops {
		kind := ops[i].kind()
		if counts[kind] == nil {
			counts[kind] = map[string]int{}
		}
		counts[kind][ops[i].outcome()]++
	}
	return counts
}

// work is one page of operations. It looks at no more of them than it has to: the
// counts are known.
func (s *Server) work(ops []operation, counts workCounts, q workQuery) Work {
	out := Work{Operations: []Operation{}, Kinds: map[string]int{}, Outcomes: map[string]int{}, Limit: q.Limit, Offset: q.Offset}
	for kind, outcomes := range counts {
		for outcome, n := range outcomes {
			out.Kinds[kind] += n
			if q.Kind != "" && kind != q.Kind {
				continue
			}
			out.Outcomes[outcome] += n
			if q.Outcome == "" || outcome == q.Outcome {
				out.Total += n
			}
		}
	}
	last := min(out.Total, q.Offset+q.Limit)
	for i, seen := 0, 0; i < len(ops) && seen < last; i++ {
		o := &ops[i]
		if q.Kind != "" && o.kind() != q.Kind || q.Outcome != "" && o.outcome() != q.Outcome {
			continue
		}
		if seen++; seen > q.Offset {
			out.Operations = append(out.Operations, s.operation(o))
		}
	}
	return out
}

// operation is the public shape.
func (s *Server) operation(o *operation) Operation {
	out := Operation{Kind: o.kind(), Outcome: o.outcome(), Attempts: len(o.runs), Steps: []Done{}, Earlier: []Done{}}
	earlier := o.runs
	if r := o.running; r != nil {
		out.Attempts++
		out.Target, out.At, out.FirstAt, out.RunID, out.Link = r.ID.String(), r.StartedAt, r.StartedAt, r.RunID, s.workflowPath(r.WorkflowID, r.RunID)
		out.Says, out.Level = "for: "+cmp.Or(r.Wanted, r.Action), levelOK
	} else {
		newest := o.newest()
		out.Target, out.At, out.DurationMS, out.By = newest.Target, newest.At, newest.DurationMS, newest.By
		out.Says, out.ErrorClass, out.RunID = cmp.Or(newest.Error, newest.Why), newest.ErrorClass, newest.RunID
		out.Link, out.Level = s.workflowPath(newest.WorkflowID, newest.RunID), levelOf(newest)
		for _, step := range o.runs[0].steps {
			out.Steps = append(out.Steps, s.done(*step))
		}
		earlier = earlier[1:]
	}
	if len(o.runs) > 0 {
		out.FirstAt = o.oldest().At
	}
	for _, r := range earlier[:min(len(earlier), earlierShown)] {
		out.Earlier = append(out.Earlier, s.done(*r.own))
	}
	return out
}

// journalled answers the operations of the journal, worked out once for each version
// of it. Where it can't be read the answer is what was read before, with the error:
// nobody waits for another's reading.
func (s *Server) journalled(ctx context.Context) (digest, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	actions, err := s.journal.All(ctx)
	s.digests.mu.Lock()
	defer s.digests.mu.Unlock()
	d := &s.digests.at
	if err != nil {
		return *d, fmt.Errorf("reading the journal: %w", err)
	}
	if !sameSlice(d.actions, actions) {
		*d = digest{actions: actions, operations: operationsOf(actions)}
	}
	return *d, nil
}

// sameSlice says whether two are one and the same reading of a table.
func sameSlice[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
