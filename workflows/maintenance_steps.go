package workflows

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"lancefleet/fleet"
)

const (
	callsPerStep = 200 // of an activity that says there is more
	sweepsPerRun = 3   // waits for folders whose grace is not over
	refusalsTold = 8   // sentences of one step
)

// mergeWAL drains every shard, orphans included. Where there is nothing to merge it
// does not wait for a slot: a compaction never stands behind other experiments'
// merges.
func (m *maintenance) mergeWAL(ctx workflow.Context) (told, error) {
	if m.prepared.NoMerge {
		return told{}, nil
	}
	in := MergeInput{Target: m.prepared.Target, Limits: m.prepared.Limits, Marks: m.prepared.Marks}
	var sum MergeResult
	for range callsPerStep {
		m.describe(ctx, "Merging the write-ahead log into the base: "+mergeWords(sum)+" so far.")
		var r MergeResult
		actx := heavy(ctx, m.names.MergeQueue(), mergeSummary(sum))
		if err := workflow.ExecuteActivity(actx, MergeWALName, in).Get(ctx, &r); err != nil {
			return told{}, err
		}
		sum = sum.and(r)
		in.Marks = r.Marks
		m.drained += r.Drained
		m.merged(r)
		if !r.More {
			break
		}
	}
	return mergeTold(sum), nil
}

// merged keeps what a call of MergeWAL found out.
func (m *maintenance) merged(r MergeResult) {
	facts := &m.result.After
	facts.Pending, facts.Stranded, facts.Unknown = r.Left, r.Stranded, r.Unknown
	facts.Version = max(facts.Version, int64(r.Version))
	if r.Passes > 0 {
		facts.Marks = maps.Clone(r.Marks)
		facts.Fragments, facts.SmallFragments, facts.Rows, facts.Bytes = -1, -1, -1, -1 // until somebody looks
	}
}

// and is what two calls after each other did, as far as it is told.
func (r MergeResult) and(next MergeResult) MergeResult {
	next.Generations += r.Generations
	next.Rows += r.Rows
	next.Deletes += r.Deletes
	next.Drained += r.Drained
	next.Shards = max(next.Shards, r.Shards)
	next.Sealed += r.Sealed
	next.SealedRows += r.SealedRows
	return next
}

func mergeSummary(sofar MergeResult) string {
	if sofar.Generations == 0 {
		return "merge pending WAL generations of every shard, oldest first"
	}
	return fmt.Sprintf("merge on: %s left", fleet.Count(sofar.Left, "generation"))
}

func mergeWords(r MergeResult) string {
	words := fleet.Count(r.Generations, "generation") + " of " + fleet.Count(int64(r.Shards), "shard")
	if r.Sealed > 0 {
		words += ", " + fleet.Count(int64(r.Sealed), "shard") + " sealed"
	}
	return words
}

func mergeTold(r MergeResult) told {
	switch {
	case len(r.Refused) > 0:
		return told{OutcomeRefused, "not merged: " + strings.Join(r.Refused, "; ")}
	case r.Generations == 0 && r.Sealed == 0 && r.Drained == 0:
		return told{OutcomeNoop, "nothing pending to merge" + leftWords(r)}
	}
	words := "merged " + fleet.Count(r.Generations, "generation") + " of " + fleet.Count(int64(r.Shards), "shard") +
		" (" + fleet.Count(r.Rows, "row")
	if r.Deletes > 0 {
		words += ", " + fleet.Count(r.Deletes, "delete")
	}
	words += ")"
	if r.Sealed > 0 {
		words = fmt.Sprintf("sealed %s with %s of its dead writer, ", fleet.Count(int64(r.Sealed), "shard"), fleet.Count(r.SealedRows, "stranded row")) + words
	}
	return told{OutcomeDone, words + leftWords(r)}
}

func leftWords(r MergeResult) string {
	var words string
	if r.Live > 0 {
		words += ", " + fleet.Count(int64(r.Live), "shard") + " left to their live writer"
	}
	if r.Left > 0 {
		words += ", " + fleet.Count(r.Left, "generation") + " left"
	}
	if r.Unflushed > 0 {
		words += ", " + fleet.Count(r.Unflushed, "WAL entry") + " not flushed yet by a writer that may live"
	}
	if gone := r.Stranded - r.Unflushed; gone > 0 {
		words += ", " + fleet.Count(gone, "WAL entry") + " stranded"
	}
	if r.Unknown > 0 {
		words += ", " + fleet.Count(r.Unknown, "WAL entry") + " of unknown state"
	}
	return words
}

// compact rewrites small fragments, pass by pass.
func (m *maintenance) compact(ctx workflow.Context) (told, error) {
	limits := m.prepared.Limits
	if limits.CompactFragments <= 0 {
		return told{}, nil
	}
	in := CompactInput{Target: m.prepared.Target, Limits: limits}
	var sum CompactResult
	for range callsPerStep {
		m.describe(ctx, fmt.Sprintf("Compacting: %s rewritten so far.", fleet.Count(sum.Removed, "fragment")))
		var r CompactResult
		actx := heavy(ctx, m.names.CompactQueue(), fmt.Sprintf("compact fragments below %d rows", limits.CompactTargetRows))
		if err := workflow.ExecuteActivity(actx, CompactName, in).Get(ctx, &r); err != nil {
			return told{}, err
		}
		sum = sum.and(r)
		if !r.More {
			break
		}
	}
	return m.compacted(sum), nil
}

func (r CompactResult) and(next CompactResult) CompactResult {
	if r.FragmentsBefore > 0 {
		next.FragmentsBefore = r.FragmentsBefore
	}
	next.Passes += r.Passes
	next.Removed += r.Removed
	next.Rows += r.Rows
	return next
}

// compacted remembers an empty plan together with the version and the options that
// it is about, so that it is not asked for again until one of them changes.
func (m *maintenance) compacted(r CompactResult) told {
	facts := &m.result.After
	facts.Version, facts.Fragments = max(facts.Version, int64(r.Version)), r.Fragments
	if r.Passes == 0 {
		facts.NoOpVersion, facts.NoOpOptions = int64(r.Version), m.prepared.Limits.CompactOptions
		return told{OutcomeNoop, fmt.Sprintf("nothing to compact in version %d", r.Version)}
	}
	facts.SmallFragments, facts.Bytes = -1, -1
	return told{OutcomeDone, fmt.Sprintf("compacted %d fragments into %d (%s)", r.FragmentsBefore, r.Fragments, fleet.Count(r.Rows, "row"))}
}

// cleanup removes old versions, where the policy says so.
func (m *maintenance) cleanup(ctx workflow.Context) (told, error) {
	older := m.prepared.Limits.CleanupOlderThan
	if older <= 0 {
		return told{}, nil
	}
	age := fleet.Age(time.Duration(older) * time.Millisecond)
	m.describe(ctx, "Removing versions older than "+age+".")
	var r CleanupResult
	actx := heavy(ctx, m.names.CompactQueue(), "remove versions older than "+age)
	in := CleanupInput{Target: m.prepared.Target, OlderThan: older}
	if err := workflow.ExecuteActivity(actx, CleanupVersionsName, in).Get(ctx, &r); err != nil {
		return told{}, err
	}
	words := "removed " + fleet.Count(r.Removed, "version") + " older than " + age
	if len(r.Held) > 0 {
		words += ", others held by " + strings.Join(r.Held, ", ")
	}
	if r.Removed == 0 {
		return told{OutcomeNoop, words}, nil
	}
	return told{OutcomeDone, words}, nil
}

// sweep deletes the folders of drained generations, once nobody can still read them.
func (m *maintenance) sweep(ctx workflow.Context) (told, error) {
	limits := m.prepared.Limits
	if m.drained > 0 {
		if err := m.wait(ctx, limits.Grace, "grace: readers of the merged generations may still be busy"); err != nil {
			return told{}, err
		}
	}
	var sum SweepResult
	for n := range sweepsPerRun {
		var r SweepResult
		m.describe(ctx, "Sweeping folders of merged generations.")
		actx := heavy(ctx, m.names.CheckQueue(), "delete folders of merged generations")
		if err := workflow.ExecuteActivity(actx, SweepGenerationsName, SweepInput{Target: m.prepared.Target, Limits: limits}).Get(ctx, &r); err != nil {
			return told{}, err
		}
		sum.Deleted += r.Deleted
		sum.Kept = r.Kept
		left := r.NextDue - workflow.Now(ctx).UnixMilli()
		if r.NextDue == 0 || left > limits.UnknownGrace || n == sweepsPerRun-1 {
			break
		}
		if err := m.wait(ctx, max(left, minute), "grace of "+fleet.Count(int64(r.Kept), "folder")); err != nil {
			return told{}, err
		}
	}
	return sweepTold(sum), nil
}

const minute = 60_000 // ms

func sweepTold(r SweepResult) told {
	words := "swept " + fleet.Count(int64(r.Deleted), "folder") + " of merged generations"
	if r.Kept > 0 {
		words += fmt.Sprintf(", %d stay", r.Kept)
	}
	if r.Deleted == 0 {
		return told{OutcomeNoop, words}
	}
	return told{OutcomeDone, words}
}

// changeWaiting tells when a run only waits. Runs keep to the version that they began
// with: before 1 they told nothing, and 1 did not take it back after the wait.
const (
	changeWaiting = "tell-waiting"
	waitTold      = 1
	waitTakenBack = 2
)

// wait lets time pass, durably. A run that waits needs no slot: it is told from those
// that do, so that rounds don't hold others back for it.
func (m *maintenance) wait(ctx workflow.Context, ms int64, why string) error {
	if ms <= 0 {
		return nil
	}
	d, now := time.Duration(ms)*time.Millisecond, workflow.Now(ctx).UnixMilli()
	m.describe(ctx, "Waiting until "+fleet.Clock(now+ms, now)+" UTC ("+fleet.Age(d)+"): "+why+".")
	m.until = now + ms
	version := workflow.GetVersion(ctx, changeWaiting, workflow.DefaultVersion, waitTakenBack)
	if version >= waitTold {
		setOutcome(ctx, OutcomeWaiting)
	}
	if err := workflow.NewTimerWithOptions(ctx, d, workflow.TimerOptions{Summary: why}).Get(ctx, nil); err != nil {
		return err
	}
	if version >= waitTakenBack {
		clearOutcome(ctx)
	}
	return nil
}

// verify looks at everything once more with its own eyes.
func (m *maintenance) verify(ctx workflow.Context) (told, error) {
	m.describe(ctx, "Reopening everything: is nothing pending, stranded or unknown?")
	actx := heavy(ctx, m.names.CheckQueue(), "reopen everything: nothing pending, stranded or unknown?")
	if err := workflow.ExecuteActivity(actx, VerifyName, VerifyInput{Target: m.prepared.Target}).Get(ctx, &m.evidence); err != nil {
		return told{}, err
	}
	e := m.evidence
	m.result.After = remembering(fleet.FactsOfEvidence(e), m.result.After)
	if !e.Clean() {
		return told{OutcomeRefused, "not retired: " + blocking(e)}, nil
	}
	return told{OutcomeDone, fmt.Sprintf("verified: nothing pending in %s, %s in %s, version %d",
		fleet.Count(int64(len(e.Shards)), "shard"), fleet.Count(e.Rows, "row"), fleet.Count(e.Fragments, "fragment"), e.Fingerprint.Version)}, nil
}

// drop commits the retirement to the ledger, unless anything was written since the
// evidence.
func (m *maintenance) drop(ctx workflow.Context) (told, error) {
	m.describe(ctx, "Writing the evidence to the ledger, if nothing was written since.")
	var r DropResult
	actx := m.light(ctx, "probe once more, append to _retired")
	in := DropInput{Args: m.args, Target: m.prepared.Target, Evidence: m.evidence}
	if err := workflow.ExecuteActivity(actx, DropRowName, in).Get(ctx, &r); err != nil {
		return told{}, err
	}
	if r.Refused != "" {
		return told{OutcomeRefused, "not retired: " + r.Refused}, nil
	}
	return told{OutcomeDone, "retired, last written " + fleet.Clock(r.LastWrite, workflow.Now(ctx).UnixMilli()) + " UTC"}, nil
}

// refresh stores the row as it is now, so that nobody has to wait for a round.
func (m *maintenance) refresh(ctx workflow.Context) (told, error) {
	var r RefreshRowResult
	actx := m.light(ctx, "observe in full, store the row")
	if err := workflow.ExecuteActivity(actx, RefreshRowName, m.prepared.Target).Get(ctx, &r); err != nil {
		return told{}, err
	}
	m.result.After = remembering(r.Facts, m.result.After)
	return told{}, nil
}

// remembering is a later look at an experiment, with what the steps before found out
// and a look can't tell.
func remembering(look, before fleet.Facts) fleet.Facts {
	look.NoOpVersion, look.NoOpOptions, look.Accepted = before.NoOpVersion, before.NoOpOptions, before.Accepted
	look.ForeignDrain = look.ForeignDrain || before.ForeignDrain
	if look.Stranded < 0 || look.Unknown < 0 {
		look.Stranded, look.Unknown = before.Stranded, before.Unknown
	}
	return look
}

// blocking says what stops a retirement.
func blocking(e fleet.Evidence) string {
	if len(e.Blocking) > 0 {
		return strings.Join(e.Blocking, "; ")
	}
	return fmt.Sprintf("%s pending, %s stranded, %d of unknown state",
		fleet.Count(e.Pending, "generation"), fleet.Count(e.Stranded, "WAL entry"), e.Unknown)
}
