package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lancefleet/web"
)

func TestFlagsOfClientsMayStandBeforeTheCommand(t *testing.T) {
	for given, want := range map[string]string{
		"--server http://a ls":                    "ls --server http://a",
		"--server=http://a --json show x --fresh": "show x --fresh --server=http://a --json",
		"--log-level debug --token t history x":   "--log-level debug history x --token t",
		"--token t seal -- x":                     "seal --token t -- x",
		"ls --server http://a":                    "ls --server http://a",
		"--help":                                  "--help",
		"--server":                                "--server",
		"":                                        "",
	} {
		require.Equal(t, want, strings.Join(clientFlagsLast(strings.Fields(given)), " "), given)
	}
	s := newMaintenanceServer(t)
	s.verify.Clean = true
	var out, errs bytes.Buffer
	require.Zero(t, run(t.Context(), []string{"--server", s.URL, "verify", "x", "--json"}, &out, &errs), errs.String()+out.String())
	require.Len(t, s.asked, 1)
	require.Equal(t, exitUsage, run(t.Context(), []string{"--server", s.URL, "version"}, &out, &errs), "version asks nobody")
}

func TestAPersonIsToldOnceWhichFleetAnswers(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(web.FleetHeader, "nightly")
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write([]byte("{}"))
	}))
	t.Cleanup(server.Close)
	a, err := clientFlags{Server: server.URL}.api()
	require.NoError(t, err)
	var told bytes.Buffer
	a.tell = &told
	for range 2 {
		_, err = a.get(t.Context(), "/api/v1/status", nil, nil)
		require.NoError(t, err)
	}
	require.Equal(t, "fleet nightly at "+server.URL+"\n", told.String())
}
