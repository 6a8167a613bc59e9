package activities

import (
	"lancefleet/fleet"
	"lancefleet/lance"
)

// What pages and refreshes have in common: how one experiment is asked, and what
// row a failure gives.

func (a *Scan) observeTarget(exp fleet.Experiment, row *fleet.Row) lance.ObserveTarget {
	target := lance.ObserveTarget{URI: exp.URI, TargetRows: a.Config.TargetRows}
	if row != nil && row.Known && row.URI == exp.URI {
		target.KnownVersion = row.Fingerprint.Version
	}
	return target
}

func (a *Scan) observeOptions(concurrency int) lance.ObserveOptions {
	return lance.ObserveOptions{
		BatchOptions: lance.BatchOptions{Concurrency: concurrency, Timeout: a.Config.ObserveTimeout},
		WalkPast:     fleet.MaintenanceWalk(),
		MaxCommits:   a.Config.MaxCommits,
	}
}

func (a *Scan) failedRow(exp fleet.Experiment, row *fleet.Row, err *lance.Error) fleet.Row {
	a.Metrics.ObservationFailed(string(err.Class))
	return fleet.Failed(exp, row, string(err.Class), err.Message, a.nowMS(), a.Config.Probe.Backoff)
}
