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
	folder := path.Join(roundsFolder, roundID)
	objects, err := s.list(ctx, folder)
	if err != nil {
		return 0, err
	}
	return s.remove(ctx, folder, objects, func(lance.ObjectInfo) bool { return true })
}

// Sweep removes what nobody needs: pages and hints older than a day, and listings older than
// a day except the one to keep. It returns how many objects went. now may be wrong: it
// is never later than the newest of the objects, which the storage has dated. A round
// stores its listing anew each hour, so that there is a new one.
func (s *Staging) Sweep(ctx context.Context, keepListing string, now int64) (int, error) {
	folders := []string{roundsFolder, hintsFolder, listingsFolder}
	staged, newest := make([][]lance.ObjectInfo, len(folders)), int64(0)
	for i, folder := range folders {
		objects, err := s.list(ctx, folder)
		if err != nil {
			return 0, err
		}
		for _, o := range objects {
			newest = max(newest, o.Time)
		}
		staged[i] = objects
	}
	old := min(now, newest) - keepStaged.Milliseconds()
	removed := 0
	for i, folder := range folders {
		n, err := s.remove(ctx, folder, staged[i], func(o lance.ObjectInfo) bool {
			return o.Time < old && path.Base(o.URI) != keepListing+listingSuffix
		})
		if removed += n; err != nil {
			return removed, err
		}
	}
	return removed, nil
}

func (s *Staging) list(ctx context.Context, folder string) ([]lance.ObjectInfo, error) {
	objects, err := s.writer.List(ctx, join(s.dataDir, folder), 0)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", folder, err)
	}
	return objects, nil
}

// remove deletes those of our objects below a folder that are unwanted.
func (s *Staging) remove(ctx context.Context, folder string, objects []lance.ObjectInfo, unwanted func(lance.ObjectInfo) bool) (int, error) {
	s.removeTorn(folder, unwanted)
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

// torn is the end of a name that a killed worker was writing: on local disk the
// storage library writes beside the name and renames, and lists no such file.
var torn = regexp.MustCompile(`#[0-9]+$`)

// removeTorn takes away what was left unfinished of objects that are unwanted. An
// attempt that is still at it only fails.
func (s *Staging) removeTorn(folder string, unwanted func(lance.ObjectInfo) bool) {
	root, err := cleanURI(join(s.dataDir, folder))
	if err != nil || !isLocal(s.dataDir) {
		return
	}
	_ = filepath.WalkDir(root, func(name string, entry os.DirEntry, err error) error {
		whole := torn.ReplaceAllString(name, "")
		if err != nil || whole == name || !entry.Type().IsRegular() {
			return nil //nolint:nilerr // what can't be looked at stays
		}
		info, err := entry.Info()
		if err == nil && ours(whole) && unwanted(lance.ObjectInfo{URI: whole, Time: info.ModTime().UnixMilli()}) {
			_ = os.Remove(name)
			s.removeEmptyFolders([]string{whole})
		}
		return nil
	})
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
