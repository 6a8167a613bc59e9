package store

import (
	"context"
	"fmt"
	"strings"

	"lancefleet/fleet"
	"lancefleet/lance"
)

// registryKinds are the kinds that lance-context keeps registries of.
func registryKinds() []fleet.Kind { return []fleet.Kind{fleet.Rollout, fleet.Generic, fleet.Datagen} }

func registryTable(kind fleet.Kind) string { return "_registry." + string(kind) + ".lance" }

// registry reads one `_registry.<kind>.lance`. Nothing of ours ever writes it.
type registry struct {
	kind  fleet.Kind
	uri   string
	table *cachedTable[[]registered]
}

// registered is one row of a registry.
type registered struct {
	name      string // bare
	uri       string // anywhere; relative to the data directory if it is relative
	createdAt int64  // unix ms; 0 unknown
}

var registryCodec = newCodec([]column[registered]{
	uniqueColumn("name", false, func(r *registered) *string { return &r.name }),
	uniqueColumn("uri", false, func(r *registered) *string { return &r.uri }),
	intColumn("created_at", false, 0, func(r *registered) *int64 { return &r.createdAt }),
})

func newRegistry(r Reader, dataDir string, kind fleet.Kind) *registry {
	uri := join(dataDir, registryTable(kind))
	return &registry{kind: kind, uri: uri, table: newCachedTable(r, uri, decodeRegistry)}
}

func decodeRegistry(t *lance.Table, _ Version) ([]registered, error) {
	if err := requireColumns(t, "name", "uri"); err != nil {
		return nil, err
	}
	return registryCodec.decode(t), nil
}

// newest reads the newest version; version 0 means that there is no such registry.
func (r *registry) newest(ctx context.Context) (*edition[[]registered], error) {
	e, err := r.table.head(ctx)
	if err != nil {
		return nil, fmt.Errorf("registry of kind %s: %w", r.kind, err)
	}
	return e, nil
}

// addTo puts what a registry names into a listing. Workers write it as delete and
// append, so a name can be there twice for a moment: the row created last counts,
// of two created in one millisecond the later one in the table.
func (r *registry) addTo(l *listingBuilder, rows []registered) {
	newest := make(map[string]int, len(rows))
	for i, row := range rows {
		if at, twice := newest[row.name]; !twice || row.createdAt >= rows[at].createdAt {
			newest[row.name] = i
		}
	}
	for i, row := range rows {
		if newest[row.name] == i {
			l.addRegistered(r.kind, row)
		}
	}
}

func (l *listingBuilder) addRegistered(kind fleet.Kind, row registered) {
	label := string(kind) + ":" + row.name
	if err := fleet.ValidateName(row.name); err != nil {
		l.problem(label, err.Error())
		return
	}
	uri, err := Locate(l.dataDir, row.uri)
	if err != nil {
		l.problem(label, err.Error())
		return
	}
	id := fleet.ID{Kind: kind, Name: row.name}
	// One copy of the name where the uri ends in it, as it nearly always does.
	if at := strings.LastIndex(uri, row.name); at >= 0 {
		id.Name = uri[at : at+len(row.name)]
	}
	l.add(fleet.Experiment{ID: id, URI: uri, Source: fleet.FromRegistry, CreatedAt: row.createdAt})
}
