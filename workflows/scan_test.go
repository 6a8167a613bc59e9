package workflows_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"lancefleet/fleet"
	"lancefleet/workflows"
)

func TestARoundAddsUpItsPagesAndIsRecorded(t *testing.T) {
	env := newEnv(t)
	env.begin(round(25))
	env.OnActivity(workflows.ObserveName, mock.Anything, mock.Anything).Return(
		func(_ context.Context, p workflows.Page) (workflows.PageResult, error) {
			return workflows.PageResult{
				Page: p.Number, Skipped: p.Count - 2, Observed: 1, BackingOff: 1,
				Staged: fmt.Sprintf("page-%d", p.Number), Requests: fleet.Requests{Head: int64(p.Count)},
			}, nil
		})
	version := uint64(8)
	var committed workflows.CommitInput
	env.commit(&committed, workflows.CommitResult{Version: &version, Hot: 25, Requests: fleet.Requests{Put: 2}})
	recorded := env.record()

	result := env.run(args(10))

	require.Equal(t, int64(3), result.Observed)
	require.Equal(t, int64(25-6), result.Skipped)
	require.Equal(t, int64(3), result.BackingOff)
	require.Equal(t, int64(0), result.Failed)
	require.Equal(t, fleet.Requests{List: 1, Head: 25, Put: 2}, result.StorageRequests)
	require.Equal(t, &version, result.CommittedVersion)
	require.Equal(t, int64(25), result.Hot)
	require.Equal(t, int64(7), result.Number)
	require.NotEmpty(t, result.RoundID)
	require.Equal(t, []fleet.RoundRecord{result}, *recorded)
	require.Len(t, committed.Pages, 3)
	require.Equal(t, 10, committed.PageSize)
	require.Equal(t, workflows.OutcomeDone, env.outcome)
}

func TestPagesCoverTheListingWithoutGapOrOverlap(t *testing.T) {
	for _, c := range []struct{ experiments, size, pages int }{
		{0, 1000, 0}, {1, 1000, 1}, {1000, 1000, 1}, {1001, 1000, 2}, {30_000, 1000, 30}, {5, 0, 5},
	} {
		t.Run(fmt.Sprintf("%d experiments in pages of %d", c.experiments, c.size), func(t *testing.T) {
			env := newEnv(t)
			env.begin(round(c.experiments))
			var mu sync.Mutex
			seen := make([]int, c.experiments)
			pages := 0
			env.observe(func(p workflows.Page) (workflows.PageResult, error) {
				mu.Lock()
				defer mu.Unlock()
				pages++
				for i := p.Offset; i < p.Offset+p.Count; i++ {
					seen[i]++
				}
				return workflows.PageResult{Page: p.Number, Skipped: p.Count}, nil
			})
			env.commit(nil, workflows.CommitResult{})
			env.record()

			result := env.run(args(c.size))

			require.Equal(t, c.pages, pages)
			for i, times := range seen {
				require.Equal(t, 1, times, "experiment %d", i)
			}
			require.Equal(t, int64(c.experiments), result.Skipped)
		})
	}
}

func TestAPageThatFailsForGoodCostsItsOwnExperimentsNotTheRound(t *testing.T) {
	env := newEnv(t)
	env.begin(round(30))
	env.observe(func(p workflows.Page) (workflows.PageResult, error) {
		if p.Number == 1 {
			return workflows.PageResult{}, temporal.NewNonRetryableApplicationError("listing is gone", "gone", nil)
		}
		return workflows.PageResult{Page: p.Number, Skipped: p.Count}, nil
	})
	var committed workflows.CommitInput
	env.commit(&committed, workflows.CommitResult{Hot: 30})
	env.record()

	result := env.run(args(10))

	require.Equal(t, int64(10), result.Failed)
	require.Equal(t, int64(20), result.Skipped)
	require.Equal(t, 1, committed.FailedPages)
	require.Len(t, committed.Pages, 2)
	require.Equal(t, workflows.OutcomePartial, env.outcome)
}

func TestAPageThatFailsOnceIsTriedAgain(t *testing.T) {
	env := newEnv(t)
	env.begin(round(10))
	tries := 0
	env.observe(func(p workflows.Page) (workflows.PageResult, error) {
		if tries++; tries == 1 {
			return workflows.PageResult{}, errors.New("no answer")
		}
		return workflows.PageResult{Page: p.Number, Skipped: p.Count}, nil
	})
	env.commit(nil, workflows.CommitResult{})
	env.record()

	require.Equal(t, int64(0), env.run(args(10)).Failed)
	require.Equal(t, 2, tries)
}

func TestWhenEveryPageFailsTheRoundStillCommitsWhatItKnows(t *testing.T) {
	env := newEnv(t)
	env.begin(round(20))
	env.observe(func(workflows.Page) (workflows.PageResult, error) {
		return workflows.PageResult{}, errors.New("storage is away")
	})
	var committed workflows.CommitInput
	env.commit(&committed, workflows.CommitResult{Hot: 20})
	env.record()

	require.Equal(t, int64(20), env.run(args(10)).Failed)
	require.Equal(t, 2, committed.FailedPages)
	require.Empty(t, committed.Pages)
}

func TestAnUnreadableSourceFailsTheRoundWithItsClassAndCommitsNothing(t *testing.T) {
	env := newEnv(t)
	env.OnActivity(workflows.BeginRoundName, mock.Anything, mock.Anything).Return(
		workflows.Round{}, temporal.NewNonRetryableApplicationError("list experiments: access denied", "denied", nil))

	env.ExecuteWorkflow(workflows.ScanWorkflowName, args(10))

	err := env.GetWorkflowError()
	require.Equal(t, "denied", workflows.ErrorClass(err))
	require.ErrorContains(t, err, "list experiments: access denied")
	env.AssertNotCalled(t, workflows.CommitRoundName, mock.Anything, mock.Anything)
	require.Equal(t, workflows.OutcomeFailed, env.outcome)
}

func TestARoundThatCannotBeCommittedFails(t *testing.T) {
	env := newEnv(t)
	env.begin(round(0))
	env.OnActivity(workflows.CommitRoundName, mock.Anything, mock.Anything).Return(
		workflows.CommitResult{}, temporal.NewNonRetryableApplicationError("disk is full", "denied", nil))

	env.ExecuteWorkflow(workflows.ScanWorkflowName, args(10))

	require.ErrorContains(t, env.GetWorkflowError(), "commit round 7: disk is full")
	require.Equal(t, workflows.OutcomeFailed, env.outcome)
}

func TestARoundThatCannotBeRecordedFails(t *testing.T) {
	env := newEnv(t)
	env.begin(round(0))
	env.commit(nil, workflows.CommitResult{})
	env.OnActivity(workflows.RecordRoundName, mock.Anything, mock.Anything).Return(
		temporal.NewNonRetryableApplicationError("corrupt table", "corrupt", nil))

	env.ExecuteWorkflow(workflows.ScanWorkflowName, args(10))

	require.Equal(t, "corrupt", workflows.ErrorClass(env.GetWorkflowError()))
}

func TestNeverMorePagesAtOnceThanAllowed(t *testing.T) {
	env := newEnv(t)
	env.begin(round(40))
	running, most := 0, 0
	env.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, _ converter.EncodedValues) {
		if info.ActivityType.Name == workflows.ObserveName {
			running++
			most = max(most, running)
		}
	})
	env.SetOnActivityCompletedListener(func(info *activity.Info, _ converter.EncodedValue, _ error) {
		if info.ActivityType.Name == workflows.ObserveName {
			running--
		}
	})
	env.OnActivity(workflows.ObserveName, mock.Anything, mock.Anything).After(time.Minute).Return(
		func(_ context.Context, p workflows.Page) (workflows.PageResult, error) {
			return workflows.PageResult{Page: p.Number, Skipped: p.Count}, nil
		})
	env.commit(nil, workflows.CommitResult{})
	env.record()
	a := args(1)
	a.MaxPagesAtOnce = 3

	require.Equal(t, int64(40), env.run(a).Skipped)
	require.Equal(t, 3, most)
}

func TestACancelledRoundEndsCancelledAndCommitsNothing(t *testing.T) {
	env := newEnv(t)
	env.begin(round(100))
	started := 0
	env.OnActivity(workflows.ObserveName, mock.Anything, mock.Anything).After(time.Minute).Return(
		func(_ context.Context, p workflows.Page) (workflows.PageResult, error) {
			started++
			return workflows.PageResult{Page: p.Number}, nil
		})
	env.RegisterDelayedCallback(env.CancelWorkflow, 10*time.Second)

	env.ExecuteWorkflow(workflows.ScanWorkflowName, args(10))

	require.True(t, temporal.IsCanceledError(env.GetWorkflowError()), "%v", env.GetWorkflowError())
	env.AssertNotCalled(t, workflows.CommitRoundName, mock.Anything, mock.Anything)
	require.LessOrEqual(t, started, 4)
	require.Equal(t, workflows.OutcomeCancelled, env.outcome)
}

func TestARoundStartsMaintenanceAfterItIsRecordedAndNotWhenItFailed(t *testing.T) {
	env := newEnv(t)
	env.begin(round(10))
	env.observe(func(p workflows.Page) (workflows.PageResult, error) {
		return workflows.PageResult{Page: p.Number, Skipped: p.Count}, nil
	})
	env.commit(nil, workflows.CommitResult{Hot: 10})
	recorded := env.record()
	var started []workflows.StartMaintenanceInput
	env.OnActivity(workflows.StartMaintenanceName, mock.Anything, mock.Anything).Return(
		func(_ context.Context, in workflows.StartMaintenanceInput) (workflows.StartMaintenanceResult, error) {
			require.Len(t, *recorded, 1)
			started = append(started, in)
			return workflows.StartMaintenanceResult{Retirements: 2}, nil
		})
	env.run(args(10))
	require.Len(t, started, 1)
	require.Equal(t, int64(7), started[0].Round.Number)
	require.Equal(t, "id", started[0].FleetID)

	env = newEnv(t)
	env.OnActivity(workflows.BeginRoundName, mock.Anything, mock.Anything).Return(
		workflows.Round{}, temporal.NewNonRetryableApplicationError("denied", "denied", nil))
	env.ExecuteWorkflow(workflows.ScanWorkflowName, args(10))
	require.Error(t, env.GetWorkflowError())
	env.AssertNotCalled(t, workflows.StartMaintenanceName, mock.Anything, mock.Anything)
}

func TestARoundDoesNotFailBecauseMaintenanceCouldNotBeStarted(t *testing.T) {
	env := newEnv(t)
	env.begin(round(0))
	env.commit(nil, workflows.CommitResult{})
	env.record()
	env.OnActivity(workflows.StartMaintenanceName, mock.Anything, mock.Anything).Return(
		workflows.StartMaintenanceResult{}, temporal.NewNonRetryableApplicationError("no answer", "denied", nil))
	env.run(args(10))
	require.Equal(t, workflows.OutcomeDone, env.outcome)
}

func TestARoundThatBeganBeforeThereWasMaintenanceStartsNone(t *testing.T) {
	env := newEnv(t)
	env.begin(round(0))
	env.commit(nil, workflows.CommitResult{})
	env.record()
	env.OnGetVersion("start-maintenance", workflow.DefaultVersion, workflow.Version(1)).Return(workflow.DefaultVersion)
	asked := watchOptions(env.TestWorkflowEnvironment)
	env.run(args(10))
	require.NotContains(t, asked.of, workflows.StartMaintenanceName)
	require.Contains(t, asked.of, workflows.RecordRoundName)
}

func TestARoundTellsWhoAskedForItAndHowLongItTook(t *testing.T) {
	env := newEnv(t)
	env.SetStartTime(time.UnixMilli(1_000_000))
	env.begin(round(10))
	env.OnActivity(workflows.ObserveName, mock.Anything, mock.Anything).After(time.Minute).Return(
		func(_ context.Context, p workflows.Page) (workflows.PageResult, error) {
			return workflows.PageResult{Page: p.Number}, nil
		})
	env.commit(nil, workflows.CommitResult{})
	env.record()
	a := args(10)
	a.By = "alice"
	r := env.run(a)
	require.Equal(t, "alice", r.By)
	require.Equal(t, int64(1_000_000), r.StartedAt)
	require.GreaterOrEqual(t, r.FinishedAt, r.StartedAt+60_000)
	require.InDelta(t, float64(r.FinishedAt-r.StartedAt)/1000, r.DurationSeconds, 0.001)
}

func TestACommitIsToldThePagesAsTheyWereCut(t *testing.T) {
	env := newEnv(t)
	env.begin(round(2))
	env.observe(func(p workflows.Page) (workflows.PageResult, error) { return workflows.PageResult{Page: p.Number}, nil })
	var committed workflows.CommitInput
	env.commit(&committed, workflows.CommitResult{})
	env.record()
	env.run(args(0))
	require.Equal(t, 1, committed.PageSize)
	require.Len(t, committed.Pages, 2)
}

func TestARoundWhosePageAndCommitFailedIsAFailedOne(t *testing.T) {
	env := newEnv(t)
	env.begin(round(10))
	env.observe(func(workflows.Page) (workflows.PageResult, error) {
		return workflows.PageResult{}, temporal.NewNonRetryableApplicationError("listing is gone", "gone", nil)
	})
	env.OnActivity(workflows.CommitRoundName, mock.Anything, mock.Anything).Return(
		workflows.CommitResult{}, temporal.NewNonRetryableApplicationError("disk is full", "denied", nil))
	env.ExecuteWorkflow(workflows.ScanWorkflowName, args(10))
	require.Error(t, env.GetWorkflowError())
	require.Equal(t, workflows.OutcomeFailed, env.outcome)
}

func TestACancelledRoundAsksForNoMorePages(t *testing.T) {
	env := newEnv(t)
	env.begin(round(100))
	asked := watchOptions(env.TestWorkflowEnvironment)
	env.OnActivity(workflows.ObserveName, mock.Anything, mock.Anything).After(time.Minute).Return(
		func(_ context.Context, p workflows.Page) (workflows.PageResult, error) {
			return workflows.PageResult{Page: p.Number}, nil
		})
	env.RegisterDelayedCallback(env.CancelWorkflow, 10*time.Second)
	env.ExecuteWorkflow(workflows.ScanWorkflowName, args(10))
	require.True(t, temporal.IsCanceledError(env.GetWorkflowError()))
	require.Equal(t, 4, asked.times[workflows.ObserveName])
	require.NotContains(t, asked.of, workflows.CommitRoundName)
}

// env is a test environment with ScanWorkflow and stubs of its activities.
type env struct {
	*testsuite.TestWorkflowEnvironment
	t       *testing.T
	outcome string // by which people find the workflow
}

func newEnv(t *testing.T) *env {
	var suite testsuite.WorkflowTestSuite
	e := &env{TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment(), t: t}
	for name, w := range map[string]any{
		workflows.ScanWorkflowName:    workflows.ScanWorkflow,
		workflows.RefreshWorkflowName: workflows.RefreshWorkflow,
		workflows.RecordWorkflowName:  workflows.RecordWorkflow,
		workflows.HintWorkflowName:    workflows.HintWorkflow,
	} {
		e.RegisterWorkflowWithOptions(w, workflow.RegisterOptions{Name: name})
	}
	registerActivities(e)
	e.OnUpsertTypedSearchAttributes(mock.MatchedBy(func(set temporal.SearchAttributes) bool {
		e.outcome, _ = set.GetKeyword(temporal.NewSearchAttributeKeyKeyword(workflows.AttrOutcome))
		return true
	})).Return(nil)
	return e
}

// registerActivities gives the stubs their signatures. Each is mocked where a test
// expects it, and fails where it does not.
func registerActivities(r interface {
	RegisterActivityWithOptions(a any, o activity.RegisterOptions)
}) {
	for name, a := range map[string]any{
		workflows.BeginRoundName: func(context.Context, workflows.ScanArgs) (workflows.Round, error) {
			return workflows.Round{}, errUnexpected
		},
		workflows.TakeHintsName: func(context.Context, workflows.HintArgs) (workflows.HintResult, error) {
			return workflows.HintResult{}, errUnexpected
		},
		workflows.ObserveName: func(context.Context, workflows.Page) (workflows.PageResult, error) {
			return workflows.PageResult{}, errUnexpected
		},
		workflows.CommitRoundName: func(context.Context, workflows.CommitInput) (workflows.CommitResult, error) {
			return workflows.CommitResult{}, errUnexpected
		},
		workflows.RecordRoundName: func(context.Context, fleet.RoundRecord) error { return errUnexpected },
		workflows.RefreshRowsName: func(context.Context, workflows.RefreshArgs) (workflows.RefreshResult, error) {
			return workflows.RefreshResult{}, errUnexpected
		},
		workflows.RecordActionName: func(context.Context, fleet.Action) error { return errUnexpected },
		workflows.StartMaintenanceName: func(context.Context, workflows.StartMaintenanceInput) (workflows.StartMaintenanceResult, error) {
			return workflows.StartMaintenanceResult{Nothing: "maintenance is off"}, nil
		},
	} {
		r.RegisterActivityWithOptions(a, activity.RegisterOptions{Name: name})
	}
}

var errUnexpected = temporal.NewNonRetryableApplicationError("this test did not expect the activity", "unexpected", nil)

func (e *env) begin(r workflows.Round) {
	e.OnActivity(workflows.BeginRoundName, mock.Anything, mock.Anything).Return(r, nil)
}

func (e *env) observe(f func(workflows.Page) (workflows.PageResult, error)) {
	e.OnActivity(workflows.ObserveName, mock.Anything, mock.Anything).Return(
		func(_ context.Context, p workflows.Page) (workflows.PageResult, error) { return f(p) })
}

func (e *env) commit(got *workflows.CommitInput, result workflows.CommitResult) {
	e.OnActivity(workflows.CommitRoundName, mock.Anything, mock.Anything).Return(
		func(_ context.Context, in workflows.CommitInput) (workflows.CommitResult, error) {
			if got != nil {
				*got = in
			}
			return result, nil
		})
}

func (e *env) record() *[]fleet.RoundRecord {
	var records []fleet.RoundRecord
	e.OnActivity(workflows.RecordRoundName, mock.Anything, mock.Anything).Return(
		func(_ context.Context, r fleet.RoundRecord) error {
			records = append(records, r)
			return nil
		})
	return &records
}

func (e *env) run(a workflows.ScanArgs) workflows.RoundResult {
	e.t.Helper()
	e.ExecuteWorkflow(workflows.ScanWorkflowName, a)
	require.True(e.t, e.IsWorkflowCompleted())
	require.NoError(e.t, e.GetWorkflowError())
	var result workflows.RoundResult
	require.NoError(e.t, e.GetWorkflowResult(&result))
	return result
}

func round(experiments int) workflows.Round {
	return workflows.Round{
		ID: "run", Number: 7, StartedAt: 1, Listing: "hash", Experiments: experiments,
		StatsVersion: 7, Observed: fleet.Requests{List: 1},
	}
}

func args(pageSize int) workflows.ScanArgs {
	return workflows.ScanArgs{Fleet: "default", FleetID: "id", DataDir: "/data", IntervalSecs: 300, PageSize: pageSize, MaxPagesAtOnce: 4}
}
