package web

import (
	"context"
	"time"

	"lancefleet/fleet"
	"lancefleet/store"
)

const (
	// namesFor is how long a reading of the sources is good enough for a search. A
	// search that finds an older one asks for another, so a store with nobody
	// searching is not asked. A slow reading goes on no more than half of the time.
	namesFor = 30 * time.Second
	// namesWait is how long a search waits for that. Registries answer well within
	// it; a long listing of folders goes on behind, and the search says of when its
	// names are.
	namesWait = 300 * time.Millisecond
	// namesOld is when an answer says that its names are old.
	namesOld = 2 * time.Minute
	// namesTimeout bounds one reading: 100,000 folders in a bucket are 100 requests.
	namesTimeout = 2 * time.Minute
)

// naming is what the sources named when they were last asked. It never changes.
type naming struct {
	Experiments []fleet.Experiment // sorted by id
	listing     store.Listing
	problems    []string // what could not be read, a sentence each
	at          int64    // when that reading began, unix ms
	again       int64    // when another one is worth its price
}

// differs says whether two readings name different things.
func (n *naming) differs(o *naming) bool {
	if n == nil || o == nil {
		return n != o
	}
	return !n.listing.Same(o.listing)
}

func (n *naming) asOf() *int64 {
	if n == nil {
		return nil
	}
	return timeOf(n.at)
}

// partial says what a search could not look at.
func (n *naming) partial(now int64) []string {
	if n == nil {
		return []string{"the sources have not been read yet: only experiments with a row are found"}
	}
	out := n.problems
	if n.at == 0 {
		return append(out[:len(out):len(out)], "only experiments with a row are found")
	}
	if age := time.Duration(now-n.at) * time.Millisecond; age > namesOld {
		out = append(out[:len(out):len(out)], "names without a row are as the sources had them "+span(age)+" ago")
	}
	return out
}

// nameLoop reads the sources at the start, and when somebody asks.
func (f *feed) nameLoop(ctx context.Context) {
	if f.names == nil {
		return
	}
	for ctx.Err() == nil {
		f.naming.Store(true)
		f.readNames(ctx)
		f.naming.Store(false)
		select {
		case <-ctx.Done():
		case <-f.rename:
		}
	}
}

// readNames asks the sources for names. What can't be read stays as it was, and is said.
func (f *feed) readNames(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, namesTimeout)
	defer cancel()
	began := f.now().UnixMilli()
	found, err := f.names.Names(ctx)
	next := &naming{Experiments: found.Experiments, listing: found.Listing, at: began}
	if err != nil {
		f.log.Warn("the sources do not answer", "error", err)
		before := f.moment().named
		if before == nil {
			before = &naming{}
		}
		same := *before
		same.problems = []string{"the sources could not be read: " + sentence(err)}
		next = &same
	}
	for _, u := range found.Unread {
		f.log.Warn("a source does not answer", "source", u.From, "kept", u.Kept, "error", u.Err)
		words := "a source could not be read: "
		if u.Kept {
			words = "a source could not be read, what it named before is searched: "
		}
		next.problems = append(next.problems, words+sentence(u.Err))
	}
	ended := f.now().UnixMilli()
	next.again = max(began+namesFor.Milliseconds(), ended+(ended-began))
	f.update(func(m *moment) { m.named = next })
	poke(f.reload)
}

// forSearch is the moment to answer a query from. For one that wants to find what
// has no row it sees to it that the names are new, without waiting long.
func (s *Server) forSearch(ctx context.Context, q Query) moment {
	m := s.feed.moment()
	now := s.now().UnixMilli()
	if s.feed.names == nil || m.view == nil || !q.wantsCold() || !m.named.due(now) {
		return m
	}
	ctx, cancel := context.WithTimeout(ctx, namesWait)
	defer cancel()
	if !s.feed.naming.Load() { // what is being read is waited for, not asked for again
		poke(s.feed.rename)
	}
	return s.feed.await(ctx, nil, func(m moment) bool {
		return !m.named.due(now) && !m.view.names.differs(m.named)
	})
}

// due says whether a search should have the sources read again. A clock that was set
// back far is no reason not to.
func (n *naming) due(now int64) bool {
	return n == nil || now >= n.again || now < n.at-namesFor.Milliseconds()
}
