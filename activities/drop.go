package activities

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"

	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/workflows"
)

// DropRow retires an experiment: it looks once more, and if nothing moved since the
// evidence, commits the evidence to the ledger. From then on every reader of ours
// shows it as retired; the next round takes its row out. If anything moved it is
// refused and stays hot.
func (a *Maintenance) DropRow(ctx context.Context, in workflows.DropInput) (workflows.DropResult, error) {
	var result workflows.DropResult
	err := a.light(ctx, in.Target.FleetID, func(ctx context.Context, l *lease) (err error) {
		if result, err = a.drop(ctx, in); err != nil {
			return err
		}
		if result.Refused != "" {
			a.Metrics.DropRefused()
			return nil
		}
		return l.once(ctx, a.Metrics.Retired)
	})
	return result, err
}

func (a *Maintenance) drop(ctx context.Context, in workflows.DropInput) (workflows.DropResult, error) {
	ledger, err := a.Ledger.Latest(ctx)
	if err != nil {
		return workflows.DropResult{}, fmt.Errorf("read _retired: %w", err)
	}
	run := activity.GetInfo(ctx).WorkflowExecution
	last := ledger.Get(in.Target.ID)
	if last != nil && last.Retired() && last.RunID == run.RunID {
		return workflows.DropResult{LastWrite: last.LastWrite}, nil // an earlier attempt's commit landed
	}
	if !in.Evidence.Clean() || in.Evidence.Fingerprint.IsZero() {
		return workflows.DropResult{Refused: "the evidence is not clean"}, nil
	}
	row, why, err := a.unmoved(ctx, in)
	if err != nil || why != "" {
		return workflows.DropResult{Refused: why}, err
	}
	entry := fleet.NewRetirement(row, in.Evidence, last, a.Scan.nowMS())
	entry.By, entry.Why, entry.WorkflowID, entry.RunID = in.Args.By, in.Args.Why, run.ID, run.RunID
	if err := a.Ledger.Append(ctx, entry); err != nil {
		return workflows.DropResult{}, fmt.Errorf("append the retirement of %s to _retired: %w", in.Target.ID, err)
	}
	return workflows.DropResult{LastWrite: entry.LastWrite}, nil
}

// unmoved observes for the numbers that the ledger keeps, and then, last of all,
// probes against the evidence. It says why it must not be dropped, "" if it may.
func (a *Maintenance) unmoved(ctx context.Context, in workflows.DropInput) (row fleet.Row, why string, err error) {
	exp, err := a.experiment(ctx, in.Target.ID)
	if err != nil {
		return row, "", err
	}
	if exp == nil || exp.URI != in.Target.URI {
		return row, "its source names another uri, or none", nil
	}
	was, err := a.look(ctx, *exp)
	if err != nil {
		return row, "", err
	}
	if !was.row.Fingerprint.Equal(in.Evidence.Fingerprint) {
		return row, "it moved since it was verified", nil
	}
	answers, err := a.Scan.Engine.Probe(ctx, []lance.ProbeTarget{deepProbe(exp.URI, in.Evidence.Fingerprint)}, lance.BatchOptions{
		Concurrency: 1, Timeout: a.Scan.Config.ProbeTimeout,
	})
	if err == nil && answers[0].Err != nil {
		err = answers[0].Err
	}
	switch {
	case err != nil:
		return row, "", fmt.Errorf("probe %s: %w", exp.ID, err)
	case answers[0].State != lance.Unchanged:
		return row, "it moved since it was verified: " + answers[0].Detail, nil
	}
	return was.row, "", nil
}

// deepProbe leaves nothing out that can be asked cheaply. Versions are listed, not
// looked for one by one: a tag made since the evidence can hold its version while
// the one after it was written and cleaned up, and nothing else would ever tell.
func deepProbe(uri string, f fleet.Fingerprint) lance.ProbeTarget {
	return lance.ProbeTarget{URI: uri, Fingerprint: f, Deep: true, ListVersions: true}
}

// hourlyProbe is deepProbe but for one request: whatever brings rows adds an entry
// to a log or a version, and is seen each hour; a manifest that moved for another
// reason, and a shard that was made anew, may wait for the next.
func hourlyProbe(nowMS int64) func(uri string, f fleet.Fingerprint) lance.ProbeTarget {
	manifests := []lance.Manifests{lance.NextManifest, lance.KnownManifest}[nowMS/time.Hour.Milliseconds()%2]
	return func(uri string, f fleet.Fingerprint) lance.ProbeTarget {
		target := deepProbe(uri, f)
		target.Manifests = manifests
		return target
	}
}
