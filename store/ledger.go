package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"lancefleet/fleet"
	"lancefleet/lance"
)

// keepReturned is how long the ledger remembers that an experiment returned: as
// long as an append of its retirement may still be on its way.
const keepReturned = 30 * 24 * time.Hour

// LedgerView is one version of the ledger. It is shared by all who ask: read only.
type LedgerView struct {
	Version uint64              // 0: there is no table yet
	Entries []fleet.LedgerEntry // the newest of each experiment, sorted by ID; returned ones too
}

// Get finds the newest entry of an experiment, nil if there is none. It is part of
// the view: don't change it.
func (v *LedgerView) Get(id fleet.ID) *fleet.LedgerEntry {
	at, found := slices.BinarySearchFunc(v.Entries, id, func(e fleet.LedgerEntry, id fleet.ID) int { return e.Compare(id) })
	if !found {
		return nil
	}
	return &v.Entries[at]
}

// Retired are the experiments whose retirement is in force, each with the last
// write that its evidence knew: what fleet.MergeInput and fleet.PlanInput want.
func (v *LedgerView) Retired() map[fleet.ID]int64 {
	retired := make(map[fleet.ID]int64, len(v.Entries))
	for i := range v.Entries {
		if e := &v.Entries[i]; e.Retired() {
			retired[e.ID] = e.LastWrite
		}
	}
	return retired
}

// Ledger reads `_retired`.
type Ledger struct{ log *logTable[fleet.LedgerEntry] }

// NewLedger reads the table of a data directory as [CleanDataDir] returns it.
func NewLedger(r Reader, dataDir string) *Ledger {
	id := func(e *fleet.LedgerEntry) string {
		if e.Name == "" {
			return "" // a name that is none of ours
		}
		return e.Key()
	}
	at := func(e *fleet.LedgerEntry) int64 { return e.At }
	log := newLogTable(r, join(dataDir, ledgerTable), ledgerCodec, keyColumns, id, at)
	log.tidy = fleet.Newest
	return &Ledger{log}
}

// Latest returns the newest view, never one older than the call. It costs one look
// at the head, and a read of the table once per version and process. Where there is
// no table nothing is retired.
func (l *Ledger) Latest(ctx context.Context) (*LedgerView, error) {
	e, err := l.log.table.head(ctx)
	if err != nil {
		return nil, err
	}
	return &LedgerView{Version: e.version, Entries: e.value}, nil
}

// LedgerWriter appends to `_retired`. Use one per process, so that appends in
// flight share their commits.
type LedgerWriter struct {
	*Ledger
	writer *logWriter[fleet.LedgerEntry]
}

// NewLedgerWriter appends to the table that l reads.
func NewLedgerWriter(w Writer, l *Ledger) *LedgerWriter {
	lw := newLogWriter(w, l.log, "ledger", trimLedger)
	lw.sure = true
	return &LedgerWriter{l, lw}
}

// Append stores entries; calls in flight share one commit. Those that are there, by
// their keys, are left out. When it returns nil, the head was read back and has
// them all. After an error they may be there or not: trying again is safe.
//
// A retirement without clean evidence is refused, whoever asks for it.
func (w *LedgerWriter) Append(ctx context.Context, entries ...fleet.LedgerEntry) error {
	for i := range entries {
		if why := unfitEntry(&entries[i]); why != "" {
			return &lance.Error{
				Class: lance.Invalid, Op: "append to the ledger", URI: w.log.uri,
				Message: fmt.Sprintf("the entry of %s %s", entries[i].ID, why),
			}
		}
	}
	return w.writer.append(ctx, entries)
}

func unfitEntry(e *fleet.LedgerEntry) string {
	switch {
	case fleet.ValidateName(e.Name) != nil || e.Kind == "":
		return "names no experiment"
	case e.RunID == "":
		return "has no run id"
	case e.State != fleet.LedgerRetired && e.State != fleet.LedgerReturned && e.State != fleet.LedgerGone:
		return fmt.Sprintf("has the state %q: want retired, returned or gone", e.State)
	case e.Retired() && !e.Evidence.Clean():
		return "has evidence that something would be left behind"
	case e.Retired() && e.Evidence.Fingerprint.IsZero():
		return "has no evidence"
	}
	return ""
}

// trimLedger keeps the newest entry of each experiment, but not for ever that it
// returned: no entry says the same.
func trimLedger(entries []fleet.LedgerEntry) []fleet.LedgerEntry {
	newest := entries[0].At
	return slices.DeleteFunc(fleet.Newest(entries), func(e fleet.LedgerEntry) bool {
		return !e.Retired() && newest-e.At > keepReturned.Milliseconds()
	})
}

// keyColumns are the first columns of the ledger, that LedgerEntry.Key is made from.
const keyColumns = 5

var ledgerCodec = newCodec([]column[fleet.LedgerEntry]{
	textColumn("run_id", false, func(e *fleet.LedgerEntry) *string { return &e.RunID }),
	ledgerName(),
	textColumn("state", true, func(e *fleet.LedgerEntry) *fleet.LedgerState { return &e.State }),
	ledgerInt("at", 0, func(e *fleet.LedgerEntry) *int64 { return &e.At }),
	ledgerInt("retired_at", 0, func(e *fleet.LedgerEntry) *int64 { return &e.RetiredAt }),
	ledgerInt("missing_since", 0, func(e *fleet.LedgerEntry) *int64 { return &e.MissingSince }),
	ledgerInt("checked_at", 0, func(e *fleet.LedgerEntry) *int64 { return &e.CheckedAt }),
	uniqueColumn("uri", true, func(e *fleet.LedgerEntry) *string { return &e.URI }),
	textColumn("source", true, func(e *fleet.LedgerEntry) *fleet.Source { return &e.Source }),
	ledgerInt("created_at", 0, func(e *fleet.LedgerEntry) *int64 { return &e.CreatedAt }),
	ledgerInt("last_write", 0, func(e *fleet.LedgerEntry) *int64 { return &e.LastWrite }),
	ledgerInt("row_count", -1, func(e *fleet.LedgerEntry) *int64 { return &e.RowCount }),
	ledgerInt("bytes", -1, func(e *fleet.LedgerEntry) *int64 { return &e.Bytes }),
	ledgerInt("fragment_count", -1, func(e *fleet.LedgerEntry) *int64 { return &e.FragmentCount }),
	ledgerInt("last_compaction", -1, func(e *fleet.LedgerEntry) *int64 { return &e.LastCompaction }),
	ledgerInt("total_compactions", 0, func(e *fleet.LedgerEntry) *int64 { return &e.TotalCompactions }),
	textColumn("by", true, func(e *fleet.LedgerEntry) *string { return &e.By }),
	textColumn("why", true, func(e *fleet.LedgerEntry) *string { return &e.Why }),
	textColumn("workflow_id", true, func(e *fleet.LedgerEntry) *string { return &e.WorkflowID }),
	evidenceColumn(),
})

func ledgerInt(name string, unknown int64, at func(*fleet.LedgerEntry) *int64) column[fleet.LedgerEntry] {
	return intColumn(name, true, unknown, at)
}

// ledgerName is the name as `_stats` has it. A name that is none of ours makes an
// entry without an experiment, which decoding drops by its empty id.
func ledgerName() column[fleet.LedgerEntry] {
	return column[fleet.LedgerEntry]{
		field: arrow.Field{Name: "name", Type: arrow.BinaryTypes.String},
		put:   func(b array.Builder, e *fleet.LedgerEntry) { b.(*array.StringBuilder).Append(e.StatsName()) },
		bind: func(a arrow.Array, in *interner) getter[fleet.LedgerEntry] {
			read := texts(a)
			if read == nil {
				return nil
			}
			return func(i int, e *fleet.LedgerEntry) { e.ID = idOf(read(i), in, strings.Clone) }
		},
		unknown: func(e *fleet.LedgerEntry) { e.ID = fleet.ID{} },
	}
}

// evidenceColumn is JSON. Evidence that can't be read is none: the next look at the
// experiment then makes it hot.
func evidenceColumn() column[fleet.LedgerEntry] {
	return column[fleet.LedgerEntry]{
		field: arrow.Field{Name: "evidence", Type: arrow.BinaryTypes.String, Nullable: true},
		put: func(b array.Builder, e *fleet.LedgerEntry) {
			text, _ := json.Marshal(e.Evidence) // a plain value: can't fail
			b.(*array.StringBuilder).Append(valid(string(text)))
		},
		bind: func(a arrow.Array, _ *interner) getter[fleet.LedgerEntry] {
			read := texts(a)
			if read == nil {
				return nil
			}
			return func(i int, e *fleet.LedgerEntry) {
				var evidence fleet.Evidence
				if json.Unmarshal([]byte(read(i)), &evidence) == nil {
					e.Evidence = evidence
				}
			}
		},
		unknown: func(e *fleet.LedgerEntry) { e.Evidence = fleet.Evidence{} },
	}
}
