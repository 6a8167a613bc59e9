package lance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
)

// openReal opens the real library. It must be there: nothing else proves that the
// two sides understand each other.
func openReal(t testing.TB) *Engine {
	t.Helper()
	return openRealWith(t, Options{})
}

func openRealWith(t testing.TB, o Options) *Engine {
	t.Helper()
	engine, err := Open(o)
	require.NoError(t, err, "build the native library first: ./task build")
	t.Cleanup(func() { assert.NoError(t, engine.Close()) })
	return engine
}

func discard(_, _ []byte) error { return nil }

func TestAPanicOfTheLibraryIsAnErrorAndTheEngineGoesOn(t *testing.T) {
	engine := openReal(t)
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			err := engine.call(t.Context(), "debug_panic", "", struct{}{}, nil, discard)
			assert.ErrorIs(t, err, ErrPanic)
			assert.ErrorContains(t, err, "debug_panic")
		})
	}
	all.Wait()
	_, err := engine.Stats(t.Context())
	require.NoError(t, err)
}

func TestTheLibraryStopsWhenTheContextEnds(t *testing.T) {
	engine := openReal(t)
	const anHour = 3_600_000
	sleep := func(ctx context.Context) error {
		return engine.call(ctx, "debug_sleep", "", map[string]int{"ms": anHour}, nil, discard)
	}
	deadline, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, sleep(deadline), ErrTimeout)

	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() { assert.ErrorIs(t, sleep(ctx), ErrCancelled) })
	}
	cancel()
	all.Wait()
}

func TestARequestThatTheLibraryDoesNotKnowIsInvalid(t *testing.T) {
	engine := openReal(t)
	err := engine.call(t.Context(), "no_such_thing", "", struct{}{}, nil, discard)
	require.ErrorIs(t, err, ErrInvalid)
	assert.ErrorContains(t, err, "no_such_thing")
	err = engine.call(t.Context(), "debug_sleep", "", []int{}, nil, discard)
	require.ErrorIs(t, err, ErrInvalid)
	err = engine.call(t.Context(), "append", "/x", map[string]any{"uri": "/x", "create": true}, []byte("no table"), discard)
	assert.Error(t, err)
	assert.NotErrorIs(t, err, ErrPanic)
}

// The binding's own gate is passed here: the library itself must notice.
func TestAStaleEngineNumberIsAnErrorNotACrash(t *testing.T) {
	engine := openReal(t)
	for _, number := range []uint64{0, engine.session.engine + 1000, 1<<64 - 1} {
		stale := &Reader{session: &session{lib: engine.session.lib, engine: number, slots: make(chan struct{}, 1)}}
		_, err := stale.Stats(t.Context())
		require.ErrorIs(t, err, ErrClosed, "engine %d", number)
	}
}

func TestClosingBesideCallsIsSafe(t *testing.T) {
	engine := openReal(t)
	dir := t.TempDir()
	_, err := engine.Put(t.Context(), dir+"/object", []byte("content"), PutOptions{})
	require.NoError(t, err)
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for {
				if _, err := engine.Get(t.Context(), dir+"/object"); err != nil {
					assert.ErrorIs(t, err, ErrClosed)
					return
				}
			}
		})
	}
	for range 8 {
		all.Go(func() { assert.NoError(t, engine.Close()) })
	}
	all.Wait()
	require.NoError(t, engine.Close())
	_, err = engine.Stats(t.Context())
	require.ErrorIs(t, err, ErrClosed)
}

func TestEnginesAreIndependent(t *testing.T) {
	one, other := openReal(t), openReal(t)
	require.NoError(t, one.Close())
	_, err := other.Stats(t.Context())
	require.NoError(t, err)
}

func TestSixtyFourGoroutinesShareAnEngine(t *testing.T) {
	engine := openReal(t)
	ctx, dir := t.Context(), t.TempDir()
	uri := dir + "/shared.rollout.lance"
	facts, err := engine.MakeDataset(ctx, DatasetSpec{URI: uri, Shards: 1, Generations: 2, Rows: 4, Fragments: 2})
	require.NoError(t, err)

	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			own := fmt.Sprintf("%s/own-%d", dir, i)
			body := bytes.Repeat([]byte{byte(i)}, 1000+i)
			for range 5 {
				_, err := engine.Put(ctx, own, body, PutOptions{})
				assert.NoError(t, err)
				object, err := engine.Get(ctx, own)
				assert.NoError(t, err)
				assert.Equal(t, body, object.Body)
				seen, err := engine.Observe(ctx, []ObserveTarget{{URI: uri}, {URI: own + ".lance"}}, ObserveOptions{})
				if assert.NoError(t, err) && assert.Nil(t, seen[0].Err) {
					assert.Equal(t, facts.BaseRows, seen[0].Observation.BaseRows)
					assert.Equal(t, Gone, ClassOf(seen[1].Err))
				}
				head, err := engine.Head(ctx, uri)
				assert.NoError(t, err)
				assert.Equal(t, facts.Version, head.Version)
			}
		})
	}
	all.Wait()
}

func TestAnObservationTellsWhatTheMakerMade(t *testing.T) {
	engine := openReal(t)
	uri := t.TempDir() + "/a.rollout.lance"
	facts, err := engine.MakeDataset(t.Context(), DatasetSpec{
		URI: uri, Kind: fleet.Rollout, Shards: 2, Generations: 3, Rows: 6, Fragments: 4, Tombstones: true, Stranded: true, Seed: -9,
	})
	require.NoError(t, err)
	require.Len(t, facts.Shards, 2)

	seen := observe(t, engine, uri)
	assert.Equal(t, facts.Version, seen.Fingerprint.Version)
	assert.NotEmpty(t, seen.Fingerprint.ETag)
	assert.Equal(t, facts.Fragments, seen.Fragments)
	assert.Equal(t, facts.BaseRows, seen.BaseRows)
	assert.Equal(t, facts.Fragments, seen.SmallFragments, "each has fewer rows than the target")
	assert.True(t, seen.Keyed)
	assert.Zero(t, seen.DeletedRows)
	assert.Positive(t, seen.Bytes)
	var pending, rows, tail int64
	for _, shard := range seen.Shards {
		assert.Contains(t, facts.Shards, shard.ID)
		pending += shard.Pending
		rows += shard.PendingRows
		tail += shard.TailRows
		assert.True(t, shard.Tombstones)
	}
	assert.Equal(t, facts.Generations, pending)
	assert.Equal(t, facts.PendingRows, rows)
	assert.GreaterOrEqual(t, tail, facts.StrandedRows)
}

func TestAProbeNoticesWhatMovesNoVersion(t *testing.T) {
	engine := openReal(t)
	ctx := t.Context()
	uri := t.TempDir() + "/a.rollout.lance"
	_, err := engine.MakeDataset(ctx, DatasetSpec{URI: uri, Kind: fleet.Rollout, Shards: 1, Generations: 1, Rows: 5, Fragments: 1})
	require.NoError(t, err)

	for name, write := range map[string]WritesSpec{
		"a flush":            {Rows: 3, Flush: true, Seed: 1},
		"an unflushed write": {Rows: 3, Seed: 2},
		"another shard":      {Rows: 3, Flush: true, Shard: "worker-9", Seed: 3},
		"an append":          {Rows: 3, Append: true, Seed: 4},
	} {
		before := observe(t, engine, uri).Fingerprint
		same := probe(t, engine, uri, before)
		require.Equal(t, Unchanged, same.State, "%s: %s", name, same.Detail)
		assert.Positive(t, same.Requests.Head+same.Requests.List+same.Requests.Get)

		write.URI = uri
		written, err := engine.MakeWrites(ctx, write)
		require.NoError(t, err, name)
		assert.Len(t, written.Keys, 3)
		moved := probe(t, engine, uri, before)
		assert.Equal(t, Changed, moved.State, name)
		assert.NotEmpty(t, moved.Detail)
		assert.Equal(t, write.Append, written.Version != before.Version, "%s: base version", name)
	}
}

func observe(t *testing.T, engine *Engine, uri string) *fleet.Observation {
	t.Helper()
	results, err := engine.Observe(t.Context(), []ObserveTarget{{URI: uri, TargetRows: 1 << 20}}, ObserveOptions{WalkPast: fleet.MaintenanceWalk()})
	require.NoError(t, err)
	require.Len(t, results, 1)
	require.Nil(t, results[0].Err)
	return results[0].Observation
}

func probe(t *testing.T, engine *Engine, uri string, mark fleet.Fingerprint) ProbeResult {
	t.Helper()
	results, err := engine.Probe(t.Context(), []ProbeTarget{{URI: uri, Fingerprint: mark, Deep: true}}, BatchOptions{})
	require.NoError(t, err)
	require.Len(t, results, 1)
	require.Nil(t, results[0].Err)
	return results[0]
}

func TestABigBatchAnswersInOrderAndBadTargetsHurtNobody(t *testing.T) {
	engine := openReal(t)
	dir := t.TempDir()
	spec := FleetSpec{Templates: []DatasetSpec{
		{Kind: fleet.Table, Rows: 2, Fragments: 1},
		{Kind: fleet.Table, Rows: 3, Fragments: 1},
	}}
	for i := range 60 {
		spec.Items = append(spec.Items, FleetItem{URI: fmt.Sprintf("%s/%d.lance", dir, i), Template: i % 2})
	}
	made, err := engine.MakeFleet(t.Context(), spec)
	require.NoError(t, err)
	assert.EqualValues(t, 60, made.Made)
	require.Len(t, made.Templates, 2)

	var targets []ObserveTarget
	for i := range 60 {
		uri := fmt.Sprintf("%s/%d.lance", dir, i)
		if i%7 == 3 {
			require.NoError(t, os.RemoveAll(uri))
		}
		if i%7 == 5 {
			damageManifests(t, uri)
		}
		targets = append(targets, ObserveTarget{URI: uri})
	}
	results, err := engine.Observe(t.Context(), targets, ObserveOptions{BatchOptions: BatchOptions{Concurrency: 7, Timeout: time.Minute}})
	require.NoError(t, err)
	for i, r := range results {
		switch i % 7 {
		case 3:
			require.NotNil(t, r.Err)
			assert.Equal(t, Gone, r.Err.Class, "%d: %v", i, r.Err)
			assert.Contains(t, r.Err.Error(), targets[i].URI)
		case 5:
			require.NotNil(t, r.Err)
			assert.Equal(t, Corrupt, r.Err.Class, "%d: %v", i, r.Err)
		default:
			require.Nil(t, r.Err)
			assert.EqualValues(t, 2+i%2, r.Observation.BaseRows)
		}
	}
}

// damageManifests cuts every manifest of a dataset to half its length.
func damageManifests(t *testing.T, uri string) {
	t.Helper()
	manifests, err := filepath.Glob(uri + "/_versions/*.manifest")
	require.NoError(t, err)
	require.NotEmpty(t, manifests)
	for _, m := range manifests {
		info, err := os.Stat(m)
		require.NoError(t, err)
		require.NoError(t, os.Truncate(m, info.Size()/2))
	}
}

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

func TestOddNamesMeanExactlyTheseFiles(t *testing.T) {
	engine := openReal(t)
	ctx := t.Context()
	for _, name := range []string{
		"with space", "ünïcode-実験-🚀", "per%20cent", "100%", "hash#1", "plus+and&", "semi;colon", "dot.", "-dash", "~tilde", "a:b",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			putAndGet(t, engine, dir+"/"+name+".json")
			uri := dir + "/" + name + ".lance"
			facts, err := engine.MakeDataset(ctx, DatasetSpec{URI: uri, Kind: fleet.Rollout, Shards: 1, Generations: 1, Rows: 5, Fragments: 1})
			require.NoError(t, err)
			seen := observe(t, engine, uri)
			assert.Equal(t, facts.BaseRows, seen.BaseRows)
			require.Len(t, seen.Shards, 1)
			assert.EqualValues(t, 1, seen.Shards[0].Pending)
			assert.Equal(t, Unchanged, probe(t, engine, uri, seen.Fingerprint).State)
			dirs, err := engine.ListDirs(ctx, dir)
			require.NoError(t, err)
			assert.Equal(t, []string{name + ".lance"}, dirs)
		})
	}
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

func TestHostileURIsAreErrorsOfTheirOwn(t *testing.T) {
	engine := openReal(t)
	ctx := t.Context()
	dir := t.TempDir()
	_, err := engine.Put(ctx, dir+"/file", []byte("x"), PutOptions{})
	require.NoError(t, err)
	// Some of these would look for a host that does not answer.
	short, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var all sync.WaitGroup
	for _, uri := range []string{
		" ", ".", "..", "/", "//", "///", "file:", "file://", "file:///", "s3:", "s3://", "s3:///key", "://", "http://[::1", "bogus://host/path",
		"file:///../../../etc/passwd", dir + "/file", dir + "/file/below", dir + "/../../absent", strings.Repeat("/deep", 2000),
		"/" + strings.Repeat("x", 10_000), "memory://x", "s3+ddb://bucket/x", "\u202e", "{}", `"`, "%", "%zz", "file://%zz/x",
	} {
		for name, ask := range questions {
			all.Go(func() {
				err := ask(short, engine, uri)
				assert.Error(t, err, "%s %.40q", name, uri)
				assert.NotErrorIs(t, err, ErrPanic, "%s %.40q", name, uri)
				assert.NotErrorIs(t, err, ErrClosed, "%s %.40q", name, uri)
			})
		}
	}
	all.Wait()
	_, err = engine.Get(ctx, dir+"/file")
	require.NoError(t, err, "the engine goes on")
}

// questions are calls that only succeed where there is a dataset.
var questions = map[string]func(context.Context, *Engine, string) error{
	"head": func(ctx context.Context, e *Engine, uri string) error { _, err := e.Head(ctx, uri); return err },
	"read": func(ctx context.Context, e *Engine, uri string) error {
		_, err := e.ReadTable(ctx, uri, ReadOptions{})
		return err
	},
	"count": func(ctx context.Context, e *Engine, uri string) error {
		_, err := e.CountRows(ctx, uri, 0)
		return err
	},
	"probe": func(ctx context.Context, e *Engine, uri string) error {
		mark := fleet.Fingerprint{Version: 1, ETag: "x", Naming: "v2"}
		r, err := e.Probe(ctx, []ProbeTarget{{URI: uri, Fingerprint: mark, Deep: true}}, BatchOptions{})
		switch {
		case err != nil:
			return err
		case r[0].Err != nil:
			return r[0].Err
		case r[0].State == Changed:
			return errors.New("what is not there has changed")
		}
		return nil
	},
	"observe": func(ctx context.Context, e *Engine, uri string) error {
		r, err := e.Observe(ctx, []ObserveTarget{{URI: uri}}, ObserveOptions{})
		if err == nil && r[0].Err != nil {
			return r[0].Err
		}
		return err
	},
}

// stores is how an engine reaches an S3 server under test.
func stores(endpoint string) Options {
	return Options{StorageOptions: map[string]string{
		"aws_endpoint": endpoint, "allow_http": "true", "aws_region": "us-east-1",
		"aws_access_key_id": "key", "aws_secret_access_key": "secret",
	}}
}

func TestRefusedCredentialsAreDenied(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
	}))
	defer server.Close()
	engine := openRealWith(t, stores(server.URL))
	_, err := engine.Get(t.Context(), "s3://bucket/key")
	require.ErrorIs(t, err, ErrDenied)
	observed, err := engine.Observe(t.Context(), []ObserveTarget{{URI: "s3://bucket/a.lance"}}, ObserveOptions{})
	require.NoError(t, err)
	require.NotNil(t, observed[0].Err)
	assert.ErrorIs(t, observed[0].Err, ErrDenied)
	assert.NotContains(t, observed[0].Err.Error(), "secret")
}

func TestStorageThatHangsCostsATimeoutOfItsTargetOnly(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") // accepts in the kernel, never answers
	require.NoError(t, err)
	defer listener.Close()
	engine := openRealWith(t, stores("http://"+listener.Addr().String()))
	local := t.TempDir() + "/a.lance"
	_, err = engine.MakeDataset(t.Context(), DatasetSpec{URI: local, Kind: fleet.Table, Rows: 2, Fragments: 1})
	require.NoError(t, err)

	results, err := engine.Observe(t.Context(), []ObserveTarget{{URI: "s3://bucket/a.lance"}, {URI: local}},
		ObserveOptions{BatchOptions: BatchOptions{Timeout: 5 * time.Second}}) // room for the local one on a busy machine
	require.NoError(t, err)
	require.NotNil(t, results[0].Err)
	assert.ErrorIs(t, results[0].Err, ErrTimeout)
	assert.Nil(t, results[1].Err)

	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = engine.Get(ctx, "s3://bucket/key")
	assert.ErrorIs(t, err, ErrTimeout)
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

func TestFingerprintsSurviveTheirTrip(t *testing.T) {
	engine := openReal(t)
	uri := t.TempDir() + "/a.rollout.lance"
	_, err := engine.MakeDataset(t.Context(), DatasetSpec{URI: uri, Kind: fleet.Rollout, Shards: 3, Generations: 1, Rows: 2, Fragments: 1})
	require.NoError(t, err)
	mark := observe(t, engine, uri).Fingerprint
	stored, err := json.Marshal(mark)
	require.NoError(t, err)
	var read fleet.Fingerprint
	require.NoError(t, json.Unmarshal(stored, &read))
	assert.Equal(t, mark, read)
	assert.Equal(t, Unchanged, probe(t, engine, uri, read).State)
	// Every part of it counts.
	for name, change := range map[string]func(*fleet.Fingerprint){
		"version":  func(f *fleet.Fingerprint) { f.Version-- },
		"etag":     func(f *fleet.Fingerprint) { f.ETag += "x" },
		"manifest": func(f *fleet.Fingerprint) { f.Shards[1].Manifest-- },
		"wal":      func(f *fleet.Fingerprint) { f.Shards[2].WALNext-- },
		"shard":    func(f *fleet.Fingerprint) { f.Shards = f.Shards[:2] },
	} {
		var moved fleet.Fingerprint
		require.NoError(t, json.Unmarshal(stored, &moved))
		change(&moved)
		assert.Equal(t, Changed, probe(t, engine, uri, moved).State, name)
	}
}
