package activities

import (
	"context"
	"errors"
	"fmt"
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

func dropIn(w *fakeWorld, name string, version uint64) workflows.DropInput {
	return workflows.DropInput{Args: maintenanceArgs(name), Target: target(name), Evidence: w.evidence(version)}
}

func TestADropCommitsTheEvidenceToTheLedger(t *testing.T) {
	w := newWorld("a").seen()
	before := w.head().Rows[0]

	r, err := do[workflows.DropResult](t, w.maintenance(nil).DropRow, dropIn(w, "a", 2))

	require.NoError(t, err)
	require.Empty(t, r.Refused)
	entry := w.entry("a")
	require.True(t, entry.Retired())
	require.Equal(t, w.evidence(2), entry.Evidence)
	require.Equal(t, before.LastWrite, entry.LastWrite, "our own maintenance never makes anything look fresh")
	require.Equal(t, fleet.Retired, fleet.StateOf(&w.head().Rows[0], entry))
	require.Equal(t, uint64(1), w.head().Version, "a retirement adds no version to _stats")
	require.Equal(t, 1, w.metrics.retired)
	require.True(t, w.probes[len(w.probes)-1].Deep)
	require.Equal(t, w.evidence(2).Fingerprint, w.probes[len(w.probes)-1].Fingerprint)
}

func TestADropIsRefusedWheneverAnythingMovedSinceTheEvidence(t *testing.T) {
	for name, move := range map[string]func(w *fakeWorld){
		"seen by the observation": func(w *fakeWorld) {
			w.observe = func(lance.ObserveTarget) lance.ObserveResult {
				return lance.ObserveResult{Observation: w.observation(3)}
			}
		},
		"seen by the probe": func(w *fakeWorld) {
			w.probe = func(lance.ProbeTarget) lance.ProbeResult {
				return lance.ProbeResult{State: lance.Changed, Detail: "wal tail"}
			}
		},
		"its source names another uri": func(w *fakeWorld) { w.listing.Experiments[0].URI = "/elsewhere" },
		"its source names it no more":  func(w *fakeWorld) { w.listing.Experiments = nil },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld("a").seen()
			move(w)

			r, err := do[workflows.DropResult](t, w.maintenance(nil).DropRow, dropIn(w, "a", 2))

			require.NoError(t, err)
			require.NotEmpty(t, r.Refused)
			require.Nil(t, w.entry("a"), "it stays hot")
			require.Zero(t, w.metrics.retired)
			require.Equal(t, 1, w.metrics.dropsRefused)
		})
	}
}

func TestADropThatCannotLookFailsAndStaysHot(t *testing.T) {
	w := newWorld("a").seen()
	w.probe = func(lance.ProbeTarget) lance.ProbeResult {
		return lance.ProbeResult{State: lance.Unknown, Err: &lance.Error{Class: lance.Unreachable, Message: "503"}}
	}
	_, err := do[workflows.DropResult](t, w.maintenance(nil).DropRow, dropIn(w, "a", 2))
	require.Equal(t, "unreachable", workflows.ErrorClass(errors.Unwrap(err)))
	require.Nil(t, w.entry("a"))
}

func TestEvidenceThatIsNotCleanIsRefusedByTheDropItself(t *testing.T) {
	for name, dirty := range map[string]func(*fleet.Evidence){
		"pending":  func(e *fleet.Evidence) { e.Pending = 1 },
		"stranded": func(e *fleet.Evidence) { e.Stranded = 1 },
		"unknown":  func(e *fleet.Evidence) { e.Unknown = 1 },
		"none":     func(e *fleet.Evidence) { *e = fleet.Evidence{} },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld("a").seen()
			if name == "none" { // nor does the look tell anything
				w.observe = func(lance.ObserveTarget) lance.ObserveResult {
					return lance.ObserveResult{Observation: &fleet.Observation{}}
				}
			}
			in := dropIn(w, "a", 2)
			dirty(&in.Evidence)
			r, err := do[workflows.DropResult](t, w.maintenance(nil).DropRow, in)
			require.NoError(t, err)
			require.NotEmpty(t, r.Refused)
			require.Nil(t, w.entry("a"))
		})
	}
}

// dropWorkflow runs DropRow with retries, as a retirement does.
func dropWorkflow(ctx workflow.Context, in workflows.DropInput) (workflows.DropResult, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 3},
	})
	var out workflows.DropResult
	err := workflow.ExecuteActivity(ctx, workflows.DropRowName, in).Get(ctx, &out)
	return out, err
}

func TestATransitionCountsOnceAlsoWhenTheCommitLandedAndItsAttemptDidNotHearOfIt(t *testing.T) {
	w := newWorld("a").seen()
	w.afterLedger = func() error {
		w.afterLedger = nil
		return &lance.Error{Class: lance.Unreachable, Message: "connection lost"}
	}

	r := droppedInTheEnd(t, w)

	require.Empty(t, r.Refused)
	require.Equal(t, 1, w.metrics.retired)
	require.Len(t, w.ledger, 1)
}

// droppedInTheEnd is what a retirement is told whose attempts may fail.
func droppedInTheEnd(t *testing.T, w *fakeWorld) (r workflows.DropResult) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.RegisterActivityWithOptions(w.maintenance(nil).DropRow, activity.RegisterOptions{Name: workflows.DropRowName})
	env.RegisterWorkflow(dropWorkflow)
	env.ExecuteWorkflow(dropWorkflow, dropIn(w, "a", 2))
	require.NoError(t, env.GetWorkflowError())
	require.NoError(t, env.GetWorkflowResult(&r))
	return r
}

func TestARetirementWhoseCommitLandedIsToldSoWhateverWasWrittenSince(t *testing.T) {
	w := newWorld("a").seen()
	w.afterLedger = func() error {
		w.afterLedger = nil
		w.writtenTo()
		return &lance.Error{Class: lance.Unreachable, Message: "connection lost"}
	}

	r := droppedInTheEnd(t, w)

	require.Empty(t, r.Refused)
	require.Equal(t, w.entry("a").LastWrite, r.LastWrite)
	require.True(t, w.entry("a").Retired(), "the next look at it takes it back")
	require.Zero(t, w.metrics.dropsRefused)
}

func TestTheLedgerKeepsWhoRetiredWhyAndInWhichRun(t *testing.T) {
	w := newWorld("a").seen()
	in := dropIn(w, "a", 2)
	in.Args.By, in.Args.Why = "alice", "the run is published"
	_, err := do[workflows.DropResult](t, w.maintenance(nil).DropRow, in)
	require.NoError(t, err)
	entry := w.entry("a")
	require.Equal(t, []string{"alice", "the run is published"}, []string{entry.By, entry.Why})
	require.NotEmpty(t, entry.RunID)
	require.NotEmpty(t, entry.WorkflowID)
}

// stumbling is a ledger that can't be read so often at first.
type stumbling struct {
	fakeLedger
	times int
}

func (l *stumbling) Latest(ctx context.Context) (*store.LedgerView, error) {
	if l.times--; l.times >= 0 {
		return nil, lance.ErrCorrupt
	}
	return l.fakeLedger.Latest(ctx)
}

func TestADropThatCannotReadWhatItGoesByOrBeStoredFailsAndIsNotCounted(t *testing.T) {
	failing := func(w *fakeWorld, class string) {
		_, err := do[workflows.DropResult](t, w.maintenance(nil).DropRow, dropIn(w, "a", 2))
		require.Equal(t, class, classOf(err))
		require.Zero(t, w.metrics.retired+w.metrics.dropsRefused)
	}
	for _, part := range []string{"sources", "_stats", "_retired"} {
		w := newWorld("a").seen()
		w.unreadable = part
		failing(w, "corrupt")
		require.Empty(t, w.ledger, part)
	}
	w := newWorld("a").seen()
	m := w.maintenance(nil)
	m.Ledger = &stumbling{fakeLedger{w}, 1}
	_, err := do[workflows.DropResult](t, m.DropRow, dropIn(w, "a", 2))
	require.Equal(t, "corrupt", classOf(err), "without the last entry nobody knows what is later")

	w = newWorld("a").seen()
	w.afterLedger = func() error { return lance.ErrUnreachable }
	failing(w, "unreachable")

	w = newWorld("a").seen()
	w.observe = func(lance.ObserveTarget) lance.ObserveResult {
		w.batchErr = lance.ErrUnreachable // before the probe
		return lance.ObserveResult{Observation: w.observation(2)}
	}
	failing(w, "unreachable")
	require.Empty(t, w.ledger)
}

// counted is an activity that counts through its lease.
type counted struct {
	heart Heart
	count int
}

func (c *counted) run(ctx context.Context) error {
	l := &lease{heart: c.heart, timeout: timeout, token: activity.GetInfo(ctx).TaskToken} // nobody keeps it: once needs no more
	return l.once(ctx, func() { c.count++ })
}

func TestAnEffectIsCountedOnlyByAnAttemptThatTemporalStillKnows(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	for name, c := range map[string]struct {
		answer error
		before *Progress // heartbeat of the attempt before
		want   int
	}{
		"first attempt":                      {nil, nil, 1},
		"temporal can't be told":             {errors.New("no connection"), nil, 0},
		"the attempt before had counted":     {nil, &Progress{Counted: true}, 0},
		"the attempt before came not so far": {nil, &Progress{Step: "start"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			a := &counted{heart: &heart{f: func(context.Context, int64) error { return c.answer }}}
			env := suite.NewTestActivityEnvironment()
			env.RegisterActivityWithOptions(a.run, activity.RegisterOptions{Name: "activity"})
			if c.before != nil {
				env.SetHeartbeatDetails(*c.before)
			}
			_, err := env.ExecuteActivity("activity")
			require.Equal(t, c.answer != nil, err != nil, "%v", err)
			require.Equal(t, c.want, a.count)
		})
	}
}

func TestTheRoundAndTheDropGiveTheSameEndWhicheverComesFirst(t *testing.T) {
	for name, order := range map[string][]string{
		"round, drop, round": {"round", "drop", "round"},
		"drop, round":        {"drop", "round"},
		"page, drop, commit": {"page", "drop", "commit", "round"},
		"drop within commit": {"page", "drop-within-commit", "round"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld("a", "b").seen()
			// both changed, so that the round stages rows of both
			w.probe = func(lance.ProbeTarget) lance.ProbeResult { return lance.ProbeResult{State: lance.Changed} }
			drop := func() {
				probe := w.probe
				w.probe = func(lance.ProbeTarget) lance.ProbeResult { return lance.ProbeResult{State: lance.Unchanged} }
				r, err := do[workflows.DropResult](t, w.maintenance(nil).DropRow, dropIn(w, "a", 2))
				require.NoError(t, err)
				require.Empty(t, r.Refused)
				w.probe = probe
			}
			var in workflows.CommitInput
			commit := func() {
				_, err := do[workflows.CommitResult](t, w.scan().CommitRound, in)
				require.NoError(t, err)
			}
			for _, step := range order {
				switch step {
				case "page":
					in = stagedRound(t, w)
				case "commit":
					commit()
				case "round":
					w.now = w.now.Add(time.Minute)
					in = stagedRound(t, w)
					commit()
				case "drop":
					drop()
				case "drop-within-commit":
					w.beforeStats = func() { w.beforeStats = nil; drop() }
					commit()
				}
			}
			require.Len(t, w.head().Rows, 1, "the retired one's row is gone")
			require.Equal(t, "b", w.head().Rows[0].Name)
			require.True(t, w.entry("a").Retired())
			require.Len(t, w.ledger, 1)
		})
	}
}

func TestTwoHundredRetirementsAddNoVersionToStatsBeyondTheRoundsOwn(t *testing.T) {
	var names []string
	for i := range 200 {
		names = append(names, fmt.Sprintf("e%03d", i))
	}
	w := newWorld(names...).seen()
	m := w.maintenance(nil)
	for _, name := range names {
		_, err := do[workflows.DropResult](t, m.DropRow, dropIn(w, name, 2))
		require.NoError(t, err)
	}
	require.Equal(t, uint64(1), w.head().Version)

	_, err := do[workflows.CommitResult](t, w.scan().CommitRound, stagedRound(t, w))

	require.NoError(t, err)
	require.Equal(t, uint64(2), w.head().Version)
	require.Empty(t, w.head().Rows)
	require.Equal(t, 200, w.metrics.retired)
}
