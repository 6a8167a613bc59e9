package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
	"lancefleet/web"
)

func TestAPauseThatTookEffectIsASuccessWithAWarning(t *testing.T) {
	out, errs, exit, _ := command(t, http.StatusOK, web.Schedule{Paused: true, By: "ada", Reason: "x", Warning: "not read back"}, "pause", "--reason", "x")
	require.Zero(t, exit)
	require.Equal(t, "paused by ada: x\n", out)
	require.Equal(t, "warning: not read back\n", errs)
}

func TestARequestWhoseAnswerIsLostMayHaveTakenEffect(t *testing.T) {
	clean(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/schedule/pause" { // the answer ends in its middle
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "{")
			return
		}
		connection, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			connection.Close()
		}
	}))
	defer server.Close()
	for _, args := range [][]string{{"pause", "--reason", "x"}, {"scan"}} {
		var out, errs bytes.Buffer
		require.Equal(t, exitUnreachable, run(t.Context(), append(args, "--server", server.URL), &out, &errs))
		require.Contains(t, errs.String(), "whether what was asked for took effect is not known", args)
	}
	for _, args := range [][]string{{"pause", "--reason", "x"}, {"ls"}} {
		var out, errs bytes.Buffer
		require.Equal(t, exitUnreachable, run(t.Context(), append(args, "--server", "http://127.0.0.1:1"), &out, &errs))
		require.Contains(t, errs.String(), "is it running", "nothing reached a server")
	}
}

func TestARoundThatEndedIsPrintedAlsoWhenTheServerFailsAfterwards(t *testing.T) {
	clean(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/api/v1/rescan":
			w.WriteHeader(http.StatusAccepted)
			_ = json.NewEncoder(w).Encode(web.Started{WorkflowID: "w", RunID: "r"})
		case "/api/v1/rounds/w/r":
			_ = json.NewEncoder(w).Encode(web.Round{RoundRecord: fleet.RoundRecord{RoundID: "r", Observed: 7}})
		default:
			w.WriteHeader(http.StatusServiceUnavailable)
			_ = json.NewEncoder(w).Encode(web.ErrorBody{Message: "storage is away"})
		}
	}))
	defer server.Close()
	var out, errs bytes.Buffer
	require.Zero(t, run(t.Context(), []string{"scan", "--wait", "--json", "--server", server.URL}, &out, &errs))
	var round web.Round
	require.NoError(t, json.Unmarshal(out.Bytes(), &round))
	require.EqualValues(t, 7, round.Observed)
	require.Contains(t, errs.String(), "storage is away")
}
