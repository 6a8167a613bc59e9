package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"lancefleet/e2e/notrun"
	"lancefleet/e2e/s3test"
	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/store"
	"lancefleet/store/storetest"
)

// The suite runs over the engine in memory, where races can be had on demand, and
// over the native library on local disk and on S3, which it must agree with.
func suite() map[string]func(*testing.T, *backend) {
	all := map[string]func(*testing.T, *backend){}
	for _, part := range []map[string]func(*testing.T, *backend){
		statsSuite(), schemaSuite(), sourcesSuite(), stagingSuite(), logSuite(), identitySuite(),
		ledgerSuite(), samplesSuite(), journalSuite(), upkeepSuite(),
	} {
		for name, run := range part {
			all[name] = run
		}
	}
	return all
}

func TestInMemory(t *testing.T) {
	runSuite(t, func(*testing.T) *backend { return memoryBackend() })
}

func TestOnLocalDisk(t *testing.T) {
	engine := openEngine(t, nil)
	runSuite(t, func(t *testing.T) *backend {
		return &backend{counted: counted{Writer: engine}, dir: t.TempDir(), engine: engine, local: true}
	})
}

func TestOnS3(t *testing.T) {
	server := s3test.Start(t)
	bucket := server.Bucket(t, "store")
	engine := openEngine(t, server.StorageOptions())
	var n atomic.Int64
	runSuite(t, func(*testing.T) *backend {
		return &backend{counted: counted{Writer: engine}, dir: fmt.Sprintf("%s/fleet-%d", bucket, n.Add(1)), engine: engine, options: server.StorageOptions()}
	})
}

// memoryBackend is for tests that need no real storage.
func memoryBackend() *backend {
	m := storetest.New()
	return &backend{counted: counted{Writer: m}, dir: "mem://fleet/data", memory: m}
}

func runSuite(t *testing.T, fresh func(*testing.T) *backend) {
	for name, run := range suite() {
		t.Run(name, func(t *testing.T) { run(t, fresh(t)) })
	}
}

func openEngine(t *testing.T, options map[string]string) *lance.Engine {
	t.Helper()
	engine, err := lance.Open(lance.Options{StorageOptions: options})
	if errors.Is(err, lance.ErrLibrary) {
		notrun.Skip(t, "native library", err.Error())
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	return engine
}

// backend is one empty data directory.
type backend struct {
	counted
	dir     string
	memory  *storetest.Memory // only of the suite in memory
	engine  *lance.Engine     // only of the real ones
	local   bool
	options map[string]string // of the engine
}

// counted counts what a store.Writer is asked.
type counted struct {
	store.Writer
	heads, reads, commits, appends atomic.Int64
}

func (c *counted) Head(ctx context.Context, uri string) (lance.Head, error) {
	c.heads.Add(1)
	return c.Writer.Head(ctx, uri)
}

func (c *counted) ReadTable(ctx context.Context, uri string, o lance.ReadOptions) (*lance.Table, error) {
	c.reads.Add(1)
	return c.Writer.ReadTable(ctx, uri, o)
}

func (c *counted) CommitSnapshot(ctx context.Context, uri string, expect uint64, records []arrow.RecordBatch, schema *arrow.Schema, props map[string]string) (lance.Commit, error) {
	c.commits.Add(1)
	return c.Writer.CommitSnapshot(ctx, uri, expect, records, schema, props)
}

func (c *counted) Append(ctx context.Context, uri string, records []arrow.RecordBatch, schema *arrow.Schema, o lance.AppendOptions) (uint64, error) {
	c.appends.Add(1)
	return c.Writer.Append(ctx, uri, records, schema, o)
}

// write makes a table exactly this record, whatever was there.
func (b *backend) write(t *testing.T, table string, record arrow.RecordBatch) {
	t.Helper()
	head, err := b.Writer.Head(t.Context(), b.dir+"/"+table)
	if !errors.Is(err, lance.ErrGone) {
		require.NoError(t, err)
	}
	_, err = b.Writer.CommitSnapshot(t.Context(), b.dir+"/"+table, head.Version, []arrow.RecordBatch{record}, record.Schema(), nil)
	require.NoError(t, err)
}

func sortRows(rows []fleet.Row) {
	slices.SortFunc(rows, func(a, b fleet.Row) int { return a.Compare(b.ID) })
}

// put makes an object, and so the folders that it lies in.
func (b *backend) put(t *testing.T, key, body string) {
	t.Helper()
	_, err := b.Put(t.Context(), b.dir+"/"+key, []byte(body), lance.PutOptions{})
	require.NoError(t, err)
}

// drop removes a whole dataset, as a person with rm would.
func (b *backend) drop(t *testing.T, table string) {
	t.Helper()
	uri := b.dir + "/" + table
	if b.memory != nil {
		b.memory.Drop(uri)
		return
	}
	objects, err := b.List(t.Context(), uri, 0)
	require.NoError(t, err)
	require.NotEmpty(t, objects)
	var uris []string
	for _, o := range objects {
		uris = append(uris, o.URI)
	}
	_, err = b.Delete(t.Context(), uris...)
	require.NoError(t, err)
}

// age removes all old versions of a table.
func (b *backend) age(t *testing.T, table string) {
	t.Helper()
	// Versions count as old by the millisecond of their commit.
	head, err := b.Writer.Head(t.Context(), b.dir+"/"+table)
	require.NoError(t, err)
	for time.Now().UnixMilli() <= head.Time {
		if err := t.Context().Err(); err != nil {
			t.Fatal(err)
		}
	}
	removed, err := b.CleanupVersions(t.Context(), b.dir+"/"+table, 0, 1)
	require.NoError(t, err)
	require.Positive(t, removed)
}
