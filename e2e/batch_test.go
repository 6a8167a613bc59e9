package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/e2e/fleettest"
	"lancefleet/web"
)

// A batch from the list: what it would do is said first, then each run is started
// once, followed to its end, and found again in the history of its experiment.
func TestABatchDoesWhatItsPreviewSaidAndIsFollowedToItsEnd(t *testing.T) {
	f := fleettest.New(t, cold()...)
	f.Make("--experiments", "4", "--generations", "2")
	f.Worker()
	f.Web()
	f.Scan()
	<-time.After(1100 * time.Millisecond) // to have been silent for a second is a condition of a retirement

	wish := web.BatchRequest{Action: "retire", Q: new(string), By: "a test", Why: "the project ended"}
	var plan web.BatchPlan
	require.Equal(t, http.StatusOK, batchOf(t, f, "?dry_run=true", wish, &plan))
	require.Equal(t, 4, plan.Start, plan.Causes)
	require.Equal(t, 4, f.List().Total, "a preview starts nothing")

	var started web.BatchStarted
	require.Equal(t, http.StatusAccepted, batchOf(t, f, "", wish, &started))
	require.Equal(t, 4, started.Started, started.Failed)

	var batch web.Batch
	require.Eventually(t, func() bool {
		status, text := get(t, f.Server()+"/api/v1/batches/"+started.ID)
		require.Equal(t, http.StatusOK, status, text)
		batch = web.Batch{}
		decode(t, text, &batch)
		return len(batch.Ended) == 4 && len(batch.Running) == 0
	}, patience, 200*time.Millisecond, "each run ends")
	require.Equal(t, map[string]int{"done": 4}, batch.Outcomes)
	require.Equal(t, "a test", batch.By)
	status, page := get(t, f.Server()+"/batches/"+started.ID)
	require.Equal(t, http.StatusOK, status)
	for _, run := range batch.Ended {
		require.Contains(t, page, run.Target)
	}

	require.Zero(t, f.Scan().Hot, "the next round takes the rows out")
	require.Equal(t, 4, f.List("--state", "retired").Total)
	require.Equal(t, http.StatusOK, batchOf(t, f, "?dry_run=true", wish, &plan))
	require.Zero(t, plan.Start, "what is retired is not retired again")
}

func batchOf(t *testing.T, f *fleettest.Fleet, query string, wish web.BatchRequest, into any) int {
	t.Helper()
	body, err := json.Marshal(wish)
	require.NoError(t, err)
	answer, err := http.Post(f.Server()+"/api/v1/batches"+query, "application/json", bytes.NewReader(body))
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, into), string(text))
	return answer.StatusCode
}
