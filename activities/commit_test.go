package activities

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/store"
	"lancefleet/workflows"
)

// stagedRound observes the whole world in one page and gives what CommitRound gets.
func stagedRound(t *testing.T, w *fakeWorld) workflows.CommitInput {
	t.Helper()
	in := workflows.CommitInput{Round: w.round(), PageSize: len(w.listing.Experiments)}
	result, err := do[workflows.PageResult](t, w.scan().ObserveActivity, w.page())
	require.NoError(t, err)
	in.Pages = []workflows.PageResult{result}
	return in
}

func TestARoundCommitsItsFindingsOnceUnderItsId(t *testing.T) {
	w := newWorld("a", "b")

	result, err := do[workflows.CommitResult](t, w.scan().CommitRound, stagedRound(t, w))

	require.NoError(t, err)
	require.Equal(t, uint64(1), *result.Version)
	require.Equal(t, int64(2), result.Hot)
	require.Equal(t, 2, result.Added)
	require.Len(t, w.head().Rows, 2)
	require.Equal(t, []string{"round/run"}, w.actions)
}

func TestWhenNothingChangedNothingIsCommitted(t *testing.T) {
	w := newWorld("a", "b").seen()

	result, err := do[workflows.CommitResult](t, w.scan().CommitRound, stagedRound(t, w))

	require.NoError(t, err)
	require.Nil(t, result.Version)
	require.Equal(t, int64(2), result.Hot)
	require.Equal(t, uint64(1), w.head().Version)
}

func TestScanTimesThatHaveGrownOldAreCommittedAllTheSame(t *testing.T) {
	w := newWorld("a").seen()
	w.now = w.now.Add(fleet.DefaultFreshness)

	result, err := do[workflows.CommitResult](t, w.scan().CommitRound, stagedRound(t, w))

	require.NoError(t, err)
	require.True(t, result.FreshnessOnly)
	require.Equal(t, w.now.UnixMilli(), w.head().Rows[0].ScannedAt)
}

func TestACommitThatComesInBetweenIsMergedWithNotOverwritten(t *testing.T) {
	w := newWorld("a", "b").seen()
	w.probe = func(target lance.ProbeTarget) lance.ProbeResult {
		if target.URI == exp("a").URI {
			return lance.ProbeResult{State: lance.Changed}
		}
		return lance.ProbeResult{State: lance.Unchanged}
	}
	in := stagedRound(t, w)
	w.beforeCommit = func(*store.Snapshot) error {
		w.beforeCommit = nil
		rows := slices.Clone(w.head().Rows)
		later := *w.observation(9)
		later.ObservedAt += 1000
		rows[1] = fleet.Observed(rows[1].Experiment, &rows[1], later, w.now.UnixMilli()+1000)
		w.put(rows, "")
		return nil
	}

	result, err := do[workflows.CommitResult](t, w.scan().CommitRound, in)

	require.NoError(t, err)
	require.Equal(t, uint64(3), *result.Version)
	require.Equal(t, int64(2), w.head().Rows[0].Version, "the round's own finding")
	require.Equal(t, int64(9), w.head().Rows[1].Version, "the other's finding")
}

func TestARoundThatLosesEveryRaceIsTriedAgainLaterAsAConflict(t *testing.T) {
	w := newWorld("a")
	in := stagedRound(t, w)
	w.beforeCommit = func(base *store.Snapshot) error {
		w.put(slices.Clone(base.Rows), "")
		return nil
	}

	_, err := do[workflows.CommitResult](t, w.scan().CommitRound, in)

	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	require.Equal(t, "conflict", app.Type())
	require.False(t, app.NonRetryable())
	require.Equal(t, temporal.ApplicationErrorCategoryBenign, app.Category())
	require.Len(t, w.snapshots, 1+mergeTries)
}

// commitWorkflow runs CommitRound with retries, as a round does.
func commitWorkflow(ctx workflow.Context, in workflows.CommitInput) (workflows.CommitResult, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 3},
	})
	var out workflows.CommitResult
	err := workflow.ExecuteActivity(ctx, workflows.CommitRoundName, in).Get(ctx, &out)
	return out, err
}

func TestARetryAfterACommitThatLandedFindsItAndCommitsNothing(t *testing.T) {
	w := newWorld("a", "b", "missed").seen()
	w.listing.Experiments = w.listing.Experiments[:2] // missing once: a second merge would count it twice
	w.probe = func(lance.ProbeTarget) lance.ProbeResult { return lance.ProbeResult{State: lance.Changed} }
	in := stagedRound(t, w)
	w.afterCommit = func() error {
		w.afterCommit = nil
		return &lance.Error{Class: lance.Unreachable, Op: "commit", Message: "connection lost"}
	}
	result := retried(t, w, in)
	require.Equal(t, uint64(2), *result.Version, "the version that landed is reported")
	require.Equal(t, int64(3), result.Hot)
	require.Equal(t, []string{"", "round/run"}, w.actions, "one commit of the round")
	require.Equal(t, int64(1), w.head().Rows[2].MissingRounds)
}

// retried commits a round through a workflow that tries again.
func retried(t *testing.T, w *fakeWorld, in workflows.CommitInput) workflows.CommitResult {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.RegisterActivityWithOptions(w.scan().CommitRound, activity.RegisterOptions{Name: workflows.CommitRoundName})
	env.RegisterWorkflow(commitWorkflow)
	env.ExecuteWorkflow(commitWorkflow, in)
	require.NoError(t, env.GetWorkflowError())
	var result workflows.CommitResult
	require.NoError(t, env.GetWorkflowResult(&result))
	return result
}

func TestARetryTakesNobodyElsesCommitForItsOwn(t *testing.T) {
	w := newWorld("a", "b").seen()
	w.probe = func(lance.ProbeTarget) lance.ProbeResult { return lance.ProbeResult{State: lance.Changed} }
	in := stagedRound(t, w)
	w.beforeCommit = func(base *store.Snapshot) error {
		w.beforeCommit = nil
		w.put(base.Rows, "round/another")
		return &lance.Error{Class: lance.Unreachable, Op: "commit", Message: "connection lost"}
	}
	result := retried(t, w, in)
	require.Equal(t, uint64(3), *result.Version)
	require.Equal(t, []string{"", "round/another", "round/run"}, w.actions)
	require.Equal(t, w.now.UnixMilli(), w.head().Rows[0].ObservedAt, "what the round saw is stored")
}

func TestACommitThatLandedIsFoundAlthoughItsVersionWasCleanedUp(t *testing.T) {
	w := newWorld("a", "b").seen()
	w.probe = func(lance.ProbeTarget) lance.ProbeResult { return lance.ProbeResult{State: lance.Changed} }
	in := stagedRound(t, w)
	w.afterCommit = func() error {
		w.afterCommit = nil
		w.put(w.head().Rows, "round/next")
		w.cleanedBelow = 3
		return &lance.Error{Class: lance.Unreachable, Op: "commit", Message: "connection lost"}
	}
	result := retried(t, w, in)
	require.Equal(t, uint64(2), *result.Version)
	require.Equal(t, int64(2), result.Hot)
	require.Equal(t, []string{"", "round/run", "round/next"}, w.actions)
}

func TestRowsOfAPageThatFailedForGoodAreCarriedAndNotCalledScanned(t *testing.T) {
	w := newWorld("a", "b").seen()
	before := w.head().Rows[1].ScannedAt
	w.now = w.now.Add(fleet.DefaultFreshness)
	in := workflows.CommitInput{
		Round: w.round(), PageSize: 1, FailedPages: 1,
		Pages: []workflows.PageResult{{Page: 0, Skipped: 1}},
	}

	_, err := do[workflows.CommitResult](t, w.scan().CommitRound, in)

	require.NoError(t, err)
	require.Equal(t, w.now.UnixMilli(), w.head().Rows[0].ScannedAt)
	require.Equal(t, before, w.head().Rows[1].ScannedAt)
}

func TestARoundWhoseEveryPageFailedNeverBlanksTheTable(t *testing.T) {
	w := newWorld("a", "b").seen()

	result, err := do[workflows.CommitResult](t, w.scan().CommitRound,
		workflows.CommitInput{Round: w.round(), PageSize: 1, FailedPages: 2})

	require.NoError(t, err)
	require.Equal(t, int64(2), result.Hot)
	require.Len(t, w.head().Rows, 2)
}

func TestARoundGoesOnWhenTheVersionItPinnedWasCleanedUp(t *testing.T) {
	w := newWorld("a").seen()
	page, in := w.page(), workflows.CommitInput{Round: w.round(), PageSize: 1}
	w.put(slices.Clone(w.head().Rows), "")
	w.cleanedBelow = 2

	result, err := do[workflows.PageResult](t, w.scan().ObserveActivity, page)
	require.NoError(t, err)
	require.Equal(t, 1, result.Skipped)
	in.Pages = []workflows.PageResult{result}
	committed, err := do[workflows.CommitResult](t, w.scan().CommitRound, in)
	require.NoError(t, err)
	require.Equal(t, int64(1), committed.Hot)
}

func TestBeginContinuesTheCountAndPinsVersionsAndListing(t *testing.T) {
	w := newWorld("a", "b").seen()
	w.rounds = []fleet.RoundRecord{{Number: 41, StartedAt: 77}}

	round, err := do[workflows.Round](t, w.scan().BeginRound, workflows.ScanArgs{FleetID: "fleet", Full: true})

	require.NoError(t, err)
	require.Equal(t, int64(42), round.Number)
	require.Equal(t, int64(77), round.LastRoundAt)
	require.Equal(t, uint64(1), round.StatsVersion)
	require.Equal(t, "hash", round.Listing)
	require.Equal(t, 2, round.Experiments)
	require.True(t, round.Full)
	require.Equal(t, 1, w.swept, "every second round sweeps here")
}

func TestASourceThatCannotBeReadFailsTheBeginning(t *testing.T) {
	w := newWorld("a").seen()
	w.listErr = &lance.Error{Class: lance.Denied, Op: "read_table", URI: "s3://b/_registry.rollout.lance", Message: "403"}

	_, err := do[workflows.Round](t, w.scan().BeginRound, workflows.ScanArgs{FleetID: "fleet"})

	require.Equal(t, "denied", workflows.ErrorClass(err))
	require.ErrorContains(t, err, "list experiments")
}

func TestWorkForAnotherFleetIsRefusedForGood(t *testing.T) {
	_, err := do[workflows.Round](t, newWorld("a").scan().BeginRound, workflows.ScanArgs{FleetID: "other"})

	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	require.Equal(t, typeForeignFleet, app.Type())
	require.True(t, app.NonRetryable())
}
