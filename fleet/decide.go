package fleet

import "strings"

// Todo is what Decide wants done with an experiment.
type Todo string

// What an experiment may need.
const (
	DoNothing Todo = "none"
	DoMerge   Todo = "merge"   // fold pending generations into the base
	DoCompact Todo = "compact" // rewrite small fragments
	DoRetire  Todo = "retire"  // merge, compact, verify, drop the row
)

// Held says what kind of obstacle keeps a wish from being started.
type Held string

// The obstacles.
const (
	HeldUnseen  Held = "unseen"  // never observed
	HeldFailing Held = "failing" // the last attempt to observe it gave no answer
	HeldMissing Held = "missing" // its source did not name it
	HeldRefused Held = "refused" // it would be refused: waiting alone does not help
	HeldOff     Held = "off"     // maintenance is off
	HeldPaused  Held = "paused"
	HeldCooling Held = "cooling" // after failures
	HeldQuiet   Held = "quiet"   // inside the quiet window
)

// Decision is what to do next, why in one sentence, and the earliest time (unix
// ms) at which the answer may change by waiting alone; 0 = waiting changes nothing.
type Decision struct {
	Action    Todo   `json:"action"`
	Reason    string `json:"reason"`
	NotBefore int64  `json:"not_before"`
	Wants     Todo   `json:"wants"`          // what would be done if nothing stood in the way
	Held      Held   `json:"held,omitempty"` // what stands in the way
}

// Wishes are the decisions about one experiment kind by kind, each as if there
// were no other. Whoever carries out one kind asks here; Decide chooses.
type Wishes struct{ Retire, Merge, Compact Decision }

// Decide says what an experiment needs most: to retire, which merges and compacts
// by itself, else to be merged, else to be compacted. What is held up doesn't hold
// up the others. It looks at its row only: whoever acts observes afresh before it
// touches anything.
func Decide(r Row, p Policy, h History, now int64) Decision {
	return DecideEach(r, p, h, now).first()
}

// DecideEach says for each kind of maintenance whether the experiment needs it.
func DecideEach(r Row, p Policy, h History, now int64) Wishes {
	return decideEach(r, p, h, now, false)
}

// DecideForced is the decision about a retirement that somebody asked for
// although the experiment is not cold. Only its age is overlooked.
func DecideForced(r Row, p Policy, h History, now int64) Decision {
	return decideEach(r, p, h, now, true).Retire
}

func decideEach(r Row, p Policy, h History, now int64, force bool) Wishes {
	if d, unfit := unfit(r, now); unfit {
		return Wishes{d, d, d}
	}
	p = p.Knowing(h)
	return Wishes{
		Retire:  hold(wantsRetire(r, p, h, now, force), p, h, now),
		Merge:   hold(wantsMerge(r, p, h, now), p, h, now),
		Compact: hold(wantsCompact(r, p, h), p, h, now),
	}.saying(r, p, h)
}

// unfit stops everything for an experiment that we can't see well enough.
func unfit(r Row, now int64) (Decision, bool) {
	switch {
	case r.Failing():
		return Decision{DoNothing, failing(r, now), r.NextAttempt(now), DoNothing, HeldFailing}, true
	case !r.Known:
		return Decision{DoNothing, "not observed yet", 0, DoNothing, HeldUnseen}, true
	case r.MissingRounds > 0:
		return Decision{DoNothing, "its source did not name it in the last round", 0, DoNothing, HeldMissing}, true
	}
	return Decision{}, false
}

// failing words an observation's failure: "unreachable since 14:05, next try 14:10: ...".
func failing(r Row, now int64) string {
	class := r.ErrorClass
	if class == "" {
		class = "failing"
	}
	s := class + " since " + Clock(r.FailingSince, now) + ", next try "
	switch next := r.NextAttempt(now); {
	case next <= now:
		s += "with the next round"
	case next != r.NextAttemptAt:
		s += "by " + Clock(next, now)
	default:
		s += Clock(next, now)
	}
	if r.Error != "" {
		s += ": " + r.Error
	}
	return s
}

// hold keeps a wish from being started now, if something does.
func hold(d Decision, p Policy, h History, now int64) Decision {
	if d.Action == DoNothing {
		return d
	}
	why, until, held := holding(p, h.Tries(d.Action), now)
	if held == "" {
		return d
	}
	return Decision{DoNothing, why + "; " + d.Reason, until, d.Wants, held}
}

func holding(p Policy, t Tries, now int64) (why string, until int64, held Held) {
	if !p.Maintain {
		return "maintenance is off: observe only", 0, HeldOff
	}
	if p.Paused != "" {
		return "paused: " + p.Paused, 0, HeldPaused
	}
	if until := t.LastAt + p.Cooldown(t.Failures).Milliseconds(); now < until {
		return coolingDown(t, until, now), until, HeldCooling
	}
	if end, inside := p.QuietWindow.Contains(now); inside {
		return "quiet until " + Clock(end, now), end, HeldQuiet
	}
	return "", 0, ""
}

// coolingDown words a pause after failures: "cooling down until 14:05 after 3
// failures: commit conflict".
func coolingDown(t Tries, until, now int64) string {
	s := "cooling down until " + Clock(until, now) + " after " + Count(t.Failures, "failure")
	if t.Error != "" {
		s += ": " + t.Error
	}
	return s
}

// first chooses: what can be started, else what is held up, else nothing.
func (w Wishes) first() Decision {
	all := []Decision{w.Retire, w.Merge, w.Compact}
	for _, d := range all {
		if d.Action != DoNothing {
			return d
		}
	}
	for _, d := range all {
		if d.startable() {
			d.NotBefore = w.soonest(d)
			return d
		}
	}
	return w.nothing()
}

// startable says whether only time or an operator keeps it from being started.
func (d Decision) startable() bool {
	switch d.Held {
	case HeldOff, HeldPaused, HeldCooling, HeldQuiet:
		return true
	}
	return false
}

// soonest is when a held decision, or that about another kind, may change.
func (w Wishes) soonest(d Decision) int64 {
	if d.Held == HeldOff || d.Held == HeldPaused {
		return 0
	}
	return earliest(earliest(w.Retire.NotBefore, w.Merge.NotBefore), w.Compact.NotBefore)
}

// nothing says all that there is to say: no kind of maintenance can be wished for
// now, or it would be refused.
func (w Wishes) nothing() Decision {
	d := Decision{Action: DoNothing, Wants: DoNothing, NotBefore: w.soonest(Decision{})}
	for _, one := range []Decision{w.Retire, w.Merge, w.Compact} {
		if one.Held != "" && d.Held == "" {
			d.Wants, d.Held = one.Wants, one.Held
		}
	}
	if w.Retire == w.Merge { // all the same: it can't be seen
		d.Reason = w.Retire.Reason
		return d
	}
	merge, retire := onceOnly(w.Merge.Reason, w.Retire.Reason)
	d.Reason = sentence(merge, w.Compact.Reason, retire)
	return d
}

// onceOnly tells a cause that stands in the way of both once.
func onceOnly(merge, retire string) (string, string) {
	cause, isRefused := strings.CutPrefix(merge, notMerged)
	if isRefused && retire == notRetired+cause {
		return "neither merged nor retired: " + cause, ""
	}
	return merge, retire
}

// coolingDown says whether any kind rests after failures.
func (w Wishes) coolingDown() bool {
	return w.Retire.Held == HeldCooling || w.Merge.Held == HeldCooling || w.Compact.Held == HeldCooling
}

// saying adds what belongs to no kind of maintenance to a wish that has nothing
// else to say.
func (w Wishes) saying(r Row, p Policy, h History) Wishes {
	if w.Merge.Action == DoNothing && w.Merge.Held == "" {
		w.Merge.Reason = sentence(w.Merge.Reason, stranded(r, h))
	}
	if w.Retire.Action == DoNothing {
		w.Retire.Reason = sentence(w.Retire.Reason, heldVersions(r, p))
	}
	return w
}

// heldVersions says which tags keep old versions from the cleanup, if there is one.
func heldVersions(r Row, p Policy) string {
	if p.CleanupOlderThan <= 0 || len(r.Tags) == 0 {
		return ""
	}
	if len(r.Tags) == 1 {
		return "old versions held by tag " + r.Tags[0]
	}
	return "old versions held by tags " + strings.Join(r.Tags, ", ")
}

// do wishes for a kind of maintenance.
func do(kind Todo, reason string) Decision {
	return Decision{Action: kind, Reason: reason, Wants: kind}
}

func none(reason string, notBefore int64) Decision {
	return Decision{Action: DoNothing, Reason: reason, NotBefore: notBefore, Wants: DoNothing}
}

// refused is a wish that whoever carried it out would refuse.
func refused(kind Todo, reason string, notBefore int64) Decision {
	return Decision{DoNothing, reason, notBefore, kind, HeldRefused}
}

// sentence joins the parts that say something.
func sentence(parts ...string) string {
	var said []string
	for _, part := range parts {
		if part != "" {
			said = append(said, part)
		}
	}
	return strings.Join(said, "; ")
}

// earliest is the smaller of two times, 0 meaning none.
func earliest(a, b int64) int64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
