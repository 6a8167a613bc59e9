package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/workflows"
)

func TestAnEmptyPlanIsRememberedWithItsVersionAndOptions(t *testing.T) {
	u := cold()
	u.compacts = []workflows.CompactResult{{Version: 9, Fragments: 16, FragmentsBefore: 16}}

	result, err := newUpkeepEnv(t, u).run(workflows.OptimizeWorkflowName, upkeepArgs())

	require.NoError(t, err)
	require.Equal(t, int64(9), result.After.NoOpVersion)
	require.Equal(t, "options", result.After.NoOpOptions)
}

func TestWithoutAPolicyForItNothingIsCompactedOrCleanedUp(t *testing.T) {
	u := cold()
	u.prepared.Limits.CompactFragments, u.prepared.Limits.CleanupOlderThan = 0, 0

	result, _, err := retire(t, u)

	require.NoError(t, err)
	require.Equal(t, workflows.OutcomeDone, result.Outcome)
	require.NotContains(t, u.called, workflows.CompactName)
	require.NotContains(t, u.called, workflows.CleanupVersionsName)
}

func TestACompactionTellsWhatTheFirstCallFoundAndTheLastOneLeft(t *testing.T) {
	u := cold()
	u.prepared.Facts.Version, u.prepared.Facts.SmallFragments, u.prepared.Facts.Bytes = 20, 9, 1000
	u.prepared.NoMerge = true
	u.compacts = []workflows.CompactResult{
		{More: true, Passes: 1, Removed: 32, Added: 1, Rows: 10, FragmentsBefore: 64, Fragments: 33, Version: 11},
		{Passes: 0, Removed: 8, Added: 2, Rows: 5, FragmentsBefore: 33, Fragments: 27, Version: 12},
	}
	u.fail[workflows.CleanupVersionsName] = final("corrupt")
	_, _, err := retire(t, u)
	require.Error(t, err)
	r := u.recorded[0].Result
	require.Equal(t, "compacted 64 fragments into 27 (15 rows)", r.Steps[0].Sentence)
	require.Equal(t, workflows.OutcomeDone, r.Steps[0].Outcome)
	want := u.prepared.Facts // version: somebody else's is newer
	want.Fragments, want.SmallFragments, want.Bytes = 27, -1, -1
	require.Equal(t, want, r.After)
	require.Zero(t, r.After.NoOpVersion)
}

func TestAnEmptyPlanSurvivesTheLooksAfterIt(t *testing.T) {
	for _, name := range []string{workflows.RetireWorkflowName, workflows.OptimizeWorkflowName} {
		u := cold()
		u.compacts = []workflows.CompactResult{{Version: 9, Fragments: 16, FragmentsBefore: 16}}
		result, err := newUpkeepEnv(t, u).run(name, upkeepArgs())
		require.NoError(t, err)
		require.Equal(t, []any{int64(9), "options"}, []any{result.After.NoOpVersion, result.After.NoOpOptions}, name)
		require.Equal(t, "nothing to compact in version 9", result.Steps[1].Sentence)
		require.Equal(t, workflows.OutcomeNoop, result.Steps[1].Outcome)
	}
}

func TestOldVersionsGoAsThePolicySaysAndThoseThatAreHeldAreNamed(t *testing.T) {
	for said, c := range map[string]struct {
		cleaned workflows.CleanupResult
		outcome string
	}{
		"removed 4 versions older than 24 h":                                    {workflows.CleanupResult{Removed: 4}, workflows.OutcomeDone},
		"removed 0 versions older than 24 h, others held by tag v1, branch dev": {workflows.CleanupResult{Held: []string{"tag v1", "branch dev"}}, workflows.OutcomeNoop},
	} {
		u := cold()
		u.cleanup = c.cleaned
		result, _, err := retire(t, u)
		require.NoError(t, err)
		require.Equal(t, []any{said, c.outcome}, []any{result.Steps[2].Sentence, result.Steps[2].Outcome})
		require.Equal(t, workflows.CleanupInput{Target: u.prepared.Target, OlderThan: (24 * time.Hour).Milliseconds()}, u.asked[workflows.CleanupVersionsName])
	}
}
