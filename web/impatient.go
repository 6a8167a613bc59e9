package web

import (
	"context"
	"time"

	"lancefleet/control"
	"lancefleet/fleet"
	"lancefleet/workflows"
)

// whileAway is how long Temporal is waited for while it is known not to answer. The
// feed goes on asking, and notices when it is back.
const whileAway = 2 * time.Second

// impatient doesn't let people wait for what is away.
type impatient struct {
	steering
	feed *feed
}

func (i impatient) soon(ctx context.Context) (context.Context, context.CancelFunc) {
	if i.feed.moment().temporalProblem == "" {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, whileAway)
}

func (i impatient) Schedule(ctx context.Context) (Schedule, error) {
	ctx, cancel := i.soon(ctx)
	defer cancel()
	return i.steering.Schedule(ctx)
}

func (i impatient) Pause(ctx context.Context, by, reason string) error {
	ctx, cancel := i.soon(ctx)
	defer cancel()
	return i.steering.Pause(ctx, by, reason)
}

func (i impatient) Resume(ctx context.Context, by, reason string) error {
	ctx, cancel := i.soon(ctx)
	defer cancel()
	return i.steering.Resume(ctx, by, reason)
}

func (i impatient) Scan(ctx context.Context, full, next bool, by string) (Started, error) {
	ctx, cancel := i.soon(ctx)
	defer cancel()
	return i.steering.Scan(ctx, full, next, by)
}

func (i impatient) Round(ctx context.Context, workflowID, runID string, wait time.Duration) (*fleet.RoundRecord, error) {
	ctx, cancel := i.soon(ctx)
	defer cancel()
	return i.steering.Round(ctx, workflowID, runID, wait)
}

func (i impatient) Refresh(ctx context.Context, id fleet.ID, by string) (workflows.RefreshResult, error) {
	ctx, cancel := i.soon(ctx)
	defer cancel()
	return i.steering.Refresh(ctx, id, by)
}

func (i impatient) Maintain(ctx context.Context, action string, r control.MaintenanceRequest) (control.Started, error) {
	ctx, cancel := i.soon(ctx)
	defer cancel()
	return i.steering.Maintain(ctx, action, r)
}

func (i impatient) Maintenance(ctx context.Context, workflowID, runID string, wait time.Duration) (*workflows.MaintenanceResult, error) {
	ctx, cancel := i.soon(ctx)
	defer cancel()
	return i.steering.Maintenance(ctx, workflowID, runID, wait)
}

const (
	// whileGone is how long a log is waited for while storage is known not to answer:
	// pages do without, or show what they read before.
	whileGone = time.Second
	// slowLook is how long the feed's own look at storage may take before nobody else
	// is made to find out.
	slowLook = 3 * time.Second
)

// gone says whether storage seems not to answer.
func (f *feed) gone() bool {
	since := f.looking.Load()
	return f.moment().storageProblem != "" || since > 0 && f.now().UnixMilli()-since > slowLook.Milliseconds()
}

// soon bounds the reading of a log.
func (f *feed) soon(ctx context.Context) (context.Context, context.CancelFunc) {
	if f.gone() {
		return context.WithTimeout(ctx, whileGone)
	}
	return context.WithCancel(ctx)
}

// soonJournal, soonSamples and soonRounds don't let people wait for storage that is
// away.
type (
	soonJournal struct {
		journal
		feed *feed
	}
	soonSamples struct {
		samples
		feed *feed
	}
	soonRounds struct {
		rounds
		feed *feed
	}
)

func (j soonJournal) All(ctx context.Context) ([]fleet.Action, error) {
	ctx, cancel := j.feed.soon(ctx)
	defer cancel()
	return j.journal.All(ctx)
}

func (j soonJournal) Of(ctx context.Context, id fleet.ID, n int) ([]fleet.Action, error) {
	ctx, cancel := j.feed.soon(ctx)
	defer cancel()
	return j.journal.Of(ctx, id, n)
}

func (s soonSamples) All(ctx context.Context) ([]fleet.Sample, error) {
	ctx, cancel := s.feed.soon(ctx)
	defer cancel()
	return s.samples.All(ctx)
}

func (s soonSamples) Of(ctx context.Context, id fleet.ID, n int) ([]fleet.Sample, error) {
	ctx, cancel := s.feed.soon(ctx)
	defer cancel()
	return s.samples.Of(ctx, id, n)
}

func (r soonRounds) Latest(ctx context.Context, n int) ([]fleet.RoundRecord, error) {
	ctx, cancel := r.feed.soon(ctx)
	defer cancel()
	return r.rounds.Latest(ctx, n)
}
