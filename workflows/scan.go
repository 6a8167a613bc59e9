package workflows

import (
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"
)

// ScanWorkflow is one round: look at the whole fleet, commit what changed.
// It fails when the sources can't be listed, when the commit can't be made or
// when the round can't be recorded; never because of an experiment or a page.
func ScanWorkflow(ctx workflow.Context, args ScanArgs) (RoundResult, error) {
	s := newScan(ctx, args)
	err := s.run(ctx)
	setOutcome(ctx, s.outcome(err))
	return s.record, err
}

// scan is the state of one round.
type scan struct {
	args        ScanArgs
	round       Round
	pages       []Page
	done        []PageResult
	failedPages int
	retired     PageResult // of all pages: only the counts of retired ones
	returned    int
	started     string // what maintenance it started
	record      RoundResult
}

func newScan(ctx workflow.Context, args ScanArgs) *scan {
	info := workflow.GetInfo(ctx)
	return &scan{args: args, record: RoundResult{
		RoundID:    info.WorkflowExecution.RunID,
		WorkflowID: info.WorkflowExecution.ID,
		StartedAt:  workflow.Now(ctx).UnixMilli(),
		By:         args.By,
	}}
}

func (s *scan) run(ctx workflow.Context) error {
	if err := s.begin(ctx); err != nil {
		return s.stop(ctx, "begin round", err)
	}
	if err := s.observe(ctx); err != nil {
		return s.stop(ctx, "observe", err)
	}
	if err := s.commit(ctx); err != nil {
		return s.stop(ctx, "commit round", err)
	}
	if err := s.remember(ctx); err != nil {
		return s.stop(ctx, "record round", err)
	}
	s.maintain(ctx)
	return nil
}

// begin pins what the round looks at and splits it into pages.
func (s *scan) begin(ctx workflow.Context) error {
	workflow.SetCurrentDetails(ctx, "Listing the fleet.")
	ctx = step(ctx, beginTimeout, beginAttempts, "list sources, pin tables")
	if err := workflow.ExecuteActivity(ctx, BeginRoundName, s.args).Get(ctx, &s.round); err != nil {
		return err
	}
	s.record.Number = s.round.Number
	s.record.StorageRequests = s.round.Observed
	first := s.round.First
	s.round.First = nil // told once, not with every page
	s.pages = hintedFirst(splitPages(s.round, s.args.PageSize), first)
	return nil
}

// observe runs the pages, a bounded number at a time, and goes on when one fails.
func (s *scan) observe(ctx workflow.Context) error {
	selector := workflow.NewSelector(ctx)
	next, inFlight := 0, 0
	for next < len(s.pages) || inFlight > 0 {
		for next < len(s.pages) && inFlight < atLeastOne(s.args.MaxPagesAtOnce) && ctx.Err() == nil {
			page := s.pages[next]
			selector.AddFuture(s.startPage(ctx, page), func(f workflow.Future) {
				inFlight--
				s.endPage(ctx, page, f)
			})
			next++
			inFlight++
		}
		if inFlight == 0 {
			break
		}
		selector.Select(ctx)
	}
	return ctx.Err()
}

func (s *scan) startPage(ctx workflow.Context, page Page) workflow.Future {
	summary := fmt.Sprintf("page %d of %d: experiments %d to %d",
		page.Number+1, len(s.pages), page.Offset+1, page.Offset+page.Count)
	return workflow.ExecuteActivity(step(ctx, observeTimeout, observeAttempts, summary), ObserveName, page)
}

// endPage counts one page. The rows of a page that failed for good are carried,
// and each of its experiments counts as one that gave no answer.
func (s *scan) endPage(ctx workflow.Context, page Page, f workflow.Future) {
	var result PageResult
	if err := f.Get(ctx, &result); err != nil {
		if ctx.Err() != nil {
			return // the round is cancelled: nothing is counted any more
		}
		workflow.GetLogger(ctx).Error("page failed, its rows are carried", "page", page.Number, "error", err)
		s.failedPages++
		s.record.Failed += int64(page.Count)
		s.describe(ctx)
		return
	}
	s.done = append(s.done, result)
	s.record.Observed += int64(result.Observed)
	s.record.Skipped += int64(result.Skipped)
	s.record.Failed += int64(result.Failed)
	s.record.BackingOff += int64(result.BackingOff)
	s.record.StorageRequests = s.record.StorageRequests.Add(result.Requests)
	s.retired.Retired += result.Retired
	s.retired.Checked += result.Checked
	s.describe(ctx)
}

// commit merges what the pages staged into `_stats`.
func (s *scan) commit(ctx workflow.Context) error {
	in := CommitInput{Round: s.round, Pages: s.done, FailedPages: s.failedPages, PageSize: atLeastOne(s.args.PageSize)}
	var out CommitResult
	ctx = step(ctx, commitTimeout, commitAttempts, "merge into _stats, one commit")
	if err := workflow.ExecuteActivity(ctx, CommitRoundName, in).Get(ctx, &out); err != nil {
		return err
	}
	s.record.CommittedVersion = out.Version
	s.record.Hot = out.Hot
	s.returned = out.Returned
	s.record.StorageRequests = s.record.StorageRequests.Add(out.Requests)
	return nil
}

// remember writes the round's row of `_rounds` and drops its staged pages.
func (s *scan) remember(ctx workflow.Context) error {
	finished := workflow.Now(ctx).UnixMilli()
	s.record.FinishedAt = finished
	s.record.DurationSeconds = float64(finished-s.record.StartedAt) / 1000
	s.describe(ctx)
	ctx = step(ctx, recordTimeout, recordAttempts, "append to _rounds")
	return workflow.ExecuteActivity(ctx, RecordRoundName, s.record).Get(ctx, nil)
}

// changeMaintain is the version that starts maintenance: rounds that began before it
// replay without.
const changeMaintain = "start-maintenance"

// maintain starts what the committed rows call for, and waits for none of it. A
// round has done its own work by then: it does not fail because of this.
func (s *scan) maintain(ctx workflow.Context) {
	if workflow.GetVersion(ctx, changeMaintain, workflow.DefaultVersion, 1) == workflow.DefaultVersion {
		return
	}
	in := StartMaintenanceInput{Fleet: s.args.Fleet, FleetID: s.args.FleetID, Round: s.round}
	var out StartMaintenanceResult
	actx := step(ctx, startTimeout, startAttempts, "plan, start what is due")
	if err := workflow.ExecuteActivity(actx, StartMaintenanceName, in).Get(ctx, &out); err != nil {
		workflow.GetLogger(ctx).Error("maintenance was not started", "round", s.round.Number, "error", err)
		s.started = " Maintenance was not started: " + Sentence(err) + "."
	} else {
		s.started = " " + out.sentence()
	}
	s.describe(ctx)
}

// sentence says what a round started, for its page in Temporal's web UI.
func (r StartMaintenanceResult) sentence() string {
	if r.Nothing != "" {
		return "Nothing started: " + r.Nothing + "."
	}
	text := fmt.Sprintf("Started %d merges, %d compactions, %d retirements", r.Merges, r.Compactions, r.Retirements)
	if r.AlreadyRunning > 0 {
		text += fmt.Sprintf(", %d ran already", r.AlreadyRunning)
	}
	text += fmt.Sprintf("; %d wait for a later round, %d cool down, %d are blocked.", r.Waiting, r.CoolingDown, r.Blocked)
	if r.Tables {
		text += " Upkeep of our own tables started."
	}
	return text
}

func (s *scan) stop(ctx workflow.Context, what string, err error) error {
	err = failed(fmt.Sprintf("%s %d", what, s.round.Number), err)
	workflow.SetCurrentDetails(ctx, "Failed: "+Sentence(err))
	return err
}

func (s *scan) outcome(err error) string {
	if err == nil && s.failedPages > 0 {
		return OutcomePartial
	}
	return outcomeOf(err)
}

// describe keeps the round's page in Temporal's web UI readable.
func (s *scan) describe(ctx workflow.Context) {
	r := s.record
	text := fmt.Sprintf("Round %d: page %d of %d. %d observed, %d unchanged, %d without answer, %d not asked (backing off).",
		r.Number, len(s.done)+s.failedPages, len(s.pages), r.Observed, r.Skipped, r.Failed, r.BackingOff)
	if s.failedPages > 0 {
		text += fmt.Sprintf(" %d pages failed for good: their rows are carried.", s.failedPages)
	}
	if s.retired.Retired > 0 {
		text += fmt.Sprintf(" %d retired, %d of them looked at, %d hot again.", s.retired.Retired, s.retired.Checked, s.returned)
	}
	switch {
	case r.FinishedAt == 0:
	case r.CommittedVersion != nil:
		text += fmt.Sprintf(" Committed `_stats` version %d with %d rows.", *r.CommittedVersion, r.Hot)
	default:
		text += fmt.Sprintf(" Nothing to commit; %d rows.", r.Hot)
	}
	workflow.SetCurrentDetails(ctx, text+s.started)
}

// splitPages cuts the listing into pages of at most size experiments.
func splitPages(round Round, size int) []Page {
	size = atLeastOne(size)
	pages := make([]Page, 0, (round.Experiments+size-1)/size)
	for offset := 0; offset < round.Experiments; offset += size {
		pages = append(pages, Page{
			Round:  round,
			Number: len(pages),
			Offset: offset,
			Count:  min(size, round.Experiments-offset),
		})
	}
	return pages
}

// hintedFirst puts the pages with experiments that events named before the others.
func hintedFirst(pages []Page, first []int) []Page {
	if len(first) == 0 {
		return pages
	}
	named := make(map[int]bool, len(first))
	for _, number := range first {
		named[number] = true
	}
	slices.SortStableFunc(pages, func(a, b Page) int {
		switch {
		case named[a.Number] == named[b.Number]:
			return 0
		case named[a.Number]:
			return -1
		}
		return 1
	})
	return pages
}

func atLeastOne(n int) int { return max(n, 1) }
