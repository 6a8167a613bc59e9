package store_test

import (
	"reflect"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/store"
)

const hourMS = 3600 * 1000

func samplesSuite() map[string]func(*testing.T, *backend) {
	return map[string]func(*testing.T, *backend){
		"samples of one experiment come newest first, one an hour": samplesOf,
		"every field of a sample survives":                         samplesEveryField,
	}
}

func newSamples(b *backend) *store.SamplesWriter {
	return store.NewSamplesWriter(b, store.NewSamples(b, b.dir))
}

func samplesOf(t *testing.T, b *backend) {
	w := newSamples(b)
	none, err := w.Of(t.Context(), experiment(1).ID, 0)
	require.NoError(t, err)
	require.Empty(t, none)
	for h := range int64(3) {
		for n := range 2 {
			require.NoError(t, w.Append(t.Context(), fleet.Sample{ID: experiment(n).ID, At: h * hourMS, Rows: h}))
		}
	}
	require.NoError(t, w.Append(t.Context(), fleet.Sample{ID: experiment(1).ID, At: 2 * hourMS, Rows: 99}, fleet.Sample{ID: experiment(3).ID}))
	got, err := newSamples(b).Of(t.Context(), experiment(1).ID, 2)
	require.NoError(t, err)
	require.Len(t, got, 2)
	require.EqualValues(t, 2, got[0].Rows, "of an hour the first counts")
	require.EqualValues(t, 1, got[1].Rows)
	require.ErrorIs(t, w.Append(t.Context(), fleet.Sample{}), lance.ErrInvalid)
}

func samplesEveryField(t *testing.T, b *backend) {
	var n int64
	var full fleet.Sample
	fill(t, reflect.ValueOf(&full).Elem(), &n)
	full.ID = experiment(1).ID
	require.NoError(t, newSamples(b).Append(t.Context(), full))
	got, err := newSamples(b).Of(t.Context(), full.ID, 0)
	require.NoError(t, err)
	require.Equal(t, []fleet.Sample{full}, got)
}

func TestSamplesAreKeptThirtyDaysAndNotTooMany(t *testing.T) {
	var samples []fleet.Sample
	for h := range int64(40 * 24) {
		samples = append(samples, fleet.Sample{ID: fleet.ID{Kind: fleet.Rollout, Name: "x" + strconv.FormatInt(h, 10)}, At: (1000 - h) * hourMS})
	}
	require.Len(t, store.TrimSamples(samples), 30*24+1)
	require.Len(t, store.TrimSamples(make([]fleet.Sample, 250_000)), 200_000)
}
