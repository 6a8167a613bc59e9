package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"lancefleet/fleet"
	"lancefleet/lance"
)

// SourceMode says where experiments are listed.
type SourceMode string

// The modes, as SOURCES spells them.
const (
	SourcesAuto     SourceMode = ""                // registries where one exists, else folders
	SourcesRegistry SourceMode = "registry"        // registries, and an error if there is none
	SourcesFolder   SourceMode = "folder"          // `*.lance` in the data directory
	SourcesBoth     SourceMode = "registry,folder" // registries, and the folders that none of them names
)

// AllowedSources is what SOURCES may be, in words.
const AllowedSources = "registry, folder, registry,folder, or nothing for registry where one exists, else folder"

// ParseSources reads SOURCES: "", "auto", "registry", "folder", or both in any order,
// each once.
func ParseSources(s string) (SourceMode, error) {
	words := strings.Split(strings.ToLower(strings.TrimSpace(s)), ",")
	for i := range words {
		words[i] = strings.TrimSpace(words[i])
	}
	slices.Sort(words)
	switch strings.Join(words, ",") {
	case "", "auto":
		return SourcesAuto, nil
	case "registry":
		return SourcesRegistry, nil
	case "folder":
		return SourcesFolder, nil
	case "folder,registry":
		return SourcesBoth, nil
	}
	return "", fmt.Errorf("sources %q: want %s", s, AllowedSources)
}

// Listing is what the sources name. It is shared: read only.
type Listing struct {
	Experiments []fleet.Experiment `json:"experiments"` // sorted by ID, each once
	Problems    []Problem          `json:"problems"`    // sorted; names that were left out
	From        []string           `json:"from"`        // uris that were read
}

// Problem is a name that a source gives and nobody can use.
type Problem struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// Sources lists the experiments of a data directory.
type Sources struct {
	reader     Reader
	dataDir    string
	mode       SourceMode
	registries []*registry

	mu      sync.Mutex
	seen    map[fleet.Kind]bool // registries that this process has read
	folders []string            // as they could last be listed by Names
	last    lastListing
}

// lastListing is kept because most registries don't change from round to round,
// and building a list of 30,000 takes longer than three looks at a head.
type lastListing struct {
	key     string
	listing Listing
}

// NewSources lists a data directory as [CleanDataDir] returns it.
func NewSources(r Reader, dataDir string, mode SourceMode) *Sources {
	s := &Sources{reader: r, dataDir: dataDir, mode: mode, seen: map[fleet.Kind]bool{}}
	if mode != SourcesFolder {
		for _, kind := range registryKinds() {
			s.registries = append(s.registries, newRegistry(r, dataDir, kind))
		}
	}
	return s
}

// List reads every source at its newest version. A source that can't be read is an
// error of the whole listing, and so is a registry that this process has read
// before and that is not there any more. A name that nobody can use becomes a
// problem and hurts no other.
func (s *Sources) List(ctx context.Context) (Listing, error) {
	return s.ListKnowing(ctx, nil)
}

// ListKnowing is List for those who know the rows that earlier rounds committed: a
// registry is missed when one of them came from it, also by a process that has
// just started. Without this a registry that vanished would look like a fleet
// without experiments, or, with folders as the way out, like another fleet.
func (s *Sources) ListKnowing(ctx context.Context, rows []fleet.Row) (Listing, error) {
	tables, err := s.readRegistries(ctx)
	if err != nil {
		return Listing{}, err
	}
	if err := s.missAny(tables, rows); err != nil {
		return Listing{}, err
	}
	var folders []string
	if s.wantFolders(tables) {
		if folders, err = listFolder(ctx, s.reader, s.dataDir); err != nil {
			return Listing{}, err
		}
	}
	return s.build(tables, folders), nil
}

// Lookup finds the experiments that a person may mean: the one of that kind, else
// the rollout of that name, else all of that name.
func (s *Sources) Lookup(ctx context.Context, ref fleet.Ref) ([]fleet.Experiment, error) {
	listing, err := s.List(ctx)
	if err != nil {
		return nil, err
	}
	var found []fleet.Experiment
	for _, kind := range fleet.Kinds() {
		id := fleet.ID{Kind: kind, Name: ref.Name}
		if at, ok := listing.find(id); ok && ref.Matches(id) {
			found = append(found, listing.Experiments[at])
		}
	}
	if ref.Kind == "" && len(found) > 0 && found[0].Kind == fleet.Rollout {
		found = found[:1]
	}
	return found, nil
}

func (l *Listing) find(id fleet.ID) (int, bool) {
	return slices.BinarySearchFunc(l.Experiments, id, func(e fleet.Experiment, id fleet.ID) int { return e.Compare(id) })
}

// registryEdition is a registry at its newest version.
type registryEdition struct {
	of      *registry
	rows    []registered
	version uint64
	etag    string
}

// readRegistries reads those that exist.
func (s *Sources) readRegistries(ctx context.Context) ([]registryEdition, error) {
	all := make([]registryEdition, len(s.registries))
	group, ctx := errgroup.WithContext(ctx)
	for i, r := range s.registries {
		group.Go(func() error {
			e, err := r.newest(ctx)
			if err == nil {
				all[i] = registryEdition{of: r, rows: e.value, version: e.version, etag: e.etag}
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(t registryEdition) bool { return t.version == 0 }), nil
}

// missAny is the error for a registry that was there.
func (s *Sources) missAny(tables []registryEdition, rows []fleet.Row) error {
	named := map[fleet.Kind]int{}
	for i := range rows {
		if rows[i].Source == fleet.FromRegistry {
			named[rows[i].Kind]++
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range tables {
		s.seen[t.of.kind] = true
	}
	for _, r := range s.registries {
		there := slices.ContainsFunc(tables, func(t registryEdition) bool { return t.of == r })
		if !there && (s.seen[r.kind] || named[r.kind] > 0) {
			return missing(r, named[r.kind])
		}
	}
	if s.mode == SourcesRegistry && len(tables) == 0 {
		return &lance.Error{
			Class: lance.Gone, Op: "list", URI: s.dataDir,
			Message: "there is no registry (_registry.rollout.lance, .generic.lance, .datagen.lance); set SOURCES to folder or to nothing to list folders",
		}
	}
	return nil
}

// missing tells how many experiments are known from it, where that is known: who
// only looks a name up has not read the rows.
func missing(r *registry, named int) error {
	has := ""
	if named > 0 {
		has = "; the fleet has " + fleet.Count(int64(named), "experiment") + " from it"
	}
	return &lance.Error{
		Class: lance.Gone, Op: "list", URI: r.uri,
		Message: "the registry was there and is gone" + has +
			". Restore it, create an empty one if it is really not needed any more, or set SOURCES=folder",
	}
}

func (s *Sources) wantFolders(tables []registryEdition) bool {
	return s.mode == SourcesFolder || s.mode == SourcesBoth || s.mode == SourcesAuto && len(tables) == 0
}

// build makes the listing, or returns the last one if nothing moved.
func (s *Sources) build(tables []registryEdition, folders []string) Listing {
	key := listingKey(tables, folders)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last.key == key {
		return s.last.listing
	}
	l := &listingBuilder{dataDir: s.dataDir, known: map[fleet.ID]bool{}}
	for _, t := range tables {
		t.of.addTo(l, t.rows)
		l.from = append(l.from, t.of.uri)
	}
	if s.wantFolders(tables) {
		l.addFolders(folders)
		l.from = append(l.from, s.dataDir)
	}
	s.last = lastListing{key: key, listing: l.listing()}
	return s.last.listing
}

func listingKey(tables []registryEdition, folders []string) string {
	var b strings.Builder
	b.WriteString("sources\n") // so that nothing at all has a key too
	for _, t := range tables {
		fmt.Fprintf(&b, "%s %d %s\n", t.of.kind, t.version, t.etag)
	}
	for _, f := range folders {
		b.WriteString("\n" + f)
	}
	return b.String()
}

type listingBuilder struct {
	dataDir     string
	known       map[fleet.ID]bool
	experiments []fleet.Experiment
	problems    []Problem
	from        []string
}

// add lets the first source that names an experiment win: registries come first.
func (l *listingBuilder) add(e fleet.Experiment) {
	if !l.known[e.ID] {
		l.known[e.ID] = true
		l.experiments = append(l.experiments, e)
	}
}

func (l *listingBuilder) problem(name, why string) {
	l.problems = append(l.problems, Problem{Name: name, Why: why})
}

func (l *listingBuilder) listing() Listing {
	slices.SortFunc(l.experiments, func(a, b fleet.Experiment) int { return a.Compare(b.ID) })
	slices.SortStableFunc(l.problems, func(a, b Problem) int { return strings.Compare(a.Name, b.Name) })
	return Listing{Experiments: l.experiments, Problems: l.problems, From: l.from}
}
