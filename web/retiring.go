package web

import (
	"cmp"
	"slices"

	"lancefleet/fleet"
)

// Retirement is where the fleet stands with experiments that nobody writes any more.
type Retirement struct {
	Candidates    []Planned     `json:"candidates" doc:"Due now, the coldest first"`
	CandidatesAll int           `json:"candidates_total"`
	DueSoon       int           `json:"due_soon" doc:"That become due within a day if nobody writes them"`
	Blocked       []Blocked     `json:"blocked" doc:"Cold, but something stands in the way; the longest first"`
	BlockedAll    int           `json:"blocked_total"`
	Retired       []RetiredOne  `json:"retired" doc:"Newest first"`
	RetiredAll    int           `json:"retired_total"`
	Returned      []ReturnedOne `json:"returned" doc:"Newest first; the ledger keeps them for a while"`
	ReturnedAll   int           `json:"returned_total"`
}

// Blocked is an experiment whose retirement something stops.
type Blocked struct {
	ID        string         `json:"id" doc:"kind:name"`
	Reason    string         `json:"reason"`
	Since     *int64         `json:"since" doc:"First refusal or failure in a row; without one when it became due"`
	Attempts  int64          `json:"attempts" doc:"Failures and refusals in a row"`
	NotBefore *int64         `json:"not_before" doc:"Waiting alone may change it then"`
	Shards    []BlockedShard `json:"shards" doc:"Those with something left in them"`
	Stranded  *int64         `json:"stranded" doc:"WAL entries; null = not looked at"`
	Unknown   *int64         `json:"unknown" doc:"WAL entries of which nobody can tell; null = not looked at"`
	Said      string         `json:"said,omitempty" doc:"By the newest attempt"`
	Link      string         `json:"link,omitempty" doc:"To that in Temporal's UI"`
}

// BlockedShard is one shard with something left in it.
type BlockedShard struct {
	ID      string `json:"id"`
	Status  string `json:"status"`
	Pending int64  `json:"pending" doc:"Generations"`
	Tail    *int64 `json:"tail_entries" doc:"WAL entries past the flush cursor"`
	Newest  *int64 `json:"newest_entry_time"`
}

// RetiredOne is one at rest, with what that rests on.
type RetiredOne struct {
	ID        string `json:"id" doc:"kind:name"`
	LastWrite *int64 `json:"last_write"`
	Bytes     *int64 `json:"bytes"`
	Evidence
	Link string `json:"link,omitempty" doc:"In Temporal's UI"`
}

// ReturnedOne is one that is hot again.
type ReturnedOne struct {
	ID         string `json:"id" doc:"kind:name"`
	ReturnedAt int64  `json:"returned_at"`
	RetiredAt  int64  `json:"retired_at"`
	LastWrite  *int64 `json:"last_write"`
	By         string `json:"by,omitempty"`
	Why        string `json:"why,omitempty"`
	Link       string `json:"link,omitempty" doc:"In Temporal's UI"`
}

const dayMS = 24 * 60 * 60 * 1000

// retirement looks at every hot row and at the ledger.
func (s *Server) retirement(m moment, ops []operation, limit int) Retirement {
	now := s.now().UnixMilli()
	tries := map[string]*operation{}
	for i := range ops {
		if o := &ops[i]; o.running == nil && o.newest().Kind == fleet.ActRetire && tries[o.newest().Target] == nil {
			tries[o.newest().Target] = o
		}
	}
	out := Retirement{Candidates: []Planned{}, Blocked: []Blocked{}, Retired: []RetiredOne{}, Returned: []ReturnedOne{}}
	for i := range m.view.Rows {
		if r := m.view.Rows[i]; m.view.retired[i] == nil && !m.retiring[r.ID] {
			s.consider(&out, m, r, tries[r.String()], now)
		}
	}
	slices.SortFunc(out.Candidates, func(a, b Planned) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID)) })
	slices.SortFunc(out.Blocked, func(a, b Blocked) int {
		return cmp.Or(cmp.Compare(known0(a.Since), known0(b.Since)), cmp.Compare(a.ID, b.ID))
	})
	out.CandidatesAll, out.BlockedAll = len(out.Candidates), len(out.Blocked)
	out.Candidates, out.Blocked = cut(out.Candidates, limit), cut(out.Blocked, limit)
	s.ledgerSays(&out, m, limit)
	return out
}

func cut[T any](list []T, n int) []T { return list[:min(len(list), n)] }

func known0(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// consider says what one hot row is to a retirement.
func (s *Server) consider(out *Retirement, m moment, r *fleet.Row, tried *operation, now int64) {
	policy, _ := s.policies.For(r.ID)
	if policy.RetireAfter <= 0 || r.LastWrite <= 0 {
		return
	}
	due := r.LastWrite + policy.RetireAfter.Milliseconds()
	if due > now {
		if due <= now+dayMS {
			out.DueSoon++
		}
		return
	}
	d := fleet.DecideEach(*r, policy, m.view.histories[r.ID], now).Retire
	switch {
	case d.Action == fleet.DoRetire:
		out.Candidates = append(out.Candidates, Planned{ID: r.String(), Action: string(d.Action), Wants: string(d.Action), Reason: d.Reason, Score: now - r.LastWrite})
	case d.Held != "":
		out.Blocked = append(out.Blocked, s.blocked(m, r, d, tried, due))
	}
}

func (s *Server) blocked(m moment, r *fleet.Row, d fleet.Decision, tried *operation, due int64) Blocked {
	h := m.view.histories[r.ID]
	b := Blocked{ID: r.String(), Reason: d.Reason, Since: timeOf(due), Attempts: h.Retire.Failures, NotBefore: timeOf(d.NotBefore), Shards: []BlockedShard{}}
	if d.Held == fleet.HeldFailing {
		b.Since = timeOf(r.FailingSince)
	}
	if h.TailsAt > 0 {
		b.Stranded, b.Unknown = &h.Stranded, &h.Unknown
	}
	if tried != nil && !succeeded(tried.newest().Outcome) {
		a := tried.newest()
		b.Since, b.Said, b.Link = timeOf(tried.oldest().At), cmp.Or(a.Error, a.Why), s.workflowPath(a.WorkflowID, a.RunID)
	}
	for _, shard := range r.Shards {
		if shard.Pending > 0 || shard.TailEntries != 0 {
			b.Shards = append(b.Shards, BlockedShard{ID: shard.ID, Status: shard.Status, Pending: shard.Pending,
				Tail: numberOf(true, shard.TailEntries), Newest: timeOf(shard.NewestEntryTime)})
		}
	}
	return b
}

// Left says what is left in a shard, in words.
func (b BlockedShard) Left() string {
	switch {
	case b.Tail == nil:
		return plural(b.Pending, "generation") + ", WAL tail unknown"
	case *b.Tail == 0:
		return plural(b.Pending, "generation")
	case b.Pending == 0:
		return fleet.Count(*b.Tail, "WAL entry")
	}
	return plural(b.Pending, "generation") + ", " + fleet.Count(*b.Tail, "WAL entry")
}

// ledgerSays lists who is at rest and who came back.
func (s *Server) ledgerSays(out *Retirement, m moment, limit int) {
	retired, returned := m.view.atRest, m.view.returned
	out.RetiredAll, out.ReturnedAll = retired.all, returned.all
	for _, e := range cut(retired.entries, limit) {
		out.Retired = append(out.Retired, RetiredOne{ID: e.String(), LastWrite: timeOf(e.LastWrite), Bytes: numberOf(true, e.Bytes),
			Evidence: *evidenceOf(e), Link: s.workflowPath(e.WorkflowID, e.RunID)})
	}
	for _, e := range cut(returned.entries, limit) {
		out.Returned = append(out.Returned, ReturnedOne{ID: e.String(), ReturnedAt: e.At, RetiredAt: e.RetiredAt, LastWrite: timeOf(e.LastWrite),
			By: e.By, Why: e.Why, Link: s.workflowPath(e.WorkflowID, e.RunID)})
	}
}
