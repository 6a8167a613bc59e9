package lance

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
)

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
