package makefleet

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
)

var now = time.UnixMilli(1_796_000_000_000)

func plan() Plan {
	return Plan{Experiments: 300, Shards: 2, Generations: 3, Rows: 5, Fragments: 1, ColdShare: 0.25,
		Kinds: []fleet.Kind{fleet.Rollout, fleet.Generic, fleet.Table}, Seed: 7}
}

func TestTheSameSeedMakesTheSameFleet(t *testing.T) {
	again := plan()
	require.Equal(t, plan().Datasets("/d", now), again.Datasets("/d", now))
	require.Equal(t, plan().Templates(), again.Templates())
	other := plan()
	other.Seed = 8
	require.NotEqual(t, plan().Datasets("/d", now), other.Datasets("/d", now))
}

func TestALargerFleetContainsTheSmaller(t *testing.T) {
	larger := plan()
	larger.Experiments *= 2
	require.Equal(t, plan().Datasets("/d", now), larger.Datasets("/d", now)[:300])
}

func TestEveryExperimentIsAValidOneOfItsKindAndFolder(t *testing.T) {
	seen := map[fleet.ID]bool{}
	templates := plan().Templates()
	for _, d := range plan().Datasets("/d", now) {
		require.NoError(t, fleet.ValidateName(d.Name))
		require.False(t, seen[d.ID], "%s twice", d.ID)
		seen[d.ID] = true
		require.Equal(t, d.Kind, templates[d.Template].Kind)
		require.Equal(t, "/d/"+folder(d.ID), d.URI)
		id, ok := fleet.KindOfFolder(folder(d.ID))
		require.True(t, ok)
		require.Equal(t, d.ID, id)
	}
}

func TestTheColdShareIsColdForMoreThanAWeekAndTheRestIsNot(t *testing.T) {
	templates := plan().Templates()
	cold := 0
	for _, d := range plan().Datasets("/d", now) {
		age := templates[d.Template].Age
		require.LessOrEqual(t, d.CreatedAt, now.Add(-age).UnixMilli(), "created after its newest write")
		if age > 7*24*time.Hour {
			cold++
		}
	}
	require.InDelta(t, 0.25*300, cold, 25)
	for _, share := range []float64{0, 1} {
		extreme := plan()
		extreme.ColdShare = share
		for _, d := range extreme.Datasets("/d", now) {
			require.Equal(t, share == 1, templates[d.Template].Age > 7*24*time.Hour)
		}
	}
}

func TestLiveWritersTakeHotExperimentsOnly(t *testing.T) {
	templates := plan().Templates()
	written := plan().written("/d")
	require.Len(t, written, liveWriters)
	for _, d := range written {
		require.Less(t, templates[d.Template].Age, 7*24*time.Hour)
	}
}

func TestTablesHaveNoWriteAheadLog(t *testing.T) {
	p := plan()
	p.Tombstones, p.Stranded, p.Fragments = true, true, 0
	for _, spec := range p.Templates() {
		if spec.Kind == fleet.Table {
			require.Zero(t, spec.Shards+spec.Generations)
			require.False(t, spec.Tombstones || spec.Stranded)
			require.Positive(t, spec.Fragments, "a table without rows shows nothing")
		} else {
			require.True(t, spec.Tombstones && spec.Stranded)
		}
	}
}

func TestAPlanThatCanNotBeMadeIsRefusedByName(t *testing.T) {
	for word, spoil := range map[string]func(*Plan){
		"experiments 0":  func(p *Plan) { p.Experiments = 0 },
		"shards -1":      func(p *Plan) { p.Shards = -1 },
		"generations":    func(p *Plan) { p.Generations = -1 },
		"rows 0":         func(p *Plan) { p.Rows = 0 },
		"fragments":      func(p *Plan) { p.Fragments = -1 },
		"cold-share":     func(p *Plan) { p.ColdShare = 1.5 },
		"cold-share NaN": func(p *Plan) { p.ColdShare = math.NaN() },
		"kinds":          func(p *Plan) { p.Kinds = nil },
		"shards 0":       func(p *Plan) { p.Shards, p.Stranded = 0, true },
		"generations 0":  func(p *Plan) { p.Generations, p.Tombstones = 0, true },
	} {
		p := plan()
		spoil(&p)
		require.ErrorContains(t, p.Validate(), word)
	}
	require.NoError(t, plan().Validate())
	for word, kinds := range map[string][]string{"datagen": {"datagen"}, `""`: {"rollout", ""}, "twice": {"table", "table"}} {
		_, err := ParseKinds(kinds)
		require.ErrorContains(t, err, word)
	}
}
