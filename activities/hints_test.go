package activities

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/workflows"
)

func rolloutIDs(names ...string) []fleet.ID {
	ids := make([]fleet.ID, len(names))
	for i, name := range names {
		ids[i] = fleet.ID{Kind: fleet.Rollout, Name: name}
	}
	return ids
}

func hints(names ...string) workflows.HintArgs {
	return workflows.HintArgs{Fleet: "default", FleetID: "fleet", IDs: rolloutIDs(names...)}
}

func (w *fakeWorld) waiting() []fleet.ID {
	var all []fleet.ID
	for _, ids := range w.hints {
		all = append(all, ids...)
	}
	return all
}

func TestARetiredOneThatAnEventNamesAndThatWasWrittenIsHotAtOnce(t *testing.T) {
	w := newWorld("a", "b", "hot").seen().retire("a", 2).retire("b", 2)
	w.writtenTo()
	quiet := w.probe
	w.probe = func(p lance.ProbeTarget) lance.ProbeResult {
		if p.URI == exp("b").URI {
			return lance.ProbeResult{State: lance.Unchanged}
		}
		return quiet(p)
	}

	r, err := do[workflows.HintResult](t, w.scan().TakeHints, hints("a", "b", "hot", "nobody"))

	require.NoError(t, err)
	require.Equal(t, workflows.HintResult{Waiting: 1, Retired: 2, Returned: 1, Unknown: 1}, r)
	require.False(t, w.entry("a").Retired(), "written")
	require.True(t, w.entry("b").Retired(), "an event alone makes nothing hot")
	require.Equal(t, rolloutIDs("hot"), w.waiting())
	require.Equal(t, 3, w.metrics.hinted)
	last := w.journal[len(w.journal)-1]
	require.Equal(t, fleet.ActReturn, last.Kind)
	require.Equal(t, "event", last.By)
	for _, p := range w.probes {
		require.True(t, p.Deep)
		require.NotEqual(t, exp("hot").URI, p.URI, "hot ones are the round's business")
	}
}

func TestEventsThatNameHotOnesListNoSource(t *testing.T) {
	w := newWorld("a", "b", "resting").seen().retire("resting", 2)
	w.writtenTo()
	listed := w.listed
	r, err := do[workflows.HintResult](t, w.scan().TakeHints, hints("a", "b"))
	require.NoError(t, err)
	require.Equal(t, workflows.HintResult{Waiting: 2}, r)
	require.Equal(t, rolloutIDs("a", "b"), w.waiting())
	require.Equal(t, listed, w.listed)
	for _, other := range []string{"resting", "nobody"} {
		listed = w.listed
		_, err = do[workflows.HintResult](t, w.scan().TakeHints, hints("a", other))
		require.NoError(t, err)
		require.Equal(t, listed+1, w.listed, "%s: a source has to name it", other)
	}
}

func TestARetiredOneThatGivesNoAnswerIsAskedAgainByTheNextRound(t *testing.T) {
	w := newWorld("a").seen().retire("a", 2)
	w.probe = func(lance.ProbeTarget) lance.ProbeResult {
		return lance.ProbeResult{Err: &lance.Error{Class: lance.Timeout, Message: "hangs"}}
	}

	r, err := do[workflows.HintResult](t, w.scan().TakeHints, hints("a"))

	require.NoError(t, err)
	require.Equal(t, workflows.HintResult{Waiting: 1, Retired: 1}, r)
	require.Equal(t, rolloutIDs("a"), w.waiting())
	require.True(t, w.entry("a").Retired())
}

func TestHintsOfAnotherFleetAreRefused(t *testing.T) {
	w := newWorld("a").seen()
	args := hints("a")
	args.FleetID = "other"
	_, err := do[workflows.HintResult](t, w.scan().TakeHints, args)
	require.ErrorContains(t, err, "other")
	require.Empty(t, w.hints)
}

func TestHintsThatCannotBeKeptFailTheRunSoThatItIsTriedAgain(t *testing.T) {
	w := newWorld("a").seen()
	w.hintErr = errors.New("bucket is full")
	_, err := do[workflows.HintResult](t, w.scan().TakeHints, hints("a"))
	require.ErrorContains(t, err, "bucket is full")
}

// begunRound is a round with what BeginRound told it, and its only page.
func begunRound(t *testing.T, w *fakeWorld, pageSize int) (workflows.Round, workflows.Page) {
	t.Helper()
	round, err := do[workflows.Round](t, w.scan().BeginRound, workflows.ScanArgs{FleetID: "fleet", IntervalSecs: 300, PageSize: pageSize})
	require.NoError(t, err)
	return round, workflows.Page{Round: round, Count: round.Experiments}
}

func TestTheNextRoundLooksAtWhatEventsNamedWhateverBackOffAndSliceSay(t *testing.T) {
	for _, hinted := range []bool{false, true} {
		w := newWorld("cold", "failing", "quiet").seen().retire("cold", 2)
		w.fail("failing", time.Second)                                                                   // asked again in a minute
		w.rounds = []fleet.RoundRecord{{Number: 1, StartedAt: w.now.UnixMilli() - 1, RoundID: "before"}} // so no slice is due
		if hinted {
			require.NoError(t, w.PutHints(t.Context(), "run", rolloutIDs("cold", "failing", "quiet")))
		}
		_, page := begunRound(t, w, 1000)

		r, err := do[workflows.PageResult](t, w.scan().ObserveActivity, page)

		require.NoError(t, err)
		if !hinted {
			require.Equal(t, 0, r.Checked, "it is not its turn")
			require.Equal(t, 1, r.BackingOff)
			require.Len(t, w.probes, 1)
			continue
		}
		require.Equal(t, 1, r.Checked)
		require.Zero(t, r.BackingOff)
		require.Equal(t, 1, r.Observed, "the failing one, in full")
		require.Len(t, w.probes, 2)
		for _, p := range w.probes {
			require.True(t, p.Deep, p.URI)
		}
	}
}

func TestPagesWithHintedExperimentsComeFirst(t *testing.T) {
	w := newWorld("a", "b", "c", "d", "e").seen()
	require.NoError(t, w.PutHints(t.Context(), "run", rolloutIDs("c", "d", "e", "nobody")))

	round, _ := begunRound(t, w, 2)

	require.ElementsMatch(t, []int{1, 2}, round.First)
	require.NotEmpty(t, round.Hints)
}

func TestARoundGoesOnWithoutHintsThatCannotBeRead(t *testing.T) {
	w := newWorld("a").seen()
	require.NoError(t, w.PutHints(t.Context(), "run", rolloutIDs("a")))
	_, page := begunRound(t, w, 1000)
	w.hintErr = errors.New("denied")

	r, err := do[workflows.PageResult](t, w.scan().ObserveActivity, page)
	require.NoError(t, err)
	require.Equal(t, 1, r.Skipped)

	round, _ := begunRound(t, w, 1000)
	require.Empty(t, round.Hints)
}
