package fleet

import (
	"hash/fnv"
	"time"
)

// ProbePolicy says how closely a round looks at what seems unchanged.
type ProbePolicy struct {
	DeepEvery int64         // a deep probe every so many rounds; 0 = 4
	ListAfter time.Duration // list versions after so long without an answer; 0 = 12 h
	FullAfter time.Duration // observe in full after so long, whatever the probe says; 0 = 24 h
	Backoff   BackoffPolicy // of experiments that fail
}

// DefaultProbePolicy is the usual one for rounds that are interval apart.
func DefaultProbePolicy(interval time.Duration) ProbePolicy {
	return ProbePolicy{
		DeepEvery: 4,
		ListAfter: 12 * time.Hour,
		FullAfter: 24 * time.Hour,
		Backoff:   DefaultBackoff(interval),
	}
}

// RoundClock is what a plan needs to know about its round.
type RoundClock struct {
	Number      int64 // climbs by one per round
	Now         int64 // unix ms
	LastRoundAt int64 // when the newest finished round started, unix ms; 0 none
	Full        bool  // observe everything, skip nothing, forget back-offs
}

// ProbePlan says how one experiment is looked at in one round: not at all, in
// full, or by a probe (neither Skip nor Observe).
type ProbePlan struct {
	Skip         bool // backing off: not asked
	Observe      bool // in full, without a probe
	Deep         bool // also e-tags, WAL tails and the list of shards
	ListVersions bool // list the versions instead of HEADs
	Why          string
}

// PlanProbe decides how a round looks at an experiment; row is nil when it has
// none yet. It never skips because something looks unchanged: only a probe can tell.
func PlanProbe(row *Row, exp Experiment, r RoundClock, p ProbePolicy) ProbePlan {
	p = p.withDefaults()
	switch {
	case r.Full:
		return ProbePlan{Observe: true, Why: "a full round was asked for"}
	case row == nil:
		return ProbePlan{Observe: true, Why: "never seen"}
	case backingOff(row, exp, r, p.Backoff):
		return ProbePlan{Skip: true, Why: "failing, next attempt later"}
	case !row.Known || row.Fingerprint.IsZero():
		return ProbePlan{Observe: true, Why: "never observed"}
	case row.URI != exp.URI:
		return ProbePlan{Observe: true, Why: "its source names another uri"}
	case r.Now-row.ObservedAt >= fullAfter(exp.ID, p.FullAfter):
		return ProbePlan{Observe: true, Why: "last observed in full about a day ago"}
	}
	return planDepth(row, exp, r, p)
}

// planDepth chooses between a light and a deep probe, HEADs and a LIST.
func planDepth(row *Row, exp Experiment, r RoundClock, p ProbePolicy) ProbePlan {
	if r.Now-row.ScannedAt >= p.ListAfter.Milliseconds() {
		return ProbePlan{Deep: true, ListVersions: true, Why: "no answer for long"}
	}
	if (stagger(exp.ID)+uint64(r.Number))%uint64(p.DeepEvery) != 0 {
		return ProbePlan{Why: "light round"}
	}
	if row.Fingerprint.Refs || row.Fingerprint.Gaps {
		return ProbePlan{Deep: true, ListVersions: true, Why: "deep round, versions may have gaps"}
	}
	return ProbePlan{Deep: true, Why: "deep round"}
}

// backingOff says whether a failing experiment is left alone this time. A uri
// that was never asked is not part of the failure.
func backingOff(row *Row, exp Experiment, r RoundClock, p BackoffPolicy) bool {
	if !row.Failing() || row.FailedURI != exp.URI && row.FailedURI != "" {
		return false
	}
	return !p.due(row, r.Now, r.LastRoundAt)
}

// fullAfter spreads the daily full observation over the last quarter of its
// period, so that a fleet that was registered at once does not fall due at once.
func fullAfter(id ID, period time.Duration) int64 {
	ms := period.Milliseconds()
	return ms - int64(stagger(id)%uint64(ms/4+1))
}

// stagger is a hash of the name, the same in every process and version.
func stagger(id ID) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id.String()))
	sum := h.Sum64()
	return sum ^ sum>>32 // the low bits of FNV see little of the name
}

func (p ProbePolicy) withDefaults() ProbePolicy {
	d := DefaultProbePolicy(p.Backoff.Interval)
	if p.DeepEvery <= 0 {
		p.DeepEvery = d.DeepEvery
	}
	if p.ListAfter <= 0 {
		p.ListAfter = d.ListAfter
	}
	if p.FullAfter <= 0 {
		p.FullAfter = d.FullAfter
	}
	return p
}
