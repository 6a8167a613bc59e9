package web

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatComesNextIsNeverInThePast(t *testing.T) {
	now, past, future := int64(1_700_000_010_000), int64(1_700_000_003_000), int64(1_700_000_070_000)
	require.Contains(t, string(due(&past, now, "none")), ">now<")
	require.Contains(t, string(due(&future, now, "none")), ">in 1 min<")
	require.Contains(t, string(due(nil, now, "none planned")), "none planned")
}
