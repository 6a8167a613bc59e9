package e2e

import (
	"context"
	"fmt"
	"math/bits"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"lancefleet/e2e/fleettest"
	"lancefleet/e2e/s3test"
	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/web"
)

const deepEvery = 4 // rounds: what a light round can't see is seen within so many

// bucket is a fleet whose tables lie in one bucket and whose experiments lie in
// another, so that requests of each can be told apart in the server's own log.
type bucket struct {
	*fleettest.Fleet
	t      *testing.T
	server *s3test.Server
	engine *lance.Engine
	data   string // s3://...
}

func newBucket(t *testing.T, env ...string) *bucket {
	t.Helper()
	server := s3test.Start(t)
	engine, err := lance.Open(lance.Options{Library: fleettest.Native(t), StorageOptions: server.StorageOptions()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = engine.Close() })
	b := &bucket{Fleet: fleettest.New(t, append(server.Environment(), env...)...), t: t, server: server, engine: engine}
	b.DataDir, b.data = server.Bucket(t, "tables"), server.Bucket(t, "experiments")
	b.Env = append(b.Env, "DATA_DIR="+b.DataDir)
	return b
}

func (b *bucket) uri(name string) string { return b.data + "/" + name + ".rollout.lance" }

// rollout makes an experiment with one shard and three pending generations.
func (b *bucket) rollout(name string, seed int64) lance.DatasetFacts {
	b.t.Helper()
	facts, err := b.engine.MakeDataset(context.Background(), lance.DatasetSpec{
		URI: b.uri(name), Kind: fleet.Rollout, Shards: 1, Generations: 3, Rows: 5, Fragments: 1, Seed: seed,
	})
	require.NoError(b.t, err)
	return facts
}

// register writes the registry as lance-context's workers do.
func (b *bucket) register(names ...string) {
	b.t.Helper()
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "name", Type: arrow.BinaryTypes.String},
		{Name: "uri", Type: arrow.BinaryTypes.String},
		{Name: "created_at", Type: arrow.PrimitiveTypes.Int64},
	}, nil)
	rows := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer rows.Release()
	for _, name := range names {
		rows.Field(0).(*array.StringBuilder).Append(name)
		rows.Field(1).(*array.StringBuilder).Append(b.uri(name))
		rows.Field(2).(*array.Int64Builder).Append(time.Now().UnixMilli())
	}
	record := rows.NewRecordBatch()
	defer record.Release()
	_, err := b.engine.Append(context.Background(), b.DataDir+"/_registry.rollout.lance",
		[]arrow.RecordBatch{record}, schema, lance.AppendOptions{Create: true})
	require.NoError(b.t, err)
}

func (b *bucket) write(spec lance.WritesSpec) {
	b.t.Helper()
	_, err := b.engine.MakeWrites(context.Background(), spec)
	require.NoError(b.t, err)
}

// remove deletes every object of an experiment, as `rm -r` of a bucket would.
func (b *bucket) remove(name string) {
	b.t.Helper()
	objects, err := b.engine.List(context.Background(), b.uri(name)+"/", 0)
	require.NoError(b.t, err)
	require.NotEmpty(b.t, objects)
	uris := make([]string, len(objects))
	for i, object := range objects {
		uris[i] = object.URI
	}
	_, err = b.engine.Delete(context.Background(), uris...)
	require.NoError(b.t, err)
}

// seenWithin runs rounds until one observed so many, and says whether one did.
func (b *bucket) seenWithin(rounds int, observed int64) bool {
	b.t.Helper()
	for range rounds {
		if round := b.Scan(); round.Observed == observed {
			require.Zero(b.t, round.Failed)
			return true
		}
	}
	return false
}

// put adds one entry to the write-ahead log and nothing else, as a writer does that
// has claimed its shard long ago: a copy of the newest entry, at the next position.
func (b *bucket) put(name string) {
	b.t.Helper()
	shard := b.Show(name).Fingerprint.Shards[0]
	entry := func(position uint64) string {
		return fmt.Sprintf("%s/_mem_wal/%s/wal/%064b.arrow", b.uri(name), shard.ID, bits.Reverse64(position))
	}
	newest, err := b.engine.Get(context.Background(), entry(shard.WALNext-1))
	require.NoError(b.t, err)
	_, err = b.engine.Put(context.Background(), entry(shard.WALNext), newest.Body, lance.PutOptions{IfAbsent: true})
	require.NoError(b.t, err)
}

func (b *bucket) spent() s3test.Requests {
	b.t.Helper()
	counted, err := b.server.Requests("/experiments") // objects of the bucket, and lists of it
	require.NoError(b.t, err)
	return counted
}

func TestAnUnchangedExperimentOnS3CostsThreeRequestsARoundAndNoDataIsRead(t *testing.T) {
	const experiments = 8
	b := newBucket(t)
	var names []string
	for i := range experiments {
		names = append(names, fmt.Sprintf("quiet-%d", i))
		b.rollout(names[i], int64(i))
	}
	b.register(names...)
	b.Worker()
	b.Web()
	require.EqualValues(t, experiments, b.Scan().Observed)

	before, own := b.spent(), fleet.Requests{}
	require.NotZero(t, before.List, "lists of this bucket are counted at the server")
	for range deepEvery {
		round := b.Scan()
		require.EqualValues(t, experiments, round.Skipped)
		require.Nil(t, round.CommittedVersion, "nothing changed: no commit")
		own = own.Add(round.StorageRequests)
	}
	spent := b.spent().Since(before)
	t.Logf("at the server, %d experiments over %d rounds: %+v; the rounds say, tables included: %+v", experiments, deepEvery, spent, own)
	require.LessOrEqual(t, spent.Total(), int64(3*experiments*deepEvery))
	require.LessOrEqual(t, spent.List, int64(experiments*deepEvery/4))
	require.NotZero(t, spent.List)
	require.Zero(t, spent.Get, "no data is read")
	require.Zero(t, spent.Put+spent.Delete)
	require.GreaterOrEqual(t, own.Head, spent.Head, "what the server has answered, the round has counted")
	require.GreaterOrEqual(t, own.List, spent.List)
}

func TestWhatMovesNoVersionIsSeenOnS3(t *testing.T) {
	b := newBucket(t)
	b.rollout("quiet", 1)
	b.rollout("busy", 2)
	b.register("quiet", "busy")
	b.Worker()
	b.Web()
	require.EqualValues(t, 2, b.Scan().Observed)
	first := b.Show("busy", "--fresh")

	t.Run("a flush is seen in the next round", func(t *testing.T) {
		b.write(lance.WritesSpec{URI: b.uri("busy"), Rows: 4, Flush: true, Seed: 7})
		require.EqualValues(t, 1, b.Scan().Observed)
		now := b.showUntil("busy", func(d web.Detail) bool { return *d.PendingWAL > *first.PendingWAL })
		require.Equal(t, first.Version, now.Version, "the base has not moved")
	})
	t.Run("a write that was not flushed is seen within four", func(t *testing.T) {
		seen := b.Show("busy")
		b.put("busy")
		require.True(t, b.seenWithin(deepEvery, 1))
		// S3 tells times in whole seconds: two writes within one have the same.
		now := b.showUntil("busy", func(d web.Detail) bool { return *d.ObservedAt > *seen.ObservedAt })
		require.GreaterOrEqual(t, *now.LastWrite, *seen.LastWrite)
	})
	t.Run("a new shard is seen within four", func(t *testing.T) {
		b.write(lance.WritesSpec{URI: b.uri("busy"), Shard: "7a1c6b0e-52f7-5c34-9a51-0d6c1f6f2f10", Rows: 3, Flush: true, Seed: 9})
		require.True(t, b.seenWithin(deepEvery, 1))
		b.showUntil("busy", func(d web.Detail) bool { return *d.Shards == 2 })
	})
	t.Run("dropped and made again with the same versions is seen within four", func(t *testing.T) {
		before := b.Show("quiet")
		b.remove("quiet")
		b.rollout("quiet", 99)
		require.True(t, b.seenWithin(deepEvery, 1))
		now := b.showUntil("quiet", func(d web.Detail) bool { return *d.ObservedAt > *before.ObservedAt })
		require.Equal(t, before.Version, now.Version, "the versions tell nothing")
	})
}

// showUntil waits until the page shows what the last round has committed.
func (b *bucket) showUntil(name string, is func(web.Detail) bool) (found web.Detail) {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		found = b.Show(name)
		return is(found)
	}, patience, 100*time.Millisecond)
	return found
}

func TestOneBrokenExperimentOnS3HurtsOnlyItself(t *testing.T) {
	b := newBucket(t, "PROBE_TIMEOUT=2s", "OBSERVE_TIMEOUT=3s")
	proxy := b.server.Behind(t, func(*http.Request) s3test.Fault { return s3test.Pass })
	b.Env = append(b.Env, s3test.EnvironmentFor(proxy.Endpoint)...)
	names := []string{"healthy", "refused", "hanging", "truncated", "emptied"}
	for i, name := range names {
		b.rollout(name, int64(i))
	}
	b.register(names...)
	b.Worker()
	b.Web()
	require.EqualValues(t, len(names), b.Scan().Observed)
	before := b.ListOf(b.Scan())

	b.breakManifests("truncated", func(uri string) {
		_, err := b.engine.Put(context.Background(), uri, []byte("torn"), lance.PutOptions{})
		require.NoError(t, err)
	})
	b.breakManifests("emptied", func(uri string) {
		_, err := b.engine.Delete(context.Background(), uri)
		require.NoError(t, err)
	})
	proxy.Decide(func(r *http.Request) s3test.Fault {
		switch target := r.URL.Path + "?" + r.URL.RawQuery; {
		case strings.Contains(target, "refused"):
			return s3test.Refuse
		case strings.Contains(target, "hanging"):
			return s3test.Hang
		}
		return s3test.Pass
	})
	round := b.Scan("--full")
	require.EqualValues(t, 1, round.Observed, "the healthy one")
	require.EqualValues(t, 4, round.Failed)
	require.EqualValues(t, len(names), round.Hot, "no row is lost")
	after := b.ListOf(round)
	require.Equal(t, before.Total, after.Total)
	for _, summary := range after.Experiments {
		require.NotNil(t, summary.RowCount, "%s keeps its numbers", summary.Name)
		require.Equal(t, summary.Name != "healthy", summary.Failures > 0, summary.Name)
	}

	t.Run("who fails is left alone until its time", func(t *testing.T) {
		round := b.Scan()
		require.EqualValues(t, 1, round.Skipped)
		require.EqualValues(t, 4, round.BackingOff+round.Failed)
		require.NotZero(t, round.BackingOff)
	})
	t.Run("and is well again once it answers", func(t *testing.T) {
		proxy.Decide(func(*http.Request) s3test.Fault { return s3test.Pass })
		round := b.Scan("--full")
		require.EqualValues(t, 3, round.Observed)
		require.EqualValues(t, 2, round.Failed, "the damaged ones")
	})
}

func (b *bucket) breakManifests(name string, damage func(uri string)) {
	b.t.Helper()
	manifests, err := b.engine.List(context.Background(), b.uri(name)+"/_versions/", 0)
	require.NoError(b.t, err)
	require.NotEmpty(b.t, manifests)
	for _, manifest := range manifests {
		damage(manifest.URI)
	}
}

func TestASourceThatCannotBeReadFailsTheRoundAndKeepsTheRows(t *testing.T) {
	b := newBucket(t)
	b.rollout("kept", 1)
	b.register("kept")
	b.Worker()
	b.Web()
	require.Equal(t, 1, b.ListOf(b.Scan()).Total)

	registry, err := b.engine.List(context.Background(), b.DataDir+"/_registry.rollout.lance/", 0)
	require.NoError(t, err)
	uris := make([]string, len(registry))
	for i, object := range registry {
		uris[i] = object.URI
	}
	_, err = b.engine.Delete(context.Background(), uris...)
	require.NoError(t, err)

	_, exit := b.TryClient("scan", "--wait", "--json")
	require.NotZero(t, exit, "a fleet without its registry is not an empty fleet")
	require.Equal(t, 1, b.List().Total)
	_, page := get(t, b.Server()+"/api/v1/experiments/kept")
	require.Contains(t, page, `"kept"`)
}

func TestACommitWhoseAnswerWasLostLandsOnce(t *testing.T) {
	b := newBucket(t)
	proxy := b.server.Behind(t, func(*http.Request) s3test.Fault { return s3test.Pass })
	b.Env = append(b.Env, s3test.EnvironmentFor(proxy.Endpoint)...)
	b.rollout("one", 1)
	b.register("one")
	b.Worker()
	b.Web()
	first := b.Scan()
	require.NotNil(t, first.CommittedVersion)

	b.write(lance.WritesSpec{URI: b.uri("one"), Rows: 2, Flush: true, Seed: 3})
	forgotten := make(chan struct{}, 64)
	proxy.Decide(func(r *http.Request) s3test.Fault {
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "_stats.rollout.lance/_versions/") && len(forgotten) == 0 {
			forgotten <- struct{}{}
			return s3test.Forget
		}
		return s3test.Pass
	})
	round := b.Scan()
	require.NotEmpty(t, forgotten, "no answer was lost: nothing was shown")
	require.NotNil(t, round.CommittedVersion)
	require.Equal(t, *first.CommittedVersion+1, *round.CommittedVersion, "one round, one version")
	require.Nil(t, b.Scan().CommittedVersion, "and nothing is left to commit")
}
