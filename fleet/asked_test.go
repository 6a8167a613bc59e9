package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWhatAPersonAsksForIsDoneAtOnceButNeverWhatIsNeverDone(t *testing.T) {
	p := DefaultPolicy()
	p.QuietWindow = Window{From: 0, To: 23 * time.Hour}
	p.Paused = "moving"
	h := History{Merge: Tries{Failures: 9, LastAt: 5}, Compact: Tries{Failures: 9}, Retire: Tries{Failures: 9}, NoOpVersion: 7}
	asked, history := AskedFor(p, h)
	require.Equal(t, History{NoOpVersion: 7}, history)
	require.EqualValues(t, 1, asked.MergeMinGenerations)
	require.EqualValues(t, 2, asked.CompactMinFragments)
	require.Equal(t, Window{}, asked.QuietWindow)
	require.Equal(t, "moving", asked.Paused)

	p.MergeMinGenerations, p.CompactMinFragments = 0, 0
	asked, _ = AskedFor(p, h)
	require.Zero(t, asked.MergeMinGenerations)
	require.Zero(t, asked.CompactMinFragments)
	require.Equal(t, p.RetireAfter, asked.RetireAfter, "the age is not overlooked")
}
