package activities

import (
	"context"
	"fmt"

	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/workflows"
)

// PrepareMaintenance observes an experiment in full and decides afresh whether what
// a run was started for is due. The policy in force goes with the answer.
func (a *Maintenance) PrepareMaintenance(ctx context.Context, in workflows.PrepareInput) (workflows.Prepared, error) {
	var prepared workflows.Prepared
	err := a.light(ctx, in.Args.FleetID, func(ctx context.Context, _ *lease) (err error) {
		prepared, err = a.prepare(ctx, in)
		return err
	})
	return prepared, err
}

func (a *Maintenance) prepare(ctx context.Context, in workflows.PrepareInput) (workflows.Prepared, error) {
	id := in.Args.ID
	p := workflows.Prepared{Facts: fleet.UnknownFacts(), Target: workflows.Target{FleetID: in.Args.FleetID, ID: id}}
	exp, err := a.experiment(ctx, id)
	if err != nil {
		return p, err
	}
	if exp == nil {
		p.Refused, p.Reason = true, "no source names it"
		return p, nil
	}
	p.Target.URI = exp.URI
	policy, err := a.policy(ctx, id)
	if err != nil {
		return p, err
	}
	histories, err := a.Journal.History(ctx)
	if err != nil {
		return p, fmt.Errorf("read the journal: %w", err)
	}
	look, err := a.look(ctx, *exp)
	if err != nil {
		return p, err
	}
	history := histories[id]
	history.ForeignDrain = history.ForeignDrain || look.drainedByOthers
	p.Facts = fleet.FactsOf(&look.row)
	p.Facts.ForeignDrain = look.drainedByOthers
	p.Marks = history.Marks(&look.row)
	a.decide(&p, in, look, policy, history)
	return p, nil
}

// experiment is what a source names so, nil when none does.
func (a *Maintenance) experiment(ctx context.Context, id fleet.ID) (*fleet.Experiment, error) {
	found, err := a.Scan.Sources.Lookup(ctx, fleet.Ref(id))
	if err != nil {
		return nil, fmt.Errorf("look up %s: %w", id, err)
	}
	if len(found) == 0 {
		return nil, nil
	}
	return &found[0], nil
}

// policy is the one in force. While the fleet is paused nothing new is started, also
// not by hand.
func (a *Maintenance) policy(ctx context.Context, id fleet.ID) (fleet.Policy, error) {
	policy, _ := a.Policies.For(id)
	why, err := a.Paused(ctx)
	if err != nil {
		return policy, fmt.Errorf("ask whether the fleet is paused: %w", err)
	}
	if why != "" {
		policy.Paused = why
	}
	return policy, nil
}

// looked is an experiment as it is now.
type looked struct {
	row             fleet.Row
	entry           *fleet.LedgerEntry // the ledger's newest; nil = none
	drainedByOthers bool
}

// look observes an experiment in full. Its error is the run's: what can't be seen
// is not maintained.
func (a *Maintenance) look(ctx context.Context, exp fleet.Experiment) (looked, error) {
	stats, err := a.Scan.Stats.Latest(ctx)
	if err != nil {
		return looked{}, fmt.Errorf("read _stats: %w", err)
	}
	ledger, err := a.Ledger.Latest(ctx)
	if err != nil {
		return looked{}, fmt.Errorf("read _retired: %w", err)
	}
	was := looked{entry: ledger.Get(exp.ID)}
	prev, known := stats.Row(exp.ID)
	retired := fleet.StateOf(prev, was.entry) == fleet.Retired
	if retired && !known {
		row := was.entry.Row()
		prev = &row
	}
	observation, err := a.Scan.observeOne(ctx, exp, prev)
	if err != nil {
		return looked{}, err
	}
	was.row = fleet.Observed(exp, prev, *observation, a.Scan.nowMS())
	if retired {
		was.row.LastWrite = lastWriteOfRetired(*was.entry, exp, *observation, was.row.LastWrite)
	}
	if known {
		was.drainedByOthers = len(drainedByOthers(prev, was.row)) > 0
	}
	return was, nil
}

// lastWriteOfRetired is later than the ledger's exactly if it was written since:
// positions and versions tell, since clocks may differ.
func lastWriteOfRetired(entry fleet.LedgerEntry, exp fleet.Experiment, o fleet.Observation, observed int64) int64 {
	verdict, _ := fleet.OnRetiredObservation(entry, o)
	if verdict == fleet.Write || exp.URI != entry.URI {
		return max(observed, entry.LastWrite+1)
	}
	return entry.LastWrite
}

// observeOne measures one experiment in full.
func (a *Scan) observeOne(ctx context.Context, exp fleet.Experiment, prev *fleet.Row) (*fleet.Observation, error) {
	answers, err := a.Engine.Observe(ctx, []lance.ObserveTarget{a.observeTarget(exp, prev)}, a.observeOptions(1))
	if err == nil && answers[0].Err != nil {
		err = answers[0].Err
	}
	if err != nil {
		return nil, fmt.Errorf("observe %s: %w", exp.ID, err)
	}
	return answers[0].Observation, nil
}

// decide fills in whether it is due, why, and the limits of the steps.
func (a *Maintenance) decide(p *workflows.Prepared, in workflows.PrepareInput, was looked, policy fleet.Policy, history fleet.History) {
	p.Limits = a.limits(in, policy.Knowing(history), &was.row)
	if fleet.StateOf(&was.row, was.entry) == fleet.Retired {
		p.Reason = "retired, and not written since"
		return
	}
	asked := fleet.Asked{Action: in.Action, Shard: in.Args.Shard, Force: in.Args.Force, ByHand: in.Args.By != ""}
	wishes, d := fleet.DecideAsked(asked, was.row, policy, history, a.Scan.nowMS())
	p.Reason = d.Reason
	p.Due = d.Action != fleet.DoNothing
	p.Refused = !p.Due && d.Held != ""
	// What a row counts as pending is counted by marks that a decision changes.
	p.NoMerge = in.Action != workflows.ActionAccept && was.row.PendingWAL == 0 && was.row.TailEntries == 0 ||
		in.Action == workflows.ActionOptimize && wishes.Merge.Action == fleet.DoNothing
}

// limits bound the steps by the policy in force. A retirement compacts whatever can
// be made fewer: it is the last chance.
func (a *Maintenance) limits(in workflows.PrepareInput, policy fleet.Policy, row *fleet.Row) workflows.Limits {
	c, reach := a.Config, policy.Reach()
	limits := workflows.Limits{
		MergeGenerations: c.MergeGenerations, MergeBytes: c.MergeBytes, SilentFor: reach.SilentFor, LeaveWrittenWithin: reach.LeaveWithin,
		CompactFragments: int(policy.CompactMinFragments), CompactTargetRows: policy.RowsPerFragment(row),
		CompactSources: c.CompactSources, CompactBytes: c.CompactBytes, CompactOptions: policy.CompactOptions(),
		CleanupOlderThan: policy.CleanupOlderThan.Milliseconds(),
		Grace:            c.Grace.Milliseconds(), UnknownGrace: c.UnknownGrace.Milliseconds(),
	}
	if in.Action == workflows.ActionRetire || in.Args.By != "" {
		limits.CompactFragments = min(limits.CompactFragments, fleet.FewestFragments)
	}
	return limits
}
