package activities

import (
	"context"
	"sync"
	"time"
)

// mostYield is how long a step of maintenance lets a round go first. A round that
// takes longer shares.
const mostYield = 10 * time.Second

// precedence lets rounds go first on this worker: they are short and come at their
// time, maintenance is long and can wait. Without it, rounds get slower the more there
// is to maintain.
type precedence struct {
	mu    sync.Mutex
	busy  int           // activities of rounds that run
	quiet chan struct{} // closed when none does any more; nil = nobody waits
}

// round is held by an activity of a round until it calls done.
func (p *precedence) round() (done func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy++
	return p.done
}

func (p *precedence) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy--
	if p.busy == 0 && p.quiet != nil {
		close(p.quiet)
		p.quiet = nil
	}
}

// yield waits while rounds work here, but not for long, and not when ctx ends.
func (p *precedence) yield(ctx context.Context) {
	enough := time.NewTimer(mostYield)
	defer enough.Stop()
	for {
		quiet := p.whenQuiet()
		if quiet == nil {
			return
		}
		select {
		case <-quiet:
		case <-enough.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// whenQuiet is closed when no round works here any more; nil = none does.
func (p *precedence) whenQuiet() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy == 0 {
		return nil
	}
	if p.quiet == nil {
		p.quiet = make(chan struct{})
	}
	return p.quiet
}
