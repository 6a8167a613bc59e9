package activities

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/workflows"
)

// writtenTo makes the experiments look written since version 2.
func (w *fakeWorld) writtenTo() {
	w.probe = func(lance.ProbeTarget) lance.ProbeResult {
		return lance.ProbeResult{State: lance.Changed, Detail: "wal tail"}
	}
	w.observe = func(lance.ObserveTarget) lance.ObserveResult {
		o := w.observation(3)
		o.Commits = []fleet.Commit{{Version: 3, Time: w.now.UnixMilli(), Operation: "Append"}}
		return lance.ObserveResult{Observation: o, Requests: fleet.Requests{Get: 2}}
	}
}

// maintainedByOthers makes them look compacted by somebody else since version 2.
func (w *fakeWorld) maintainedByOthers() {
	w.writtenTo()
	w.observe = func(lance.ObserveTarget) lance.ObserveResult {
		o := w.observation(3)
		o.Commits = []fleet.Commit{{Version: 3, Time: w.now.UnixMilli(), Operation: "Rewrite"}}
		return lance.ObserveResult{Observation: o}
	}
	w.verified = w.evidence(3)
}

func TestARetiredExperimentIsAskedDeepOnceAnHourAndElseNotAtAll(t *testing.T) {
	w := newWorld("a", "b", "c")
	for _, name := range []string{"a", "b", "c"} {
		w.retire(name, 2)
	}
	asked, manifests := map[string]int{}, map[lance.Manifests]int{}
	const interval = 5 * time.Minute
	last := w.now.UnixMilli()
	for round := range int64(24) {
		w.now = w.now.Add(interval)
		page := w.page()
		page.Round.Number, page.Round.LastRoundAt, page.Round.IntervalSecs = round+1, last, 300
		last = w.now.UnixMilli()
		w.probes = nil

		r, err := do[workflows.PageResult](t, w.scan().ObserveActivity, page)

		require.NoError(t, err)
		require.Equal(t, 3, r.Retired)
		require.Equal(t, len(w.probes), r.Checked)
		require.Zero(t, r.Skipped+r.Observed+r.Failed+r.BackingOff, "they are none of the hot ones")
		require.Empty(t, r.Staged)
		for _, p := range w.probes {
			require.True(t, p.Deep)
			require.True(t, p.ListVersions, "a tag made since may hold the version")
			require.Equal(t, w.evidence(2).Fingerprint, p.Fingerprint)
			asked[p.URI]++
			manifests[p.Manifests]++
		}
	}
	require.Equal(t, map[lance.Manifests]int{lance.NextManifest: 3, lance.KnownManifest: 3}, manifests, "one of them in turn: 4 requests instead of 5")
	require.Equal(t, map[string]int{exp("a").URI: 2, exp("b").URI: 2, exp("c").URI: 2}, asked, "in two hours")
	require.Equal(t, 6, w.metrics.checked)
	require.Empty(t, w.observes)
}

func TestARetiredOneThatWasWrittenIsHotAgainAndLeavesTheLedger(t *testing.T) {
	w := newWorld("a", "b").retire("a", 2).retire("b", 2)
	w.writtenTo()

	in := stagedRound(t, w) // no interval: all are asked
	require.Equal(t, 2, in.Pages[0].Written)
	require.True(t, w.entry("a").Retired(), "not before its row is committed")
	r, err := do[workflows.CommitResult](t, w.scan().CommitRound, in)

	require.NoError(t, err)
	require.Equal(t, 2, r.Returned)
	require.Len(t, w.head().Rows, 2)
	require.False(t, w.entry("a").Retired())
	require.Equal(t, fleet.Hot, fleet.StateOf(&w.head().Rows[0], w.entry("a")))
	require.Equal(t, w.head().Rows[0].LastWrite, w.entry("a").LastWrite)
	require.Equal(t, fleet.ActReturn, w.journal[0].Kind)
	require.Equal(t, "rollout:a", w.journal[0].Target)
	require.Equal(t, 2, w.metrics.returned)
}

func TestAWriterWhoseClockIsBehindMakesItHotAllTheSame(t *testing.T) {
	w := newWorld("a").retire("a", 2)
	w.writtenTo()
	w.observe = func(lance.ObserveTarget) lance.ObserveResult {
		o := w.observation(3)
		o.ManifestTime = 1
		o.Commits = []fleet.Commit{{Version: 3, Time: 1, Operation: "Append"}}
		return lance.ObserveResult{Observation: o}
	}
	r, err := do[workflows.CommitResult](t, w.scan().CommitRound, stagedRound(t, w))
	require.NoError(t, err)
	require.Equal(t, 1, r.Returned)
	require.Len(t, w.head().Rows, 1)
}

func TestARoundThatDiedBeforeItGaveBackIsMadeUpForByTheNext(t *testing.T) {
	w := newWorld("a").retire("a", 2)
	w.writtenTo()
	in := stagedRound(t, w)
	w.appendErr = &lance.Error{Class: lance.Denied, Message: "403"}
	_, err := do[workflows.CommitResult](t, w.scan().CommitRound, in)
	require.Error(t, err)
	require.Len(t, w.head().Rows, 1, "the row is there")
	require.True(t, w.entry("a").Retired(), "the ledger does not know yet")
	require.Equal(t, fleet.Hot, fleet.StateOf(&w.head().Rows[0], w.entry("a")), "but every reader does")
	w.appendErr = nil
	w.now = w.now.Add(time.Minute)

	r, err := do[workflows.CommitResult](t, w.scan().CommitRound, stagedRound(t, w))

	require.NoError(t, err)
	require.Equal(t, 1, r.Returned)
	require.False(t, w.entry("a").Retired())
	require.Len(t, w.head().Rows, 1)
}

func TestForeignMaintenanceOnlyRenewsTheEvidence(t *testing.T) {
	w := newWorld("a").retire("a", 2)
	before := *w.entry("a")
	w.maintainedByOthers()
	w.now = w.now.Add(time.Hour)

	_, err := do[workflows.CommitResult](t, w.scan().CommitRound, stagedRound(t, w))

	require.NoError(t, err)
	require.Empty(t, w.head().Rows)
	after := w.entry("a")
	require.True(t, after.Retired())
	require.Equal(t, uint64(3), after.Evidence.Fingerprint.Version)
	require.Equal(t, before.LastWrite, after.LastWrite)
	require.Equal(t, fleet.ActRenew, w.journal[0].Kind)
}

func TestWhatMovedAndCannotBeVerifiedAnyMoreIsHot(t *testing.T) {
	w := newWorld("a").retire("a", 2)
	w.maintainedByOthers()
	w.verified.Stranded = 1

	r, err := do[workflows.CommitResult](t, w.scan().CommitRound, stagedRound(t, w))

	require.NoError(t, err)
	require.Equal(t, 1, r.Returned)
	require.Len(t, w.head().Rows, 1)
}

func TestARetiredOneThatGivesNoAnswerStaysRetired(t *testing.T) {
	w := newWorld("a").retire("a", 2)
	w.probe = func(lance.ProbeTarget) lance.ProbeResult {
		return lance.ProbeResult{State: lance.Unknown, Err: &lance.Error{Class: lance.Unreachable, Message: "503"}}
	}
	w.observe = func(lance.ObserveTarget) lance.ObserveResult {
		return lance.ObserveResult{Err: &lance.Error{Class: lance.Unreachable, Message: "503"}}
	}
	in := stagedRound(t, w)
	require.Equal(t, 1, in.Pages[0].Failed)
	require.Empty(t, in.Pages[0].Staged)
	require.True(t, w.entry("a").Retired())
}

func TestWithoutALedgerEverythingThatIsRegisteredIsHot(t *testing.T) {
	w := newWorld("a").retire("a", 2)
	w.ledger = nil // lost
	_, err := do[workflows.CommitResult](t, w.scan().CommitRound, stagedRound(t, w))
	require.NoError(t, err)
	require.Len(t, w.head().Rows, 1)
}

func TestWithoutStatsTheLedgerStillHolds(t *testing.T) {
	w := newWorld("a", "b").retire("a", 2) // and no rows at all
	_, err := do[workflows.CommitResult](t, w.scan().CommitRound, stagedRound(t, w))
	require.NoError(t, err)
	require.Len(t, w.head().Rows, 1)
	require.Equal(t, "b", w.head().Rows[0].Name)
}

func TestARetiredOneThatNoSourceNamesTwiceRunningLeavesTheLedger(t *testing.T) {
	w := newWorld("a", "b").retire("a", 2)
	listing := w.listing.Experiments
	scan := w.scan()
	round := func(named int) {
		w.listing.Experiments = listing[len(listing)-named:]
		w.now = w.now.Add(time.Minute)
		in := workflows.CommitInput{Round: w.round(), PageSize: 10}
		_, err := do[workflows.CommitResult](t, scan.CommitRound, in)
		require.NoError(t, err)
	}
	round(1)
	require.True(t, w.entry("a").Retired(), "once may be a gap")
	round(2)
	round(1)
	require.True(t, w.entry("a").Retired(), "it was named in between")
	round(1)
	require.False(t, w.entry("a").Retired())
	require.Empty(t, w.journal)
}

func TestLookingAtARetiredOneNeverMakesItHot(t *testing.T) {
	w := newWorld("a").retire("a", 2)
	args := workflows.RefreshArgs{By: "alice", IDs: []fleet.ID{exp("a").ID}}

	r, err := do[workflows.RefreshResult](t, w.scan().RefreshRows, args)
	require.NoError(t, err)
	require.Nil(t, r.Version)
	require.Empty(t, r.Failed)
	require.True(t, w.entry("a").Retired())

	w.writtenTo()
	r, err = do[workflows.RefreshResult](t, w.scan().RefreshRows, args)
	require.NoError(t, err)
	require.NotNil(t, r.Version)
	require.False(t, w.entry("a").Retired())
	require.Len(t, w.head().Rows, 1)
}

func TestWakingMakesItHotOnlyIfItWasWritten(t *testing.T) {
	wake := func(w *fakeWorld) workflows.WakeResult {
		r, err := do[workflows.WakeResult](t, w.maintenance(nil).WakeExperiment, maintenanceArgs("a"))
		require.NoError(t, err)
		return r
	}
	w := newWorld("a").retire("a", 2)
	r := wake(w)
	require.Equal(t, workflows.OutcomeNoop, r.Outcome)
	require.Contains(t, r.Sentence, "nothing was written")
	require.Equal(t, uint64(0), w.head().Version)

	w.writtenTo()
	r = wake(w)
	require.Equal(t, workflows.OutcomeDone, r.Outcome)
	require.Contains(t, r.Sentence, "hot again: ")
	require.Len(t, w.head().Rows, 1)
	require.False(t, w.entry("a").Retired())

	require.Equal(t, "it is not retired", wake(w).Sentence)

	w = newWorld("a").retire("a", 2)
	w.maintainedByOthers()
	w.now = w.now.Add(time.Hour)
	require.True(t, wake(w).Renewed)
	require.True(t, w.entry("a").Retired())

	require.Equal(t, workflows.OutcomeRefused, wake(newWorld("b")).Outcome)
}

func TestARefreshAfterMaintenanceStoresTheRowUnlessItIsRetired(t *testing.T) {
	w := newWorld("a").seen()
	r, err := do[workflows.RefreshRowResult](t, w.maintenance(nil).RefreshRow, target("a"))
	require.NoError(t, err)
	require.Equal(t, int64(2), r.Facts.Version)
	require.Equal(t, int64(2), w.head().Rows[0].Version)

	w = newWorld("a").retire("a", 2)
	_, err = do[workflows.RefreshRowResult](t, w.maintenance(nil).RefreshRow, target("a"))
	require.NoError(t, err)
	require.Zero(t, w.head().Version)
}

func TestSomebodyElsesMergeIsNoticedByARoundAndRemembered(t *testing.T) {
	w := newWorld("a")
	look := func(pending int64, mark uint64) {
		w.observe = func(lance.ObserveTarget) lance.ObserveResult {
			o := w.observation(2)
			o.Shards = []fleet.Shard{{ShardMark: fleet.ShardMark{ID: s1}, Pending: pending, CompactedMark: mark, CurrentGeneration: 20}}
			return lance.ObserveResult{Observation: o}
		}
		w.probe = func(lance.ProbeTarget) lance.ProbeResult { return lance.ProbeResult{State: lance.Changed} }
		w.now = w.now.Add(time.Minute)
		_, err := do[workflows.CommitResult](t, w.scan().CommitRound, stagedRound(t, w))
		require.NoError(t, err)
	}
	look(10, 2)
	look(4, 8) // merged by us: the mark moved
	require.Empty(t, w.journal)
	look(1, 8)
	require.Equal(t, fleet.ActForeign, w.journal[0].Kind)
	require.Contains(t, w.journal[0].Why, s1)
	require.True(t, fleet.Histories(w.journal)[exp("a").ID].ForeignDrain)
}

func TestAWriteThatOnlyTheLogShowsIsCounted(t *testing.T) {
	w := newWorld("a", "b").seen()
	w.probe = func(lance.ProbeTarget) lance.ProbeResult { return lance.ProbeResult{State: lance.Changed} }
	w.observe = func(target lance.ObserveTarget) lance.ObserveResult {
		if target.URI == exp("a").URI {
			return lance.ObserveResult{Observation: w.observation(1)}
		}
		return lance.ObserveResult{Observation: w.observation(2)}
	}
	stagedRound(t, w)
	require.Equal(t, 1, w.metrics.recounted)
}
