package store

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"lancefleet/fleet"
	"lancefleet/lance"
)

const (
	keepSamples    = 30 * 24 * time.Hour
	keepSamplesMax = 200_000 // in memory some 20 MB for who reads them; a busier fleet sees less far back
)

// Samples reads `_samples`: the numbers, by the hour, of experiments that changed.
type Samples struct{ log *logTable[fleet.Sample] }

// NewSamples reads the table of a data directory as [CleanDataDir] returns it.
func NewSamples(r Reader, dataDir string) *Samples {
	at := func(s *fleet.Sample) int64 { return s.At }
	return &Samples{newLogTable(r, join(dataDir, samplesTable), sampleCodec, 2, sampleID, at)}
}

// sampleID is empty for a name that is none of ours.
func sampleID(s *fleet.Sample) string {
	if s.Name == "" {
		return ""
	}
	return s.ID.String() + "@" + strconv.FormatInt(s.At, 10)
}

// Of returns the newest n samples of one experiment, newest first; n <= 0 means all.
func (s *Samples) Of(ctx context.Context, id fleet.ID, n int) ([]fleet.Sample, error) {
	e, err := s.log.table.head(ctx)
	if err != nil {
		return nil, err
	}
	var found []fleet.Sample
	for i := range e.value {
		if n > 0 && len(found) == n {
			break
		}
		if e.value[i].ID == id {
			found = append(found, e.value[i])
		}
	}
	return found, nil
}

// All returns the samples of all experiments, newest first. It is the same slice until
// the table changes, and shared: read only.
func (s *Samples) All(ctx context.Context) ([]fleet.Sample, error) {
	e, err := s.log.table.head(ctx)
	if err != nil {
		return nil, err
	}
	return e.value, nil
}

// SamplesWriter appends to `_samples`.
type SamplesWriter struct {
	*Samples
	writer *logWriter[fleet.Sample]
}

// NewSamplesWriter appends to the table that s reads.
func NewSamplesWriter(w Writer, s *Samples) *SamplesWriter {
	return &SamplesWriter{s, newLogWriter(w, s.log, "samples", trimSamples)}
}

// Append stores samples. Of each experiment and hour the first counts.
func (w *SamplesWriter) Append(ctx context.Context, samples ...fleet.Sample) error {
	for i := range samples {
		if err := fleet.ValidateName(samples[i].Name); err != nil {
			return &lance.Error{Class: lance.Invalid, Op: "append samples", Message: fmt.Sprintf("sample %d: %v", i, err)}
		}
	}
	return w.writer.append(ctx, samples)
}

func trimSamples(samples []fleet.Sample) []fleet.Sample {
	samples = samples[:min(len(samples), keepSamplesMax)]
	for i := range samples {
		if samples[0].At-samples[i].At > keepSamples.Milliseconds() {
			return samples[:i]
		}
	}
	return samples
}

var sampleCodec = newCodec([]column[fleet.Sample]{
	sampleName(),
	sampleInt("at", 0, func(s *fleet.Sample) *int64 { return &s.At }),
	sampleInt("row_count", -1, func(s *fleet.Sample) *int64 { return &s.Rows }),
	sampleInt("fragment_count", -1, func(s *fleet.Sample) *int64 { return &s.Fragments }),
	sampleInt("pending_wal_generations", -1, func(s *fleet.Sample) *int64 { return &s.Pending }),
	sampleInt("bytes", -1, func(s *fleet.Sample) *int64 { return &s.Bytes }),
	sampleInt("last_write", 0, func(s *fleet.Sample) *int64 { return &s.LastWrite }),
})

func sampleInt(name string, unknown int64, at func(*fleet.Sample) *int64) column[fleet.Sample] {
	return intColumn(name, true, unknown, at)
}

func sampleName() column[fleet.Sample] {
	return column[fleet.Sample]{
		field: arrow.Field{Name: "name", Type: arrow.BinaryTypes.String},
		put:   func(b array.Builder, s *fleet.Sample) { b.(*array.StringBuilder).Append(s.StatsName()) },
		bind: func(a arrow.Array, in *interner) getter[fleet.Sample] {
			read := texts(a)
			if read == nil {
				return nil
			}
			return func(i int, s *fleet.Sample) { s.ID = idOf(read(i), in, in.text) }
		},
		unknown: func(s *fleet.Sample) { s.ID = fleet.ID{} },
	}
}

// idOf reads a name as `_stats` has it; a name that is none of ours is the empty
// ID. own makes a name that shares no memory with a record.
func idOf(name string, in *interner, own func(string) string) fleet.ID {
	id, err := fleet.ParseStatsName(name)
	if err != nil {
		return fleet.ID{}
	}
	return fleet.ID{Kind: fleet.Kind(in.text(string(id.Kind))), Name: own(id.Name)}
}
