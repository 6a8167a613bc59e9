package web

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"lancefleet/control"
	"lancefleet/fleet"
)

// Operations is what the fleet is doing, will do next, could not do, and why.
type Operations struct {
	AsOf          *int64         `json:"as_of" doc:"When what is told of the fleet was true"`
	Stale         bool           `json:"stale"`
	StaleWhy      string         `json:"stale_why,omitempty"`
	Missing       []string       `json:"missing" doc:"What could not be read, and why: its part is old, or null"`
	Schedule      *Schedule      `json:"schedule" doc:"null = Temporal has not answered yet"`
	RunningRounds []RoundRunning `json:"running_rounds"`
	Running       []Running      `json:"running" doc:"Maintenance"`
	Plan          *FleetPlan     `json:"plan" doc:"What the next round would start; null = the table has not been read yet"`
	Rounds        []Round        `json:"rounds" doc:"The newest ones"`
	Failures      []Failure      `json:"failures" doc:"What fails now, by cause"`
	Retirement    *Retirement    `json:"retirement" doc:"null = the table has not been read yet"`
	Work          Work           `json:"work"`
	Upkeep        *Upkeep        `json:"upkeep" doc:"Of our own tables; null = not read yet"`
}

// RoundRunning is a round that runs.
type RoundRunning struct {
	control.RunningRound
	Link string `json:"link,omitempty" doc:"In Temporal's UI: it says how far it is"`
}

// Upkeep is the state of the upkeep of our own tables.
type Upkeep struct {
	LastAt       *int64 `json:"last_at" doc:"Newest pass; null = none yet"`
	Failures     int64  `json:"consecutive_failures" doc:"Passes since one succeeded; master_stats_maintenance_consecutive_failures"`
	Unreclaimed  int64  `json:"unreclaimed_versions" doc:"Versions of _stats since old ones were last removed: alert on it; master_stats_unreclaimed_versions"`
	StatsVersion uint64 `json:"stats_version"`
	Error        string `json:"error,omitempty" doc:"Of the newest pass"`
	Level        string `json:"level" enum:"ok,warn,bad"`
}

// unreclaimedAlert is the number above which the alert rule fires (docs/operations.md).
const unreclaimedAlert = 100

// digest is what the journal says, worked out once for each version of it.
type digest struct {
	actions    []fleet.Action // shared: read only
	operations []operation
}

// digests keeps the newest one.
type digests struct {
	mu sync.Mutex
	at digest
}

type operationsInput struct {
	Kind    string `query:"kind" doc:"Work of this kind only"`
	Outcome string `query:"outcome" doc:"Work with this outcome only" enum:"running,done,noop,refused,failed,cancelled"`
	Limit   int    `query:"limit" default:"50" doc:"Of work and of each list; clamped to 1..500"`
	Offset  int    `query:"offset" default:"0" doc:"Of work"`
}

type operationsOutput struct {
	Body Operations
}

func (s *Server) getOperations(ctx context.Context, in *operationsInput) (*operationsOutput, error) {
	q := workQuery{Kind: in.Kind, Outcome: in.Outcome, Limit: min(max(in.Limit, 1), maxLimit), Offset: max(in.Offset, 0)}
	return &operationsOutput{Body: s.operations(ctx, s.feed.moment(), q)}, nil
}

// operations never fails: what can't be read is missing, and said so.
func (s *Server) operations(ctx context.Context, m moment, q workQuery) Operations {
	now := s.now().UnixMilli()
	out := Operations{AsOf: timeOf(m.asOf()), Missing: missing(m), Schedule: m.schedule, RunningRounds: []RoundRunning{}, Running: []Running{}, Rounds: []Round{}}
	out.Stale, out.StaleWhy = m.stale(now)
	for _, r := range m.scanning {
		out.RunningRounds = append(out.RunningRounds, RoundRunning{r, s.workflowPath(r.WorkflowID, r.RunID)})
	}
	for _, r := range m.running {
		out.Running = append(out.Running, s.running(r))
	}
	for _, r := range m.rounds[:min(len(m.rounds), 10)] {
		round := s.round(r, m.interval())
		round.link = s.workflowPath(r.WorkflowID, r.RoundID)
		out.Rounds = append(out.Rounds, round)
	}
	d, err := s.journalled(ctx)
	if err != nil {
		out.Missing = append(out.Missing, sentence(err))
	}
	parts := s.partsOf(m, d)
	out.Work, out.Failures = s.work(parts.operations, parts.counts, q), parts.failures
	if m.view != nil {
		plan := s.plan(m, q.Limit)
		out.Plan, out.Retirement = &plan, parts.retirement.cut(q.Limit)
		out.Upkeep = upkeepOf(fleet.UpkeepOf(d.actions), m.view.Version)
	}
	return out
}

// missing says what the pages do without.
func missing(m moment) []string {
	out := []string{}
	switch {
	case m.storageProblem != "":
		out = append(out, "storage: "+m.storageProblem)
	case m.view == nil:
		out = append(out, "storage: the fleet's table has not been read yet")
	}
	switch {
	case m.temporalProblem != "":
		out = append(out, "Temporal: "+m.temporalProblem)
	case !m.temporalAsked:
		out = append(out, "Temporal: it has not answered yet")
	case m.schedule != nil && !m.schedule.Exists:
		out = append(out, "schedule: no worker has created it yet")
	}
	return out
}

func upkeepOf(state fleet.UpkeepState, version uint64) *Upkeep {
	u := &Upkeep{LastAt: timeOf(state.At), Failures: state.Failures, Error: state.Error, StatsVersion: version,
		Unreclaimed: state.Unreclaimed(version), Level: levelOK}
	switch {
	case u.Unreclaimed > unreclaimedAlert:
		u.Level = levelBad
	case u.Failures > 0:
		u.Level = levelWarn
	}
	return u
}

// Cause is one reason why wanted maintenance is not started, and what it stops.
type Cause struct {
	Held     string   `json:"held" doc:"unseen, failing, missing, refused, off, paused, cooling, quiet"`
	Wants    string   `json:"wants" doc:"What would be started; none = nothing can be told"`
	Says     string   `json:"says" doc:"In words; … stands for names, and for numbers in which they differ"`
	Count    int      `json:"count"`
	NextAt   *int64   `json:"next_at" doc:"Waiting alone changes it for the first of them then; null = it does not"`
	Examples []string `json:"examples" doc:"kind:name"`
}

// causesOf groups what is blocked, the most first.
func causesOf(blocked []fleet.Blocked) []Cause {
	at, words := map[string]*Cause{}, map[string]*wording{}
	for _, b := range blocked {
		said := wording{parts: []string{heldWords[b.Held]}}
		if b.Held == fleet.HeldRefused {
			said = wordingOf(b.Reason, b.String())
		}
		key := string(b.Held) + "|" + string(b.Wants) + "|" + said.key()
		c := at[key]
		if c == nil {
			c = &Cause{Held: string(b.Held), Wants: string(b.Wants), Examples: []string{}}
			at[key], words[key] = c, &said
		}
		c.Says = words[key].with(said)
		c.Count++
		if b.NotBefore > 0 && (c.NextAt == nil || b.NotBefore < *c.NextAt) {
			c.NextAt = timeOf(b.NotBefore)
		}
		if len(c.Examples) < examplesShown {
			c.Examples = append(c.Examples, b.String())
		}
	}
	out := []Cause{}
	for _, c := range at {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b Cause) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Held, b.Held), strings.Compare(a.Wants, b.Wants), strings.Compare(a.Says, b.Says))
	})
	return out
}

// heldWords are the obstacles in a few words each.
var heldWords = map[fleet.Held]string{
	fleet.HeldUnseen:  "no round has observed it yet",
	fleet.HeldFailing: "it can't be observed: see the failures",
	fleet.HeldMissing: "its source did not name it in the last round",
	fleet.HeldOff:     "maintenance is off: observe only",
	fleet.HeldPaused:  "paused by its policy",
	fleet.HeldCooling: "resting after failures: see the failures",
	fleet.HeldQuiet:   "inside its quiet window",
}

// workFilter reads the filters of a page; what is no outcome is said, and ignored.
func workFilter(kind, outcome string) (q workQuery, mistake string) {
	q.Kind = kind
	outcomes := []string{outcomeRunning, fleet.OutcomeDone, fleet.OutcomeNoOp, fleet.OutcomeRefused, fleet.OutcomeFailed, outcomeCancelled}
	if outcome != "" && !slices.Contains(outcomes, outcome) {
		return q, fmt.Sprintf("outcome: %s is none; allowed: %s", quoted(outcome), strings.Join(outcomes, ", "))
	}
	q.Outcome = outcome
	return q, ""
}
