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

// cold makes a world whose experiments were last written so long ago.
func cold(ago time.Duration, names ...string) *fakeWorld {
	w := newWorld(names...)
	w.now = time.UnixMilli(1_800_000_000_000)
	written := w.now.Add(-ago).UnixMilli()
	w.observe = func(lance.ObserveTarget) lance.ObserveResult {
		o := w.observation(2)
		o.ManifestTime = written
		o.Commits = []fleet.Commit{{Version: 2, Time: written, Operation: "Append"}}
		o.SmallFragments, o.Fragments = 20, 20
		return lance.ObserveResult{Observation: o}
	}
	return w
}

func prepare(t *testing.T, m *Maintenance, action string, change func(*workflows.MaintenanceArgs)) workflows.Prepared {
	t.Helper()
	in := workflows.PrepareInput{Args: maintenanceArgs("a"), Action: action}
	if change != nil {
		change(&in.Args)
	}
	p, err := do[workflows.Prepared](t, m.PrepareMaintenance, in)
	require.NoError(t, err)
	return p
}

const week = 7 * 24 * time.Hour

func TestARetirementIsDueByWhatIsSeenNowNotByTheRowItWasStartedFor(t *testing.T) {
	w := cold(week+time.Hour, "a")
	p := prepare(t, w.maintenance(nil), workflows.ActionRetire, nil)
	require.True(t, p.Due, p.Reason)
	require.Equal(t, "not written for 7 d, retired after 7 d", p.Reason)
	require.Equal(t, target("a"), p.Target)
	require.Equal(t, int64(2), p.Facts.Version)
	require.Equal(t, 2, p.Limits.CompactFragments, "the last chance to compact")
	require.Equal(t, time.Hour.Milliseconds(), p.Limits.SilentFor, "a shard is silent when it is live no longer")

	w = cold(2*time.Hour, "a")
	p = prepare(t, w.maintenance(nil), workflows.ActionRetire, nil)
	require.False(t, p.Due)
	require.False(t, p.Refused)
	require.Equal(t, "written 2 h ago", p.Reason)
}

func TestForceSkipsOnlyTheAge(t *testing.T) {
	force := func(a *workflows.MaintenanceArgs) { a.Force, a.By = true, "alice" }
	w := cold(2*time.Hour, "a")
	require.True(t, prepare(t, w.maintenance(nil), workflows.ActionRetire, force).Due)

	w.paused = "disk is full"
	p := prepare(t, w.maintenance(nil), workflows.ActionRetire, force)
	require.True(t, p.Refused)
	require.Contains(t, p.Reason, "paused: disk is full")

	w.paused = ""
	m := w.maintenance(nil)
	m.Policies.Default.Maintain = false
	p = prepare(t, m, workflows.ActionRetire, force)
	require.True(t, p.Refused)
	require.Contains(t, p.Reason, "maintenance is off")
}

func TestAPersonIsNotKeptWaitingByBackOffNorByNumbers(t *testing.T) {
	w := cold(2*time.Hour, "a")
	good := w.observe
	w.observe = func(target lance.ObserveTarget) lance.ObserveResult {
		r := good(target)
		r.Observation.Fragments, r.Observation.SmallFragments = 3, 3
		return r
	}
	for i := range int64(3) {
		w.journal = append(w.journal, fleet.Action{
			ID: string(rune('a' + i)), At: w.now.UnixMilli() - i, Kind: fleet.ActCompact, Target: "rollout:a", Outcome: fleet.OutcomeFailed, Error: "conflict",
		})
	}
	p := prepare(t, w.maintenance(nil), workflows.ActionOptimize, nil)
	require.False(t, p.Due)
	require.Contains(t, p.Reason, "3 fragments, below 16")
	require.Equal(t, 16, p.Limits.CompactFragments)
	p = prepare(t, w.maintenance(nil), workflows.ActionOptimize, func(a *workflows.MaintenanceArgs) { a.By = "alice" })
	require.True(t, p.Due, p.Reason)
	require.Equal(t, 2, p.Limits.CompactFragments)
}

func TestARetiredOneThatNobodyWroteIsNotRetiredAgain(t *testing.T) {
	w := cold(week+time.Hour, "a")
	row := fleet.Observed(exp("a"), nil, *w.observe(lance.ObserveTarget{}).Observation, w.now.UnixMilli())
	entry := fleet.NewRetirement(row, w.evidence(2), nil, w.now.UnixMilli())
	entry.RunID = "before"
	w.ledger = append(w.ledger, entry)

	p := prepare(t, w.maintenance(nil), workflows.ActionRetire, nil)

	require.False(t, p.Due)
	require.Equal(t, "retired, and not written since", p.Reason)
}

func TestACompactionDoesNotWaitForASlotToMergeIn(t *testing.T) {
	shard := fleet.Shard{ShardMark: fleet.ShardMark{ID: s1}, CurrentGeneration: 9, NewestEntryTime: 1}
	for name, c := range map[string]struct {
		action         string
		pending, tails int64
		noMerge        bool
	}{
		"optimize, nothing pending":       {workflows.ActionOptimize, 0, 0, true},
		"optimize, too little to merge":   {workflows.ActionOptimize, 1, 0, true},
		"optimize, enough to merge":       {workflows.ActionOptimize, 8, 0, false},
		"retire, nothing at all":          {workflows.ActionRetire, 0, 0, true},
		"retire, one generation":          {workflows.ActionRetire, 1, 0, false},
		"retire, entries past the cursor": {workflows.ActionRetire, 0, 3, false},
		"retire, perhaps entries past it": {workflows.ActionRetire, 0, -1, false},
	} {
		t.Run(name, func(t *testing.T) {
			age := 2 * time.Hour
			if c.action == workflows.ActionRetire {
				age = week + time.Hour
			}
			w := cold(age, "a")
			good := w.observe
			w.observe = func(target lance.ObserveTarget) lance.ObserveResult {
				r, s := good(target), shard
				s.Pending, s.TailEntries = c.pending, c.tails
				r.Observation.Shards = []fleet.Shard{s}
				return r
			}
			p := prepare(t, w.maintenance(nil), c.action, nil)
			require.True(t, p.Due, p.Reason)
			require.Equal(t, c.noMerge, p.NoMerge)
		})
	}
}

func TestALookTellsARetiredOneThatIsWrittenFromOneThatIsNot(t *testing.T) {
	w := newWorld("a").retire("a", 2)
	w.maintainedByOthers()
	p := prepare(t, w.maintenance(nil), workflows.ActionRetire, func(a *workflows.MaintenanceArgs) { a.Force, a.By = true, "alice" })
	require.Equal(t, "retired, and not written since", p.Reason)

	w.writtenTo()
	p = prepare(t, w.maintenance(nil), workflows.ActionRetire, func(a *workflows.MaintenanceArgs) { a.Force, a.By = true, "alice" })
	require.True(t, p.Due, p.Reason)
}

func TestAnExperimentThatNoSourceNamesIsRefused(t *testing.T) {
	w := cold(week, "b")
	p := prepare(t, w.maintenance(nil), workflows.ActionRetire, nil)
	require.True(t, p.Refused)
	require.Equal(t, "no source names it", p.Reason)
}

func TestWhatCannotBeSeenIsNotMaintained(t *testing.T) {
	w := cold(week, "a")
	w.observe = func(lance.ObserveTarget) lance.ObserveResult {
		return lance.ObserveResult{Err: &lance.Error{Class: lance.Corrupt, Message: "bad manifest"}}
	}
	_, err := do[workflows.Prepared](t, w.maintenance(nil).PrepareMaintenance, workflows.PrepareInput{Args: maintenanceArgs("a"), Action: workflows.ActionRetire})
	require.Equal(t, "corrupt", workflows.ErrorClass(errors.Unwrap(err)))
}

func TestMarksComeFromTheJournalAndForeignDrainsAreNoticed(t *testing.T) {
	w := cold(2*time.Hour, "a")
	shard := func(pending int64, mark uint64) fleet.Shard {
		return fleet.Shard{ShardMark: fleet.ShardMark{ID: s1, Manifest: 1}, Pending: pending, CompactedMark: mark, CurrentGeneration: 20, NewestEntryTime: 1}
	}
	good := w.observe
	w.observe = func(target lance.ObserveTarget) lance.ObserveResult {
		r := good(target)
		r.Observation.Shards = []fleet.Shard{shard(9, 2)}
		return r
	}
	row := fleet.Observed(exp("a"), nil, *w.observe(lance.ObserveTarget{}).Observation, 1)
	w.put([]fleet.Row{row}, "")
	facts := fleet.FactsOf(&row)
	facts.Marks = map[string]uint64{s1: 2}
	w.journal = []fleet.Action{{ID: "x", At: 1, Kind: fleet.ActMergeWAL, Target: "rollout:a", Outcome: fleet.OutcomeDone, After: facts.Text()}}

	p := prepare(t, w.maintenance(nil), workflows.ActionOptimize, nil)
	require.Equal(t, map[string]uint64{s1: 2}, p.Marks)
	require.True(t, p.Due, p.Reason)
	require.False(t, p.Facts.ForeignDrain)
	require.Zero(t, p.Limits.LeaveWrittenWithin)

	rowWith := *w.observe(lance.ObserveTarget{}).Observation
	rowWith.Shards = []fleet.Shard{shard(15, 2)}
	w.put([]fleet.Row{fleet.Observed(exp("a"), nil, rowWith, 1)}, "") // six went without a mark
	p = prepare(t, w.maintenance(nil), workflows.ActionOptimize, nil)
	require.True(t, p.Facts.ForeignDrain)
	require.Equal(t, time.Hour.Milliseconds(), p.Limits.LeaveWrittenWithin, "live shards are left to whoever merges there")
}

func TestOnlyAShardThatExistsIsSealed(t *testing.T) {
	w := cold(2*time.Hour, "a")
	good := w.observe
	w.observe = func(target lance.ObserveTarget) lance.ObserveResult {
		r := good(target)
		r.Observation.Shards = []fleet.Shard{{ShardMark: fleet.ShardMark{ID: s1}}}
		return r
	}
	m := w.maintenance(nil)
	require.True(t, prepare(t, m, workflows.ActionSeal, func(a *workflows.MaintenanceArgs) { a.Shard = s1 }).Due)
	p := prepare(t, m, workflows.ActionSeal, func(a *workflows.MaintenanceArgs) { a.Shard = s2 })
	require.True(t, p.Refused)
	require.Contains(t, p.Reason, "it has no shard")
	w.paused = "moving"
	require.True(t, prepare(t, m, workflows.ActionSeal, func(a *workflows.MaintenanceArgs) { a.Shard = s1 }).Refused)
}

func byForce(a *workflows.MaintenanceArgs) { a.Force, a.By = true, "alice" }

func TestARetiredOneIsLookedAtFromItsEvidenceOn(t *testing.T) {
	w := newWorld("a").retire("a", 2)
	prepare(t, w.maintenance(nil), workflows.ActionRetire, nil)
	require.Equal(t, uint64(2), w.observes[0].KnownVersion, "commits are listed down to there, not to the first")
}

func TestARetiredOneThatIsWrittenIsSoWhateverItsWritersClockSays(t *testing.T) {
	w := newWorld("a").retire("a", 2)
	w.observe = func(lance.ObserveTarget) lance.ObserveResult {
		o := w.observation(3)
		o.Commits = []fleet.Commit{{Version: 3, Time: 1, Operation: "Append"}}
		return lance.ObserveResult{Observation: o}
	}
	p := prepare(t, w.maintenance(nil), workflows.ActionRetire, byForce)
	require.True(t, p.Due, p.Reason)
}

func TestARetiredOneThatItsSourceNamesElsewhereIsAnother(t *testing.T) {
	w := newWorld("a").retire("a", 2)
	w.listing.Experiments[0].URI = "/elsewhere" // and looks just the same
	p := prepare(t, w.maintenance(nil), workflows.ActionRetire, byForce)
	require.True(t, p.Due, p.Reason)
	require.Equal(t, "/elsewhere", p.Target.URI)
}

func TestAForeignMergeThatOnlyTheJournalKnowsOfLeavesLiveShardsAlone(t *testing.T) {
	w := cold(2*time.Hour, "a")
	w.journal = []fleet.Action{{ID: "x", At: 1, Kind: fleet.ActForeign, Target: "rollout:a", Outcome: fleet.OutcomeDone, After: fleet.Facts{ForeignDrain: true}.Text()}}
	p := prepare(t, w.maintenance(nil), workflows.ActionOptimize, nil)
	require.Equal(t, time.Hour.Milliseconds(), p.Limits.LeaveWrittenWithin)
	require.False(t, p.Facts.ForeignDrain, "none was seen this time")
}

func TestWhatCannotBeReadIsNotDecidedAbout(t *testing.T) {
	in := workflows.PrepareInput{Args: maintenanceArgs("a"), Action: workflows.ActionRetire}
	for _, part := range []string{"sources", "paused", "_stats", "_retired", "_journal"} {
		w := cold(week+time.Hour, "a")
		w.unreadable = part
		_, err := do[workflows.Prepared](t, w.maintenance(nil).PrepareMaintenance, in)
		require.Equal(t, "corrupt", classOf(err), part)
	}
	w := cold(week+time.Hour, "a")
	w.batchErr = &lance.Error{Class: lance.Unreachable, Message: "503"}
	_, err := do[workflows.Prepared](t, w.maintenance(nil).PrepareMaintenance, in)
	require.Equal(t, "unreachable", classOf(err))
}
