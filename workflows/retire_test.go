package workflows_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
	"lancefleet/workflows"
)

func TestARetirementMergesCompactsVerifiesAndOnlyThenDrops(t *testing.T) {
	u := cold()

	result, env, err := retire(t, u)

	require.NoError(t, err)
	require.Equal(t, []string{
		workflows.PrepareName, workflows.MergeWALName, workflows.CompactName, workflows.CleanupVersionsName,
		workflows.SweepGenerationsName, workflows.VerifyName, workflows.DropRowName, workflows.RecordMaintenanceName,
	}, u.called)
	require.Equal(t, workflows.OutcomeDone, result.Outcome)
	require.Equal(t, workflows.OutcomeDone, env.outcome)
	require.Equal(t, u.evidence, u.dropIn.Evidence, "what was verified is what is dropped")
	require.Equal(t, []time.Duration{5 * time.Minute}, u.waited, "the grace of what was merged")
	require.Equal(t, map[string]uint64{"s1": 4}, u.mergeIn[0].Marks, "as the journal remembers them")
}

func TestARetirementTellsItsStory(t *testing.T) {
	u := cold()

	result, _, err := retire(t, u)

	require.NoError(t, err)
	require.Equal(t, "sealed 1 shard with 3 stranded rows of its dead writer, merged 12 generations of 2 shards (500 rows); "+
		"compacted 16 fragments into 1 (500 rows); removed 4 versions older than 24 h, others held by tag v1; "+
		"swept 12 folders of merged generations; verified: nothing pending in 2 shards, 500 rows in 1 fragment, version 10; "+
		"retired, last written 1970 Jan 1 00:00 UTC", result.Sentence)
	var told []string
	for _, s := range result.Steps {
		told = append(told, s.Action+" "+s.Outcome)
	}
	require.Equal(t, []string{"merge_wal done", "compact done", "cleanup done", "sweep done", "verify done", "drop done"}, told)
	require.Equal(t, int64(7), result.Before.Version)
	require.Equal(t, int64(12), result.Before.Pending)
	require.Equal(t, int64(10), result.After.Version)
	require.Zero(t, result.After.Pending)
	require.Equal(t, map[string]uint64{"s1": 10, "s2": 6}, result.After.Marks)
	require.Equal(t, result, u.recorded[0].Result)
}

func TestEvidenceThatIsNotCleanNeverReachesTheDrop(t *testing.T) {
	for name, dirty := range map[string]func(*fleet.Evidence){
		"pending":  func(e *fleet.Evidence) { e.Pending = 1 },
		"stranded": func(e *fleet.Evidence) { e.Stranded = 2 },
		"unknown":  func(e *fleet.Evidence) { e.Unknown = 3 },
		"blocking": func(e *fleet.Evidence) { e.Blocking = []string{"shard s1 is sealed"} },
	} {
		t.Run(name, func(t *testing.T) {
			u := cold()
			dirty(&u.evidence)

			result, _, err := retire(t, u)

			require.NoError(t, err)
			require.Equal(t, workflows.OutcomeRefused, result.Outcome)
			require.NotContains(t, u.called, workflows.DropRowName)
			require.True(t, strings.HasPrefix(result.Sentence, "not retired: "), result.Sentence)
			if len(u.evidence.Blocking) > 0 {
				require.Equal(t, "not retired: shard s1 is sealed", result.Sentence)
			}
			require.Equal(t, u.evidence.Stranded, result.After.Stranded, "the journal remembers what was found")
			require.Equal(t, u.evidence.Unknown, result.After.Unknown)
		})
	}
}

func TestAWriteBetweenVerifyAndDropLeavesItHot(t *testing.T) {
	u := cold()
	u.drop = workflows.DropResult{Refused: "it moved since it was verified: wal tail"}

	result, env, err := retire(t, u)

	require.NoError(t, err)
	require.Equal(t, workflows.OutcomeRefused, result.Outcome)
	require.Equal(t, "not retired: it moved since it was verified: wal tail", result.Sentence)
	require.Equal(t, workflows.OutcomeRefused, env.outcome)
}

func TestADropThatFailsForGoodIsAFailedRetirement(t *testing.T) {
	u := cold()
	u.fail[workflows.DropRowName] = final("denied")
	_, env, err := retire(t, u)
	require.Equal(t, "denied", workflows.ErrorClass(err))
	require.Equal(t, workflows.OutcomeFailed, env.outcome)
	require.Equal(t, workflows.OutcomeFailed, u.recorded[0].Result.Steps[5].Outcome)
}
