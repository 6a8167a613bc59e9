package activities

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/workflows"
)

func TestUnchangedExperimentsAreSkippedAndNothingIsStaged(t *testing.T) {
	w := newWorld("a", "b", "c").seen()

	result, err := do[workflows.PageResult](t, w.scan().ObserveActivity, w.page())

	require.NoError(t, err)
	require.Equal(t, workflows.PageResult{Skipped: 3, Requests: fleet.Requests{Head: 9}}, result)
	require.Empty(t, w.observes)
	require.Equal(t, w.head().Rows[0].Fingerprint, w.probes[0].Fingerprint)
}

func TestNewExperimentsAreObservedInFullWithoutAProbe(t *testing.T) {
	w := newWorld("a", "b", "c")

	result, err := do[workflows.PageResult](t, w.scan().ObserveActivity, w.page())

	require.NoError(t, err)
	require.Empty(t, w.probes)
	require.Equal(t, 3, result.Observed)
	require.Equal(t, fleet.Requests{List: 3, Get: 6, Put: 1}, result.Requests)
	require.Equal(t, 2, w.batches, "three experiments in chunks of two")
	rows := w.staged[result.Staged]
	require.Len(t, rows, 3)
	require.Equal(t, int64(10), rows[2].RowCount)
}

func TestAnExperimentThatChangedIsObservedFromTheVersionThatIsKnown(t *testing.T) {
	for _, state := range []lance.ProbeResult{
		{State: lance.Changed, Detail: "wal tail"},
		{State: lance.Unknown, Err: &lance.Error{Class: lance.Unreachable, Message: "503"}},
	} {
		t.Run(string(state.State), func(t *testing.T) {
			w := newWorld("a", "b").seen()
			w.probe = func(target lance.ProbeTarget) lance.ProbeResult {
				if target.URI == exp("b").URI {
					return state
				}
				return lance.ProbeResult{State: lance.Unchanged}
			}

			result, err := do[workflows.PageResult](t, w.scan().ObserveActivity, w.page())

			require.NoError(t, err)
			require.Equal(t, 1, result.Observed)
			require.Equal(t, 1, result.Skipped)
			require.Equal(t, []lance.ObserveTarget{{URI: exp("b").URI, KnownVersion: 1, TargetRows: 1 << 20}}, w.observes)
			require.Equal(t, int64(2), w.staged[result.Staged][0].Version)
		})
	}
}

func TestOneBrokenExperimentCostsItsOwnRowAFailureNeverThePage(t *testing.T) {
	w := newWorld("a", "broken", "c").seen()
	w.probe = func(lance.ProbeTarget) lance.ProbeResult { return lance.ProbeResult{State: lance.Changed} }
	good := w.observe
	w.observe = func(target lance.ObserveTarget) lance.ObserveResult {
		if target.URI == exp("broken").URI {
			return lance.ObserveResult{Err: &lance.Error{Class: lance.Corrupt, Message: "manifest is truncated"}}
		}
		return good(target)
	}

	result, err := do[workflows.PageResult](t, w.scan().ObserveActivity, w.page())

	require.NoError(t, err)
	require.Equal(t, 2, result.Observed)
	require.Equal(t, 1, result.Failed)
	for _, row := range w.staged[result.Staged] {
		if row.Name != "broken" {
			require.False(t, row.Failing())
			continue
		}
		require.Equal(t, "corrupt", row.ErrorClass)
		require.Equal(t, "manifest is truncated", row.Error)
		require.Equal(t, int64(10), row.RowCount, "the old numbers are carried")
		require.Greater(t, row.NextAttemptAt, w.now.UnixMilli())
	}
}

func TestAnExperimentThatHangsIsNotAskedASecondTime(t *testing.T) {
	w := newWorld("a").seen()
	w.probe = func(lance.ProbeTarget) lance.ProbeResult {
		return lance.ProbeResult{State: lance.Unknown, Err: &lance.Error{Class: lance.Timeout, Message: "no answer in 10 s"}}
	}

	result, err := do[workflows.PageResult](t, w.scan().ObserveActivity, w.page())

	require.NoError(t, err)
	require.Equal(t, 1, result.Failed)
	require.Empty(t, w.observes)
}

func TestAFailingExperimentIsLeftAloneUntilItsTimeAndAskedInAFullRound(t *testing.T) {
	w := newWorld("a", "b").seen()
	w.fail("b", 0)
	page := w.page()

	result, err := do[workflows.PageResult](t, w.scan().ObserveActivity, page)
	require.NoError(t, err)
	require.Equal(t, 1, result.BackingOff)
	require.Equal(t, 1, result.Skipped)

	page.Round.Full = true
	result, err = do[workflows.PageResult](t, w.scan().ObserveActivity, page)
	require.NoError(t, err)
	require.Equal(t, 2, result.Observed)
	require.Zero(t, result.BackingOff)
}

func TestAnExperimentThatAnswersAgainIsStagedAsWell(t *testing.T) {
	w := newWorld("a").seen()
	w.fail("a", time.Hour)

	result, err := do[workflows.PageResult](t, w.scan().ObserveActivity, w.page())

	require.NoError(t, err)
	require.Equal(t, 1, result.Skipped)
	require.False(t, w.staged[result.Staged][0].Failing())
}

func TestABatchThatCannotRunFailsTheAttemptWithItsClass(t *testing.T) {
	w := newWorld("a").seen()
	w.batchErr = &lance.Error{Class: lance.Closed, Op: "probe", Message: "the engine is closed"}

	_, err := do[workflows.PageResult](t, w.scan().ObserveActivity, w.page())

	require.Equal(t, "closed", workflows.ErrorClass(err))
	require.Empty(t, w.staged)
}

func TestAPageOutsideOfItsListingIsRefusedForGood(t *testing.T) {
	w := newWorld("a").seen()
	page := w.page()
	page.Offset = 1

	_, err := do[workflows.PageResult](t, w.scan().ObserveActivity, page)

	require.Equal(t, "invalid", workflows.ErrorClass(err))
}

func TestAPageGetsTheConcurrencyThatOtherPagesLeave(t *testing.T) {
	for _, c := range []struct{ experiments, count, want int }{
		{1000, 1000, 256}, {1001, 1000, 128}, {30_000, 1000, 64}, {0, 0, 256},
	} {
		t.Run(fmt.Sprintf("%d in pages of %d", c.experiments, c.count), func(t *testing.T) {
			p := page{scan: newWorld().scan(), in: workflows.Page{Round: workflows.Round{Experiments: c.experiments}, Count: c.count}}
			require.Equal(t, c.want, p.concurrency())
		})
	}
}

func TestAnAttemptThatIsCancelledStagesNothingAndBlamesNobody(t *testing.T) {
	w := newWorld("a").seen()
	w.block = true
	scan := w.scan()
	ctx, cancel := context.WithCancel(context.Background())
	l := &lease{}
	p, err := scan.openPage(ctx, w.page(), l)
	require.NoError(t, err)
	cancel()

	require.ErrorIs(t, p.look(ctx), context.Canceled)
	require.Empty(t, w.staged)
	require.Zero(t, p.result.Failed)
}
