package activities

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/sdk/activity"

	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/store"
	"lancefleet/workflows"
)

const statsTable = "_stats.rollout.lance"

// Tables is the group of activities that keep our own tables small.
type Tables struct {
	Scan    *Scan // for `_stats`
	Keeper  Keeper
	Journal UpkeepJournal
	Options store.UpkeepOptions
	Metrics UpkeepMetrics
	Log     *slog.Logger
}

// Keeper compacts tables and removes versions; store.Keeper is one.
type Keeper interface {
	Upkeep(ctx context.Context, o store.UpkeepOptions) []store.UpkeepResult
	Versions(ctx context.Context, table string) (int64, error)
}

// UpkeepJournal remembers passes.
type UpkeepJournal interface {
	Journal
	Upkeep(ctx context.Context) (fleet.UpkeepState, error)
}

// UpkeepMetrics counts what this process did.
type UpkeepMetrics interface {
	UpkeepDone(took time.Duration, removed int64, failed bool)
	Journalled(action, outcome, class string)
}

// UpkeepTables makes one pass over our own tables. A table that fails keeps no other
// from its turn; the result says which did.
func (a *Tables) UpkeepTables(ctx context.Context, args workflows.TablesArgs) (workflows.Upkeep, error) {
	var u workflows.Upkeep
	err := a.Scan.attempt(ctx, func(ctx context.Context, _ *lease) error {
		if err := a.Scan.checkFleet(args.FleetID); err != nil {
			return err
		}
		u = workflows.Upkeep{}
		version := a.version(ctx)
		for _, r := range a.Keeper.Upkeep(ctx, a.Options) {
			t := workflows.TableUpkeep{Table: r.Table, Before: r.Before, After: r.After, Removed: r.Removed, Bytes: r.Bytes}
			if r.Err != nil {
				t.Error, t.ErrorClass = r.Err.Error(), string(lance.ClassOf(r.Err))
			} else if r.Table == statsTable {
				u.StatsVersion = version
			}
			u.Tables = append(u.Tables, t)
		}
		return ctx.Err()
	})
	return u, err
}

// RecordUpkeep writes what became of a pass to the journal. What it tells about
// passes before is read there: a restart forgets no failure.
func (a *Tables) RecordUpkeep(ctx context.Context, in workflows.UpkeepRecord) (workflows.TablesResult, error) {
	var result workflows.TablesResult
	err := a.Scan.attempt(ctx, func(ctx context.Context, l *lease) error {
		if err := a.Scan.checkFleet(in.Args.FleetID); err != nil {
			return err
		}
		result = passResult(in)
		version := a.version(ctx)
		action := passAction(ctx, in, result, fleet.UpkeepFacts{
			Cleaned: in.Upkeep.StatsVersion, Head: version, OnDisk: a.onDisk(ctx, in.Upkeep), Removed: result.Removed,
		})
		if err := a.Journal.Append(ctx, action); err != nil {
			return fmt.Errorf("journal the upkeep of our own tables: %w", err)
		}
		state, err := a.Journal.Upkeep(ctx)
		if err != nil {
			return fmt.Errorf("read the journal: %w", err)
		}
		if result.Failures = state.Failures; result.Failures > 0 {
			result.Unreclaimed = state.Unreclaimed(version)
		}
		return l.once(ctx, func() { a.told(in, result) })
	})
	return result, err
}

// passResult adds up one pass.
func passResult(in workflows.UpkeepRecord) workflows.TablesResult {
	r := workflows.TablesResult{Outcome: workflows.OutcomeDone, ErrorClass: in.ErrorClass, Tables: in.Upkeep.Tables}
	failure := in.Error
	for _, t := range in.Upkeep.Tables {
		r.Removed += t.Removed
		if t.Error != "" && failure == "" {
			failure, r.ErrorClass = t.Error, t.ErrorClass
		}
	}
	if failure != "" {
		r.Outcome, r.Sentence = workflows.OutcomeFailed, failure
		return r
	}
	r.Sentence = fmt.Sprintf("removed %s of %s", fleet.Count(r.Removed, "version"), fleet.Count(int64(len(r.Tables)), "table"))
	return r
}

func passAction(ctx context.Context, in workflows.UpkeepRecord, r workflows.TablesResult, facts fleet.UpkeepFacts) fleet.Action {
	run := activity.GetInfo(ctx).WorkflowExecution
	action := fleet.Action{
		ID: run.RunID, At: in.FinishedAt, Kind: fleet.ActTables, Outcome: r.Outcome, ErrorClass: r.ErrorClass,
		After: facts.Text(), By: in.Args.By, Why: r.Sentence, DurationMS: in.FinishedAt - in.StartedAt, WorkflowID: run.ID, RunID: run.RunID,
	}
	if r.Outcome != workflows.OutcomeDone {
		action.Error = r.Sentence
	}
	return action
}

// version of `_stats`, 0 when it can't be read: that is no reason to leave the other
// tables alone, nor to forget that a pass failed.
func (a *Tables) version(ctx context.Context) uint64 {
	stats, err := a.Scan.Stats.Latest(ctx)
	if err != nil {
		a.Log.WarnContext(ctx, "read _stats for its upkeep", "error", err)
		return 0
	}
	return stats.Version
}

// onDisk counts the versions of `_stats`, -1 where that can't be done.
func (a *Tables) onDisk(ctx context.Context, u workflows.Upkeep) int64 {
	for _, t := range u.Tables {
		if t.Table == statsTable && t.Error == "" {
			return t.After
		}
	}
	n, err := a.Keeper.Versions(ctx, statsTable)
	if err != nil {
		a.Log.WarnContext(ctx, "count the versions of _stats", "error", err)
		return -1
	}
	return n
}

// told counts a pass and warns of a failed one, with both numbers.
func (a *Tables) told(in workflows.UpkeepRecord, r workflows.TablesResult) {
	failed := r.Outcome != workflows.OutcomeDone
	a.Metrics.UpkeepDone(time.Duration(in.FinishedAt-in.StartedAt)*time.Millisecond, r.Removed, failed)
	a.Metrics.Journalled(fleet.ActTables, r.Outcome, r.ErrorClass)
	if failed {
		a.Log.Warn("upkeep of our own tables failed", "failures_in_a_row", r.Failures,
			"unreclaimed_versions", r.Unreclaimed, "error", r.Sentence)
	}
}
