package e2e

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"lancefleet/e2e/s3test"
	"lancefleet/lance"
)

// Only upkeep lists the whole of our tables.
func TestRoundsListsAndMaintenanceGoOnWhileUpkeepOfOurTablesHangs(t *testing.T) {
	b := newBucket(t, append(cold(), "STATS_MAINTENANCE_EVERY_N_SCANS=1")...)
	var hung atomic.Int64
	proxy := b.server.Behind(t, func(r *http.Request) s3test.Fault {
		if r.URL.Query().Get("prefix") == "_stats.rollout.lance/" {
			hung.Add(1)
			return s3test.Hang
		}
		return s3test.Pass
	})
	b.Env = append(b.Env, s3test.EnvironmentFor(proxy.Endpoint)...)
	b.rollout("one", 1)
	b.register("one")
	b.Worker()
	b.Web()
	first := b.Scan()
	require.NotNil(t, first.CommittedVersion)
	require.Eventually(t, func() bool { return hung.Load() > 0 }, patience, patience/1000, "upkeep hangs")

	b.write(lance.WritesSpec{URI: b.uri("one"), Rows: 2, Flush: true, Seed: 3})
	second := b.Scan()
	require.EqualValues(t, 1, second.Observed)
	require.Equal(t, *first.CommittedVersion+1, *second.CommittedVersion)
	require.Equal(t, 1, b.ListOf(second).Total)
	require.Equal(t, "done", maintain(t, b.Fleet, "optimize", "one").Outcome)

	require.Equal(t, "WORKFLOW_EXECUTION_STATUS_RUNNING", b.statusOf("lancefleet-tables"), "the pass was over: nothing was shown")
}

// statusOf a workflow, as Temporal has it.
func (b *bucket) statusOf(id string) string {
	var described struct {
		WorkflowExecutionInfo struct{ Status string }
	}
	b.Temporal.CLIJSON(&described, "workflow", "describe", "--workflow-id", id)
	return described.WorkflowExecutionInfo.Status
}
