package web

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatComesNextIsNeverInThePast(t *testing.T) {
	now, past, future := int64(1_700_000_010_000), int64(1_700_000_003_000), int64(1_700_000_070_000)
	require.Contains(t, string(due(&past, now, "none")), ">now<")
	require.Contains(t, string(due(&future, now, "none")), ">in 1 min<")
	require.Contains(t, string(due(nil, now, "none planned")), "none planned")
}

func TestDigitsAreGroupedAlsoOfTheSmallestNumber(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567", math.MinInt64: "-9,223,372,036,854,775,808"} {
		require.Equal(t, want, count(n))
	}
}

func TestNumbersOfThingsAreWorded(t *testing.T) {
	require.Equal(t, "1 generation", plural(1, "generation"))
	require.Equal(t, "0 rows", plural(0, "row"))
	require.Equal(t, "17,204 generations", plural(17_204, "generation"))
	require.Equal(t, "2 WAL entries", plural(2, "WAL entry"))
	require.Equal(t, "unknown rows", plural(-1, "row"))
}
