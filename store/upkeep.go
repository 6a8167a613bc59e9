package store

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"lancefleet/lance"
)

// Compactor rewrites small fragments: [lance.Maintainer] is one.
type Compactor interface {
	Compact(ctx context.Context, s lance.CompactSpec) (lance.Compacted, error)
}

// Keeper keeps our own tables small.
type Keeper struct {
	writer    Writer
	compactor Compactor
	dataDir   string
}

// NewKeeper keeps the tables of a data directory as [CleanDataDir] returns it.
func NewKeeper(w Writer, c Compactor, dataDir string) *Keeper { return &Keeper{w, c, dataDir} }

// UpkeepOptions of [Keeper.Upkeep].
type UpkeepOptions struct {
	HistoryTTL   time.Duration // older versions go; 0 = all but those kept
	KeepVersions int           // the newest stay, however old; less than 2 = 2: a reader may be on the last but one
	Budget       time.Duration // for all tables together, shared equally; 0 = 10 min
	Registries   bool          // lance-context's registries too
}

// UpkeepResult is what one pass did to one table. A table that does not exist has
// no versions and no error.
type UpkeepResult struct {
	Table     string // its folder
	Before    int64  // versions on disk; -1 unknown
	After     int64
	Removed   int64 // versions
	Fragments int64 // that compaction took away
	Bytes     int64 // freed on disk, less than 0 where the table grew meanwhile
	Err       error // what went wrong; the other tables were kept all the same
}

const (
	upkeepBudget       = 10 * time.Minute
	upkeepTries        = 3 // of a compaction against appends
	upkeepMinFragments = 8
	upkeepMaxFragments = 4096
	upkeepMaxBytes     = 1 << 30
	upkeepTargetRows   = 1 << 20
	leastVersions      = 2
)

// Upkeep compacts our tables and removes their old versions, table by table. One
// that fails or hangs never keeps the next one from its turn.
func (k *Keeper) Upkeep(ctx context.Context, o UpkeepOptions) []UpkeepResult {
	tables := k.tables(o.Registries)
	budget := o.Budget
	if budget <= 0 {
		budget = upkeepBudget
	}
	share := budget / time.Duration(len(tables))
	results := make([]UpkeepResult, len(tables))
	for i, t := range tables {
		results[i] = k.keepWithin(ctx, share, t, o)
	}
	return results
}

// keptTable is one of those to keep.
type keptTable struct {
	folder string
	log    bool // is appended to: there are fragments to compact
}

func (k *Keeper) tables(registries bool) []keptTable {
	tables := []keptTable{{statsTable, false}, {ledgerTable, true}, {journalTable, true}, {roundsTable, true}, {samplesTable, true}}
	if registries {
		for _, kind := range registryKinds() {
			tables = append(tables, keptTable{registryTable(kind), true})
		}
	}
	return tables
}

func (k *Keeper) keepWithin(ctx context.Context, share time.Duration, t keptTable, o UpkeepOptions) UpkeepResult {
	ctx, cancel := context.WithTimeout(ctx, share)
	defer cancel()
	r := UpkeepResult{Table: t.folder, Before: -1, After: -1}
	if err := k.keep(ctx, t, o, &r); err != nil {
		r.Err = fmt.Errorf("upkeep of %s: %w", t.folder, err)
	}
	return r
}

func (k *Keeper) keep(ctx context.Context, t keptTable, o UpkeepOptions, r *UpkeepResult) error {
	uri := join(k.dataDir, t.folder)
	before, err := k.measure(ctx, uri)
	if err != nil {
		return err
	}
	r.Before, r.After = before.versions, before.versions
	if before.versions == 0 {
		return nil
	}
	var compacting error
	if t.log {
		r.Fragments, compacting = k.compact(ctx, uri) // cleaning up helps all the same
	}
	removed, cleaning := k.writer.CleanupVersions(ctx, uri, o.HistoryTTL, max(o.KeepVersions, leastVersions))
	r.Removed = removed
	after, err := k.measure(ctx, uri)
	if err == nil {
		r.After, r.Bytes = after.versions, before.bytes-after.bytes
	}
	return errors.Join(compacting, cleaning, err)
}

// compact makes one file of many. An append or a rewrite that comes in between is
// the normal case.
func (k *Keeper) compact(ctx context.Context, uri string) (int64, error) {
	spec := lance.CompactSpec{
		URI: uri, TargetRows: upkeepTargetRows, MaxSourceFragments: upkeepMaxFragments,
		MaxSourceBytes: upkeepMaxBytes, MinFragments: upkeepMinFragments,
	}
	for try := 1; ; try++ {
		done, err := k.compactor.Compact(ctx, spec)
		if !errors.Is(err, lance.ErrConflict) || try == upkeepTries {
			return done.FragmentsRemoved - done.FragmentsAdded, err
		}
		if err := backOff(ctx, try); err != nil {
			return 0, err
		}
	}
}

// Versions counts the versions that lie on disk of one of our tables, named by its
// folder. A table that does not exist has none.
func (k *Keeper) Versions(ctx context.Context, table string) (int64, error) {
	m, err := k.measure(ctx, join(k.dataDir, table, versionsFolder))
	return m.versions, err
}

const versionsFolder = "_versions"

// size is what lies on disk of a table.
type size struct{ versions, bytes int64 }

func (k *Keeper) measure(ctx context.Context, uri string) (size, error) {
	objects, err := k.writer.List(ctx, uri, 0)
	if errors.Is(err, lance.ErrGone) {
		return size{}, nil
	}
	if err != nil {
		return size{}, fmt.Errorf("list %s: %w", uri, err)
	}
	var s size
	for _, o := range objects {
		s.bytes += o.Size
		if path.Base(path.Dir(o.URI)) == versionsFolder && strings.HasSuffix(o.URI, ".manifest") {
			s.versions++
		}
	}
	return s, nil
}
