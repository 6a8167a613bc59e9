package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
)

func TestARoundThatDidNotDoTheWorkIsNotMeasured(t *testing.T) {
	version := uint64(7)
	const experiments = 100
	for name, test := range map[string]struct {
		got      fleet.RoundRecord
		observed int
		wrong    string
	}{
		"nothing changed":                {fleet.RoundRecord{Skipped: 100}, 0, ""},
		"what was written was seen":      {fleet.RoundRecord{Observed: 1, Skipped: 99, CommittedVersion: &version}, 1, ""},
		"a write was missed":             {fleet.RoundRecord{Skipped: 100}, 1, "expected were 1, 99"},
		"more was observed than written": {fleet.RoundRecord{Observed: 2, Skipped: 98, CommittedVersion: &version}, 1, "observed 2"},
		"an experiment failed":           {fleet.RoundRecord{Skipped: 100, Failed: 1}, 0, "failed 1"},
		"experiments were left out":      {fleet.RoundRecord{Skipped: 60}, 0, "skipped 60"},
		"seen and not committed":         {fleet.RoundRecord{Observed: 1, Skipped: 99}, 1, "committed nothing"},
	} {
		err := verify(test.got, experiments, test.observed)
		if test.wrong == "" {
			require.NoError(t, err, name)
		} else {
			require.ErrorContains(t, err, test.wrong, name)
		}
	}
}
