package main

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBareRequestsAreSentTwiceAndTimedOnce(t *testing.T) {
	var heads atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			heads.Add(1)
		}
		w.WriteHeader(http.StatusForbidden)
	}))
	defer server.Close()
	seconds, err := bare(t.Context(), server.URL, 700)
	require.NoError(t, err)
	require.Positive(t, seconds)
	require.EqualValues(t, 1400, heads.Load())

	server.Close()
	_, err = bare(t.Context(), server.URL, 1)
	require.ErrorContains(t, err, "bare requests")
}
