package store

import (
	"context"
	"slices"
	"sync"
)

// Named is what the sources name, as far as they could be read: for searching, where
// half an answer that says so is better than none. Rounds use [Sources.List], for
// which a source that can't be read is an error.
type Named struct {
	Listing
	Unread []Unread // sources that could not be read now; empty = the listing is whole
}

// Unread is a source that could not be read.
type Unread struct {
	From string // its uri
	Err  error
	Kept bool // what was read of it before is in the listing
}

// Names reads every source at its newest version: a look at the head of each
// registry, and a read of those that moved. Of a source that can't be read it keeps
// what this process has read before.
func (s *Sources) Names(ctx context.Context) (Named, error) {
	tables, unread := s.readWhatCanBe(ctx)
	if err := ctx.Err(); err != nil {
		return Named{}, err
	}
	if gone := s.missAny(tables, nil); gone != nil && len(unread) == 0 {
		unread = append(unread, Unread{From: s.dataDir, Err: gone})
	}
	// Without a word from the registries nobody knows whether folders are a source.
	folders := s.wantFolders(tables) && (s.mode != SourcesAuto || len(unread) == 0)
	var found []string
	if folders {
		var lost *Unread
		if found, lost = s.foldersOrBefore(ctx); lost != nil {
			unread = append(unread, *lost)
		}
	}
	return Named{Listing: s.build(tables, found), Unread: unread}, ctx.Err()
}

// readWhatCanBe reads the registries that exist and can be read.
func (s *Sources) readWhatCanBe(ctx context.Context) ([]registryEdition, []Unread) {
	all := make([]registryEdition, len(s.registries))
	lost := make([]Unread, len(s.registries))
	var reading sync.WaitGroup
	for i, r := range s.registries {
		reading.Go(func() {
			e, err := r.newest(ctx)
			if err != nil {
				e = r.table.before()
				lost[i] = Unread{From: r.uri, Err: err, Kept: e != nil}
			}
			if e != nil {
				all[i] = registryEdition{of: r, rows: e.value, version: e.version, etag: e.etag}
			}
		})
	}
	reading.Wait()
	return slices.DeleteFunc(all, func(t registryEdition) bool { return t.version == 0 }),
		slices.DeleteFunc(lost, func(u Unread) bool { return u.Err == nil })
}

// before is the newest edition that was read, nil if none was.
func (c *cachedTable[T]) before() *edition[T] {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.latest
}

// foldersOrBefore lists the folders, or answers what they were when they could be.
func (s *Sources) foldersOrBefore(ctx context.Context) ([]string, *Unread) {
	found, err := listFolder(ctx, s.reader, s.dataDir)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		return s.folders, &Unread{From: s.dataDir, Err: err, Kept: s.folders != nil}
	}
	s.folders = found
	return found, nil
}

// Same says whether two listings are one and the same reading of the sources.
func (l Listing) Same(o Listing) bool {
	return len(l.Experiments) == len(o.Experiments) && len(l.Problems) == len(o.Problems) &&
		(len(l.Experiments) == 0 || &l.Experiments[0] == &o.Experiments[0])
}
