package store

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"lancefleet/lance"
)

// edition is one version of a table, decoded.
type edition[T any] struct {
	version uint64 // 0: there is no table
	etag    string
	time    int64 // of its commit, unix ms; 0 unknown
	value   T
}

// cachedTable is a table whose newest version, and the one last asked for by
// number, are kept decoded. Values are shared: nobody may change them.
//
// A version number may come back with other content when a table is dropped and
// recreated, so an edition counts only together with its e-tag, and the whole
// cache goes when the newest version moves backwards.
type cachedTable[T any] struct {
	reader  Reader
	uri     string
	columns []string // nil: all
	decode  func(*lance.Table, Version) (T, error)
	newest  fresh[struct{}, *edition[T]]

	reading chan struct{} // one slot: pinned versions are read one at a time

	mu     sync.Mutex
	latest *edition[T]
	pinned *edition[T]
	pins   bool // somebody asks by number: a replaced edition is worth its memory
}

// Version says which edition of a table is decoded.
type Version struct {
	Number uint64
	ETag   string
	Time   int64
}

func newCachedTable[T any](r Reader, uri string, decode func(*lance.Table, Version) (T, error)) *cachedTable[T] {
	c := &cachedTable[T]{reader: r, uri: uri, decode: decode, reading: make(chan struct{}, 1)}
	c.newest.work = c.refresh
	return c
}

// head returns the newest edition: one look at the head, and a read if it moved.
func (c *cachedTable[T]) head(ctx context.Context) (*edition[T], error) {
	return c.newest.do(ctx, struct{}{})
}

// at returns the edition of one version, from the cache if it is there.
func (c *cachedTable[T]) at(ctx context.Context, version uint64) (*edition[T], error) {
	select {
	case c.reading <- struct{}{}:
		defer func() { <-c.reading }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if e := c.kept(version); e != nil {
		return e, nil
	}
	e, err := c.readOrNone(ctx, version)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pinned = e
	return e, nil
}

func (c *cachedTable[T]) readOrNone(ctx context.Context, version uint64) (*edition[T], error) {
	if version == 0 {
		return c.none()
	}
	return c.read(ctx, version, lance.Head{})
}

func (c *cachedTable[T]) kept(version uint64) *edition[T] {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pins = true
	for _, e := range []*edition[T]{c.latest, c.pinned} {
		if e != nil && e.version == version {
			return e
		}
	}
	return nil
}

func (c *cachedTable[T]) refresh(ctx context.Context, _ []struct{}) (*edition[T], error) {
	head, err := c.reader.Head(ctx, c.uri)
	if err != nil && !errors.Is(err, lance.ErrGone) {
		return nil, fmt.Errorf("look at the head of %s: %w", c.uri, err)
	}
	c.mu.Lock()
	old := c.latest
	c.mu.Unlock()
	if old != nil && old.version == head.Version && old.etag == head.ETag {
		return old, nil
	}
	var e *edition[T]
	if head.Version > 0 {
		if e, err = c.read(ctx, 0, head); errors.Is(err, lance.ErrGone) {
			err = c.missing(ctx, head, err)
		}
	}
	if errors.Is(err, lance.ErrGone) {
		e, err = c.none()
	}
	if err != nil {
		return nil, err
	}
	return c.keep(e), nil
}

// missing judges a table that had a head and could not be read for something that is
// gone: it was dropped between the two requests, or lacks one of its files. The
// latter is no empty table: nobody may begin anew over it.
func (c *cachedTable[T]) missing(ctx context.Context, seen lance.Head, cause error) error {
	head, err := c.reader.Head(ctx, c.uri)
	switch {
	case err != nil:
		return err
	case head.Version != seen.Version || head.ETag != seen.ETag:
		return &lance.Error{Class: lance.Conflict, Op: "read", URI: c.uri, Message: "it was made anew meanwhile: " + cause.Error()}
	}
	return &lance.Error{
		Class: lance.Corrupt, Op: "read", URI: c.uri,
		Message: fmt.Sprintf("version %d lacks a file: %v", head.Version, cause),
	}
}

// none is the edition of a table that is not there: decoded from nothing.
func (c *cachedTable[T]) none() (*edition[T], error) {
	value, err := c.decode(&lance.Table{}, Version{})
	return &edition[T]{value: value}, err
}

// keep makes e the newest edition. The one it replaces stays for those who pinned
// it, unless the table was recreated.
func (c *cachedTable[T]) keep(e *edition[T]) *edition[T] {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.latest
	switch {
	case old == nil:
	case e.version <= old.version:
		c.pinned = nil
	case c.pins:
		c.pinned = old
	}
	c.latest = e
	return e
}

// read decodes one version; 0 is the newest, whose head was seen just before. The
// e-tag is the head's: had the table been recreated in between, the next look at
// the head differs from it and reads again, which is the safe way to be wrong.
func (c *cachedTable[T]) read(ctx context.Context, version uint64, head lance.Head) (*edition[T], error) {
	table, err := c.reader.ReadTable(ctx, c.uri, lance.ReadOptions{Version: version, Columns: c.columns})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", c.uri, err)
	}
	defer table.Release()
	v := Version{Number: table.Version, ETag: table.ETag}
	if table.Version == head.Version {
		v.ETag, v.Time = head.ETag, head.Time
	}
	value, err := c.decode(table, v)
	if err != nil {
		return nil, fmt.Errorf("decode %s at version %d: %w", c.uri, v.Number, err)
	}
	return &edition[T]{version: v.Number, etag: v.ETag, time: v.Time, value: value}, nil
}
