package worker

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
)

// A change of a workflow's logic must be seen by the replay of what ran before it:
// see workflows/history_test.go, which records and replays.
func TestEveryWorkflowThatIsServedHasASavedHistory(t *testing.T) {
	saved := map[string]bool{}
	files, err := filepath.Glob("../workflows/testdata/*.json")
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var history historypb.History
		require.NoError(t, temporalproto.CustomJSONUnmarshalOptions{}.Unmarshal(text, &history), file)
		require.NotEmpty(t, history.Events, file)
		saved[history.Events[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowType().GetName()] = true
	}
	served := map[string]bool{}
	for _, q := range (&Worker{}).queues(group{}) {
		for name := range q.workflows {
			served[name] = true
		}
	}
	require.Greater(t, len(served), 9)
	require.Equal(t, served, saved, "record it: go test ./workflows -run RealServer/NAME -record")
}
