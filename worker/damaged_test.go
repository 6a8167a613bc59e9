package worker_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"lancefleet/control"
	"lancefleet/lance"
)

func damagedStats(t *testing.T, e *lance.Engine, c client.Client) {
	r := newRig(t, e, c, "damaged", "a", "b")
	stop := r.start()
	before := r.round()
	require.Equal(t, int64(2), before.Hot)
	stats := filepath.Join(r.config.DataDir, "_stats.rollout.lance")
	files, err := filepath.Glob(filepath.Join(stats, "data", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, f := range files {
		require.NoError(t, os.Remove(f))
	}
	stop()
	r.engine = openEngine(t) // another process, which has read nothing yet
	r.start()

	s, err := r.control.StartScan(t.Context(), true, "test")
	require.NoError(t, err)
	_, err = r.control.WaitRound(t.Context(), s)
	require.Equal(t, "corrupt", control.ClassOf(err), "%v", err)
	require.ErrorContains(t, err, "_stats.rollout.lance")
	require.ErrorContains(t, err, "away and the next round makes it anew")

	require.NoError(t, os.Rename(stats, stats+".damaged"))
	again := r.round()
	require.Equal(t, int64(2), again.Observed)
	require.Equal(t, int64(2), again.Hot)
	require.Len(t, r.snapshot().Rows, 2)
}
