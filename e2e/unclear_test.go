package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/e2e/s3test"
	"lancefleet/e2e/temporaltest"
	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/web"
)

// unclear makes the first commits of some tables unclear: they are stored, and the
// writer is told 500.
type unclear struct {
	mu     sync.Mutex
	tables []string       // parts of the keys of commits
	times  map[string]int // each was made unclear
}

const unclearEach = 2

func (u *unclear) decide(r *http.Request) s3test.Fault {
	if r.Method != http.MethodPut {
		return s3test.Pass
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, table := range u.tables {
		if strings.Contains(r.URL.Path, table) && u.times[table] < unclearEach {
			u.times[table]++
			return s3test.Forget
		}
	}
	return s3test.Pass
}

// Whatever a retirement commits is stored while its answer is lost: merged rows, the
// compaction, the drained manifest, the ledger's entry, the journal's. It ends once,
// with every row once.
func TestARetirementWhoseCommitsAreAllUnclearEndsOnceAndHasEveryRowOnce(t *testing.T) {
	b, metrics := newBucket(t, cold()...), temporaltest.FreeAddress(t)
	u := &unclear{times: map[string]int{}, tables: []string{
		"many.rollout.lance/_versions/", "/manifest/", "_retired.lance/_versions/", "_journal.lance/_versions/",
	}}
	proxy := b.server.Behind(t, func(*http.Request) s3test.Fault { return s3test.Pass })
	b.Env = append(b.Env, s3test.EnvironmentFor(proxy.Endpoint)...)
	facts, err := b.engine.MakeDataset(t.Context(), lance.DatasetSpec{
		URI: b.uri("many"), Kind: fleet.Rollout, Shards: 2, Generations: 4, Rows: 6, Fragments: 5, Tombstones: true, Stranded: true, Seed: 21,
	})
	require.NoError(t, err)
	b.register("many")
	b.Worker("METRICS_ADDR=" + metrics)
	b.Web()
	b.Scan()
	<-time.After(1100 * time.Millisecond) // silent for a second
	proxy.Decide(u.decide)

	result := maintain(t, b.Fleet, "retire", "many")

	require.Equal(t, "done", result.Outcome, result.Sentence)
	for _, table := range u.tables {
		require.Equal(t, unclearEach, u.times[table], "no commit to %s was unclear: nothing was shown", table)
	}
	var seen web.Verification
	require.NoError(t, json.Unmarshal([]byte(b.Client("verify", "many", "--deep", "--json")), &seen))
	require.True(t, seen.Clean, seen.Blocking)
	require.Equal(t, facts.Keys+facts.StrandedRows, seen.Rows, "every acknowledged row, once")
	require.Equal(t, seen.Rows, seen.DistinctKeys)
	require.Equal(t, 1, b.entriesOf(t, "_retired.lance"))
	require.Zero(t, b.Scan().Hot)
	_, counted := get(t, "http://"+metrics+"/metrics")
	require.Contains(t, counted, "master_stats_experiments_retired_total 1\n")
}

// entriesOf counts the rows of a table of ours.
func (b *bucket) entriesOf(t *testing.T, table string) int {
	t.Helper()
	read, err := b.engine.ReadTable(t.Context(), b.DataDir+"/"+table, lance.ReadOptions{})
	require.NoError(t, err)
	defer read.Release()
	rows := 0
	for _, record := range read.Records {
		rows += int(record.NumRows())
	}
	return rows
}
