package fleet

import "fmt"

// FewestFragments can be made one.
const FewestFragments = 2

// AskedFor is policy and history as they count when a person asks for maintenance:
// neither the back-off after failures, nor the quiet window, nor the number of
// generations or fragments that makes it worth while keep it from being done. What
// is never done is still never done, and what is paused stays paused.
func AskedFor(p Policy, h History) (Policy, History) {
	h.Merge, h.Compact, h.Retire = Tries{}, Tries{}, Tries{}
	p.QuietWindow = Window{}
	p.MergeMinGenerations = min(p.MergeMinGenerations, 1)
	p.CompactMinFragments = min(p.CompactMinFragments, FewestFragments)
	return p, h
}

// Asked is what a run over one experiment was started for.
type Asked struct {
	Action string // ActRetire, ActOptimize, ActSeal or ActAccept
	Shard  string // of a seal
	Force  bool   // overlooks the age
	ByHand bool   // a person asks: see AskedFor
}

// DecideAsked decides about what was asked for, with what would be wanted at all. A
// run and a dry run of it decide by this and by nothing else.
func DecideAsked(a Asked, r Row, p Policy, h History, now int64) (Wishes, Decision) {
	if a.ByHand {
		p, h = AskedFor(p, h)
	}
	wishes := DecideEach(r, p, h, now)
	switch a.Action {
	case ActRetire:
		if a.Force {
			return wishes, DecideForced(r, p, h, now)
		}
		return wishes, wishes.Retire
	case ActSeal:
		return wishes, decideSeal(a.Shard, r, p)
	case ActAccept:
		return wishes, decideAccept(p)
	}
	return wishes, either(wishes.Merge, wishes.Compact)
}

// either is what is due of two decisions, else why neither is.
func either(merge, compact Decision) Decision {
	switch {
	case merge.Action != DoNothing:
		return merge
	case compact.Action != DoNothing:
		return compact
	case merge.Held == "" && compact.Held != "":
		merge, compact = compact, merge
	}
	if compact.Reason != "" && compact.Reason != merge.Reason {
		if merge.Reason != "" {
			merge.Reason += "; "
		}
		merge.Reason += compact.Reason
	}
	return merge
}

// notNow is why nothing may be started, whatever an operator wants.
func notNow(p Policy) (Decision, bool) {
	switch {
	case !p.Maintain:
		return Decision{Action: DoNothing, Reason: "maintenance is off: observe only", Held: HeldOff}, true
	case p.Paused != "":
		return Decision{Action: DoNothing, Reason: "paused: " + p.Paused, Held: HeldPaused}, true
	}
	return Decision{}, false
}

// decideAccept leaves it to the step itself whether there is anything to decide: a row
// does not tell all that stands refused.
func decideAccept(p Policy) Decision {
	if d, not := notNow(p); not {
		return d
	}
	return Decision{Action: DoMerge, Reason: "decided by an operator"}
}

// decideSeal lets an operator have a shard sealed whatever its age.
func decideSeal(shard string, r Row, p Policy) Decision {
	if d, not := notNow(p); not {
		return d
	}
	for _, s := range r.Shards {
		if s.ID == shard {
			return Decision{Action: DoMerge, Reason: "seal shard " + shard + ", asked for by an operator"}
		}
	}
	return Decision{Action: DoNothing, Reason: fmt.Sprintf("it has no shard %q", shard), Held: HeldRefused}
}
