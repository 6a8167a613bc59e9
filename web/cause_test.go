package web

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
)

func TestACauseKeepsTheNumbersThatAllOfItShare(t *testing.T) {
	refused := func(name, reason string) fleet.Blocked {
		b := fleet.Blocked{Decision: fleet.Decision{Held: fleet.HeldRefused, Wants: fleet.DoCompact, Reason: reason}}
		b.ID = fleet.ID{Kind: fleet.Rollout, Name: name}
		return b
	}
	one := causesOf([]fleet.Blocked{refused("exp-1", "exp-1 has 1,204 fragments, below 16")})
	require.Len(t, one, 1)
	require.Equal(t, "… has 1,204 fragments, below 16", one[0].Says)

	several := causesOf([]fleet.Blocked{refused("exp-1", "3 fragments, below 16"), refused("exp-2", "4 fragments, below 16"), refused("exp-3", "3 fragments, below 16")})
	require.Len(t, several, 1, "numbers that differ are no cause of their own")
	require.Equal(t, 3, several[0].Count)
	require.Equal(t, "… fragments, below 16", several[0].Says)
}

func TestFailuresAreGroupedWhateverTheirNumbers(t *testing.T) {
	set := failureSet{map[string]*Failure{}, map[string]*wording{}}
	set.add(oneFailure{id: "rollout:exp-1", where: "compact", class: "corrupt", text: "s3://lake/exp-1: fragment 7 of 9 is cut short", last: 1})
	set.add(oneFailure{id: "rollout:exp-2", where: "compact", class: "corrupt", text: "s3://lake/exp-2: fragment 8 of 9 is cut short", last: 2})
	list := set.list()
	require.Len(t, list, 1)
	require.Equal(t, 2, list[0].Count)
	require.Equal(t, "…: fragment … of 9 is cut short", list[0].Cause)
}

func TestAChartWithoutNumbersHasNoAxisOfThem(t *testing.T) {
	minute := int64(60_000)
	c := chart{title: "Pending", from: 0, to: 60 * minute, word: wordOf(false), points: []chartPoint{{5 * minute, -1}}, marks: []chartMark{{at: 9 * minute}}}
	empty, err := c.draw()
	require.NoError(t, err)
	require.Empty(t, c.valueTicks())
	require.Contains(t, string(empty), "nothing known")
	c.points = append(c.points, chartPoint{6 * minute, 0})
	drawn, err := c.draw()
	require.NoError(t, err)
	require.Len(t, c.valueTicks(), 2)
	require.NotContains(t, string(drawn), "nothing known")
	require.Greater(t, strings.Count(string(drawn), "<text"), strings.Count(string(empty), "<text")-1)
}
