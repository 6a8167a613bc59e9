package activities

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/sdk/activity"
	"golang.org/x/sync/errgroup"

	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/store"
	"lancefleet/workflows"
)

const (
	mergeTries     = 5 // against commits that come in between, within one attempt
	pagesAtOnce    = 8 // staged objects read at the same time
	roundAction    = "round/"
	roundCommitTop = 256 // commits of `_stats` that may lie between two attempts
)

// CommitRound merges what the pages staged into the newest `_stats` and commits
// once, if there is anything to commit. An attempt that comes after one whose
// commit landed finds that commit by the round's id, and commits nothing.
func (a *Scan) CommitRound(ctx context.Context, in workflows.CommitInput) (workflows.CommitResult, error) {
	defer a.first.round()()
	var result workflows.CommitResult
	err := a.attempt(ctx, func(ctx context.Context, l *lease) error {
		before := a.requests(ctx)
		c := &roundCommit{scan: a, in: in, lease: l}
		err := c.run(ctx)
		result = c.result
		result.Requests = a.spent(ctx, before)
		return err
	})
	return result, err
}

// roundCommit is one attempt at committing one round.
type roundCommit struct {
	scan     *Scan
	in       workflows.CommitInput
	lease    *lease
	merge    fleet.MergeInput
	gathered bool        // merge is known: no earlier attempt's commit was found
	rows     []fleet.Row // of `_stats` when it ended
	result   workflows.CommitResult
}

func (c *roundCommit) run(ctx context.Context) error {
	if err := c.commit(ctx); err != nil {
		return err
	}
	return c.giveBack(ctx)
}

func (c *roundCommit) commit(ctx context.Context) error {
	if attemptOf(ctx) > 1 {
		if landed, err := c.landed(ctx); landed || err != nil {
			return err
		}
	}
	if err := c.gather(ctx); err != nil {
		return err
	}
	var err error
	for try := range mergeTries {
		c.lease.report(Progress{Step: "commit", Done: try, Of: mergeTries})
		if err = c.try(ctx); !errors.Is(err, lance.ErrConflict) {
			return err
		}
		c.scan.Metrics.CommitConflict()
	}
	return fmt.Errorf("commit round %d after %d tries: %w", c.in.Round.Number, mergeTries, err)
}

// giveBack takes out of the ledger what was written since it was retired. Whatever
// ends an attempt before this comes so far, the next round makes up for: a row that
// is newer than its evidence is hot to every reader anyway.
func (c *roundCommit) giveBack(ctx context.Context) (err error) {
	run := run{id: c.in.Round.ID, workflow: activity.GetInfo(ctx).WorkflowExecution.ID}
	c.result.Returned, err = c.scan.giveBack(ctx, c.rows, run, func(fleet.ID) string { return "written since it was retired" })
	if err != nil || !c.gathered { // an earlier attempt's commit landed: the next round will see
		return err
	}
	return c.scan.markMissing(ctx, c.merge.Listed, c.in.Round.StartedAt, run)
}

// landed looks for a commit of this round by an earlier attempt. Merging once more
// would be wrong even if it changed nothing else: a name that its source missed
// once would count as missing twice.
func (c *roundCommit) landed(ctx context.Context) (bool, error) {
	commits, err := c.scan.Commits.Since(ctx, c.in.Round.StatsVersion)
	if err != nil {
		return false, fmt.Errorf("look for the round's commit: %w", err)
	}
	for _, commit := range commits {
		if commit.Action != roundAction+c.in.Round.ID {
			continue
		}
		snapshot, err := c.scan.Stats.At(ctx, commit.Version)
		if errors.Is(err, lance.ErrGone) {
			snapshot, err = c.scan.Stats.Latest(ctx)
		}
		if err != nil {
			return false, fmt.Errorf("read _stats at version %d: %w", commit.Version, err)
		}
		c.result.Version, c.result.Hot, c.rows = &commit.Version, int64(len(snapshot.Rows)), snapshot.Rows
		return true, nil
	}
	return false, nil
}

// gather reads what does not change between tries.
func (c *roundCommit) gather(ctx context.Context) error {
	c.lease.report(Progress{Step: "read staged pages", Of: len(c.in.Pages)})
	listing, err := c.scan.Staging.Listing(ctx, c.in.Round.Listing)
	if err != nil {
		return fmt.Errorf("read the staged listing: %w", err)
	}
	staged, err := c.staged(ctx)
	if err != nil {
		return err
	}
	pinned, err := c.pinned(ctx)
	if err != nil {
		return err
	}
	c.merge = fleet.MergeInput{
		Pinned:       pinned,
		Staged:       staged,
		Listed:       listing.Experiments,
		Unasked:      unasked(listing.Experiments, c.in),
		RoundStarted: c.in.Round.StartedAt,
		Freshness:    c.scan.Config.Freshness,
	}
	c.gathered = true
	return nil
}

// pinned rows are those the round began with; nil when that version was cleaned up
// meanwhile. No other version may stand for it here: what a page left unsaid is
// about the rows of this one.
func (c *roundCommit) pinned(ctx context.Context) ([]fleet.Row, error) {
	snapshot, err := c.scan.Stats.At(ctx, c.in.Round.StatsVersion)
	switch {
	case errors.Is(err, lance.ErrGone):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read _stats at version %d: %w", c.in.Round.StatsVersion, err)
	}
	return snapshot.Rows, nil
}

func (c *roundCommit) staged(ctx context.Context) ([]fleet.Row, error) {
	pages := make([][]fleet.Row, len(c.in.Pages))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(pagesAtOnce)
	for i, p := range c.in.Pages {
		if p.Staged == "" {
			continue
		}
		group.Go(func() (err error) {
			if pages[i], err = c.scan.Staging.Page(ctx, p.Staged); err != nil {
				return fmt.Errorf("read the staged rows of page %d: %w", p.Page, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var rows []fleet.Row
	for _, p := range pages {
		rows = append(rows, p...)
	}
	return rows, nil
}

// try merges into the newest snapshot and commits strictly on top of it. The ledger
// is read anew each time: what retired meanwhile goes with this round, and what
// retires after this look goes with the next.
func (c *roundCommit) try(ctx context.Context) error {
	latest, err := c.scan.Stats.Latest(ctx)
	if err != nil {
		return fmt.Errorf("read _stats: %w", err)
	}
	ledger, err := c.scan.Ledger.Latest(ctx)
	if err != nil {
		return fmt.Errorf("read _retired: %w", err)
	}
	c.merge.Retired = ledger.Retired()
	out := c.mergeInto(latest)
	c.rows = out.Rows
	c.result = workflows.CommitResult{
		Hot: int64(len(out.Rows)), Added: out.Added, Dropped: out.Dropped,
		MissingOnce: out.MissingOnce, FreshnessOnly: out.FreshnessOnly,
	}
	if !out.Changed {
		return nil
	}
	props := map[string]string{fleet.ActionProperty: roundAction + c.in.Round.ID}
	version, err := c.scan.Writer.Commit(ctx, latest, out.Rows, props)
	if err != nil {
		return fmt.Errorf("commit _stats on version %d: %w", latest.Version, err)
	}
	c.result.Version = &version
	c.scan.Metrics.Committed(out.FreshnessOnly)
	return nil
}

func (c *roundCommit) mergeInto(latest *store.Snapshot) fleet.MergeOutput {
	in := c.merge
	in.Latest, in.LastCommitAt, in.Now = latest.Rows, latest.CommittedAt, c.scan.nowMS()
	return fleet.MergeRound(in)
}

// unasked names the experiments of pages that failed for good.
func unasked(listed []fleet.Experiment, in workflows.CommitInput) map[fleet.ID]bool {
	if in.FailedPages == 0 {
		return nil
	}
	finished := make(map[int]bool, len(in.Pages))
	for _, p := range in.Pages {
		finished[p.Page] = true
	}
	out := make(map[fleet.ID]bool)
	for i, exp := range listed {
		if !finished[i/max(in.PageSize, 1)] {
			out[exp.ID] = true
		}
	}
	return out
}

// StatsCommits lists the commits of `_stats` through observations.
type StatsCommits struct {
	Engine interface {
		Observe(ctx context.Context, targets []lance.ObserveTarget, o lance.ObserveOptions) ([]lance.ObserveResult, error)
	}
	URI string // of `_stats`
}

// Since implements Commits. No table means no commits.
func (s StatsCommits) Since(ctx context.Context, version uint64) ([]fleet.Commit, error) {
	walk := fleet.MaintenanceWalk() // passes every commit of ours, and so all of this table's
	walk.Operations = append(walk.Operations, "Overwrite", "Append")
	answers, err := s.Engine.Observe(ctx, []lance.ObserveTarget{{URI: s.URI, KnownVersion: version}},
		lance.ObserveOptions{WalkPast: walk, MaxCommits: roundCommitTop})
	if err != nil {
		return nil, err
	}
	switch answer := answers[0]; {
	case answer.Err == nil:
		return answer.Observation.Commits, nil
	case errors.Is(answer.Err, lance.ErrGone):
		return nil, nil
	default:
		return nil, answer.Err
	}
}
