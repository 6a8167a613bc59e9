package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"lancefleet/fleet"
	"lancefleet/lance"
)

// listFolder names the folders of the data directory that may be datasets: in
// a bucket, those that have anything in them. It costs one LIST for each 1,000.
func listFolder(ctx context.Context, r Reader, dataDir string) ([]string, error) {
	names, err := r.ListDirs(ctx, dataDir)
	if errors.Is(err, lance.ErrGone) {
		return nil, fmt.Errorf("data directory %s does not exist: %w", dataDir, err)
	}
	if err != nil {
		return nil, fmt.Errorf("list the folders of %s: %w", dataDir, err)
	}
	return names, nil
}

// addFolders puts every `*.lance` into a listing, except our own and upstream's
// tables and those that a registry names already, under whatever name.
func (l *listingBuilder) addFolders(names []string) {
	taken := make(map[string]bool, len(l.experiments))
	for _, e := range l.experiments {
		taken[e.URI] = true
	}
	for _, name := range names {
		if !strings.HasSuffix(name, ".lance") || ownTable(name) {
			continue
		}
		uri := join(l.dataDir, name)
		if taken[uri] {
			continue
		}
		id, ok := fleet.KindOfFolder(name)
		if !ok {
			l.problem(name, "the folder's name is not one that an experiment can have: "+fleet.AllowedNames)
			continue
		}
		l.add(fleet.Experiment{ID: id, URI: uri, Source: fleet.FromFolder})
	}
}

// ownTable says whether a folder is a table about the fleet, such as
// `_stats.rollout.lance`, whatever the kind in its name.
func ownTable(folder string) bool {
	stem, _, _ := strings.Cut(folder, ".")
	return fleet.Reserved(stem)
}
