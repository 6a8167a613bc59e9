package activities

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/workflows"
)

func wake(t *testing.T, w *fakeWorld) (workflows.WakeResult, error) {
	t.Helper()
	args := maintenanceArgs("a")
	args.By = "alice"
	return do[workflows.WakeResult](t, w.maintenance(nil).WakeExperiment, args)
}

func TestWhoIsWokenIsHotWithItsNumbersAndTheLedgerSaysByWhomAndWhy(t *testing.T) {
	w := newWorld("a").retire("a", 2)
	w.writtenTo()
	r, err := wake(t, w)
	require.NoError(t, err)
	require.Equal(t, "hot again: version 3 may have brought rows", r.Sentence)
	require.Equal(t, fleet.FactsOf(&w.head().Rows[0]), r.Facts)
	require.False(t, r.Renewed)
	entry := w.entry("a")
	require.Equal(t, []string{"alice", "version 3 may have brought rows"}, []string{entry.By, entry.Why})
	require.NotEmpty(t, entry.RunID)
	require.NotEmpty(t, entry.WorkflowID)
	require.True(t, w.probes[0].Deep && w.probes[0].ListVersions, "nothing that can be asked is left out")

	r, err = wake(t, w)
	require.NoError(t, err)
	require.Equal(t, workflows.WakeResult{Outcome: workflows.OutcomeNoop, Sentence: "it is not retired", Facts: fleet.FactsOf(&w.head().Rows[0])}, r)
}

func TestOneThatMovedAndCannotBeProvenUnwrittenIsHotAndThatIsSaid(t *testing.T) {
	for why, unproven := range map[string]func(w *fakeWorld){
		"it moved, and can't be verified any more": func(w *fakeWorld) { w.verified.Stranded = 1 },
		"it moved again while it was verified":     func(w *fakeWorld) { w.verified = w.evidence(4) },
		"its source names another uri":             func(w *fakeWorld) { w.listing.Experiments[0].URI = "/elsewhere" },
	} {
		w := newWorld("a").retire("a", 2)
		w.maintainedByOthers()
		unproven(w)
		r, err := wake(t, w)
		require.NoError(t, err)
		require.Equal(t, "hot again: "+why, r.Sentence)
		require.Equal(t, why, w.entry("a").Why)
	}
}

func TestOneThatGivesNoAnswerIsNotWokenAndThatIsSaid(t *testing.T) {
	w := newWorld("a").retire("a", 2)
	w.probe = func(lance.ProbeTarget) lance.ProbeResult {
		return lance.ProbeResult{State: lance.Unknown, Err: &lance.Error{Class: lance.Timeout, Message: "it took too long"}}
	}
	r, err := wake(t, w)
	require.NoError(t, err)
	require.Equal(t, []string{workflows.OutcomeRefused, "it gave no answer: it took too long"}, []string{r.Outcome, r.Sentence})
	require.True(t, w.entry("a").Retired())
}

func TestAWakeThatCannotReadOrStoreFailsAndIsNotToldAsDone(t *testing.T) {
	for name, c := range map[string]struct {
		class  string
		change func(w *fakeWorld)
	}{
		"sources":       {"corrupt", func(w *fakeWorld) { w.unreadable = "sources" }},
		"stats":         {"corrupt", func(w *fakeWorld) { w.unreadable = "_stats" }},
		"ledger":        {"corrupt", func(w *fakeWorld) { w.unreadable = "_retired" }},
		"nobody probes": {"unreachable", func(w *fakeWorld) { w.batchErr = lance.ErrUnreachable }},
		"row":           {"unreachable", func(w *fakeWorld) { w.refreshErr = lance.ErrUnreachable }},
		"return":        {"unreachable", func(w *fakeWorld) { w.afterLedger = func() error { return lance.ErrUnreachable } }},
		"renewal":       {"denied", func(w *fakeWorld) { w.maintainedByOthers(); w.appendErr = lance.ErrDenied }},
	} {
		w := newWorld("a").retire("a", 2)
		w.writtenTo()
		c.change(w)
		_, err := wake(t, w)
		require.Equal(t, c.class, classOf(err), name)
	}
	w := newWorld("a").retire("a", 2)
	m := w.maintenance(nil)
	m.Ledger = &stumbling{fakeLedger{w}, 1}
	_, err := do[workflows.WakeResult](t, m.WakeExperiment, maintenanceArgs("a"))
	require.Equal(t, "corrupt", classOf(err))
}

func TestARowIsRefreshedOnlyWhereItCanBeSeenAndStored(t *testing.T) {
	refresh := func(w *fakeWorld) (workflows.RefreshRowResult, error) {
		return do[workflows.RefreshRowResult](t, w.maintenance(nil).RefreshRow, target("a"))
	}
	for name, c := range map[string]struct {
		class  string
		change func(w *fakeWorld)
	}{
		"sources": {"corrupt", func(w *fakeWorld) { w.unreadable = "sources" }},
		"look":    {"unreachable", func(w *fakeWorld) { w.batchErr = lance.ErrUnreachable }},
		"store":   {"unreachable", func(w *fakeWorld) { w.refreshErr = lance.ErrUnreachable }},
	} {
		w := newWorld("a").seen()
		c.change(w)
		_, err := refresh(w)
		require.Equal(t, c.class, classOf(err), name)
	}
	r, err := refresh(newWorld("b"))
	require.NoError(t, err, "what no source names has no row")
	require.Equal(t, fleet.UnknownFacts(), r.Facts)
}

func TestAVerificationOrASweepThatFailsSaysSo(t *testing.T) {
	w := newWorld("a")
	stranded := func() (fleet.Evidence, error) { return fleet.Evidence{Stranded: 1}, nil }
	unseen := func() ([]lance.Tail, error) { return nil, lance.ErrUnreachable }
	for name, h := range map[string]*fakeHeavy{
		"verify":        {verify: func() (fleet.Evidence, error) { return fleet.Evidence{}, lance.ErrUnreachable }},
		"classify":      {verify: stranded, tails: unseen},
		"sweep":         {sweep: func(lance.SweepSpec) (lance.Swept, error) { return lance.Swept{}, lance.ErrUnreachable }},
		"start process": nil,
	} {
		m := w.maintenance(h)
		if h == nil {
			m.StartHeavy = func(context.Context) (Heavy, error) { return nil, lance.ErrUnreachable }
		}
		var err error
		if name == "sweep" {
			_, err = do[workflows.SweepResult](t, m.SweepGenerations, workflows.SweepInput{Target: target("a")})
		} else {
			_, err = do[fleet.Evidence](t, m.VerifyZeroPending, workflows.VerifyInput{Target: target("a")})
		}
		require.Equal(t, "unreachable", classOf(err), name)
	}
}
