package store

import (
	"context"
	"crypto/rand"
	"fmt"
	"path"
	"regexp"
	"sync"
	"time"

	"lancefleet/fleet"
	"lancefleet/lance"
)

const (
	listingsFolder = ownFolder + "/listings"
	roundsFolder   = ownFolder + "/rounds"

	// rePut is how long a listing counts as put: putting it again renews its age,
	// so that one in use never gets as old as keepStaged.
	rePut = time.Hour
)

// Staging keeps what is too large to travel through Temporal: the list of a
// round's experiments, and the rows that its pages changed. Its objects are
// immutable and mean nothing once their round has ended.
type Staging struct {
	writer  Writer
	dataDir string
	now     func() time.Time

	mu     sync.Mutex
	put    map[string]time.Time // hash -> when this process put it
	cached map[string]*Listing  // the last few read or put
	order  []string
	hinted takenHints // the last that were read
}

// listingsCached is one for the running round and one for what it races with.
const listingsCached = 2

// NewStaging keeps objects below `_lancefleet/` of a data directory.
func NewStaging(w Writer, dataDir string) *Staging {
	return &Staging{writer: w, dataDir: dataDir, now: time.Now, put: map[string]time.Time{}, cached: map[string]*Listing{}}
}

// PutListing stores a listing under the hash of its content, which it returns. The
// same listing always has the same hash, and is stored once an hour at most.
func (s *Staging) PutListing(ctx context.Context, l Listing) (string, error) {
	text, hash, err := encodeListing(l)
	if err != nil {
		return "", err
	}
	if s.recentlyPut(hash) {
		return hash, nil
	}
	at := s.now()
	body, err := pack(text)
	if err != nil {
		return "", fmt.Errorf("pack the listing %s: %w", hash, err)
	}
	if _, err := s.writer.Put(ctx, s.listingURI(hash), body, lance.PutOptions{}); err != nil {
		return "", fmt.Errorf("stage the listing %s: %w", hash, err)
	}
	s.mu.Lock()
	s.put[hash] = at
	s.mu.Unlock()
	s.cache(hash, &l)
	return hash, nil
}

// Listing reads a staged listing, or remembers it. It is shared: read only.
func (s *Staging) Listing(ctx context.Context, hash string) (*Listing, error) {
	if !validHash.MatchString(hash) {
		return nil, &lance.Error{Class: lance.Invalid, Op: "read listing", Message: fmt.Sprintf("%q is no hash", hash)}
	}
	s.mu.Lock()
	known := s.cached[hash]
	s.mu.Unlock()
	if known != nil {
		return known, nil
	}
	object, err := s.writer.Get(ctx, s.listingURI(hash))
	if err != nil {
		return nil, fmt.Errorf("read the listing %s: %w", hash, err)
	}
	l, err := decodeListing(object.Body, hash)
	if err != nil {
		return nil, &lance.Error{Class: lance.Corrupt, Op: "read listing", URI: s.listingURI(hash), Message: err.Error()}
	}
	s.cache(hash, l)
	return l, nil
}

// PutPage stores the rows that one attempt at a page changed, and returns the key
// to pass on. Each call makes another object: an attempt that is given up but
// still runs can't touch what the next one stored.
func (s *Staging) PutPage(ctx context.Context, roundID string, page, attempt int, rows []fleet.Row) (string, error) {
	if !validRound.MatchString(roundID) {
		return "", &lance.Error{Class: lance.Invalid, Op: "stage page", Message: fmt.Sprintf("%q is no id of a round", roundID)}
	}
	body, err := encodePage(rows)
	if err != nil {
		return "", fmt.Errorf("stage page %d of round %s: %w", page, roundID, err)
	}
	key := path.Join(roundsFolder, roundID, fmt.Sprintf("page-%d-attempt-%d-%s.arrow", page, attempt, rand.Text()))
	if _, err := s.writer.Put(ctx, join(s.dataDir, key), body, lance.PutOptions{IfAbsent: true}); err != nil {
		return "", fmt.Errorf("stage page %d of round %s: %w", page, roundID, err)
	}
	return key, nil
}

// Page reads the rows stored under a key of PutPage.
func (s *Staging) Page(ctx context.Context, key string) ([]fleet.Row, error) {
	if !validPage.MatchString(key) {
		return nil, &lance.Error{Class: lance.Invalid, Op: "read page", Message: fmt.Sprintf("%q is no key of a page", key)}
	}
	uri := join(s.dataDir, key)
	object, err := s.writer.Get(ctx, uri)
	if err != nil {
		return nil, fmt.Errorf("read the page %s: %w", key, err)
	}
	rows, err := decodePage(object.Body)
	if err != nil {
		return nil, &lance.Error{Class: lance.Corrupt, Op: "read page", URI: uri, Message: err.Error()}
	}
	return rows, nil
}

const listingSuffix = ".json.gz"

var (
	validHash  = regexp.MustCompile(`^[0-9a-f]{64}$`)
	validRound = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$`)
	validPage  = regexp.MustCompile(`^` + roundsFolder + `/[A-Za-z0-9][A-Za-z0-9_-]{0,127}/page-\d+-attempt-\d+-[A-Z2-7]+\.arrow$`)
)

func (s *Staging) listingURI(hash string) string {
	return join(s.dataDir, listingsFolder, hash+listingSuffix)
}

func (s *Staging) recentlyPut(hash string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.put[hash]
	return ok && s.now().Sub(at) < rePut
}

func (s *Staging) cache(hash string, l *Listing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cached[hash] != nil {
		return
	}
	s.cached[hash] = l
	s.order = append(s.order, hash)
	if len(s.order) > listingsCached {
		delete(s.cached, s.order[0])
		delete(s.put, s.order[0])
		s.order = s.order[1:]
	}
}
