package fleet

import (
	"strings"
	"time"
)

// tailsForgotten is how long a look at WAL tails that found what nobody can tell
// keeps a retirement from being tried again, as long as the tails look the same.
const tailsForgotten = 24 * time.Hour

// wantsRetire is about experiments that nobody writes any more; forced means
// that its age doesn't matter.
func wantsRetire(r Row, p Policy, h History, now int64, forced bool) Decision {
	written := "written " + Ago(r.LastWrite, now)
	cold := due(r.LastWrite, p.RetireAfter.Milliseconds())
	switch {
	case r.LastWrite <= 0 && p.RetireAfter > 0 && !forced:
		return none("last write unknown", 0)
	case p.RetireAfter <= 0:
		return none(written+", never retired", 0)
	case !forced && now < cold:
		return none(written, cold)
	}
	if d, blocked := retireBlocked(r, p, h, now); blocked {
		return d
	}
	if forced {
		return do(DoRetire, written+", retired because somebody asked for it")
	}
	return do(DoRetire, "not written for "+Age(span(r.LastWrite, now))+", retired after "+Age(p.RetireAfter))
}

// retireBlocked says what would make a retirement stop half way. It may overlook
// what is not known yet: the verification before the drop does not.
func retireBlocked(r Row, p Policy, h History, now int64) (Decision, bool) {
	if m := mergeable(r, p, h, now); m.refused > 0 {
		return refused(DoRetire, notRetired+strings.TrimPrefix(m.refusal, notMerged), 0), true
	} else if m.left > 0 {
		return refused(DoRetire, "not retired while somebody writes", m.leftUntil), true
	}
	looked := h.TailsAt + tailsForgotten.Milliseconds()
	if h.Unknown > 0 && now < looked && r.TailEntries != 0 && (r.TailEntries < 0 || r.TailEntries >= h.Unknown) {
		what := Count(h.Unknown, "WAL entry") + " of which nobody can tell whether the table has them"
		return refused(DoRetire, "not retired: "+what+"; seal shows them and lets you decide", looked), true
	}
	silent := due(r.LastWrite, p.LiveWithin.Milliseconds())
	if strandedEntries(r, h) > 0 && now < silent {
		return refused(DoRetire, "not retired: "+stranded(r, h)+", replayed after "+Age(p.LiveWithin)+" without a write", silent), true
	}
	return Decision{}, false
}
