package fleet

// PlanHinted is PlanProbe for an experiment of which an event said that something
// was written: it is never left out, and never looked at lightly. Nothing else of
// what an event says is believed.
func PlanHinted(row *Row, exp Experiment, r RoundClock, p ProbePolicy) ProbePlan {
	plan := PlanProbe(row, exp, r, p)
	switch {
	case plan.Observe:
		return plan
	case plan.Skip:
		return ProbePlan{Observe: true, Why: "failing, and an event named it"}
	}
	gaps := row.Fingerprint.Refs || row.Fingerprint.Gaps
	return ProbePlan{Deep: true, ListVersions: plan.ListVersions || gaps, Why: "an event named it"}
}
