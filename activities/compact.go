package activities

import (
	"context"
	"fmt"

	"lancefleet/lance"
	"lancefleet/workflows"
)

// Compact rewrites small fragments, pass by pass, until the plan is empty or the
// attempt's time is over. A conflict with a writer ends the attempt; the next one
// plans afresh.
func (a *Maintenance) Compact(ctx context.Context, in workflows.CompactInput) (workflows.CompactResult, error) {
	var r workflows.CompactResult
	err := a.heavy(ctx, in.Target, func(ctx context.Context, l *lease, h Heavy) error {
		r = workflows.CompactResult{}
		for until := a.until(); ; {
			l.report(Progress{Step: "compact", Done: r.Passes})
			pass, err := h.Compact(ctx, lance.CompactSpec{
				URI: in.Target.URI, TargetRows: in.Limits.CompactTargetRows, MinFragments: in.Limits.CompactFragments,
				MaxSourceFragments: in.Limits.CompactSources, MaxSourceBytes: in.Limits.CompactBytes,
			})
			if err != nil {
				return fmt.Errorf("compact %s: %w", in.Target.ID, err)
			}
			addPass(&r, pass)
			if pass.Tasks == 0 || !pass.More {
				return nil
			}
			if a.over(until) {
				r.More = true
				return nil
			}
		}
	})
	return r, err
}

func addPass(r *workflows.CompactResult, pass lance.Compacted) {
	r.Requests = r.Requests.Add(pass.Requests)
	if r.FragmentsBefore == 0 {
		r.FragmentsBefore = pass.FragmentsBefore
	}
	r.Fragments, r.Version = pass.FragmentsAfter, max(r.Version, pass.Version)
	if pass.Tasks == 0 {
		return
	}
	r.Passes++
	r.Removed += pass.FragmentsRemoved
	r.Added += pass.FragmentsAdded
	r.Rows += pass.Rows
}

// CleanupVersions removes versions of an experiment that are older than its policy
// keeps. Tags and branches hold what they name.
func (a *Maintenance) CleanupVersions(ctx context.Context, in workflows.CleanupInput) (workflows.CleanupResult, error) {
	var r workflows.CleanupResult
	err := a.heavy(ctx, in.Target, func(ctx context.Context, _ *lease, h Heavy) error {
		if in.OlderThan <= 0 {
			return &lance.Error{Class: lance.Invalid, Op: "clean up versions", URI: in.Target.URI, Message: "an age of 0 would remove all history"}
		}
		cleaned, err := h.CleanExperiment(ctx, in.Target.URI, millis(in.OlderThan))
		if err != nil {
			return fmt.Errorf("clean up versions of %s: %w", in.Target.ID, err)
		}
		r = workflows.CleanupResult{Removed: cleaned.Removed, Bytes: cleaned.Bytes, Held: holders(cleaned.Held), Requests: cleaned.Requests}
		return nil
	})
	return r, err
}

// holders names each tag or branch once, in the order of the list.
func holders(held []lance.HeldVersion) []string {
	var names []string
	seen := map[string]bool{}
	for _, h := range held {
		if !seen[h.By] && len(names) < refusalsTold {
			names = append(names, h.By)
		}
		seen[h.By] = true
	}
	return names
}
