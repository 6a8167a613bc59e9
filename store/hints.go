package store

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"

	"golang.org/x/sync/errgroup"

	"lancefleet/fleet"
	"lancefleet/lance"
)

const (
	hintsFolder  = ownFolder + "/hints"
	hintsAtOnce  = 16
	mostHintObjs = 1000 // read by one round; the others wait for the next
)

var (
	validHints  = regexp.MustCompile(`^` + roundsFolder + `/[A-Za-z0-9][A-Za-z0-9_-]{0,127}/hints-[A-Z2-7]+\.json\.gz$`)
	hintsObject = regexp.MustCompile(`/hints/[A-Za-z0-9_-]+\.json\.gz$`)
)

// PutHints keeps experiments that the next round looks at, under the id of the run
// that took them: an attempt made again stores nothing new. Those that wait already
// are left out, so that what waits is never more than the fleet.
func (s *Staging) PutHints(ctx context.Context, runID string, ids []fleet.ID) error {
	if !validRound.MatchString(runID) {
		return &lance.Error{Class: lance.Invalid, Op: "put hints", Message: fmt.Sprintf("%q is no id of a run", runID)}
	}
	_, waiting, err := s.waitingHints(ctx)
	if err != nil {
		return err
	}
	ids = slices.DeleteFunc(slices.Clone(ids), func(id fleet.ID) bool { return waiting[id] })
	if len(ids) == 0 {
		return nil
	}
	uri := join(s.dataDir, hintsFolder, runID+listingSuffix)
	return s.putIDs(ctx, uri, ids)
}

// TakeHints moves what waits into the round, and returns the key to read it by; ""
// when nothing waits. What is still there afterwards no round has taken: an event
// that comes while a round runs belongs to the next one. An attempt made again finds
// what the one before had taken.
func (s *Staging) TakeHints(ctx context.Context, roundID string) (string, []fleet.ID, error) {
	if !validRound.MatchString(roundID) {
		return "", nil, &lance.Error{Class: lance.Invalid, Op: "take hints", Message: fmt.Sprintf("%q is no id of a round", roundID)}
	}
	uris, hinted, err := s.waitingHints(ctx)
	if err != nil {
		return "", nil, err
	}
	if err := s.takenBefore(ctx, roundID, hinted); err != nil || len(hinted) == 0 {
		return "", nil, err
	}
	ids := make([]fleet.ID, 0, len(hinted))
	for id := range hinted {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, fleet.ID.Compare)
	key := path.Join(roundsFolder, roundID, "hints-"+rand.Text()+listingSuffix)
	if err := s.putIDs(ctx, join(s.dataDir, key), ids); err != nil {
		return "", nil, err
	}
	if len(uris) > 0 {
		if _, err := s.writer.Delete(ctx, uris...); err != nil { // another round looks at them once more
			return key, ids, fmt.Errorf("remove %d hints that were taken: %w", len(uris), err)
		}
	}
	return key, ids, nil
}

// takenBefore adds what an earlier attempt at the same round has staged.
func (s *Staging) takenBefore(ctx context.Context, roundID string, into map[fleet.ID]bool) error {
	objects, err := s.writer.List(ctx, join(s.dataDir, roundsFolder, roundID), 0)
	if err != nil {
		return fmt.Errorf("list what the round %s has staged: %w", roundID, err)
	}
	for _, o := range objects {
		if key := path.Join(roundsFolder, roundID, path.Base(o.URI)); validHints.MatchString(key) {
			ids, err := s.readIDs(ctx, join(s.dataDir, key))
			if err != nil {
				return err
			}
			for _, id := range ids {
				into[id] = true
			}
		}
	}
	return nil
}

// Hints reads what a round took, by the key of TakeHints. It is shared: read only.
func (s *Staging) Hints(ctx context.Context, key string) (map[fleet.ID]bool, error) {
	if !validHints.MatchString(key) {
		return nil, &lance.Error{Class: lance.Invalid, Op: "read hints", Message: fmt.Sprintf("%q is no key of hints", key)}
	}
	s.mu.Lock()
	known := s.hinted
	s.mu.Unlock()
	if known.key == key {
		return known.ids, nil
	}
	ids, err := s.readIDs(ctx, join(s.dataDir, key))
	if err != nil {
		return nil, err
	}
	taken := takenHints{key: key, ids: make(map[fleet.ID]bool, len(ids))}
	for _, id := range ids {
		taken.ids[id] = true
	}
	s.mu.Lock()
	s.hinted = taken
	s.mu.Unlock()
	return taken.ids, nil
}

// takenHints are kept because every page of a round asks for the same.
type takenHints struct {
	key string
	ids map[fleet.ID]bool
}

// waitingHints reads all that no round has taken, and from which objects. One that
// a round takes in between, or that nobody can read, is left out.
func (s *Staging) waitingHints(ctx context.Context) (uris []string, ids map[fleet.ID]bool, err error) {
	objects, err := s.writer.List(ctx, join(s.dataDir, hintsFolder), 0)
	if err != nil {
		return nil, nil, fmt.Errorf("list hints: %w", err)
	}
	for _, o := range objects {
		if hintsObject.MatchString(o.URI) && len(uris) < mostHintObjs {
			uris = append(uris, o.URI)
		}
	}
	read := make([][]fleet.ID, len(uris))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(hintsAtOnce)
	for i, uri := range uris {
		group.Go(func() (err error) {
			read[i], err = s.readIDs(ctx, uri)
			if class := lance.ClassOf(err); class == lance.Gone || class == lance.Corrupt {
				err = nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	ids = map[fleet.ID]bool{}
	for _, some := range read {
		for _, id := range some {
			ids[id] = true
		}
	}
	return uris, ids, nil
}

func (s *Staging) putIDs(ctx context.Context, uri string, ids []fleet.ID) error {
	text, err := json.Marshal(ids)
	if err != nil {
		return fmt.Errorf("encode %d hints: %w", len(ids), err)
	}
	body, err := pack(text)
	if err != nil {
		return fmt.Errorf("pack %d hints: %w", len(ids), err)
	}
	if _, err := s.writer.Put(ctx, uri, body, lance.PutOptions{}); err != nil {
		return fmt.Errorf("stage %d hints: %w", len(ids), err)
	}
	return nil
}

func (s *Staging) readIDs(ctx context.Context, uri string) ([]fleet.ID, error) {
	object, err := s.writer.Get(ctx, uri)
	if err != nil {
		return nil, fmt.Errorf("read hints: %w", err)
	}
	text, err := unpack(object.Body)
	var ids []fleet.ID
	if err == nil {
		err = json.Unmarshal(text, &ids)
	}
	if err != nil {
		return nil, &lance.Error{Class: lance.Corrupt, Op: "read hints", URI: uri, Message: err.Error()}
	}
	return ids, nil
}
