package web

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"lancefleet/fleet"
	"lancefleet/workflows"
)

// actContent is the page that says what an action would do, before it is done.
type actContent struct {
	chrome
	Plan     MaintenancePlan
	Bare     string
	Kind     string
	Href     string // of the experiment
	Verb     string
	Explain  string
	Force    bool // overlooks the age
	CanForce bool // that is all that stands in the way
	Unseen   string
	Needs    string        // why it can't be done now, before anything was looked at
	Shards   []shardChoice // of seal: which one
	Shard    string        // of seal: the chosen one
	Unknown  bool          // of seal: entries too of which nobody can tell
	LeaveOut bool          // of accept: what is listed is taken out, not merged
	Seen     *Verification // of verify
}

// shardChoice is a shard that one may have sealed.
type shardChoice struct {
	ID, Status string
	Tail       *int64
	Newest     *int64
	Href       string
}

const actVerify = "verify"

// acts are the actions that pages offer, and what each does in general.
var acts = map[string]string{
	workflows.ActionRetire:   "Merges what is pending, compacts, verifies that nothing is left behind, and takes it out of the hot table. Nothing is deleted that a reader could miss; a write makes it hot again.",
	workflows.ActionOptimize: "Merges what is pending into the base table and rewrites small fragments into larger ones. No row changes.",
	workflows.ActionWake:     "Looks whether it was written since it retired. If so it is hot again, else nothing changes.",
	workflows.ActionSeal:     "Replays what a writer that died has left in one shard's log, so that it can be merged. Not while the writer lives: the shard must have been silent.",
	workflows.ActionAccept:   "Decides about what every merge refuses: the table was restored or overwritten, or a shard was made anew. One commit, for exactly what is shown here; if anything moved since, it is refused.",
	actVerify:                "Reopens everything without caches and lists what is pending, stranded or unknown. It reads, and changes nothing.",
}

// actPage shows a dry run, and the button that does it.
func (s *Server) actPage(c echo.Context) error {
	return s.showAct(c, http.StatusOK, "")
}

func (s *Server) showAct(c echo.Context, status int, problem string) error {
	action := c.Param("action")
	if acts[action] == "" {
		return refuse(http.StatusNotFound, "there is nothing at this address")
	}
	ctx, m := c.Request().Context(), s.feed.moment()
	if m.view == nil {
		return notLoaded(m)
	}
	t, err := s.resolve(ctx, m.view, c.Param("name"))
	if err != nil {
		return err
	}
	r := askedBy(c)
	p := actContent{
		Bare: t.exp.Name, Kind: string(t.exp.Kind), Href: experimentPath(t.exp.String()),
		Verb: strings.ToUpper(action[:1]) + action[1:], Explain: acts[action], Force: r.Force, Shard: r.Shard, Unknown: r.AllowUnknown, LeaveOut: r.LeaveOut,
		Plan: MaintenancePlan{ID: t.exp.String(), Action: action, Blocking: []string{}},
	}
	switch {
	case action == actVerify:
		s.seeVerification(ctx, &p, m, t, c.QueryParam("deep") == "true")
	case action == workflows.ActionSeal && checkShard(r.Shard) != nil:
		p.chooseShard(t)
	default:
		s.seePlan(ctx, &p, m, t, r)
	}
	p.chrome = s.chrome(c, m, "experiments", p.Verb+" "+p.Plan.ID)
	p.Problem = problem
	return s.show(c, status, s.pages.act, p)
}

// askedBy reads what a page or its form asks for.
func askedBy(c echo.Context) asked {
	r := asked{action: c.Param("action")}
	given := func(name string) string { return or(c.FormValue(name), c.QueryParam(name)) }
	r.By, r.Why, r.Shard, r.Seen = c.FormValue("by"), c.FormValue("why"), line(given("shard")), line(c.FormValue("seen"))
	r.Force, r.AllowUnknown, r.LeaveOut = given("force") == "true", given("allow_unknown") == "true", given("leave_out") == "true"
	return r
}

// seePlan looks what the action would do now.
func (s *Server) seePlan(ctx context.Context, p *actContent, m moment, t target, r asked) {
	v := s.verdict(m, t, r)
	p.Plan.Start, p.Plan.Reason, p.Plan.NotBefore, p.CanForce = v.start, v.reason, timeOf(v.notBefore), v.forceable
	if m.temporalProblem != "" {
		p.Needs = "Temporal does not answer, so nothing can be started: " + m.temporalProblem
	}
	if r.action == workflows.ActionWake {
		return
	}
	plan, err := s.dryRun(ctx, p.Plan.ID, r)
	if err != nil {
		p.Unseen = s.explain(ctx, err).Message
		return
	}
	p.Plan = plan
}

func (s *Server) seeVerification(ctx context.Context, p *actContent, m moment, t target, deep bool) {
	seen, err := s.verification(ctx, m, t, deep)
	if err != nil {
		p.Unseen = s.explain(ctx, err).Message
		return
	}
	p.Seen = &seen
}

// chooseShard lists the shards of which one may be sealed.
func (p *actContent) chooseShard(t target) {
	if t.row == nil || t.row.ObservedAt == 0 {
		p.Needs = "Its shards are not known yet: refresh it first."
		return
	}
	for i := range t.row.Shards {
		shard := &t.row.Shards[i]
		p.Shards = append(p.Shards, shardChoice{ID: shard.ID, Status: shard.Status, Tail: numberOf(true, shard.TailEntries),
			Newest: timeOf(shard.NewestEntryTime), Href: p.Href + "/do/seal?shard=" + url.QueryEscape(shard.ID)})
	}
	if len(p.Shards) == 0 {
		p.Needs = "It has no shards: there is nothing to seal."
	}
}

// Startable says whether the button is there.
func (p actContent) Startable() bool {
	if p.Plan.Action == workflows.ActionAccept && p.Plan.Accept == nil {
		return false // nothing was seen that one could decide about
	}
	return p.Needs == "" && p.Plan.Action != actVerify && (p.Plan.Start || p.CanForce)
}

// Decidable says whether there is another way to decide. Leaving out is one also where
// merging is refused for a shard that mixes what was merged with what was not.
func (p actContent) Decidable() bool {
	a := p.Plan.Accept
	return a != nil && (len(a.Shards) > 0 || a.Refused != nil && a.Refused.Code == "mixed")
}

// actForm does what the page has shown.
func (s *Server) actForm(c echo.Context) error {
	action := c.Param("action")
	if acts[action] == "" || action == actVerify {
		return refuse(http.StatusNotFound, "there is nothing at this address")
	}
	r := askedBy(c)
	if err := r.complete(); err != nil {
		return s.showAct(c, http.StatusUnprocessableEntity, s.explain(c.Request().Context(), err).Message)
	}
	started, err := s.start(c.Request().Context(), c.Param("name"), r)
	if err != nil {
		body := s.explain(c.Request().Context(), err)
		return s.showAct(c, body.status, body.Message)
	}
	said := "asked"
	if started.AlreadyRunning {
		said = "busy"
	}
	q := url.Values{"done": {said}, "run": {started.RunID}}
	return c.Redirect(http.StatusSeeOther, experimentPath(started.ID)+"?"+q.Encode())
}

// offered are the actions that fit an experiment's state.
func offered(d Detail) []string {
	switch {
	case d.State == Retired:
		return []string{workflows.ActionWake, actVerify}
	case d.State == Retiring, d.Running != nil:
		return []string{actVerify}
	}
	out := []string{workflows.ActionOptimize, workflows.ActionRetire}
	if d.AwaitsDecision {
		out = append(out, workflows.ActionAccept)
	}
	for _, shard := range d.WALShards {
		if shard.TailEntries == nil || *shard.TailEntries > 0 {
			return append(out, workflows.ActionSeal, actVerify)
		}
	}
	return append(out, actVerify)
}

// Deeper is the address of a deeper look; "" = this is it.
func (p actContent) Deeper() string {
	if p.Seen == nil || p.Seen.Deep {
		return ""
	}
	return p.Href + "/do/verify?deep=true"
}

// ShardsLeft are the verified shards, for the table.
func (p actContent) ShardsLeft() []fleet.ShardEvidence {
	if p.Seen == nil {
		return nil
	}
	return p.Seen.Evidence.Shards
}
