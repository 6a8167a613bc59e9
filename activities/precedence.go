package activities

import (
	"context"
	"sync"
	"time"
)

const (
	// mostYield is how long a step of maintenance lets rounds go first, and how long one
	// goes first. A round that takes longer shares.
	mostYield = 10 * time.Second
	// betweenActivities is how long a round's next activity may take to come.
	betweenActivities = time.Second
	// mostLead is how long before the next round is due no step begins any more: what
	// has begun by then is mostly over when it comes.
	mostLead = 2 * time.Second
	// leadShare bounds that by a share of the time between rounds.
	leadShare = 10
)

// precedence lets rounds go first on this worker: they are short and come at their
// time, maintenance is long and can wait. Without it, rounds get slower the more there
// is to maintain.
type precedence struct {
	mu    sync.Mutex
	busy  int           // activities of rounds that run
	since time.Time     // the first of them began
	next  span          // when a round's next activity may come: nobody begins then
	due   span          // when the next round may come
	moved chan struct{} // closed when any of these has changed; nil = nobody waits
}

// span is a stretch of time, without its end.
type span struct{ from, to time.Time }

func (s span) has(t time.Time) bool { return !t.Before(s.from) && t.Before(s.to) }

// round is held by an activity of a round, while it runs, and for the next one to come.
func (p *precedence) round() (done func()) {
	p.begun()
	return func() {
		now := time.Now()
		p.change(func() { p.busy--; p.next = span{now, now.Add(betweenActivities)} })
	}
}

// begins is held by a round's first activity. The next one is due after interval, or
// when somebody asks (0).
func (p *precedence) begins(interval time.Duration) (done func()) {
	if now, lead := time.Now(), min(mostLead, interval/leadShare); interval > 0 {
		p.change(func() { p.due = span{now.Add(interval - lead), now.Add(interval + lead)} })
	}
	return p.round()
}

// ends is held by a round's last activity.
func (p *precedence) ends() (done func()) {
	p.begun()
	return func() { p.change(func() { p.busy--; p.next = span{} }) }
}

func (p *precedence) begun() {
	now := time.Now()
	p.change(func() {
		if p.busy == 0 && !p.next.has(now) {
			p.since = now
		}
		p.busy++
	})
}

func (p *precedence) change(by func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	by()
	if p.moved != nil {
		close(p.moved)
		p.moved = nil
	}
}

// yield waits while rounds work here or are about to, but not for long, and not when
// ctx ends.
func (p *precedence) yield(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, mostYield)
	defer cancel()
	for ctx.Err() == nil {
		moved, wait := p.wait(time.Now())
		if wait == 0 {
			return
		}
		timer := time.NewTimer(wait)
		select {
		case <-moved:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// wait says how long there is a reason to wait at now, and what tells that it changed.
func (p *precedence) wait(now time.Time) (moved <-chan struct{}, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch shares := p.since.Add(mostYield); {
	case p.busy > 0:
		wait = shares.Sub(now)
	case p.next.has(now):
		wait = min(p.next.to.Sub(now), shares.Sub(now))
	case p.due.has(now):
		wait = p.due.to.Sub(now)
	}
	if wait <= 0 {
		return nil, 0
	}
	if p.moved == nil {
		p.moved = make(chan struct{})
	}
	return p.moved, wait
}
