package web

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAWordFindsWhatReadingEachNameFinds(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	const letters = "abc-_.019/%É語 ab"
	word := func(n int) string {
		out := make([]rune, n)
		for i := range out {
			out[i] = []rune(letters)[rnd.IntN(len([]rune(letters)))]
		}
		return strings.ToLower(string(out))
	}
	names := make([]string, 2000)
	for i := range names {
		names[i] = word(rnd.IntN(12))
	}
	g := newGrams(names)
	some := 0
	for range 3000 {
		w := word(1 + rnd.IntN(5))
		few, ok := g.maybe(w)
		require.Equal(t, len(w) >= gramLength, ok, "%q", w)
		if !ok {
			continue
		}
		require.True(t, slices.IsSorted(few))
		var got, want []int32
		for _, i := range few {
			if strings.Contains(names[i], w) {
				got = append(got, i)
			}
		}
		for i, name := range names {
			if strings.Contains(name, w) {
				want = append(want, int32(i))
			}
		}
		require.Equal(t, want, got, "%q", w)
		if len(want) > 0 {
			some++
		}
	}
	require.Greater(t, some, 100)
}

func TestASearchReadsFewNames(t *testing.T) {
	v := newView(largeFleet(2000, 4000, 1000), nil, testNow.UnixMilli())
	for text, most := range map[string]int{"gsm8k": 5000, "gsm8k 00123": 40, "-gsm8k": 7000, "zz-named-000017": 200, "gs": 7000, "pending:>2": 2000, "state:retired pending:>=0": 7000, "unseen": 7000, "rollout:gsm8k": 7000} {
		few, all := queryOf(t, text).candidates(v)
		if all {
			few = make([]int32, v.count())
		}
		require.LessOrEqual(t, len(few), most, text)
		q := queryOf(t, text)
		found := q.run(&asking{moment{view: v}, testNow.UnixMilli()})
		match := q.matcher(&asking{moment{view: v}, testNow.UnixMilli()})
		want := 0
		for i := range int32(v.count()) {
			if match(i) {
				want++
			}
		}
		require.Equal(t, want, found.total, text)
	}
}
