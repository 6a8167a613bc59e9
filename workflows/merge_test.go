package workflows_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
	"lancefleet/workflows"
)

func TestARefusedMergeEndsARetirementButNotTheCompactionOfAHotOne(t *testing.T) {
	refused := func() *upkept {
		u := cold()
		u.merges = []workflows.MergeResult{{Left: 3, Marks: map[string]uint64{}, Refused: []string{"shard s1 restarted its generation counter"}}}
		return u
	}
	u := refused()
	result, _, err := retire(t, u)
	require.NoError(t, err)
	require.Equal(t, workflows.OutcomeRefused, result.Outcome)
	require.Equal(t, "not merged: shard s1 restarted its generation counter", result.Sentence)
	require.Equal(t, []string{workflows.PrepareName, workflows.MergeWALName, workflows.RecordMaintenanceName}, u.called)

	u = refused()
	result, err = newUpkeepEnv(t, u).run(workflows.OptimizeWorkflowName, upkeepArgs())
	require.NoError(t, err)
	require.Equal(t, workflows.OutcomeRefused, result.Outcome)
	require.Contains(t, u.called, workflows.CompactName)
	require.Contains(t, result.Sentence, "compacted 16 fragments into 1")
	require.Contains(t, result.Sentence, "restarted its generation counter")
}

func TestAnAttemptThatStopsHalfWayIsFollowedByTheNextOneFromItsMarks(t *testing.T) {
	u := cold()
	u.merges = []workflows.MergeResult{
		{More: true, Passes: 90, Generations: 720, Drained: 720, Rows: 10, Shards: 1, Left: 780, Marks: map[string]uint64{"s1": 720}, Version: 9},
		{Passes: 98, Generations: 780, Drained: 780, Rows: 20, Shards: 1, Marks: map[string]uint64{"s1": 1500}, Version: 10},
	}
	u.compacts = []workflows.CompactResult{
		{More: true, Passes: 1, Removed: 32, Added: 1, FragmentsBefore: 64, Fragments: 33, Version: 11},
		{Passes: 1, Removed: 32, Added: 1, FragmentsBefore: 33, Fragments: 2, Version: 12},
	}

	result, _, err := retire(t, u)

	require.NoError(t, err)
	require.Equal(t, map[string]uint64{"s1": 720}, u.mergeIn[1].Marks)
	require.Contains(t, result.Sentence, "merged 1,500 generations of 1 shard (30 rows)")
	require.Contains(t, result.Sentence, "compacted 64 fragments into 2")
}

func TestWhereThereIsNothingToMergeNoSlotIsWaitedFor(t *testing.T) {
	u := cold()
	u.prepared.NoMerge = true
	result, _, err := retire(t, u)
	require.NoError(t, err)
	require.Equal(t, workflows.OutcomeDone, result.Outcome)
	require.NotContains(t, u.called, workflows.MergeWALName)
	require.Contains(t, u.called, workflows.VerifyName)
}

func TestAMergeThatMovesNothingLeavesWhatIsKnownAsItWas(t *testing.T) {
	u := cold()
	u.merges = []workflows.MergeResult{{Left: 3, Stranded: 1, Unknown: 2, Marks: map[string]uint64{"s1": 99}}}
	u.fail[workflows.CompactName] = final("corrupt")
	_, _, err := retire(t, u)
	require.Error(t, err)
	want := u.prepared.Facts
	want.Pending, want.Stranded, want.Unknown = 3, 1, 2
	require.Equal(t, want, u.recorded[0].Result.After)
}

func TestAfterAMergeOnlyWhatItTellsIsKnown(t *testing.T) {
	u := cold()
	u.prepared.Facts.SmallFragments, u.prepared.Facts.Rows, u.prepared.Facts.Bytes = 4, 100, 1000
	u.prepared.Facts.Version = 12 // somebody else committed since the merge's last pass read it
	u.merges[0].Unknown = 1
	u.fail[workflows.CompactName] = final("corrupt")
	_, _, err := retire(t, u)
	require.Error(t, err)
	want := fleet.UnknownFacts()
	want.Version, want.Pending, want.Stranded, want.Unknown = 12, 0, 0, 1
	want.Marks = map[string]uint64{"s1": 10, "s2": 6}
	require.Equal(t, want, u.recorded[0].Result.After)
	before, after := u.recorded[0].Result.Steps[0].Before, u.recorded[0].Result.Steps[0].After
	require.Equal(t, []any{int64(12), int64(16), int64(12)}, []any{before.Version, before.Fragments, before.Pending})
	require.Equal(t, want, after, "the one step that tells the marks")
}

func TestAMergeTellsWhatItDidAndWhatItLeft(t *testing.T) {
	for said, r := range map[string]workflows.MergeResult{
		"nothing pending to merge":                                                                          {},
		"merged 0 generations of 0 shards (0 rows)":                                                         {Drained: 2},
		"merged 3 generations of 2 shards (9 rows)":                                                         {Generations: 3, Shards: 2, Rows: 9},
		"merged 3 generations of 1 shard (9 rows, 4 deletes)":                                               {Generations: 3, Shards: 1, Rows: 9, Deletes: 4},
		"merged 1 generation of 1 shard (1 row), 5 generations left":                                        {Generations: 1, Shards: 1, Rows: 1, Left: 5},
		"sealed 1 shard with 2 stranded rows of its dead writer, merged 0 generations of 0 shards (0 rows)": {Sealed: 1, SealedRows: 2},
		"nothing pending to merge, 2 shards left to their live writer, 3 generations left":                  {Live: 2, Left: 3},
		"nothing pending to merge, 1 WAL entry of unknown state":                                            {Unknown: 1},
		"not merged: it is sealed; it began again":                                                          {Generations: 4, Refused: []string{"it is sealed", "it began again"}},
	} {
		t.Run(said, func(t *testing.T) {
			u := cold()
			u.merges = []workflows.MergeResult{r}
			result, err := newUpkeepEnv(t, u).run(workflows.OptimizeWorkflowName, upkeepArgs())
			require.NoError(t, err)
			require.Equal(t, said, result.Steps[0].Sentence)
			want := workflows.OutcomeDone
			switch {
			case strings.HasPrefix(said, "nothing"):
				want = workflows.OutcomeNoop
			case strings.HasPrefix(said, "not"):
				want = workflows.OutcomeRefused
			}
			require.Equal(t, want, result.Steps[0].Outcome)
		})
	}
}

func TestWhatSeveralCallsOfAMergeDidIsToldAsOne(t *testing.T) {
	u := cold()
	u.merges = []workflows.MergeResult{
		{More: true, Passes: 1, Generations: 2, Rows: 10, Deletes: 1, Drained: 2, Shards: 2, Sealed: 1, SealedRows: 3},
		{More: true, Passes: 1, Generations: 3, Rows: 20, Deletes: 2, Drained: 3, Shards: 1, Sealed: 1, SealedRows: 4},
		{},
	}
	result, err := newUpkeepEnv(t, u).run(workflows.OptimizeWorkflowName, upkeepArgs())
	require.NoError(t, err)
	require.Equal(t, "sealed 2 shards with 7 stranded rows of its dead writer, merged 5 generations of 2 shards (30 rows, 3 deletes)", result.Steps[0].Sentence)
	require.Equal(t, []time.Duration{5 * time.Minute}, u.waited, "what any of the calls drained has a grace")
}

func TestAStepThatNeverEndsIsLeftForTheNextRun(t *testing.T) {
	u := cold()
	u.merges = []workflows.MergeResult{{More: true, Passes: 1, Generations: 1, Drained: 1, Shards: 1}}
	u.compacts = []workflows.CompactResult{{More: true, Passes: 1, Removed: 2, Added: 1}}
	_, err := newUpkeepEnv(t, u).run(workflows.OptimizeWorkflowName, upkeepArgs())
	require.NoError(t, err)
	require.Equal(t, 200, count(u.called, workflows.MergeWALName))
	require.Equal(t, 200, count(u.called, workflows.CompactName))
}

func TestACallThatOnlyDrainedHasMovedMarksToo(t *testing.T) {
	u := cold()
	u.merges = []workflows.MergeResult{{More: true, Passes: 1, Drained: 2, Version: 9, Marks: map[string]uint64{"s1": 6}}, {Left: 4}}
	u.fail[workflows.CompactName] = final("corrupt")
	env := newUpkeepEnv(t, u)
	asked := watchOptions(env.TestWorkflowEnvironment)
	_, err := env.run(workflows.RetireWorkflowName, upkeepArgs())
	require.Error(t, err)
	r := u.recorded[0].Result
	require.Equal(t, []any{map[string]uint64{"s1": 6}, int64(-1)}, []any{r.After.Marks, r.After.Fragments})
	require.Equal(t, "merged 0 generations of 0 shards (0 rows), 4 generations left", r.Steps[0].Sentence)
	require.Equal(t, "merge pending WAL generations of every shard, oldest first", asked.of[workflows.MergeWALName].Summary)
}

func TestTheNextCallOfAMergeSaysWhatIsLeft(t *testing.T) {
	u := cold()
	u.merges = []workflows.MergeResult{{More: true, Passes: 1, Generations: 2, Drained: 2, Left: 5}, {}}
	env := newUpkeepEnv(t, u)
	asked := watchOptions(env.TestWorkflowEnvironment)
	_, err := env.run(workflows.OptimizeWorkflowName, upkeepArgs())
	require.NoError(t, err)
	require.Equal(t, "merge on: 5 generations left", asked.of[workflows.MergeWALName].Summary)
}
