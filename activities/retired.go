package activities

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"lancefleet/fleet"
	"lancefleet/lance"
)

// retired is one retired experiment to be looked at.
type retired struct {
	exp   fleet.Experiment
	entry *fleet.LedgerEntry
}

// lookAtRetired is what looking at some of them told.
type lookAtRetired struct {
	failures map[fleet.ID]string // gave no answer, and why
	written  []fleet.Row         // hot again
	whys     map[fleet.ID]string // what was written, in words
	renewed  []fleet.LedgerEntry // moved, but nothing was written
	requests fleet.Requests
}

// probeOf says how an experiment is asked whether anything moved.
type probeOf func(uri string, f fleet.Fingerprint) lance.ProbeTarget

// lookAt asks retired experiments against their evidence. Only those that moved are
// observed; what can't be told counts as written, which only makes it hot. Those
// that give no answer are asked again at their next turn.
func (a *Scan) lookAt(ctx context.Context, some []retired, concurrency int, probe probeOf) (*lookAtRetired, error) {
	look := &lookAtRetired{whys: map[fleet.ID]string{}, failures: map[fleet.ID]string{}}
	moved, err := a.movedSince(ctx, some, concurrency, probe, look)
	if err != nil {
		return nil, err
	}
	for chunk := range slices.Chunk(moved, max(a.Config.ObserveChunk, 1)) {
		if err := a.observeRetired(ctx, chunk, concurrency, look); err != nil {
			return nil, err
		}
	}
	return look, nil
}

// movedSince probes, and returns those that are not what they were.
func (a *Scan) movedSince(ctx context.Context, some []retired, concurrency int, probe probeOf, look *lookAtRetired) ([]retired, error) {
	if len(some) == 0 {
		return nil, nil
	}
	targets := make([]lance.ProbeTarget, len(some))
	for i, r := range some {
		targets[i] = probe(r.exp.URI, r.entry.Evidence.Fingerprint)
	}
	answers, err := a.Engine.Probe(ctx, targets, lance.BatchOptions{Concurrency: concurrency, Timeout: a.Config.ProbeTimeout})
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("probe %d retired experiments: %w", len(targets), err)
	}
	var moved []retired
	for i, answer := range answers {
		look.requests = look.requests.Add(answer.Requests)
		switch r := some[i]; {
		case r.exp.URI != r.entry.URI:
			moved = append(moved, r) // another dataset, whatever its fingerprint
		case answer.State == lance.Unchanged: // it stays as it is
		case answer.Err != nil && answer.Err.Class == lance.Timeout:
			a.noAnswer(ctx, r, answer.Err, look)
		default:
			moved = append(moved, r)
		}
	}
	return moved, nil
}

func (a *Scan) noAnswer(ctx context.Context, r retired, err *lance.Error, look *lookAtRetired) {
	look.failures[r.exp.ID] = err.Message
	a.Metrics.ObservationFailed(string(err.Class))
	a.Log.WarnContext(ctx, "a retired experiment gave no answer", "experiment", r.exp.ID.String(), "error", err)
}

// observeRetired measures those that moved and tells a write from maintenance.
func (a *Scan) observeRetired(ctx context.Context, some []retired, concurrency int, look *lookAtRetired) error {
	targets := make([]lance.ObserveTarget, len(some))
	rows := make([]fleet.Row, len(some))
	for i, r := range some {
		rows[i] = r.entry.Row()
		targets[i] = a.observeTarget(r.exp, &rows[i])
	}
	answers, err := a.Engine.Observe(ctx, targets, a.observeOptions(concurrency))
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("observe %d retired experiments: %w", len(targets), err)
	}
	for i, answer := range answers {
		look.requests = look.requests.Add(answer.Requests)
		if answer.Err != nil {
			a.noAnswer(ctx, some[i], answer.Err, look)
			continue
		}
		if err := a.judge(ctx, some[i], rows[i], *answer.Observation, look); err != nil {
			return err
		}
	}
	return nil
}

// judge decides about one that moved.
func (a *Scan) judge(ctx context.Context, r retired, prev fleet.Row, o fleet.Observation, look *lookAtRetired) error {
	verdict, why := fleet.OnRetiredObservation(*r.entry, o)
	if r.exp.URI != r.entry.URI {
		verdict, why = fleet.Write, "its source names another uri"
	}
	switch verdict {
	case fleet.Same:
		return nil
	case fleet.Maintenance:
		evidence, err := a.Engine.Verify(ctx, r.exp.URI, lance.VerifyOptions{})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		switch { // hot is the safe side
		case err != nil || !evidence.Clean():
			why = "it moved, and can't be verified any more"
		case !evidence.Fingerprint.Equal(o.Fingerprint): // nobody has judged what it moved by
			why = "it moved again while it was verified"
		default:
			look.renewed = append(look.renewed, r.entry.Renew(evidence, a.nowMS()))
			return nil
		}
	}
	row := fleet.Observed(r.exp, &prev, o, a.nowMS())
	row.LastWrite = max(row.LastWrite, r.entry.LastWrite+1) // whatever the writer's clock says
	look.written = append(look.written, row)
	look.whys[row.ID] = why
	return nil
}

// renew stores the evidence of those that moved without a write.
func (a *Scan) renew(ctx context.Context, entries []fleet.LedgerEntry, runID string) error {
	if len(entries) == 0 {
		return nil
	}
	actions := make([]fleet.Action, len(entries))
	for i := range entries {
		entries[i].RunID = runID
		actions[i] = a.ledgerAction(entries[i], fleet.ActRenew, "moved without a write: new evidence")
	}
	if err := a.Journal.Append(ctx, actions...); err != nil {
		return fmt.Errorf("journal %d renewals: %w", len(actions), err)
	}
	if err := a.Ledger.Append(ctx, entries...); err != nil {
		return fmt.Errorf("append %d renewals to _retired: %w", len(entries), err)
	}
	return nil
}

// giveBack takes those rows out of the ledger that were written since they were
// retired. It may be done again at any time: what has returned is no longer retired.
// The journal comes first, since it knows an entry that is made twice.
func (a *Scan) giveBack(ctx context.Context, rows []fleet.Row, run run, why func(fleet.ID) string) (int, error) {
	ledger, err := a.Ledger.Latest(ctx)
	if err != nil {
		return 0, fmt.Errorf("read _retired: %w", err)
	}
	var entries []fleet.LedgerEntry
	var actions []fleet.Action
	for i := range rows {
		entry := ledger.Get(rows[i].ID)
		if entry == nil || !entry.Retired() || rows[i].LastWrite <= entry.LastWrite {
			continue
		}
		back := entry.Return(rows[i].LastWrite, a.nowMS())
		back.RunID, back.WorkflowID, back.By, back.Why = run.id, run.workflow, run.by, why(rows[i].ID)
		entries = append(entries, back)
		action := a.ledgerAction(back, fleet.ActReturn, "")
		action.After = fleet.FactsOf(&rows[i]).Text()
		actions = append(actions, action)
	}
	if len(entries) == 0 {
		return 0, nil
	}
	if err := a.Journal.Append(ctx, actions...); err != nil {
		return 0, fmt.Errorf("journal %d returns: %w", len(actions), err)
	}
	if err := a.Ledger.Append(ctx, entries...); err != nil {
		return 0, fmt.Errorf("append %d returns to _retired: %w", len(entries), err)
	}
	a.Metrics.Returned(len(entries))
	for i := range actions {
		a.Metrics.Journalled(actions[i].Kind, actions[i].Outcome, "")
	}
	return len(entries), nil
}

// markMissing notes in the ledger which retired experiments the round's sources did
// not name. What a later round misses too is gone, as a row of `_stats` would be; and
// should it be there after all, it is observed again and retires again. An entry whose
// evidence is lost can't be noted: the ledger takes none without.
func (a *Scan) markMissing(ctx context.Context, listed []fleet.Experiment, roundStarted int64, run run) error {
	ledger, err := a.Ledger.Latest(ctx)
	if err != nil {
		return fmt.Errorf("read _retired: %w", err)
	}
	noted := slices.DeleteFunc(fleet.Unnamed(ledger.Entries, listed, roundStarted, a.nowMS()), func(e fleet.LedgerEntry) bool {
		return e.Evidence.Fingerprint.IsZero() || !e.Evidence.Clean()
	})
	if len(noted) == 0 {
		return nil
	}
	for i := range noted {
		if noted[i].RunID = run.id; !noted[i].Retired() {
			noted[i].By, noted[i].WorkflowID = run.by, run.workflow
		}
	}
	if err := a.Ledger.Append(ctx, noted...); err != nil {
		return fmt.Errorf("note in _retired which of %d experiments are named: %w", len(noted), err)
	}
	return nil
}

// run is who does something to the ledger.
type run struct{ id, workflow, by string }

// ledgerAction is the journal's entry about one of the ledger's, under an id that
// an attempt after this makes again.
func (a *Scan) ledgerAction(e fleet.LedgerEntry, kind, why string) fleet.Action {
	if why == "" {
		why = e.Why
	}
	return fleet.Action{
		ID: actionID(e.RunID, e.ID, kind), At: e.At, Kind: kind, Target: e.ID.String(), Outcome: fleet.OutcomeDone,
		By: e.By, Why: why, WorkflowID: e.WorkflowID, RunID: e.RunID,
	}
}

// actionID is that of what one run did to one experiment, the same in each attempt.
func actionID(runID string, id fleet.ID, kind string) string {
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte(runID+"/"+id.String()+"/"+kind)).String()
}
