package store

import (
	"context"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"lancefleet/fleet"
	"lancefleet/lance"
)

const (
	keepRounds    = 30 * 24 * time.Hour
	keepRoundsMax = 10_000 // 30 days of a round every 300 s are 8,640
)

// Rounds reads `_rounds`.
type Rounds struct{ log *logTable[fleet.RoundRecord] }

// NewRounds reads the table of a data directory as [CleanDataDir] returns it.
func NewRounds(r Reader, dataDir string) *Rounds {
	id := func(r *fleet.RoundRecord) string { return r.RoundID }
	at := func(r *fleet.RoundRecord) int64 { return r.StartedAt }
	return &Rounds{newLogTable(r, join(dataDir, roundsTable), roundCodec, 1, id, at)}
}

// Latest returns the newest n rounds by start, newest first; n <= 0 means all.
func (r *Rounds) Latest(ctx context.Context, n int) ([]fleet.RoundRecord, error) {
	return r.log.latest(ctx, n)
}

// RoundsWriter appends to `_rounds`.
type RoundsWriter struct {
	*Rounds
	writer *logWriter[fleet.RoundRecord]
}

// NewRoundsWriter appends to the table that r reads.
func NewRoundsWriter(w Writer, r *Rounds) *RoundsWriter {
	return &RoundsWriter{r, newLogWriter(w, r.log, "rounds", trimRounds)}
}

// Append stores a round. Storing one that is there, by its id, does nothing.
func (w *RoundsWriter) Append(ctx context.Context, rec fleet.RoundRecord) error {
	if rec.RoundID == "" {
		return &lance.Error{Class: lance.Invalid, Op: "append round", Message: "it has no id"}
	}
	return w.writer.append(ctx, []fleet.RoundRecord{rec})
}

// trimRounds counts age from the newest round: an old fleet that was off for a
// while still shows its past.
func trimRounds(rounds []fleet.RoundRecord) []fleet.RoundRecord {
	rounds = rounds[:min(len(rounds), keepRoundsMax)]
	for i := range rounds {
		if rounds[0].StartedAt-rounds[i].StartedAt > keepRounds.Milliseconds() {
			return rounds[:i]
		}
	}
	return rounds
}

var roundCodec = newCodec([]column[fleet.RoundRecord]{
	uniqueColumn("round_id", false, func(r *fleet.RoundRecord) *string { return &r.RoundID }),
	roundInt("number", func(r *fleet.RoundRecord) *int64 { return &r.Number }),
	roundInt("observed", func(r *fleet.RoundRecord) *int64 { return &r.Observed }),
	roundInt("skipped", func(r *fleet.RoundRecord) *int64 { return &r.Skipped }),
	roundInt("failed", func(r *fleet.RoundRecord) *int64 { return &r.Failed }),
	roundInt("backing_off", func(r *fleet.RoundRecord) *int64 { return &r.BackingOff }),
	roundInt("hot", func(r *fleet.RoundRecord) *int64 { return &r.Hot }),
	committedColumn(),
	roundInt("requests_list", func(r *fleet.RoundRecord) *int64 { return &r.StorageRequests.List }),
	roundInt("requests_head", func(r *fleet.RoundRecord) *int64 { return &r.StorageRequests.Head }),
	roundInt("requests_get", func(r *fleet.RoundRecord) *int64 { return &r.StorageRequests.Get }),
	roundInt("requests_put", func(r *fleet.RoundRecord) *int64 { return &r.StorageRequests.Put }),
	roundInt("requests_delete", func(r *fleet.RoundRecord) *int64 { return &r.StorageRequests.Delete }),
	roundInt("started_at", func(r *fleet.RoundRecord) *int64 { return &r.StartedAt }),
	roundInt("finished_at", func(r *fleet.RoundRecord) *int64 { return &r.FinishedAt }),
	floatColumn("duration_seconds", func(r *fleet.RoundRecord) *float64 { return &r.DurationSeconds }),
	textColumn("by", true, func(r *fleet.RoundRecord) *string { return &r.By }),
	textColumn("workflow_id", true, func(r *fleet.RoundRecord) *string { return &r.WorkflowID }),
})

func roundInt(name string, at func(*fleet.RoundRecord) *int64) column[fleet.RoundRecord] {
	c := intColumn(name, false, 0, at)
	c.field.Nullable = true // a later version may drop it
	return c
}

// committedColumn is null when the round had nothing to commit.
func committedColumn() column[fleet.RoundRecord] {
	return column[fleet.RoundRecord]{
		field: arrow.Field{Name: "committed_version", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		put: func(b array.Builder, r *fleet.RoundRecord) {
			if r.CommittedVersion == nil {
				b.AppendNull()
				return
			}
			b.(*array.Int64Builder).Append(int64(*r.CommittedVersion))
		},
		bind: func(a arrow.Array, _ *interner) getter[fleet.RoundRecord] {
			read := integers(a)
			if read == nil {
				return nil
			}
			return func(i int, r *fleet.RoundRecord) {
				version := uint64(read(i))
				r.CommittedVersion = &version
			}
		},
		unknown: func(r *fleet.RoundRecord) { r.CommittedVersion = nil },
	}
}
