package store

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"lancefleet/fleet"
	"lancefleet/lance"
)

// Snapshot is one version of `_stats`. It is shared by all who ask: read only.
type Snapshot struct {
	Version     uint64 // 0: there is no table yet
	ETag        string
	CommittedAt int64       // unix ms; 0 unknown
	Rows        []fleet.Row // sorted by ID
	Skipped     []string    // names in the table that are none of ours; the next commit drops their rows
}

// Row finds a row. It is part of the snapshot: don't change it.
func (s *Snapshot) Row(id fleet.ID) (*fleet.Row, bool) {
	at, found := slices.BinarySearchFunc(s.Rows, id, func(r fleet.Row, id fleet.ID) int { return r.Compare(id) })
	if !found {
		return nil, false
	}
	return &s.Rows[at], true
}

// Stats reads `_stats`.
type Stats struct {
	uri   string
	table *cachedTable[*Snapshot]
}

// NewStats reads the table of a data directory as [CleanDataDir] returns it.
func NewStats(r Reader, dataDir string) *Stats {
	uri := join(dataDir, statsTable)
	return &Stats{uri: uri, table: newCachedTable(r, uri, decodeSnapshot)}
}

// Latest returns the newest snapshot, never one older than the call. It costs one
// look at the head, and a read of the table once per version and process.
func (s *Stats) Latest(ctx context.Context) (*Snapshot, error) {
	e, err := s.table.head(ctx)
	if errors.Is(err, lance.ErrCorrupt) { // nothing in it is anybody's only copy
		return nil, fmt.Errorf("damaged, move %s away and the next round makes it anew: %w", s.uri, err)
	}
	if err != nil {
		return nil, err
	}
	return e.value, nil
}

// At returns one version. A version that was cleaned up is [lance.ErrGone].
func (s *Stats) At(ctx context.Context, version uint64) (*Snapshot, error) {
	e, err := s.table.at(ctx, version)
	if err != nil {
		return nil, err
	}
	return e.value, nil
}

func decodeSnapshot(t *lance.Table, v Version) (*Snapshot, error) {
	rows, skipped, err := decodeRows(t)
	if err != nil {
		return nil, err
	}
	return &Snapshot{Version: v.Number, ETag: v.ETag, CommittedAt: v.Time, Rows: rows, Skipped: skipped}, nil
}

// StatsWriter commits `_stats`. Use one per process, so that refreshes in flight
// share their commits.
type StatsWriter struct {
	writer Writer
	stats  *Stats
	group  fresh[refresh, uint64]
}

type refresh struct {
	rows       []fleet.Row
	addMissing bool
}

// NewStatsWriter commits the table that s reads.
func NewStatsWriter(w Writer, s *Stats) *StatsWriter {
	sw := &StatsWriter{writer: w, stats: s}
	sw.group.work = sw.commitGroup
	return sw
}

// Commit makes the table exactly these rows, in one commit that succeeds only if
// the table still is the base snapshot; else the error is [lance.ErrConflict]:
// read Latest, merge again, try again. It returns the new version.
//
// After any other error the commit may have happened: reading Latest tells.
func (w *StatsWriter) Commit(ctx context.Context, base *Snapshot, rows []fleet.Row, props map[string]string) (uint64, error) {
	if err := w.sameTable(ctx, base); err != nil {
		return 0, err
	}
	record, err := encodeRows(rows)
	if err != nil {
		return 0, fmt.Errorf("commit %s: %w", w.stats.uri, err)
	}
	defer record.Release()
	c, err := w.writer.CommitSnapshot(ctx, w.stats.uri, base.Version, []arrow.RecordBatch{record}, record.Schema(), withAction(props, "stats"))
	if err != nil {
		return 0, fmt.Errorf("commit %d rows to %s over version %d: %w", len(rows), w.stats.uri, base.Version, err)
	}
	return c.Version, nil
}

// sameTable notices a table that was dropped and recreated up to the very version
// of the base, which the version number alone would let pass.
func (w *StatsWriter) sameTable(ctx context.Context, base *Snapshot) error {
	head, err := w.writer.Head(ctx, w.stats.uri)
	if errors.Is(err, lance.ErrGone) {
		head, err = lance.Head{}, nil
	}
	if err != nil {
		return fmt.Errorf("look at the head of %s: %w", w.stats.uri, err)
	}
	if head.Version == base.Version && (head.ETag == base.ETag || head.ETag == "" || base.ETag == "") {
		return nil
	}
	return &lance.Error{
		Class: lance.Conflict, Op: "commit", URI: w.stats.uri,
		Message: fmt.Sprintf("the head is version %d (%s), not %d (%s)", head.Version, head.ETag, base.Version, base.ETag),
	}
}

// RefreshRows stores rows of single experiments that were just observed. Newer
// rows win; a row the table lacks is left out unless addMissing. Calls in flight
// are grouped into one commit, which is tried again when somebody else commits
// first. It returns the version of that commit, or 0 when the whole group had
// nothing to store: the table has newer rows, or none of these.
func (w *StatsWriter) RefreshRows(ctx context.Context, rows []fleet.Row, addMissing bool) (uint64, error) {
	if len(rows) == 0 {
		return 0, nil
	}
	version, err := w.group.do(ctx, refresh{slices.Clone(rows), addMissing})
	if err != nil {
		return 0, fmt.Errorf("refresh %d rows: %w", len(rows), err)
	}
	return version, nil
}

func (w *StatsWriter) commitGroup(ctx context.Context, group []refresh) (uint64, error) {
	for attempt := 1; ; attempt++ {
		version, err := w.tryRefresh(ctx, group)
		if !errors.Is(err, lance.ErrConflict) || attempt == conflictAttempts {
			return version, err
		}
		if err := backOff(ctx, attempt); err != nil {
			return 0, err
		}
	}
}

func (w *StatsWriter) tryRefresh(ctx context.Context, group []refresh) (uint64, error) {
	latest, err := w.stats.Latest(ctx)
	if err != nil {
		return 0, err
	}
	var known, maybeNew []fleet.Row
	for _, r := range group {
		if r.addMissing {
			maybeNew = append(maybeNew, r.rows...)
		} else {
			known = append(known, r.rows...)
		}
	}
	merged := fleet.MergeRefresh(latest.Rows, maybeNew, true)
	merged = fleet.MergeRefresh(merged, known, false)
	if !changesAny(latest, merged, append(known, maybeNew...)) {
		return 0, nil
	}
	return w.Commit(ctx, latest, merged, nil)
}

// changesAny says whether a merge moved any of the rows that went into it.
func changesAny(latest *Snapshot, merged, brought []fleet.Row) bool {
	after := &Snapshot{Rows: merged}
	return slices.ContainsFunc(brought, func(r fleet.Row) bool {
		old, was := latest.Row(r.ID)
		row, is := after.Row(r.ID)
		return was != is || is && !reflect.DeepEqual(*old, *row)
	})
}

// withAction marks a commit as ours, unless the caller says more.
func withAction(props map[string]string, action string) map[string]string {
	all := map[string]string{fleet.ActionProperty: action}
	for k, v := range props {
		all[k] = v
	}
	return all
}
