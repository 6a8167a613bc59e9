package lance

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestALargeTableComesBackAsItWas(t *testing.T) {
	engine := openReal(t)
	ctx := t.Context()
	uri := t.TempDir() + "/large.lance"
	want := []arrow.RecordBatch{texts(100_000), texts(0), texts(1), texts(200_000)}
	committed, err := engine.CommitSnapshot(ctx, uri, 0, want, nil, map[string]string{"why": "テスト"})
	require.NoError(t, err)
	assert.NotEmpty(t, committed.UUID)

	table, err := engine.ReadTable(ctx, uri, ReadOptions{})
	require.NoError(t, err)
	defer table.Release()
	assert.Equal(t, committed.Version, table.Version)
	equalRows(t, want, table)

	rows, err := engine.CountRows(ctx, uri, committed.Version)
	require.NoError(t, err)
	assert.EqualValues(t, 300_001, rows)
	head, err := engine.Head(ctx, uri)
	require.NoError(t, err)
	assert.Equal(t, table.ETag, head.ETag)
	assert.WithinDuration(t, time.Now(), time.UnixMilli(head.Time), time.Minute)
}

func TestASnapshotReplacesEverythingAndMayBeEmpty(t *testing.T) {
	engine := openReal(t)
	ctx := t.Context()
	uri := t.TempDir() + "/small.lance"
	first, err := engine.CommitSnapshot(ctx, uri, 0, []arrow.RecordBatch{record(0, 10)}, nil, nil)
	require.NoError(t, err)
	second, err := engine.CommitSnapshot(ctx, uri, first.Version, nil, textSchema, nil)
	require.NoError(t, err)

	table, err := engine.ReadTable(ctx, uri, ReadOptions{})
	require.NoError(t, err)
	defer table.Release()
	assert.Zero(t, table.Rows())
	assert.Equal(t, []string{"name", "rows", "payload"}, columnNames(table))

	old, err := engine.ReadTable(ctx, uri, ReadOptions{Version: first.Version})
	require.NoError(t, err)
	defer old.Release()
	equalRows(t, []arrow.RecordBatch{record(0, 10)}, old)
	assert.Greater(t, second.Version, first.Version)
}

func TestColumnsAreReadAsAskedFor(t *testing.T) {
	engine := openReal(t)
	uri := t.TempDir() + "/small.lance"
	_, err := engine.CommitSnapshot(t.Context(), uri, 0, []arrow.RecordBatch{texts(9)}, nil, nil)
	require.NoError(t, err)
	table, err := engine.ReadTable(t.Context(), uri, ReadOptions{Columns: []string{"rows"}})
	require.NoError(t, err)
	defer table.Release()
	assert.Equal(t, []string{"rows"}, columnNames(table))
	assert.EqualValues(t, 9, table.Rows())
}

func columnNames(t *Table) []string {
	var names []string
	for _, f := range t.Schema.Fields() {
		names = append(names, f.Name)
	}
	return names
}

func TestOnlyTheFirstOfManySnapshotsOfAVersionIsCommitted(t *testing.T) {
	engine := openReal(t)
	ctx := t.Context()
	uri := t.TempDir() + "/raced.lance"
	first, err := engine.CommitSnapshot(ctx, uri, 0, []arrow.RecordBatch{record(0, 1)}, nil, nil)
	require.NoError(t, err)

	var all sync.WaitGroup
	errs := make([]error, 16)
	for i := range errs {
		all.Go(func() {
			_, errs[i] = engine.CommitSnapshot(ctx, uri, first.Version, []arrow.RecordBatch{record(0, int64(i+2))}, nil, nil)
		})
	}
	all.Wait()
	won := -1
	for i, err := range errs {
		if err == nil {
			require.Equal(t, -1, won, "two commits of one version")
			won = i
			continue
		}
		require.ErrorIs(t, err, ErrConflict)
	}
	require.NotEqual(t, -1, won)
	rows, err := engine.CountRows(ctx, uri, 0)
	require.NoError(t, err)
	assert.EqualValues(t, won+2, rows)
}

func TestAppendsWidenTheTableAndFillWithNulls(t *testing.T) {
	engine := openReal(t)
	ctx := t.Context()
	uri := t.TempDir() + "/grown.lance"
	_, err := engine.Append(ctx, uri, []arrow.RecordBatch{record(0, 3)}, nil, AppendOptions{})
	require.ErrorIs(t, err, ErrGone)
	_, err = engine.Append(ctx, uri, []arrow.RecordBatch{record(0, 3)}, nil, AppendOptions{Create: true})
	require.NoError(t, err)
	version, err := engine.Append(ctx, uri, []arrow.RecordBatch{texts(2)}, nil, AppendOptions{Create: true, Properties: map[string]string{"k": "v"}})
	require.NoError(t, err)

	table, err := engine.ReadTable(ctx, uri, ReadOptions{})
	require.NoError(t, err)
	defer table.Release()
	assert.Equal(t, version, table.Version)
	assert.ElementsMatch(t, []string{"n", "name", "rows", "payload"}, columnNames(table))
	assert.EqualValues(t, 5, table.Rows())
	nulls := 0
	for _, r := range table.Records {
		nulls += r.Column(0).NullN()
	}
	assert.Equal(t, 2, nulls, "rows that came without n")
}

func TestOldVersionsAreRemovedButTheNewestStay(t *testing.T) {
	engine := openReal(t)
	ctx := t.Context()
	uri := t.TempDir() + "/old.lance"
	var version uint64
	for i := range 5 {
		c, err := engine.CommitSnapshot(ctx, uri, version, []arrow.RecordBatch{record(0, int64(i+1))}, nil, nil)
		require.NoError(t, err)
		version = c.Version
	}
	removed, err := engine.CleanupVersions(ctx, uri, 0, 2)
	require.NoError(t, err)
	assert.EqualValues(t, 3, removed)
	_, err = engine.ReadTable(ctx, uri, ReadOptions{Version: 1})
	require.ErrorIs(t, err, ErrGone)
	rows, err := engine.CountRows(ctx, uri, version-1)
	require.NoError(t, err)
	assert.EqualValues(t, 4, rows)
}

func TestObjectsAreWrittenReadListedAndDeleted(t *testing.T) {
	engine := openReal(t)
	ctx, dir := t.Context(), t.TempDir()
	bodies := map[string][]byte{"empty": {}, "text": []byte("æ\x00\xff"), "big": bytes.Repeat([]byte("0123456789abcdef"), 1<<20)}
	for name, body := range bodies {
		etag, err := engine.Put(ctx, dir+"/a/"+name, body, PutOptions{IfAbsent: true})
		require.NoError(t, err)
		assert.NotEmpty(t, etag)
		_, err = engine.Put(ctx, dir+"/a/"+name, []byte("other"), PutOptions{IfAbsent: true})
		require.ErrorIs(t, err, ErrExists)
		object, err := engine.Get(ctx, dir+"/a/"+name)
		require.NoError(t, err)
		assert.True(t, bytes.Equal(body, object.Body), name)
		assert.WithinDuration(t, time.Now(), time.UnixMilli(object.Time), time.Minute)
	}
	listed, err := engine.List(ctx, dir+"/a", 0)
	require.NoError(t, err)
	require.Len(t, listed, 3)
	for _, o := range listed {
		assert.EqualValues(t, len(bodies[filepath.Base(o.URI)]), o.Size, o.URI)
		again, err := engine.Get(ctx, o.URI)
		require.NoError(t, err, "a listed uri can be asked for")
		assert.Len(t, again.Body, int(o.Size))
	}
	some, err := engine.List(ctx, dir+"/a", 2)
	require.NoError(t, err)
	assert.Len(t, some, 2)
	dirs, err := engine.ListDirs(ctx, dir)
	require.NoError(t, err)
	assert.Equal(t, []string{"a"}, dirs)

	_, err = engine.Delete(ctx, dir+"/a/text", dir+"/a/never-there")
	require.NoError(t, err)
	_, err = engine.Get(ctx, dir+"/a/text")
	require.ErrorIs(t, err, ErrGone)
	none, err := engine.List(ctx, dir+"/nothing", 0)
	require.NoError(t, err)
	assert.Empty(t, none)
}

// Of datasets with such names Lance leaves an empty folder beside, named as in a
// URL.
func TestObjectsMayHaveNamesThatDatasetsShouldNot(t *testing.T) {
	engine := openReal(t)
	for _, name := range []string{"what?", "quote'\"", "[brackets]", "star*", "back\\slash"} {
		putAndGet(t, engine, t.TempDir()+"/"+name)
	}
	for _, name := range []string{"new\nline", "tab\tted"} {
		_, err := engine.Put(t.Context(), t.TempDir()+"/"+name, nil, PutOptions{})
		require.ErrorIs(t, err, ErrInvalid, "%q", name)
	}
}

// putAndGet writes a local object and checks that it is that very file.
func putAndGet(t *testing.T, engine *Engine, path string) {
	t.Helper()
	_, err := engine.Put(t.Context(), path, []byte("x"), PutOptions{})
	require.NoError(t, err)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "x", string(content))
	got, err := engine.Get(t.Context(), path)
	require.NoError(t, err)
	assert.Equal(t, "x", string(got.Body))
}

func TestStatsCountRequestsByKind(t *testing.T) {
	engine := openReal(t)
	ctx, dir := t.Context(), t.TempDir()
	before, err := engine.Stats(ctx)
	require.NoError(t, err)
	_, err = engine.Put(ctx, dir+"/x", nil, PutOptions{})
	require.NoError(t, err)
	_, err = engine.Get(ctx, dir+"/x")
	require.NoError(t, err)
	_, err = engine.List(ctx, dir, 0)
	require.NoError(t, err)
	_, err = engine.Delete(ctx, dir+"/x")
	require.NoError(t, err)
	after, err := engine.Stats(ctx)
	require.NoError(t, err)
	assert.Equal(t, int64(1), after.Requests.Put-before.Requests.Put)
	assert.Equal(t, int64(1), after.Requests.List-before.Requests.List)
	assert.GreaterOrEqual(t, after.Requests.Get-before.Requests.Get, int64(1))
	assert.GreaterOrEqual(t, after.Requests.Delete-before.Requests.Delete, int64(1))
}
