package web

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSourcesAreReadAgainWhenTheirTimeIsOverAndWhenTheClockWasSetBack(t *testing.T) {
	const at, often = 1_700_000_000_000, 30_000
	n := &naming{at: at, again: at + often}
	for now, due := range map[int64]bool{
		at - 1:              false, // somebody looked at the clock first
		at:                  false,
		at + often - 1:      false,
		at + often:          true,
		at - often:          false,
		at - often - 1:      true,
		at - 86_400_000:     true,
		at + 365*86_400_000: true,
	} {
		require.Equal(t, due, n.due(now), "%d ms after the reading began", now-at)
	}
	require.True(t, (*naming)(nil).due(at), "never read")
}
