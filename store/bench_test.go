package store_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/store"
)

// largeFleet is what 50,000 real rows look like: one shard each, of one of twenty
// workers, a tenth of them failing.
func largeFleet(n int) []fleet.Row {
	rows := make([]fleet.Row, n)
	for i := range rows {
		row := &rows[i]
		*row = observedRow(i, 1_700_000_000_000+int64(i))
		row.URI = "s3://a-bucket-of-some-team/experiments/2026/" + row.Name + ".rollout.lance"
		row.Fingerprint.ETag = fmt.Sprintf("%032x", i*7919)
		mark := fleet.ShardMark{ID: fmt.Sprintf("0000000%x-0000-5000-8000-000000000000", i%20), Manifest: 40, ETag: fmt.Sprintf("%032x", i*104729), WALNext: 900}
		row.Shards = []fleet.Shard{{ShardMark: mark, Epoch: 3, CurrentGeneration: 12, Status: "active", Pending: 3, PendingRows: 300, PendingBytes: 30_000, FlushCursor: 890, NewestEntry: 899, NewestEntryTime: row.ObservedAt}}
		row.Fingerprint.Shards = []fleet.ShardMark{mark}
		if i%10 == 0 {
			row.Failures, row.ErrorClass, row.Error = 2, "denied", "the store refused the credentials"
		}
	}
	return rows
}

const large = 50_000

func BenchmarkCommit50kRows(b *testing.B) {
	rows := largeFleet(large)
	sink := &sink{}
	w := store.NewStatsWriter(sink, store.NewStats(sink, "/data"))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.Commit(b.Context(), &store.Snapshot{}, rows, nil); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/fleet")
}

func BenchmarkRead50kRows(b *testing.B) {
	kept := encoded(b, largeFleet(large))
	b.ReportAllocs()
	for b.Loop() {
		snapshot, err := store.NewStats(kept, "/data").Latest(b.Context())
		if err != nil || len(snapshot.Rows) != large {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/fleet")
}

// BenchmarkSnapshotMemory says what one row of a snapshot keeps alive.
func BenchmarkSnapshotMemory(b *testing.B) {
	kept := encoded(b, largeFleet(large))
	for b.Loop() {
		before := live()
		snapshot, err := store.NewStats(kept, "/data").Latest(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(live()-before)/large, "bytes/row")
		runtime.KeepAlive(snapshot)
		runtime.KeepAlive(kept)
	}
}

func BenchmarkStagedPage(b *testing.B) {
	rows := largeFleet(1000)
	m := memoryBackend()
	staging := store.NewStaging(m, m.dir)
	for b.Loop() {
		key, err := staging.PutPage(b.Context(), "r", 1, 1, rows)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := staging.Page(b.Context(), key); err != nil {
			b.Fatal(err)
		}
		object, err := m.Get(b.Context(), m.dir+"/"+key)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(object.Body))/1000, "bytes/row")
		_, _ = m.Delete(b.Context(), m.dir+"/"+key)
	}
}

// A snapshot of a large fleet has to stay modest in every process that keeps one.
func TestASnapshotOfALargeFleetStaysModest(t *testing.T) {
	const n = 10_000
	kept := encoded(t, largeFleet(n))
	before := live()
	snapshot, err := store.NewStats(kept, "/data").Latest(t.Context())
	require.NoError(t, err)
	perRow := float64(live()-before) / n
	runtime.KeepAlive(snapshot)
	runtime.KeepAlive(kept)
	t.Logf("%.0f bytes a row", perRow)
	require.Less(t, perRow, 1400.0)
}

func live() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// sink takes commits and forgets them.
type sink struct{ store.Writer }

func (*sink) Head(_ context.Context, _ string) (lance.Head, error) {
	return lance.Head{}, lance.ErrGone
}

func (*sink) CommitSnapshot(_ context.Context, _ string, _ uint64, _ []arrow.RecordBatch, _ *arrow.Schema, _ map[string]string) (lance.Commit, error) {
	return lance.Commit{Version: 1}, nil
}

// shelf holds one version of `_stats`, already decoded from IPC.
type shelf struct {
	sink
	records []arrow.RecordBatch
}

func (*shelf) Head(_ context.Context, _ string) (lance.Head, error) {
	return lance.Head{Version: 1, ETag: "e", Time: 1}, nil
}

func (s *shelf) ReadTable(_ context.Context, _ string, _ lance.ReadOptions) (*lance.Table, error) {
	for _, r := range s.records {
		r.Retain()
	}
	return &lance.Table{Version: 1, ETag: "e", Records: s.records}, nil
}

func encoded(tb testing.TB, rows []fleet.Row) *shelf {
	tb.Helper()
	m := memoryBackend()
	s, w := newStats(m)
	snapshot, err := s.Latest(tb.Context())
	require.NoError(tb, err)
	_, err = w.Commit(tb.Context(), snapshot, rows, nil)
	require.NoError(tb, err)
	read, err := m.Writer.ReadTable(tb.Context(), m.dir+"/"+statsName, lance.ReadOptions{})
	require.NoError(tb, err)
	return &shelf{records: read.Records}
}
