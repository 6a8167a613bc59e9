package activities

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
	"lancefleet/workflows"
)

func facts(version, pending int64) fleet.Facts {
	f := fleet.UnknownFacts()
	f.Version, f.Pending = version, pending
	return f
}

// finished is the record of a retirement that took a minute.
func finished(outcome string) workflows.MaintenanceRecord {
	merged := facts(8, 0)
	merged.Marks = map[string]uint64{s1: 4}
	noop := merged
	noop.NoOpVersion, noop.NoOpOptions = 8, "options"
	return workflows.MaintenanceRecord{
		Args: maintenanceArgs("a"), StartedAt: 1000, FinishedAt: 61_000,
		Result: workflows.MaintenanceResult{
			ID: "rollout:a", Action: workflows.ActionRetire, Outcome: outcome, Sentence: "all of it", Before: facts(7, 4), After: noop,
			Steps: []workflows.StepResult{
				{Action: workflows.StepMergeWAL, Outcome: workflows.OutcomeDone, Sentence: "merged", DurationMS: 500, Before: facts(7, 4), After: merged},
				{Action: workflows.StepCompact, Outcome: workflows.OutcomeNoop, Sentence: "nothing to compact", Before: merged, After: noop},
				{Action: workflows.StepSweep, Outcome: workflows.OutcomeNoop, Sentence: "nothing", Before: noop, After: noop},
				{Action: workflows.StepVerify, Outcome: workflows.OutcomeDone, Sentence: "verified", Before: noop, After: noop},
			},
		},
	}
}

func TestARunIsJournalledStepByStepAndAsAWhole(t *testing.T) {
	w := newWorld("a")
	m := w.maintenance(nil)
	for range 2 { // an attempt after this adds nothing
		_, err := do[struct{}](t, m.RecordMaintenance, finished(workflows.OutcomeDone))
		require.NoError(t, err)
	}
	var kinds []string
	at := int64(0)
	for _, a := range w.journal {
		kinds = append(kinds, a.Kind+" "+a.Outcome)
		require.Greater(t, a.At, at, "in order")
		at = a.At
		require.Equal(t, "rollout:a", a.Target)
		require.NotEmpty(t, a.RunID)
	}
	require.Equal(t, []string{"merge_wal done", "compact noop", "retire done"}, kinds)
	require.Equal(t, int64(500), w.journal[0].DurationMS)
	require.Equal(t, int64(60_000), w.journal[2].DurationMS)

	h := fleet.Histories(w.journal)[exp("a").ID]
	require.Equal(t, map[string]uint64{s1: 4}, h.RememberedMarks)
	require.Equal(t, int64(8), h.NoOpVersion, "the empty plan is remembered")
	require.Equal(t, "options", h.NoOpOptions)
}

func TestFailuresAreRememberedByTheirStepAndCounted(t *testing.T) {
	w := newWorld("a")
	in := finished(workflows.OutcomeFailed)
	in.ErrorClass = "conflict"
	in.Result.Steps = []workflows.StepResult{{
		Action: workflows.StepMergeWAL, Outcome: workflows.OutcomeFailed, Sentence: "somebody was faster", ErrorClass: "conflict", Before: facts(7, 4), After: facts(7, 4),
	}}

	_, err := do[struct{}](t, w.maintenance(nil).RecordMaintenance, in)

	require.NoError(t, err)
	h := fleet.Histories(w.journal)[exp("a").ID]
	require.Equal(t, int64(1), h.Merge.Failures)
	require.Equal(t, int64(1), h.Retire.Failures)
	require.Zero(t, h.Compact.Failures)
	require.Equal(t, 1, w.metrics.retireFailed)
	require.Empty(t, w.metrics.retireTook)
	require.Equal(t, []string{"merge_wal failed conflict", "retire failed conflict"}, w.metrics.outcomes)
}

func TestOnlyARetirementThatHappenedTellsItsDuration(t *testing.T) {
	for outcome, want := range map[string][]time.Duration{
		workflows.OutcomeDone: {time.Minute}, workflows.OutcomeRefused: nil, workflows.OutcomeNoop: nil, workflows.OutcomeCancelled: nil,
	} {
		w := newWorld("a")
		_, err := do[struct{}](t, w.maintenance(nil).RecordMaintenance, finished(outcome))
		require.NoError(t, err)
		require.Equal(t, want, w.metrics.retireTook, outcome)
		require.Zero(t, w.metrics.retireFailed)
	}
}

func TestWhatSomebodyCancelledIsNoFailureToBackOffFrom(t *testing.T) {
	w := newWorld("a")
	_, err := do[struct{}](t, w.maintenance(nil).RecordMaintenance, finished(workflows.OutcomeCancelled))
	require.NoError(t, err)
	require.Zero(t, fleet.Histories(w.journal)[exp("a").ID].Retire.Failures)
	require.Equal(t, "cancelled", w.journal[len(w.journal)-1].ErrorClass)
}

func TestARefusalBeforeAnythingWasTriedIsNoFailureEither(t *testing.T) {
	w := newWorld("a")
	in := finished(workflows.OutcomeRefused)
	_, err := do[struct{}](t, w.maintenance(nil).RecordMaintenance, in)
	require.NoError(t, err)
	require.Equal(t, int64(1), fleet.Histories(w.journal)[exp("a").ID].Retire.Failures, "one that was refused half way is")

	w = newWorld("a")
	in.Result.Steps = nil // paused, say
	_, err = do[struct{}](t, w.maintenance(nil).RecordMaintenance, in)
	require.NoError(t, err)
	require.Zero(t, fleet.Histories(w.journal)[exp("a").ID].Retire.Failures)
	require.Equal(t, fleet.ClassHeld, w.journal[0].ErrorClass)
}

func TestWhoAskedAndWhyIsJournalled(t *testing.T) {
	w := newWorld("a")
	in := finished(workflows.OutcomeRefused)
	in.Args.By, in.Args.Why = "alice", "moving the bucket"
	_, err := do[struct{}](t, w.maintenance(nil).RecordMaintenance, in)
	require.NoError(t, err)
	whole := w.journal[len(w.journal)-1]
	require.Equal(t, "alice", whole.By)
	require.Equal(t, "moving the bucket: all of it", whole.Why)
	require.Equal(t, "all of it", whole.Error)
	require.Equal(t, facts(7, 4), fleet.ParseFacts(whole.Before))
}
