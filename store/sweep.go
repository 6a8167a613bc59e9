package store

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"lancefleet/lance"
)

const (
	// keepStaged is how old an object of a round that never ended may get. A
	// round is over long before.
	keepStaged = 24 * time.Hour
	// deleteAtOnce bounds one request.
	deleteAtOnce = 500
)

// RemovePages removes what a round staged. Its rows are committed, or given up.
func (s *Staging) RemovePages(ctx context.Context, roundID string) (int, error) {
	if !validRound.MatchString(roundID) {
		return 0, &lance.Error{Class: lance.Invalid, Op: "remove pages", Message: fmt.Sprintf("%q is no id of a round", roundID)}
	}
	s.removeTorn(roundID)
	return s.remove(ctx, path.Join(roundsFolder, roundID), func(lance.ObjectInfo) bool { return true })
}

// tornPage is a page that a killed worker was writing: the storage library writes
// beside the name and renames, on local disk, and lists no such file.
var tornPage = regexp.MustCompile(`^page-.*#[0-9]+$`)

// removeTorn takes away what a worker that died left unfinished of a round's pages.
// An attempt that is still at it, though its round is over, only fails.
func (s *Staging) removeTorn(roundID string) {
	if !isLocal(s.dataDir) {
		return
	}
	folder, err := cleanURI(join(s.dataDir, path.Join(roundsFolder, roundID)))
	if err != nil {
		return
	}
	entries, _ := os.ReadDir(folder) // there may be none
	for _, entry := range entries {
		if entry.Type().IsRegular() && tornPage.MatchString(entry.Name()) {
			_ = os.Remove(filepath.Join(folder, entry.Name()))
		}
	}
	_ = os.Remove(folder) // stays while anything is in it
}

// Sweep removes what nobody needs: pages and hints older than a day, and listings older than
// a day except the one to keep. It returns how many objects went.
func (s *Staging) Sweep(ctx context.Context, keepListing string, now int64) (int, error) {
	old := now - keepStaged.Milliseconds()
	pages, err := s.remove(ctx, roundsFolder, func(o lance.ObjectInfo) bool { return o.Time < old })
	if err != nil {
		return pages, err
	}
	hints, err := s.remove(ctx, hintsFolder, func(o lance.ObjectInfo) bool { return o.Time < old })
	if err != nil {
		return pages + hints, err
	}
	keep := keepListing + listingSuffix
	listings, err := s.remove(ctx, listingsFolder, func(o lance.ObjectInfo) bool {
		return o.Time < old && path.Base(o.URI) != keep
	})
	return pages + hints + listings, err
}

// remove deletes those of our objects below a folder that are unwanted.
func (s *Staging) remove(ctx context.Context, folder string, unwanted func(lance.ObjectInfo) bool) (int, error) {
	objects, err := s.writer.List(ctx, join(s.dataDir, folder), 0)
	if err != nil {
		return 0, fmt.Errorf("list %s: %w", folder, err)
	}
	var uris []string
	for _, o := range objects {
		if ours(o.URI) && unwanted(o) {
			uris = append(uris, o.URI)
		}
	}
	removed := 0
	for len(uris) > 0 {
		some := uris[:min(len(uris), deleteAtOnce)]
		uris = uris[len(some):]
		if _, err := s.writer.Delete(ctx, some...); err != nil {
			return removed, fmt.Errorf("remove %d objects below %s: %w", len(some), folder, err)
		}
		removed += len(some)
		s.removeEmptyFolders(some)
	}
	return removed, nil
}

// removeEmptyFolders takes away what a round leaves on local disk; buckets have no
// folders. A folder that is not empty stays, by the rules of rmdir.
func (s *Staging) removeEmptyFolders(uris []string) {
	if !isLocal(s.dataDir) {
		return
	}
	rounds := join(s.dataDir, roundsFolder)
	for _, uri := range uris {
		clean, err := cleanURI(uri)
		if folder := filepath.Dir(clean); err == nil && filepath.Dir(folder) == rounds {
			_ = os.Remove(folder)
		}
	}
}

var ourObject = regexp.MustCompile(`/(rounds/[A-Za-z0-9_-]+/(page-[^/]+\.arrow|hints-[^/]+\.json\.gz)|hints/[A-Za-z0-9_-]+\.json\.gz|listings/[0-9a-f]{64}\.json\.gz)$`)

// ours keeps foreign files in our folders safe from sweeping.
func ours(uri string) bool { return strings.Contains(uri, ownFolder) && ourObject.MatchString(uri) }
