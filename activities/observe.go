package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/store"
	"lancefleet/workflows"
)

// ObserveActivity looks at one page of the fleet: a probe for what has a
// fingerprint, a full observation for what is new, moved, or unclear. One bad
// experiment costs its own row a failure, never the page.
func (a *Scan) ObserveActivity(ctx context.Context, page workflows.Page) (workflows.PageResult, error) {
	defer a.first.round()()
	result := workflows.PageResult{Page: page.Number}
	err := a.attempt(ctx, func(ctx context.Context, l *lease) error {
		p, err := a.openPage(ctx, page, l)
		if err != nil {
			return err
		}
		if err := p.look(ctx); err != nil {
			return fmt.Errorf("page %d: %w", page.Number, err)
		}
		result = p.result
		return nil
	})
	return result, err
}

// page is one attempt at one page.
type page struct {
	scan      *Scan
	in        workflows.Page
	lease     *lease
	snapshot  *store.Snapshot
	ledger    *store.LedgerView
	exps      []fleet.Experiment
	inFull    []int     // indexes into exps: to be observed in full
	retired   []retired // whose turn it is
	hinted    map[fleet.ID]bool
	rows      []fleet.Row
	foreign   []fleet.Action // experiments that somebody else merges
	recounted int            // observed although the base's version did not move
	result    workflows.PageResult
}

func (a *Scan) openPage(ctx context.Context, in workflows.Page, l *lease) (*page, error) {
	listing, err := a.Staging.Listing(ctx, in.Round.Listing)
	if err != nil {
		return nil, fmt.Errorf("read the staged listing: %w", err)
	}
	if in.Offset < 0 || in.Count < 0 || in.Offset+in.Count > len(listing.Experiments) {
		return nil, classError(string(lance.Invalid), fmt.Errorf("page %d: experiments %d to %d of %d",
			in.Number, in.Offset, in.Offset+in.Count, len(listing.Experiments)))
	}
	snapshot, err := a.pinned(ctx, in.Round)
	if err != nil {
		return nil, err
	}
	ledger, err := a.Ledger.Latest(ctx)
	if err != nil {
		return nil, fmt.Errorf("read _retired: %w", err)
	}
	hinted, err := a.hinted(ctx, in.Round)
	if err != nil {
		return nil, err
	}
	return &page{
		scan: a, hinted: hinted, in: in, lease: l, snapshot: snapshot, ledger: ledger,
		exps:   listing.Experiments[in.Offset : in.Offset+in.Count],
		result: workflows.PageResult{Page: in.Number},
	}, nil
}

// pinned is the snapshot that the round began with. If it was cleaned up meanwhile,
// the newest will do: rows are merged by what was observed when.
func (a *Scan) pinned(ctx context.Context, round workflows.Round) (*store.Snapshot, error) {
	snapshot, err := a.Stats.At(ctx, round.StatsVersion)
	if errors.Is(err, lance.ErrGone) {
		snapshot, err = a.Stats.Latest(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("read _stats at version %d: %w", round.StatsVersion, err)
	}
	return snapshot, nil
}

// hinted are the experiments that events named. A round is not stopped by hints that
// can't be read: it finds the same, only later.
func (a *Scan) hinted(ctx context.Context, round workflows.Round) (map[fleet.ID]bool, error) {
	if round.Hints == "" {
		return nil, nil
	}
	ids, err := a.Staging.Hints(ctx, round.Hints)
	if err != nil && ctx.Err() == nil {
		a.Log.WarnContext(ctx, "read what events named", "error", err)
		return nil, nil
	}
	return ids, err
}

func (p *page) look(ctx context.Context) error {
	if err := p.probe(ctx, p.plan()); err != nil {
		return err
	}
	for chunk := range slices.Chunk(p.inFull, p.scan.Config.ObserveChunk) {
		p.lease.report(Progress{Step: "observe", Done: p.result.Observed, Of: len(p.inFull)})
		if err := p.observe(ctx, chunk); err != nil {
			return err
		}
	}
	if err := p.lookAtRetired(ctx); err != nil {
		return err
	}
	return p.stage(ctx)
}

// toProbe is a batch of probes, and which experiments they are about.
type toProbe struct {
	targets []lance.ProbeTarget
	index   []int
}

// plan decides for each experiment how it is looked at.
func (p *page) plan() toProbe {
	clock := fleet.RoundClock{
		Number: p.in.Round.Number, Now: p.scan.nowMS(), LastRoundAt: p.in.Round.LastRoundAt, Full: p.in.Round.Full,
	}
	batch := toProbe{
		targets: make([]lance.ProbeTarget, 0, len(p.exps)),
		index:   make([]int, 0, len(p.exps)),
	}
	for i, exp := range p.exps {
		row := p.row(exp.ID)
		if entry := p.ledger.Get(exp.ID); fleet.StateOf(row, entry) == fleet.Retired {
			p.result.Retired++
			if p.hinted[exp.ID] || fleet.DueForCheck(exp.ID, clock, p.roundsPerHour()) {
				p.retired = append(p.retired, retired{exp, entry})
			}
			continue
		}
		planned := fleet.PlanProbe
		if p.hinted[exp.ID] {
			planned = fleet.PlanHinted
		}
		switch plan := planned(row, exp, clock, p.scan.Config.Probe); {
		case plan.Skip:
			p.result.BackingOff++
		case plan.Observe:
			p.inFull = append(p.inFull, i)
		default:
			batch.index = append(batch.index, i)
			batch.targets = append(batch.targets, lance.ProbeTarget{
				URI: exp.URI, Fingerprint: row.Fingerprint, Deep: plan.Deep, ListVersions: plan.ListVersions,
			})
		}
	}
	return batch
}

// probe asks the cheap question. All go in one batch, so that those that hang wait
// beside each other.
func (p *page) probe(ctx context.Context, batch toProbe) error {
	if len(batch.targets) == 0 {
		return nil
	}
	p.lease.report(Progress{Step: "probe", Of: len(batch.targets)})
	answers, err := p.scan.Engine.Probe(ctx, batch.targets, p.options(p.scan.Config.ProbeTimeout))
	if err != nil {
		return fmt.Errorf("probe %d experiments: %w", len(batch.targets), err)
	}
	if err := ctx.Err(); err != nil {
		return err // the answers only say that they were cancelled
	}
	for n, answer := range answers {
		p.answered(batch.index[n], answer)
	}
	return nil
}

func (p *page) answered(i int, answer lance.ProbeResult) {
	p.result.Requests = p.result.Requests.Add(answer.Requests)
	switch {
	case answer.State == lance.Unchanged:
		p.result.Skipped++
		if row := p.row(p.exps[i].ID); row.Failing() {
			p.rows = append(p.rows, fleet.Confirmed(*row, p.scan.nowMS()))
		}
	case answer.Err != nil && answer.Err.Class == lance.Timeout:
		p.failed(i, answer.Err) // it hangs: asking more would only wait again
	default:
		p.inFull = append(p.inFull, i)
	}
}

// observe measures some experiments in full.
func (p *page) observe(ctx context.Context, chunk []int) error {
	targets := make([]lance.ObserveTarget, len(chunk))
	for n, i := range chunk {
		targets[n] = p.scan.observeTarget(p.exps[i], p.row(p.exps[i].ID))
	}
	answers, err := p.scan.Engine.Observe(ctx, targets, p.scan.observeOptions(p.concurrency()))
	if err != nil {
		return fmt.Errorf("observe %d experiments: %w", len(targets), err)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	for n, answer := range answers {
		p.measured(chunk[n], answer)
	}
	return nil
}

func (p *page) measured(i int, answer lance.ObserveResult) {
	p.result.Requests = p.result.Requests.Add(answer.Requests)
	if answer.Err != nil {
		p.failed(i, answer.Err)
		return
	}
	p.result.Observed++
	prev := p.row(p.exps[i].ID)
	if prev != nil && prev.Known && prev.Fingerprint.Version == answer.Observation.Fingerprint.Version {
		p.recounted++
	}
	row := fleet.Observed(p.exps[i], prev, *answer.Observation, p.scan.nowMS())
	if drained := drainedByOthers(prev, row); len(drained) > 0 {
		p.foreign = append(p.foreign, p.scan.foreignAction(p.in.Round.ID, prev, row, drained))
	}
	p.rows = append(p.rows, row)
}

// drainedByOthers names the shards of which somebody else merged generations since
// prev was observed.
func drainedByOthers(prev *fleet.Row, row fleet.Row) []string {
	if prev == nil || !prev.Known || prev.URI != row.URI {
		return nil
	}
	return fleet.DrainedByOthers(prev.Shards, row.Shards)
}

// foreignAction tells the journal, which remembers it for the decisions to come.
func (a *Scan) foreignAction(runID string, prev *fleet.Row, row fleet.Row, shards []string) fleet.Action {
	after := fleet.FactsOf(&row)
	after.ForeignDrain = true
	return fleet.Action{
		ID: actionID(runID, row.ID, fleet.ActForeign), At: a.nowMS(), Kind: fleet.ActForeign, Target: row.ID.String(), Outcome: fleet.OutcomeDone,
		Why:    "generations of shard " + strings.Join(shards, ", ") + " were merged by somebody else: live shards are left to them",
		Before: fleet.FactsOf(prev).Text(), After: after.Text(), RunID: runID,
	}
}

func (p *page) failed(i int, err *lance.Error) {
	p.result.Failed++
	p.rows = append(p.rows, p.scan.failedRow(p.exps[i], p.row(p.exps[i].ID), err))
}

// lookAtRetired asks this round's slice of the retired ones. A written one gets a
// row here and leaves the ledger when the round has committed it.
func (p *page) lookAtRetired(ctx context.Context) error {
	if len(p.retired) == 0 {
		return nil
	}
	p.lease.report(Progress{Step: "probe retired", Of: len(p.retired)})
	look, err := p.scan.lookAt(ctx, p.retired, p.concurrency(), hourlyProbe(p.scan.nowMS()))
	if err != nil {
		return err
	}
	p.result.Checked, p.result.Written = len(p.retired), len(look.written)
	p.result.Failed += len(look.failures)
	p.result.Requests = p.result.Requests.Add(look.requests)
	p.rows = append(p.rows, look.written...)
	p.scan.Metrics.RetiredChecked(len(p.retired))
	return p.scan.renew(ctx, look.renewed, p.in.Round.ID)
}

// roundsPerHour is 1 where nothing is scheduled: each round then looks at all.
func (p *page) roundsPerHour() int64 {
	const hour = 60 * 60
	if p.in.Round.IntervalSecs <= 0 {
		return 1
	}
	return hour / p.in.Round.IntervalSecs
}

// stage hands the rows over to CommitRound under a key that no other attempt has.
func (p *page) stage(ctx context.Context) error {
	p.scan.Metrics.PageDone(p.result.Observed, p.result.Skipped)
	p.scan.Metrics.PendingRecounted(p.recounted)
	if len(p.foreign) > 0 {
		if err := p.scan.Journal.Append(ctx, p.foreign...); err != nil {
			return fmt.Errorf("journal %d foreign merges: %w", len(p.foreign), err)
		}
	}
	if len(p.rows) == 0 {
		return nil
	}
	key, err := p.scan.Staging.PutPage(ctx, p.in.Round.ID, p.in.Number, attemptOf(ctx), p.rows)
	if err != nil {
		return fmt.Errorf("stage %d rows: %w", len(p.rows), err)
	}
	p.result.Staged = key
	p.result.Requests.Put++
	return nil
}

func (p *page) row(id fleet.ID) *fleet.Row {
	row, _ := p.snapshot.Row(id)
	return row
}

func (p *page) options(timeout time.Duration) lance.BatchOptions {
	return lance.BatchOptions{Concurrency: p.concurrency(), Timeout: timeout}
}

// concurrency is this page's share: of a small round one page may have it all.
func (p *page) concurrency() int {
	pages := (p.in.Round.Experiments + p.in.Count - 1) / max(p.in.Count, 1)
	return max(1, p.scan.Config.Concurrency/max(1, min(pages, p.scan.Config.PagesAtOnce)))
}
