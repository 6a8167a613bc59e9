package store

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"lancefleet/fleet"
	"lancefleet/lance"
)

// statsColumns are the columns of `_stats`: upstream's ten first, in its order,
// then ours. docs/data-directory.md explains each one.
var statsCodec = newCodec(slices.Concat(upstreamColumns(), ourColumns()))

func upstreamColumns() []column[statsRow] {
	n := func(name string, unknown int64, at func(*fleet.Row) *int64) column[statsRow] {
		return intColumn(name, false, unknown, func(v *statsRow) *int64 { return at(&v.Row) })
	}
	return []column[statsRow]{
		nameColumn(),
		uniqueColumn("uri", false, func(v *statsRow) *string { return &v.URI }),
		n("row_count", -1, func(r *fleet.Row) *int64 { return &r.RowCount }),
		n("fragment_count", -1, func(r *fleet.Row) *int64 { return &r.FragmentCount }),
		n("last_updated", 0, func(r *fleet.Row) *int64 { return &r.LastWrite }),
		n("pending_wal_generations", -1, func(r *fleet.Row) *int64 { return &r.PendingWAL }),
		n("last_compaction", -1, func(r *fleet.Row) *int64 { return &r.LastCompaction }),
		n("total_compactions", 0, func(r *fleet.Row) *int64 { return &r.TotalCompactions }),
		n("scanned_at", 0, func(r *fleet.Row) *int64 { return &r.ScannedAt }),
		n("version", -1, func(r *fleet.Row) *int64 { return &r.Version }),
	}
}

func ourColumns() []column[statsRow] {
	n := func(name string, unknown int64, at func(*fleet.Row) *int64) column[statsRow] {
		return intColumn(name, true, unknown, func(v *statsRow) *int64 { return at(&v.Row) })
	}
	return []column[statsRow]{
		textColumn("source", true, func(v *statsRow) *fleet.Source { return &v.Source }),
		n("created_at", 0, func(r *fleet.Row) *int64 { return &r.CreatedAt }),
		// A row without this column was written by lance-context, which only
		// writes what it has measured.
		boolColumn("known", true, func(v *statsRow) *bool { return &v.Known }),
		boolColumn("rows_exact", false, func(v *statsRow) *bool { return &v.RowsExact }),
		n("pending_rows", -1, func(r *fleet.Row) *int64 { return &r.PendingRows }),
		n("small_fragments", -1, func(r *fleet.Row) *int64 { return &r.SmallFragments }),
		n("deleted_rows", -1, func(r *fleet.Row) *int64 { return &r.DeletedRows }),
		n("bytes", -1, func(r *fleet.Row) *int64 { return &r.Bytes }),
		n("tail_entries", -1, func(r *fleet.Row) *int64 { return &r.TailEntries }),
		n("stranded_entries", -1, func(r *fleet.Row) *int64 { return &r.StrandedEntries }),
		n("last_maintenance", -1, func(r *fleet.Row) *int64 { return &r.LastMaintenance }),
		n("last_base_write", 0, func(r *fleet.Row) *int64 { return &r.LastBaseWrite }),
		n("observed_at", 0, func(r *fleet.Row) *int64 { return &r.ObservedAt }),
		countColumn("fingerprint_version", true, func(v *statsRow) *uint64 { return &v.Fingerprint.Version }),
		uniqueColumn("fingerprint_etag", true, func(v *statsRow) *string { return &v.Fingerprint.ETag }),
		textColumn("fingerprint_naming", true, func(v *statsRow) *string { return &v.Fingerprint.Naming }),
		boolColumn("fingerprint_gaps", false, func(v *statsRow) *bool { return &v.Fingerprint.Gaps }),
		boolColumn("fingerprint_refs", false, func(v *statsRow) *bool { return &v.Fingerprint.Refs }),
		listColumn("fingerprint_shards", markCodec, func(v *statsRow) *[]fleet.ShardMark { return &v.ownMarks }),
		boolColumn("fingerprint_in_shards", false, func(v *statsRow) *bool { return &v.marksInShards }),
		listColumn("shards", shardCodec, func(v *statsRow) *[]fleet.Shard { return &v.Shards }),
		textsColumn("indexes", func(v *statsRow) *[]string { return &v.Indexes }),
		textsColumn("tags", func(v *statsRow) *[]string { return &v.Tags }),
		textsColumn("branches", func(v *statsRow) *[]string { return &v.Branches }),
		n("failures", 0, func(r *fleet.Row) *int64 { return &r.Failures }),
		n("failing_since", 0, func(r *fleet.Row) *int64 { return &r.FailingSince }),
		n("failed_at", 0, func(r *fleet.Row) *int64 { return &r.FailedAt }),
		textColumn("failed_uri", true, func(v *statsRow) *string { return &v.FailedURI }),
		n("next_attempt_at", 0, func(r *fleet.Row) *int64 { return &r.NextAttemptAt }),
		textColumn("error_class", true, func(v *statsRow) *string { return &v.ErrorClass }),
		textColumn("error", true, func(v *statsRow) *string { return &v.Error }),
		n("missing_rounds", 0, func(r *fleet.Row) *int64 { return &r.MissingRounds }),
		n("missing_since", 0, func(r *fleet.Row) *int64 { return &r.MissingSince }),
		n("missing_seen_at", 0, func(r *fleet.Row) *int64 { return &r.MissingSeenAt }),
	}
}

// statsRow is a fleet.Row as the table holds it: a fingerprint whose shard marks
// are those of the row's own shards, as is the rule, does not store them twice.
type statsRow struct {
	fleet.Row
	badName       string // what the name column held when it is none of ours
	marksInShards bool
	ownMarks      []fleet.ShardMark
}

func nameColumn() column[statsRow] {
	return column[statsRow]{
		field: arrow.Field{Name: "name", Type: arrow.BinaryTypes.String},
		put:   func(b array.Builder, v *statsRow) { b.(*array.StringBuilder).Append(v.StatsName()) },
		bind: func(a arrow.Array, in *interner) getter[statsRow] {
			read := texts(a)
			if read == nil {
				return nil
			}
			return func(i int, v *statsRow) {
				id, err := fleet.ParseStatsName(read(i))
				if err != nil {
					v.badName = strings.Clone(read(i))
					return
				}
				v.ID = fleet.ID{Kind: fleet.Kind(in.text(string(id.Kind))), Name: strings.Clone(id.Name)}
			}
		},
		unknown: func(v *statsRow) { v.badName = "null" },
	}
}

var markCodec = newCodec([]column[fleet.ShardMark]{
	textColumn("id", false, func(s *fleet.ShardMark) *string { return &s.ID }),
	countColumn("manifest", false, func(s *fleet.ShardMark) *uint64 { return &s.Manifest }),
	uniqueColumn("etag", true, func(s *fleet.ShardMark) *string { return &s.ETag }),
	countColumn("wal_next", false, func(s *fleet.ShardMark) *uint64 { return &s.WALNext }),
})

var shardCodec = newCodec([]column[fleet.Shard]{
	textColumn("id", false, func(s *fleet.Shard) *string { return &s.ID }),
	countColumn("manifest", false, func(s *fleet.Shard) *uint64 { return &s.Manifest }),
	uniqueColumn("etag", true, func(s *fleet.Shard) *string { return &s.ETag }),
	countColumn("wal_next", false, func(s *fleet.Shard) *uint64 { return &s.WALNext }),
	countColumn("epoch", false, func(s *fleet.Shard) *uint64 { return &s.Epoch }),
	countColumn("current_generation", false, func(s *fleet.Shard) *uint64 { return &s.CurrentGeneration }),
	countColumn("compacted_mark", false, func(s *fleet.Shard) *uint64 { return &s.CompactedMark }),
	textColumn("status", true, func(s *fleet.Shard) *string { return &s.Status }),
	intColumn("pending", true, -1, func(s *fleet.Shard) *int64 { return &s.Pending }),
	intColumn("pending_rows", true, -1, func(s *fleet.Shard) *int64 { return &s.PendingRows }),
	intColumn("pending_bytes", true, -1, func(s *fleet.Shard) *int64 { return &s.PendingBytes }),
	// Unknown means that there may be some: the safe side.
	boolColumn("tombstones", true, func(s *fleet.Shard) *bool { return &s.Tombstones }),
	countColumn("flush_cursor", false, func(s *fleet.Shard) *uint64 { return &s.FlushCursor }),
	intColumn("tail_entries", true, -1, func(s *fleet.Shard) *int64 { return &s.TailEntries }),
	intColumn("tail_rows", true, -1, func(s *fleet.Shard) *int64 { return &s.TailRows }),
	countColumn("newest_entry", true, func(s *fleet.Shard) *uint64 { return &s.NewestEntry }),
	intColumn("newest_entry_time", true, 0, func(s *fleet.Shard) *int64 { return &s.NewestEntryTime }),
	intColumn("newest_generation_time", true, 0, func(s *fleet.Shard) *int64 { return &s.NewestGenTime }),
})

// StatsSchema is the schema of `_stats` as this version writes it.
func StatsSchema() *arrow.Schema { return statsCodec.schema }

// encodeRows makes a record of rows, sorted by name. A name given twice is a
// mistake of the caller.
func encodeRows(rows []fleet.Row) (arrow.RecordBatch, error) {
	out := make([]statsRow, len(rows))
	for i := range rows {
		out[i].Row = rows[i]
		out[i].splitMarks()
	}
	slices.SortFunc(out, func(a, b statsRow) int { return a.Compare(b.ID) })
	for i := 1; i < len(out); i++ {
		if out[i].ID == out[i-1].ID {
			return nil, &lance.Error{Class: lance.Invalid, Op: "encode rows", Message: fmt.Sprintf("%s occurs twice", out[i].ID)}
		}
	}
	return statsCodec.encode(out), nil
}

// decodeRows reads rows, sorted by name, and the names that are none of ours. Of a
// name that occurs twice the row that was confirmed last is kept.
func decodeRows(t *lance.Table) (rows []fleet.Row, badNames []string, err error) {
	if err := requireColumns(t, "name", "uri"); err != nil {
		return nil, nil, err
	}
	decoded := statsCodec.decode(t)
	rows = make([]fleet.Row, 0, len(decoded))
	for i := range decoded {
		if bad := decoded[i].badName; bad != "" {
			badNames = append(badNames, bad)
			continue
		}
		decoded[i].joinMarks()
		rows = append(rows, decoded[i].Row)
	}
	slices.SortStableFunc(rows, func(a, b fleet.Row) int { return a.Compare(b.ID) })
	return newestOfEach(rows), badNames, nil
}

func newestOfEach(rows []fleet.Row) []fleet.Row {
	kept := rows[:0]
	for _, row := range rows {
		last := len(kept) - 1
		switch {
		case last < 0 || kept[last].ID != row.ID:
			kept = append(kept, row)
		case row.ScannedAt >= kept[last].ScannedAt:
			kept[last] = row
		}
	}
	return kept
}

// requireColumns refuses a table that can't be what it is taken for.
func requireColumns(t *lance.Table, names ...string) error {
	for _, record := range t.Records {
		for _, name := range names {
			if a := columnNamed(record, name); a == nil || texts(a) == nil {
				return &lance.Error{Class: lance.Corrupt, Op: "decode", Message: fmt.Sprintf("it has no text column %q", name)}
			}
		}
	}
	return nil
}

func (r *statsRow) splitMarks() {
	same := func(s fleet.Shard, m fleet.ShardMark) bool { return s.ShardMark == m }
	if r.marksInShards = slices.EqualFunc(r.Shards, r.Fingerprint.Shards, same); !r.marksInShards {
		r.ownMarks = r.Fingerprint.Shards
	}
}

func (r *statsRow) joinMarks() {
	if at := strings.LastIndex(r.URI, r.Name); at >= 0 && r.Name != "" {
		r.Name = r.URI[at : at+len(r.Name)] // one copy of both
	}
	r.Fingerprint.Shards = r.ownMarks
	if r.marksInShards && len(r.Shards) > 0 {
		r.Fingerprint.Shards = make([]fleet.ShardMark, len(r.Shards))
		for i, s := range r.Shards {
			r.Fingerprint.Shards[i] = s.ShardMark
		}
	}
}
