package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAHintedExperimentIsNeverLeftOutAndNeverLookedAtLightly(t *testing.T) {
	exp := Experiment{ID: ID{Rollout, "a"}, URI: "s3://b/a"}
	policy := DefaultProbePolicy(time.Minute)
	const now = int64(10_000_000)
	seen := Observed(exp, nil, Observation{Fingerprint: Fingerprint{Version: 3, ETag: "e"}, ObservedAt: now}, now)
	failing := Failed(exp, &seen, "denied", "no", now, policy.Backoff)
	tagged := seen
	tagged.Fingerprint.Refs = true
	for name, c := range map[string]struct {
		row  *Row
		full bool
		want ProbePlan
	}{
		"a quiet one":          {row: &seen, want: ProbePlan{Deep: true}},
		"one with tags":        {row: &tagged, want: ProbePlan{Deep: true, ListVersions: true}},
		"one that backs off":   {row: &failing, want: ProbePlan{Observe: true}},
		"one never seen":       {want: ProbePlan{Observe: true}},
		"any in a full round":  {row: &seen, full: true, want: ProbePlan{Observe: true}},
		"what is failing, too": {row: &failing, full: true, want: ProbePlan{Observe: true}},
	} {
		t.Run(name, func(t *testing.T) {
			for number := range int64(8) { // whatever the stagger says
				plan := PlanHinted(c.row, exp, RoundClock{Number: number, Now: now + 1, Full: c.full}, policy)
				require.NotEmpty(t, plan.Why)
				plan.Why = ""
				require.Equal(t, c.want, plan)
			}
		})
	}
}
