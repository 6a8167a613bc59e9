package activities

import (
	"context"
	"slices"
	"sync"

	"lancefleet/store"
)

// problems remembers which names of the sources could not be used. They are told
// when they change: the same ones each round would be all that a log has.
type problems struct {
	mu   sync.Mutex
	last []store.Problem
}

// changed says whether these are others than the last time.
func (p *problems) changed(now []store.Problem) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	same := slices.Equal(p.last, now)
	p.last = slices.Clone(now)
	return !same
}

func (a *Scan) tellProblems(ctx context.Context, found []store.Problem) {
	if !a.told.changed(found) {
		return
	}
	for _, p := range found {
		a.Log.WarnContext(ctx, "a source names what can't be used", "name", p.Name, "why", p.Why)
	}
	if len(found) == 0 {
		a.Log.InfoContext(ctx, "all names of the sources can be used")
	}
}
