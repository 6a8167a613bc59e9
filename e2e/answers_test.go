package e2e

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
)

func decode(t *testing.T, text string, into any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), into), text)
}

func roundOf(t *testing.T, text string) fleet.RoundRecord {
	t.Helper()
	var round fleet.RoundRecord
	decode(t, text, &round)
	return round
}
