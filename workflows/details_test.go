package workflows_test

import (
	"testing"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"lancefleet/workflows"
)

// metadataQuery is answered by the SDK.
const metadataQuery = "__temporal_workflow_metadata"

// detailsOf is what the run's page in Temporal's web UI says now.
func detailsOf(t *testing.T, env *testsuite.TestWorkflowEnvironment) string {
	t.Helper()
	answer, err := env.QueryWorkflow(metadataQuery)
	require.NoError(t, err)
	var m sdkpb.WorkflowMetadata
	require.NoError(t, answer.Get(&m))
	return m.GetCurrentDetails()
}

func TestTheRoundsPageSaysWhatWasFoundCommittedAndStarted(t *testing.T) {
	version := uint64(8)
	for said, c := range map[string]struct {
		commit  workflows.CommitResult
		started workflows.StartMaintenanceResult
		err     error
	}{
		"Round 7: page 1 of 1. 3 observed, 6 unchanged, 1 without answer, 0 not asked (backing off)." +
			" 5 retired, 2 of them looked at, 1 hot again. Committed `_stats` version 8 with 10 rows." +
			" Started 1 merges, 2 compactions, 3 retirements, 4 ran already; 5 wait for a later round, 6 cool down, 7 are blocked. Upkeep of our own tables started.": {
			commit:  workflows.CommitResult{Version: &version, Hot: 10, Returned: 1},
			started: workflows.StartMaintenanceResult{Merges: 1, Compactions: 2, Retirements: 3, AlreadyRunning: 4, Waiting: 5, CoolingDown: 6, Blocked: 7, Tables: true},
		},
		"Round 7: page 1 of 1. 3 observed, 6 unchanged, 1 without answer, 0 not asked (backing off)." +
			" 5 retired, 2 of them looked at, 0 hot again. Nothing to commit; 10 rows. Nothing started: the fleet is paused.": {
			commit: workflows.CommitResult{Hot: 10}, started: workflows.StartMaintenanceResult{Nothing: "the fleet is paused"},
		},
		"Round 7: page 1 of 1. 3 observed, 6 unchanged, 1 without answer, 0 not asked (backing off)." +
			" 5 retired, 2 of them looked at, 0 hot again. Nothing to commit; 10 rows. Maintenance was not started: no answer.": {
			commit: workflows.CommitResult{Hot: 10}, err: temporal.NewNonRetryableApplicationError("no answer", "denied", nil),
		},
	} {
		t.Run(said, func(t *testing.T) {
			env := newEnv(t)
			env.begin(round(10))
			env.observe(func(p workflows.Page) (workflows.PageResult, error) {
				return workflows.PageResult{Page: p.Number, Observed: 3, Skipped: 6, Failed: 1, Retired: 5, Checked: 2}, nil
			})
			env.commit(nil, c.commit)
			env.record()
			env.OnActivity(workflows.StartMaintenanceName, mock.Anything, mock.Anything).Return(c.started, c.err)
			env.run(args(10))
			require.Equal(t, said, detailsOf(t, env.TestWorkflowEnvironment))
		})
	}
}

func TestTheRoundsPageSaysNothingOfRetiredOnesWhereThereAreNone(t *testing.T) {
	env := newEnv(t)
	env.begin(round(10))
	env.observe(func(workflows.Page) (workflows.PageResult, error) {
		return workflows.PageResult{}, temporal.NewNonRetryableApplicationError("gone", "gone", nil)
	})
	env.commit(nil, workflows.CommitResult{})
	env.record()
	env.run(args(5))
	require.Equal(t, "Round 7: page 2 of 2. 0 observed, 0 unchanged, 10 without answer, 0 not asked (backing off). 2 pages failed for good: their rows are carried."+
		" Nothing to commit; 0 rows. Nothing started: maintenance is off.", detailsOf(t, env.TestWorkflowEnvironment))
}

func TestARunsPageSaysWhyWhatWasDoneAndHowItEnded(t *testing.T) {
	u := cold()
	u.drop = workflows.DropResult{Refused: "it moved"}
	_, env, err := retire(t, u)
	require.NoError(t, err)
	details := detailsOf(t, env.TestWorkflowEnvironment)
	for _, part := range []string{
		"Retire `rollout:exp-1`: not written for 8 d, retired after 7 d\n\n- **merge_wal** done: ",
		"\n- **sweep** done: swept 12 folders of merged generations\n- **verify** done: ",
		"\n- **drop** refused: not retired: it moved\n\n**refused**: not retired: it moved",
	} {
		require.Contains(t, details, part)
	}
	require.NotContains(t, details, "Writing the evidence", "it does nothing any more")
}
