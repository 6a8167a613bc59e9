package web

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/workflows"
)

// closeLookTimeout bounds a look at every shard, fragment and version of one
// experiment; deepLookTimeout also a read of its keys.
const (
	closeLookTimeout = 60 * time.Second
	deepLookTimeout  = 80 * time.Second // less than an answer may take
)

type experimentPlanInput struct {
	Name         string `path:"name" doc:"kind:name, or bare"`
	Action       string `query:"action" enum:"retire,optimize,seal,accept" default:"retire"`
	Force        bool   `query:"force" doc:"Of retire: overlook the age"`
	Shard        string `query:"shard" doc:"Of seal"`
	AllowUnknown bool   `query:"allow_unknown" doc:"Of seal"`
	LeaveOut     bool   `query:"leave_out" doc:"Of accept"`
}

type experimentPlanOutput struct {
	Body MaintenancePlan
}

// getExperimentPlan is a dry run by GET.
func (s *Server) getExperimentPlan(ctx context.Context, in *experimentPlanInput) (*experimentPlanOutput, error) {
	r := asked{action: in.Action}
	r.Force, r.Shard, r.AllowUnknown, r.LeaveOut = in.Force, line(in.Shard), in.AllowUnknown, in.LeaveOut
	if in.Action == workflows.ActionSeal {
		if err := checkShard(r.Shard); err != nil {
			return nil, err
		}
	}
	plan, err := s.dryRun(ctx, in.Name, r)
	if err != nil {
		return nil, err
	}
	return &experimentPlanOutput{Body: plan}, nil
}

// dryRun says what maintenance would find and do. It reads and writes nothing. What
// would not even be started is told by the tables, as when it is asked for; what
// would be, by a look at the experiment as it is, as the run will take it.
func (s *Server) dryRun(ctx context.Context, name string, r asked) (MaintenancePlan, error) {
	m := s.feed.moment()
	if m.view == nil {
		return MaintenancePlan{}, notLoaded(m)
	}
	t, err := s.resolve(ctx, m.view, name)
	if err != nil {
		return MaintenancePlan{}, err
	}
	v := s.verdict(m, t, r)
	plan := MaintenancePlan{
		ID: t.exp.String(), Action: r.action, Start: v.start, Reason: v.reason, NotBefore: timeOf(v.notBefore), Blocking: []string{}, Clears: []string{},
	}
	done, err := s.lookClosely(ctx, closeLookTimeout)
	if err != nil {
		return plan, err
	}
	defer done.end()
	switch r.action {
	case workflows.ActionSeal:
		return s.sealPlan(done.ctx, plan, t, r)
	case workflows.ActionAccept:
		return s.acceptPlan(done.ctx, plan, m, t, r)
	}
	return s.previewPlan(done.ctx, plan, m, t, r)
}

func (s *Server) sealPlan(ctx context.Context, plan MaintenancePlan, t target, r asked) (MaintenancePlan, error) {
	policy, _ := s.policies.For(t.exp.ID)
	sealed, err := s.inspect.PreviewSeal(ctx, lance.SealSpec{URI: t.exp.URI, Shard: r.Shard, SilentFor: policy.LiveWithin, AllowUnknown: r.AllowUnknown})
	if err != nil {
		return plan, fmt.Errorf("looking at shard %s of %s: %w", r.Shard, t.exp.ID, err)
	}
	plan.Seal = &sealed
	if sealed.Refused != nil {
		plan.Start, plan.Reason = false, sealed.Refused.Sentence
		plan.Blocking = append(plan.Blocking, sealed.Refused.Sentence)
	}
	return plan, nil
}

func (s *Server) previewPlan(ctx context.Context, plan MaintenancePlan, m moment, t target, r asked) (MaintenancePlan, error) {
	policy, _ := s.policies.For(t.exp.ID)
	history := m.view.histories[t.exp.ID]
	now := s.now().UnixMilli()
	if plan.Start && s.observer != nil {
		o, err := s.observer.Observe(ctx, t.exp, t.row)
		if err != nil {
			return plan, fmt.Errorf("observing %s: %w", t.exp.ID, err)
		}
		row := fleet.Observed(t.exp, t.row, o, now)
		history.ForeignDrain = history.ForeignDrain || t.row.Known && len(fleet.DrainedByOthers(t.row.Shards, row.Shards)) > 0
		_, d := fleet.DecideAsked(r.asks(), row, policy, history, now)
		plan.Start, plan.Reason, plan.NotBefore = d.Action != fleet.DoNothing, d.Reason, timeOf(d.NotBefore)
		t.row = &row
	}
	limits, _ := fleet.AskedFor(policy, history)
	preview, err := s.inspect.Preview(ctx, lance.PreviewSpec{
		URI: t.exp.URI, RememberedMarks: history.Marks(t.row), TargetRows: limits.RowsPerFragment(t.row),
		MinFragments: int(limits.CompactMinFragments), CleanupOlderThan: limits.CleanupOlderThan,
	})
	if err != nil {
		return plan, fmt.Errorf("looking at %s: %w", t.exp.ID, err)
	}
	plan.count(preview)
	plan.foresee(preview, policy.Knowing(history).Reach(), now)
	return plan, nil
}

// count sums a preview up.
func (p *MaintenancePlan) count(preview lance.Preview) {
	var rows, bytes int64
	for _, shard := range preview.Merge {
		if shard.Refused != nil {
			continue
		}
		p.Generations += shard.Generations
		rows, bytes = plus(rows, shard.Rows), plus(bytes, shard.Bytes)
	}
	p.MergedRows, p.MergedBytes = numberOf(true, rows), numberOf(true, bytes)
	p.FragmentsIn, p.FragmentsOut, p.CompactBytes = preview.Compact.FragmentsRemoved, preview.Compact.FragmentsAdded, numberOf(true, preview.Compact.Bytes)
	p.Versions, p.VersionsBytes = preview.Versions.Removed, preview.Versions.Bytes
	p.Preview = &preview
}

// foresee tells what the run does away with itself from what stops it. A merge that
// is refused stops no compaction; a retirement is stopped by anything that is left.
func (p *MaintenancePlan) foresee(preview lance.Preview, reach fleet.Reach, now int64) {
	merges := make([]fleet.ForeseenMerge, len(preview.Merge))
	for i, shard := range preview.Merge {
		merges[i] = fleet.ForeseenMerge{Shard: shard.Shard, Generations: shard.Generations}
		if shard.Refused != nil {
			merges[i].Refused = shard.Refused.Sentence
		}
	}
	f := reach.Foresee(merges, lance.SeenTails(preview.Tails), preview.Blocking, now)
	p.Clears, p.Blocking = append(p.Clears, f.Clears...), append(p.Blocking, f.Stops...)
	if p.Action == workflows.ActionRetire && p.Start && len(f.Stops) > 0 {
		p.Start, p.Reason = false, "it would be refused: "+strings.Join(f.Stops, "; ")
	}
}

// plus adds what is known; one unknown part makes the sum unknown.
func plus(sum, n int64) int64 {
	if sum < 0 || n < 0 {
		return -1
	}
	return sum + n
}

type verifyInput struct {
	Name string `path:"name" doc:"kind:name, or bare"`
	Deep bool   `query:"deep" doc:"Compare rows with distinct keys: reads the key columns"`
}

type verifyOutput struct {
	Body Verification
}

// getVerification reopens everything, without caches.
func (s *Server) getVerification(ctx context.Context, in *verifyInput) (*verifyOutput, error) {
	m := s.feed.moment()
	if m.view == nil {
		return nil, notLoaded(m)
	}
	t, err := s.resolve(ctx, m.view, in.Name)
	if err != nil {
		return nil, err
	}
	out, err := s.verification(ctx, m, t, in.Deep)
	if err != nil {
		return nil, err
	}
	return &verifyOutput{Body: out}, nil
}

func (s *Server) verification(ctx context.Context, m moment, t target, deep bool) (Verification, error) {
	limit := closeLookTimeout
	if deep {
		limit = deepLookTimeout
	}
	done, err := s.lookClosely(ctx, limit)
	if err != nil {
		return Verification{}, err
	}
	defer done.end()
	evidence, err := s.inspect.Verify(done.ctx, t.exp.URI, lance.VerifyOptions{Deep: deep})
	if err != nil {
		return Verification{}, fmt.Errorf("verifying %s: %w", t.exp.ID, err)
	}
	live, err := s.unflushed(done.ctx, t, &evidence)
	if err != nil {
		return Verification{}, err
	}
	out := Verification{Unflushed: live, ID: t.exp.String(), URI: t.exp.URI, Clean: evidence.Clean(), Deep: deep, Evidence: evidence, State: Hot}
	if t.row != nil {
		out.State = m.view.state(t.at, m.retiring)
	}
	out.AgainstLedger = againstLedger(m, t, evidence)
	return out, nil
}

// unflushed counts entries that a writer may flush yet, and has the sentences about
// them say so: the native library calls them stranded, since it knows no policy.
func (s *Server) unflushed(ctx context.Context, t target, e *fleet.Evidence) (int64, error) {
	if e.Stranded == 0 {
		return 0, nil
	}
	tails, err := s.inspect.ClassifyTail(ctx, t.exp.URI)
	if err != nil {
		return 0, fmt.Errorf("looking at the write-ahead log of %s: %w", t.exp.ID, err)
	}
	policy, _ := s.policies.For(t.exp.ID)
	reach, now := policy.Reach(), s.now().UnixMilli()
	e.Blocking = reach.Reword(e.Blocking, lance.SeenTails(tails), now)
	var live int64
	for _, tail := range tails {
		if reach.Live(tail.Seen(), now) {
			live += tail.Stranded
		}
	}
	return live, nil
}

// againstLedger says what a verification means for a retired experiment, without
// judging who moved it: a look with the commits does that.
func againstLedger(m moment, t target, e fleet.Evidence) string {
	if t.row == nil || m.view.retired[t.at] == nil {
		return ""
	}
	if m.view.retired[t.at].Evidence.Fingerprint.Equal(e.Fingerprint) {
		return "same as when it retired"
	}
	return "moved since it retired: wake says whether it was written"
}

// closeLook is the right to look closely, until end.
type closeLook struct {
	ctx context.Context
	end func()
}

// lookClosely waits for a slot.
func (s *Server) lookClosely(ctx context.Context, limit time.Duration) (closeLook, error) {
	if s.inspect == nil {
		return closeLook{}, refuse(http.StatusServiceUnavailable, "this server cannot look at data: it runs without the native library")
	}
	if err := s.spend(ctx); err != nil {
		return closeLook{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	back, err := s.slot(ctx)
	if err != nil {
		cancel()
		return closeLook{}, err
	}
	return closeLook{ctx, func() { back(); cancel() }}, nil
}
