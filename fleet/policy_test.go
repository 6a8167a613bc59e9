package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func ptr[T any](v T) *T { return &v }

func TestOverridesApplyByPatternAndKindInOrder(t *testing.T) {
	policies := Policies{Default: DefaultPolicy(), Overrides: []Override{
		{Pattern: "prod-*", RetireAfter: ptr(30 * day)},
		{Kind: Table, Maintain: ptr(false)},
		{Pattern: "prod-eval", Kind: Rollout, RetireAfter: ptr(time.Duration(0)), LiveShards: ptr(LeaveLiveShards)},
	}}
	require.NoError(t, policies.Validate())

	plain, from := policies.For(ID{Rollout, "x"})
	assert.Equal(t, DefaultPolicy(), plain)
	assert.Empty(t, from)

	prod, from := policies.For(ID{Table, "prod-a"})
	assert.Equal(t, 30*day, prod.RetireAfter)
	assert.False(t, prod.Maintain)
	assert.Equal(t, []int{0, 1}, from)

	eval, from := policies.For(ID{Rollout, "prod-eval"})
	assert.Zero(t, eval.RetireAfter, "a later override wins, and zero is a value")
	assert.Equal(t, LeaveLiveShards, eval.LiveShards)
	assert.EqualValues(t, 8, eval.MergeMinGenerations, "what is not named stays")
	assert.Equal(t, []int{0, 2}, from)
}

func TestPoliciesThatCannotBeMeantAreRefused(t *testing.T) {
	for why, change := range map[string]func(*Policies){
		"a broken pattern":                func(p *Policies) { p.Overrides = []Override{{Pattern: "[a"}} },
		"an unknown kind":                 func(p *Policies) { p.Overrides = []Override{{Kind: "roll"}} },
		"a negative age":                  func(p *Policies) { p.Default.RetireAfter = -1 },
		"a negative count in an override": func(p *Policies) { p.Overrides = []Override{{MergeMinGenerations: ptr(int64(-1))}} },
		"an unknown way with live shards": func(p *Policies) { p.Default.LiveShards = "ignore" },
		"a window past midnight":          func(p *Policies) { p.Default.QuietWindow = Window{To: 25 * time.Hour} },
	} {
		t.Run(why, func(t *testing.T) {
			policies := Policies{Default: DefaultPolicy()}
			change(&policies)
			err := policies.Validate()
			require.Error(t, err)
			if policies.Overrides != nil {
				require.ErrorContains(t, err, "override 1: ")
			}
		})
	}
}

func TestTheZeroPolicyDoesNothing(t *testing.T) {
	row := quiet()
	row.PendingWAL, row.FragmentCount, row.SmallFragments, row.LastWrite = 5000, 5000, 5000, 1
	assert.Equal(t, DoNothing, Decide(row, Policy{}, History{}, noon).Action)
}

func TestAWindowMaySpanMidnight(t *testing.T) {
	night := Window{22 * time.Hour, 6 * time.Hour}
	for at, want := range map[int64]bool{noon: false, noon + 10*hour - 1: false, noon + 10*hour: true, noon + 13*hour: true, noon + 18*hour - 1: true, noon + 18*hour: false} {
		end, inside := night.Contains(at)
		assert.Equal(t, want, inside, Clock(at, noon))
		if inside {
			assert.Equal(t, noon+18*hour, end)
		}
	}
	_, inside := Window{}.Contains(noon)
	assert.False(t, inside, "an empty window contains nothing")
}

func TestACooldownDoublesFromTheThirdFailureUpToItsMaximum(t *testing.T) {
	p := DefaultPolicy()
	for failures, want := range map[int64]time.Duration{
		0: 0, 2: 0, 3: 10 * time.Minute, 4: 20 * time.Minute, 5: 40 * time.Minute, 8: 320 * time.Minute, 9: 6 * time.Hour, 1 << 40: 6 * time.Hour,
	} {
		assert.Equal(t, want, p.Cooldown(failures), failures)
	}
	p.CooldownAfter = 0
	assert.Zero(t, p.Cooldown(100), "0 turns it off")
	p.CooldownAfter, p.CooldownBase = 1, 0
	assert.Zero(t, p.Cooldown(1<<40), "no base, no wait")
}

func TestWideRowsMakeFragmentsOfFewerRows(t *testing.T) {
	p := DefaultPolicy()
	assert.EqualValues(t, 1<<20, p.RowsPerFragment(nil))
	unknown := UnknownRow(exp1)
	assert.EqualValues(t, 1<<20, p.RowsPerFragment(&unknown))
	assert.EqualValues(t, 1<<20, p.RowsPerFragment(&Row{RowCount: 1000, Bytes: 1000}))
	assert.EqualValues(t, 715, p.RowsPerFragment(&Row{RowCount: 6000, Bytes: 6000 * 1_500_000}))
	assert.EqualValues(t, 1, p.RowsPerFragment(&Row{RowCount: 1, Bytes: 1 << 40}))
}
