package fleet

import (
	"cmp"
	"slices"
)

// Budgets are how many workflows of each kind one round may start. 0 starts none.
// No kind can use another's.
type Budgets struct {
	Merge   int
	Compact int
	Retire  int
}

// DefaultBudgets start fifty of each kind in a round.
func DefaultBudgets() Budgets { return Budgets{Merge: 50, Compact: 50, Retire: 50} }

// PlanInput is what a plan is made from.
type PlanInput struct {
	Rows      []Row // of `_stats`
	Policies  Policies
	Histories map[ID]History
	Running   map[ID]bool  // maintenance runs for them: left alone, and not counted
	Retired   map[ID]int64 // in the ledger, with the last write of the evidence: not started; nil = none
	Budgets   Budgets
	Now       int64 // unix ms
}

// PlanOutput says what to start in this round and what not, and why.
type PlanOutput struct {
	Starts      []Start   `json:"starts"`  // kind by kind, worst first
	Waiting     []Start   `json:"waiting"` // due, but over budget; worst first
	Blocked     []Blocked `json:"blocked"` // wanted, but something stands in the way; sorted by ID
	CoolingDown int       `json:"cooling_down"`
	NotDue      int       `json:"not_due"` // nothing is wanted
	Running     int       `json:"running"`
}

// Start is one workflow to start.
type Start struct {
	ID
	URI    string `json:"uri"`
	Action Todo   `json:"action"`
	Reason string `json:"reason"`
	Score  int64  `json:"score"` // how bad: pending generations, small fragments, or ms without a write
}

// Blocked is an experiment that would be maintained if nothing stood in the way.
type Blocked struct {
	ID
	Decision
}

// Plan chooses what a round starts: of each kind the worst, within its budget, and
// at most one workflow for an experiment. It depends on nothing but its input, and
// not on the order of the rows.
func Plan(in PlanInput) PlanOutput {
	p := planner{in: in, due: map[Todo][]candidate{}}
	for i := range in.Rows {
		p.consider(&in.Rows[i])
	}
	p.choose(DoRetire, in.Budgets.Retire)
	p.choose(DoMerge, in.Budgets.Merge)
	p.choose(DoCompact, in.Budgets.Compact)
	p.wait()
	slices.SortFunc(p.out.Blocked, func(a, b Blocked) int { return a.Compare(b.ID) })
	return p.out
}

type planner struct {
	in      PlanInput
	due     map[Todo][]candidate
	started map[ID]bool
	out     PlanOutput
}

// candidate is a possible start. Those that keep failing stand behind the others,
// so that what can't be helped never takes the place of what can.
type candidate struct {
	Start
	failing bool
}

func (c candidate) compare(o candidate) int {
	return cmp.Or(
		cmp.Compare(count(c.failing), count(o.failing)),
		cmp.Compare(o.Score, c.Score),
		c.Compare(o.ID),
	)
}

// consider notes every kind of maintenance that an experiment is due for. One that
// is to retire is not merged or compacted besides: that is part of it.
func (p *planner) consider(r *Row) {
	lastWrite, retired := p.in.Retired[r.ID]
	if p.in.Running[r.ID] {
		p.out.Running++
		return
	}
	if retired && r.LastWrite <= lastWrite {
		return
	}
	policy, _ := p.in.Policies.For(r.ID)
	h := p.in.Histories[r.ID]
	each := DecideEach(*r, policy, h, p.in.Now)
	d := each.first()
	p.out.CoolingDown += int(count(each.coolingDown()))
	switch {
	case d.Action == DoRetire:
		p.add(r, d, policy, h)
	case d.Action != DoNothing:
		p.add(r, each.Merge, policy, h)
		p.add(r, each.Compact, policy, h)
	case d.Held != "":
		p.out.Blocked = append(p.out.Blocked, Blocked{r.ID, d})
	default:
		p.out.NotDue++
	}
}

func (p *planner) add(r *Row, d Decision, policy Policy, h History) {
	if d.Action == DoNothing {
		return
	}
	failures := h.Tries(d.Action).Failures
	p.due[d.Action] = append(p.due[d.Action], candidate{
		Start:   Start{ID: r.ID, URI: r.URI, Action: d.Action, Reason: d.Reason, Score: score(r, d.Action, p.in.Now)},
		failing: policy.CooldownAfter > 0 && failures >= policy.CooldownAfter,
	})
}

// score is how bad it is.
func score(r *Row, kind Todo, now int64) int64 {
	switch kind {
	case DoMerge:
		return max(r.PendingWAL, 0)
	case DoCompact:
		if r.SmallFragments >= 0 {
			return r.SmallFragments
		}
		return r.FragmentCount
	}
	return now - r.LastWrite
}

// choose starts the worst of one kind, within its budget.
func (p *planner) choose(kind Todo, budget int) {
	if p.started == nil {
		p.started = map[ID]bool{}
	}
	slices.SortFunc(p.due[kind], candidate.compare)
	for _, c := range p.due[kind] {
		if budget <= 0 {
			return
		}
		if !p.started[c.ID] {
			p.started[c.ID] = true
			p.out.Starts = append(p.out.Starts, c.Start)
			budget--
		}
	}
}

// wait lists what no budget had room for, each experiment once.
func (p *planner) wait() {
	for _, kind := range []Todo{DoRetire, DoMerge, DoCompact} {
		for _, c := range p.due[kind] {
			if !p.started[c.ID] {
				p.started[c.ID] = true
				p.out.Waiting = append(p.out.Waiting, c.Start)
			}
		}
	}
}
