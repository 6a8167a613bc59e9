package activities

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/workflows"
)

func TestARetiredOneThatItsSourceNamesElsewhereIsHotHoweverUnchangedItLooks(t *testing.T) {
	w := newWorld("a").retire("a", 2)
	w.listing.Experiments[0].URI = "/elsewhere" // of the same fingerprint

	r, err := do[workflows.CommitResult](t, w.scan().CommitRound, stagedRound(t, w))

	require.NoError(t, err)
	require.Equal(t, 1, r.Returned)
	require.Equal(t, "/elsewhere", w.head().Rows[0].URI)
	require.False(t, w.entry("a").Retired())
	require.Zero(t, w.observes[0].KnownVersion, "the evidence says nothing about this one")
}

func TestOneThatMovedIsLookedAtFromItsEvidenceOnAndPaidFor(t *testing.T) {
	w := newWorld("a", "b").retire("a", 2).retire("b", 2)
	w.writtenTo()
	w.probe = func(p lance.ProbeTarget) lance.ProbeResult {
		state := lance.Unchanged
		if p.URI == exp("a").URI {
			state = lance.Changed
		}
		return lance.ProbeResult{State: state, Requests: fleet.Requests{Head: 3}}
	}
	r, err := do[workflows.PageResult](t, w.scan().ObserveActivity, w.page())
	require.NoError(t, err)
	require.Len(t, w.observes, 1, "what did not move is not")
	require.Equal(t, uint64(2), w.observes[0].KnownVersion)
	require.Equal(t, fleet.Requests{Head: 6, Get: 2, Put: 1}, r.Requests, "and one for the row")
}

func TestOnlyAProbeThatTookTooLongLeavesItForTheNextTime(t *testing.T) {
	for class, asked := range map[lance.Class]int{lance.Timeout: 0, lance.Unreachable: 1, lance.Corrupt: 1} {
		w := newWorld("a").retire("a", 2)
		w.writtenTo()
		w.probe = func(lance.ProbeTarget) lance.ProbeResult {
			return lance.ProbeResult{State: lance.Unknown, Err: &lance.Error{Class: class, Message: "no"}}
		}
		r, err := do[workflows.PageResult](t, w.scan().ObserveActivity, w.page())
		require.NoError(t, err)
		require.Len(t, w.observes, asked, class)
		require.Equal(t, []int{asked, 1 - asked}, []int{r.Written, r.Failed}, class)
		require.Equal(t, 1-asked, w.metrics.unanswered, class)
	}
}

// Of a batch that came to nothing, nothing is known of any of them.
func TestARoundThatCannotAskItsRetiredOnesFails(t *testing.T) {
	probing := newWorld("a").retire("a", 2)
	probing.batchErr = lance.ErrUnreachable
	observing := newWorld("a").retire("a", 2)
	observing.probe = func(lance.ProbeTarget) lance.ProbeResult {
		observing.batchErr = lance.ErrUnreachable
		return lance.ProbeResult{State: lance.Changed}
	}
	for _, w := range []*fakeWorld{probing, observing} {
		_, err := do[workflows.PageResult](t, w.scan().ObserveActivity, w.page())
		require.Equal(t, "unreachable", classOf(err))
		require.True(t, w.entry("a").Retired())
		require.Zero(t, w.metrics.unanswered, "none of them is told to have failed")
	}
}

func TestWhatMovedAndCannotBeVerifiedBecauseNobodyAnswersIsHotToo(t *testing.T) {
	w := newWorld("a").retire("a", 2)
	w.maintainedByOthers()
	looks := w.observe
	w.observe = func(o lance.ObserveTarget) lance.ObserveResult {
		w.batchErr = lance.ErrUnreachable
		return looks(o)
	}
	r, err := do[workflows.PageResult](t, w.scan().ObserveActivity, w.page())
	require.NoError(t, err)
	require.Equal(t, 1, r.Written)
	require.Empty(t, w.journal)
}

func TestWhatChangedBackMeanwhileStaysRetiredUnderItsOldEvidence(t *testing.T) {
	w := newWorld("a").retire("a", 2)
	w.probe = func(lance.ProbeTarget) lance.ProbeResult { return lance.ProbeResult{State: lance.Changed} }
	r, err := do[workflows.PageResult](t, w.scan().ObserveActivity, w.page()) // it is observed as it was
	require.NoError(t, err)
	require.Zero(t, r.Written+r.Failed)
	require.Len(t, w.ledger, 1)
	require.Empty(t, w.journal)
}

func TestARenewalIsJournalledBeforeItIsStoredAndUnderItsRound(t *testing.T) {
	w := newWorld("a").retire("a", 2)
	w.maintainedByOthers()
	w.now = w.now.Add(time.Hour)
	w.appendErr = lance.ErrDenied
	_, err := do[workflows.PageResult](t, w.scan().ObserveActivity, w.page())
	require.Equal(t, "denied", classOf(err))
	require.Len(t, w.ledger, 1)

	w.appendErr = nil
	w.afterLedger = func() error { return lance.ErrUnreachable }
	_, err = do[workflows.PageResult](t, w.scan().ObserveActivity, w.page())
	require.Equal(t, "unreachable", classOf(err))
	require.Equal(t, []string{"run", "run"}, []string{w.entry("a").RunID, w.journal[0].RunID})
	require.Equal(t, "moved without a write: new evidence", w.journal[0].Why)
}

func TestAReturnIsJournalledOnceByItsRunWithWhoAndWhy(t *testing.T) {
	w := newWorld("a", "b").retire("a", 2).seen()
	w.retire("b", 2)
	w.writtenTo()
	row := fleet.Observed(exp("a"), nil, *w.observe(lance.ObserveTarget{}).Observation, w.now.UnixMilli())
	row.LastWrite = w.entry("a").LastWrite + 1
	unwritten := *w.head()
	same, _ := unwritten.Row(exp("b").ID)
	give := func() (int, error) {
		return w.scan().giveBack(t.Context(), []fleet.Row{row, *same}, run{id: "r1", workflow: "round", by: "alice"}, func(id fleet.ID) string { return "why " + id.Name })
	}
	w.unreadable = "_retired"
	_, err := give()
	require.ErrorIs(t, err, lance.ErrCorrupt)
	w.unreadable = ""
	w.afterLedger = func() error { return lance.ErrUnreachable }
	_, err = give()
	require.ErrorIs(t, err, lance.ErrUnreachable)
	require.Zero(t, w.metrics.returned)

	w.ledger, w.afterLedger = w.ledger[:len(w.ledger)-1], nil // that attempt's did not land
	n, err := give()
	require.NoError(t, err)
	require.Equal(t, 1, n, "b was not written since")
	require.Len(t, w.journal, 1, "both attempts made the same entry")
	entry := w.entry("a")
	require.Equal(t, []string{"r1", "round", "alice", "why a"}, []string{entry.RunID, entry.WorkflowID, entry.By, entry.Why})
	told := w.journal[0]
	require.Equal(t, []string{"r1", "round", "alice", "why a"}, []string{told.RunID, told.WorkflowID, told.By, told.Why})
	require.Equal(t, fleet.FactsOf(&row).Text(), told.After)
	require.Equal(t, []string{"return done "}, w.metrics.outcomes)

	row.LastWrite++
	n, err = give()
	require.NoError(t, err)
	require.Zero(t, n, "what has returned does not again, however often it is written")
}

func TestARoundThatCannotNoteWhoIsNamedFails(t *testing.T) {
	w := newWorld("cold").retire("cold", 2)
	w.now = w.now.Add(time.Minute)
	r := run{id: "r1", workflow: "round", by: "alice"}
	w.unreadable = "_retired"
	require.ErrorIs(t, w.scan().markMissing(t.Context(), nil, w.now.UnixMilli(), r), lance.ErrCorrupt)
	w.unreadable = ""
	w.afterLedger = func() error { return lance.ErrUnreachable }
	require.ErrorIs(t, w.scan().markMissing(t.Context(), nil, w.now.UnixMilli(), r), lance.ErrUnreachable)
	w.afterLedger = nil
	require.Empty(t, w.entry("cold").By, "it is retired by whom it was")
	w.now = w.now.Add(time.Minute)
	require.NoError(t, w.scan().markMissing(t.Context(), nil, w.now.UnixMilli(), r))
	gone := w.entry("cold")
	require.Equal(t, []string{"gone", "r1", "round", "alice"}, []string{string(gone.State), gone.RunID, gone.WorkflowID, gone.By})
}

// cutOff is an engine whose batch ends with the attempt.
type cutOff struct {
	*fakeWorld
	in  string
	end func()
}

func (c cutOff) Probe(ctx context.Context, targets []lance.ProbeTarget, o lance.BatchOptions) ([]lance.ProbeResult, error) {
	defer c.endIn("probe")
	return c.fakeWorld.Probe(ctx, targets, o)
}

func (c cutOff) Observe(ctx context.Context, targets []lance.ObserveTarget, o lance.ObserveOptions) ([]lance.ObserveResult, error) {
	defer c.endIn("observe")
	return c.fakeWorld.Observe(ctx, targets, o)
}

func (c cutOff) Verify(ctx context.Context, uri string, o lance.VerifyOptions) (fleet.Evidence, error) {
	defer c.endIn("verify")
	return c.fakeWorld.Verify(ctx, uri, o)
}

func (c cutOff) endIn(step string) {
	if c.in == step {
		c.end()
	}
}

// What a call answers that was cut off says nothing about anybody.
func TestNothingIsMadeOfAnswersThatCameAsTheAttemptEnded(t *testing.T) {
	for _, step := range []string{"probe", "observe", "verify"} {
		w := newWorld("a").retire("a", 2)
		w.maintainedByOthers()
		ctx, cancel := context.WithCancel(t.Context())
		scan := w.scan()
		scan.Engine = cutOff{w, step, cancel}
		look, err := scan.lookAt(ctx, []retired{{exp("a"), w.entry("a")}}, 1, deepProbe)
		require.ErrorIs(t, err, context.Canceled, step)
		require.Nil(t, look)
	}
}

func TestSoManyAsMovedAreObservedInChunks(t *testing.T) {
	w := newWorld("a", "b", "c").retire("a", 2).retire("b", 2).retire("c", 2)
	w.writtenTo()
	scan := w.scan()
	_, err := do[workflows.PageResult](t, scan.ObserveActivity, w.page())
	require.NoError(t, err)
	require.Equal(t, 2, w.batches, "two at a time")
	require.Len(t, w.observes, 3)
}
