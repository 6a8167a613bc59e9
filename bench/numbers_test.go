package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMedianOfAnEvenCountIsBetweenTheMiddleTwo(t *testing.T) {
	require.InDelta(t, 2.5, median([]float64{4, 1, 3, 2}), 1e-9)
	require.InDelta(t, 3, median([]float64{3}), 1e-9)
	require.Zero(t, median(nil))
}

func TestSpreadLeavesItsInputInOrder(t *testing.T) {
	values := []float64{3, 1, 2}
	require.Equal(t, Spread{1, 2, 3}, spreadOf(values))
	require.Equal(t, []float64{3, 1, 2}, values)
}

func TestSlopeFindsSteadyGrowthUnderJumps(t *testing.T) {
	var steady, noisy []float64
	for i := range 50 {
		steady = append(steady, 100+2*float64(i))
		noisy = append(noisy, 100+2*float64(i)+map[bool]float64{true: 500}[i%17 == 0])
	}
	require.InDelta(t, 2, slope(steady), 1e-9)
	require.InDelta(t, 2, slope(noisy), 0.2)
	require.Zero(t, slope([]float64{7, 7, 7}))
	require.Negative(t, slope([]float64{9, 5, 1}))
}

func TestEachBatchOfWritesTouchesOthersAndEveryPartOfTheFleet(t *testing.T) {
	const experiments, n = 3000, 30
	touched := map[int]int{}
	for batch := range int64(50) {
		for _, i := range chosen(experiments, n, batch*n) {
			require.GreaterOrEqual(t, i, 0)
			require.Less(t, i, experiments)
			touched[i]++
		}
	}
	require.Len(t, touched, 50*n, "an experiment was written twice")
	pages := map[int]bool{}
	for _, i := range chosen(experiments, n, 0) {
		pages[i/1000] = true
	}
	require.Len(t, pages, 3)
}

func TestMemoryIsReadFromProcStatus(t *testing.T) {
	m, err := parseMemory([]byte("Name:\tlancefleet\nVmPeak:\t 9 kB\nVmHWM:\t  2048 kB\nVmRSS:\t  1024 kB\n"))
	require.NoError(t, err)
	require.Equal(t, Memory{Resident: 1 << 20, Peak: 2 << 20}, m)
	_, err = parseMemory([]byte("Name:\tzombie\n"))
	require.ErrorContains(t, err, "Vm")
}

func TestTheBestTrialIsTheOneWithTheFastestRound(t *testing.T) {
	require.Equal(t, 4, best([]Poll{
		{Concurrency: 1, Seconds: []float64{3, 2}},
		{Concurrency: 4, Seconds: []float64{9, 1}},
		{Concurrency: 8, Seconds: []float64{1.5, 1.5}},
	}).Concurrency)
}

func TestBadSettingsAreRefusedWithTheirNames(t *testing.T) {
	for flag, args := range map[string][]string{
		"--sizes":        {"--sizes", "10,many"},
		"--rounds 0":     {"--rounds", "0"},
		"--latency-ms":   {"--latency-ms", "-1"},
		"--soak-rounds":  {"--soak-rounds", "1"},
		"what":           {"what"},
		"--soak-size -3": {"--soak-size", "-3"},
	} {
		_, err := parseSettings(args, t.Output())
		require.ErrorAs(t, err, new(usageError), args)
		require.ErrorContains(t, err, flag)
	}
	s, err := parseSettings([]string{"--sizes", "200, 500"}, t.Output())
	require.NoError(t, err)
	require.Equal(t, []int{200, 500}, s.Sizes)
}
