package web

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"lancefleet/fleet"
	"lancefleet/lance"
)

// An experiment that a source names and no table has is looked at when a page shows
// it. Nothing is stored but in this process, for a little while.
const (
	coldAtOnce  = 16                     // looks of the whole server
	coldEach    = 800 * time.Millisecond // for one look
	coldPage    = time.Second            // for all looks of one page
	coldMost    = 100                    // of one page
	coldKept    = 2000                   // remembered looks
	coldGood    = 30 * time.Second       // how long one is remembered
	coldBad     = 5 * time.Second        // one that failed
	coldTimeout = "timeout"
)

// coldLook is what a look at one experiment saw.
type coldLook struct {
	seen fleet.Observation
	err  error
	at   time.Time
}

// coldLooks remembers looks, so that a page that refreshes itself doesn't repeat them.
type coldLooks struct {
	observer observer // nil = nothing can be looked at
	now      func() time.Time
	slots    chan struct{}

	mu   sync.Mutex
	kept map[fleet.Experiment]coldLook
}

func newColdLooks(o observer, now func() time.Time) *coldLooks {
	return &coldLooks{observer: o, now: now, slots: make(chan struct{}, coldAtOnce), kept: map[fleet.Experiment]coldLook{}}
}

// before answers looks that are remembered, and those who must be looked at.
func (c *coldLooks) before(exps []fleet.Experiment) (found map[fleet.Experiment]coldLook, missing []fleet.Experiment) {
	found = map[fleet.Experiment]coldLook{}
	for _, exp := range exps {
		if l, ok := c.remembered(exp); ok {
			found[exp] = l
		} else {
			missing = append(missing, exp)
		}
	}
	return found, missing
}

// at looks at experiments, as many at once as the server allows, and puts those that
// answer in time to what was found.
func (c *coldLooks) at(ctx context.Context, exps []fleet.Experiment, found map[fleet.Experiment]coldLook) map[fleet.Experiment]coldLook {
	ctx, cancel := context.WithTimeout(ctx, coldPage)
	defer cancel()
	answers := make(chan fleet.Experiment, len(exps))
	for _, exp := range exps {
		go func() { c.look(ctx, exp); answers <- exp }()
	}
	for range exps {
		select {
		case exp := <-answers:
			if l, ok := c.remembered(exp); ok {
				found[exp] = l
			}
		case <-ctx.Done():
			return found
		}
	}
	return found
}

// look looks at one experiment, unless the page's time ends before its turn.
func (c *coldLooks) look(ctx context.Context, exp fleet.Experiment) {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return
	}
	each, cancel := context.WithTimeout(ctx, coldEach)
	defer cancel()
	o, err := c.observer.Observe(each, exp, nil)
	if err != nil && ctx.Err() != nil {
		return // the page's time was up: that says nothing of the experiment
	}
	if err != nil && each.Err() != nil {
		err = &lance.Error{Class: lance.Timeout, Op: "observe", URI: exp.URI, Message: fmt.Sprintf("no answer within %s", coldEach)}
	}
	c.remember(exp, coldLook{seen: o, err: err, at: c.now()})
}

func (c *coldLooks) remembered(exp fleet.Experiment) (coldLook, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l, ok := c.kept[exp]
	return l, ok && c.now().Sub(l.at) < l.good()
}

func (l coldLook) good() time.Duration {
	if l.err != nil {
		return coldBad
	}
	return coldGood
}

// remember makes room first by forgetting what is old, then anything.
func (c *coldLooks) remember(exp fleet.Experiment, l coldLook) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.kept) >= coldKept {
		for other, o := range c.kept {
			if c.now().Sub(o.at) >= o.good() {
				delete(c.kept, other)
			}
		}
	}
	for other := range c.kept {
		if len(c.kept) < coldKept {
			break
		}
		delete(c.kept, other)
	}
	c.kept[exp] = l
}

// lookAtPage fills in what a look at the cold ones of a page shows.
func (s *Server) lookAtPage(ctx context.Context, m moment, page []int32, out *ExperimentList) {
	var cold []fleet.Experiment
	for _, at := range page {
		if m.view.isCold(at) {
			cold = append(cold, *m.view.experiment(at))
		}
	}
	if len(cold) == 0 {
		return
	}
	looks, why := s.looksAt(ctx, cold[:min(len(cold), coldMost)])
	now := s.now().UnixMilli()
	for i, at := range page {
		if !m.view.isCold(at) {
			continue
		}
		if l, ok := looks[*m.view.experiment(at)]; ok {
			out.Experiments[i] = summarise(s.coldShown(m, at, l, now), now)
		}
	}
	if unanswered := len(cold) - len(looks); unanswered > 0 {
		if why == "" && len(cold) > coldMost {
			why = fmt.Sprintf("at most %d of a page are", coldMost)
		}
		out.Partial = true
		out.PartialWhy = append(out.PartialWhy[:len(out.PartialWhy):len(out.PartialWhy)],
			fmt.Sprintf("%d of %d without a row were not looked at: %s", unanswered, len(cold), or(why, fmt.Sprintf("no answer within %s; ask again", coldPage))))
	}
}

// looksAt answers what is remembered of experiments, and what a look shows of the
// rest; why says what keeps it from looking.
func (s *Server) looksAt(ctx context.Context, exps []fleet.Experiment) (looks map[fleet.Experiment]coldLook, why string) {
	looks, missing := s.cold.before(exps)
	switch {
	case len(missing) == 0:
		return looks, ""
	case s.observer == nil:
		return looks, "this server runs without the native library"
	}
	if err := s.spend(ctx); err != nil { // a page counts as one
		return looks, sentence(err)
	}
	return s.cold.at(ctx, missing, looks), ""
}

// coldShown is an experiment without a row as a look at it shows it.
func (s *Server) coldShown(m moment, at int32, l coldLook, now int64) shown {
	exp := *m.view.experiment(at)
	if l.err == nil {
		return s.seen(m, target{exp: exp}, l.seen, now)
	}
	row := fleet.UnknownRow(exp)
	row.Failures, row.FailedAt, row.FailingSince = 1, l.at.UnixMilli(), l.at.UnixMilli()
	row.ErrorClass, row.Error = string(lance.ClassOf(l.err)), sentence(l.err)
	if errors.Is(l.err, context.DeadlineExceeded) {
		row.ErrorClass = coldTimeout
	}
	return shown{row: &row, state: Hot, decision: fleet.Decision{
		Action: fleet.DoNothing, Reason: "named by its source, and it could not be looked at: " + row.ErrorClass,
	}}
}
