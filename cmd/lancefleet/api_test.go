package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
	"lancefleet/web"
)

// command runs a client command against a server that gives one answer.
func command(t *testing.T, status int, answer any, args ...string) (out, errs string, exit int, asked *http.Request) {
	t.Helper()
	clean(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(answer)
	}))
	defer server.Close()
	var stdout, stderr bytes.Buffer
	exit = run(t.Context(), append(args, "--server", server.URL), &stdout, &stderr)
	return stdout.String(), stderr.String(), exit, asked
}

func TestAnswersBecomeExitCodes(t *testing.T) {
	for status, want := range map[int]int{
		http.StatusBadRequest: 2, http.StatusUnprocessableEntity: 2, http.StatusNotFound: 4, http.StatusConflict: 1,
		http.StatusServiceUnavailable: 3, http.StatusInternalServerError: 1, http.StatusForbidden: 1,
	} {
		out, errs, exit, _ := command(t, status, web.ErrorBody{Message: "said so"}, "show", "x", "--json")
		require.Equal(t, want, exit, status)
		require.Contains(t, errs, "said so")
		require.Empty(t, out)
	}
}

func TestCandidatesOfAnAmbiguousNameAreListed(t *testing.T) {
	_, errs, exit, _ := command(t, http.StatusConflict, web.ErrorBody{Message: "several", Candidates: []string{"generic:x", "table:x"}}, "show", "x")
	require.Contains(t, errs, "generic:x, table:x")
	require.Equal(t, exitAmbiguous, exit)
}

func TestANameIsOneSegmentOfThePath(t *testing.T) {
	require.Equal(t, "/api/v1/experiments/table:a%2Fb%20c%3Fd", experimentPath("table:a/b c?d"))
}

func TestTheTokenIsSentAsABearer(t *testing.T) {
	_, _, _, asked := command(t, http.StatusOK, web.ExperimentList{}, "ls", "--token", "secret")
	require.Equal(t, "Bearer secret", asked.Header.Get("Authorization"))
}

func TestLsPassesWhatWasAskedFor(t *testing.T) {
	_, _, exit, asked := command(t, http.StatusOK, web.ExperimentList{}, "ls", "--search", "50%_", "--sort", "name", "--order", "desc", "--limit", "7", "--offset", "3")
	require.Zero(t, exit)
	require.Equal(t, "limit=7&offset=3&order=desc&search=50%25_&sort=name", asked.URL.RawQuery)
}

func TestJSONIsOneDocument(t *testing.T) {
	out, errs, _, _ := command(t, http.StatusOK, web.ExperimentList{Stale: true, StaleWhy: "no rounds"}, "ls", "--json")
	require.Empty(t, errs)
	decoder := json.NewDecoder(bytes.NewBufferString(out))
	var list web.ExperimentList
	require.NoError(t, decoder.Decode(&list))
	require.False(t, decoder.More())
}

func TestUnknownNumbersAreNeverShownAsZero(t *testing.T) {
	some, exact := int64(12), false
	list := web.ExperimentList{Experiments: []web.Summary{
		{Name: "unseen"}, {Name: "seen", RowCount: &some, RowsExact: &exact},
	}}
	out, _, _, _ := command(t, http.StatusOK, list, "ls")
	require.Regexp(t, `unseen +\? +\? +\? +\?`, out)
	require.Contains(t, out, "≤12", "an upper bound is shown as such")
}

func TestSomethingThatIsNotLancefleetIsSaidSo(t *testing.T) {
	_, errs, exit, _ := command(t, http.StatusOK, "hello", "ls")
	require.Equal(t, 1, exit)
	require.Contains(t, errs, "did not answer as lancefleet does")
}

func TestTheBashCompletionCompletesCommandsAndFlags(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Fatal("bash is needed by ./task")
	}
	clean(t)
	var script, errs bytes.Buffer
	require.Zero(t, run(t.Context(), []string{"completion", "bash"}, &script, &errs))
	complete := func(words string) string {
		out, err := exec.Command("bash", "-c", script.String()+`
COMP_WORDS=(`+words+`); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _lancefleet; echo "${COMPREPLY[@]}"`).CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	require.Equal(t, "make-fleet\n", complete(`lancefleet make`))
	require.Equal(t, "--search --server\n", complete(`lancefleet ls --se`))
}

func TestAServerShowsARoundOnceItHasReadWhatWasCommitted(t *testing.T) {
	version := func(v uint64) *uint64 { return &v }
	round := func(committed *uint64, hot int64) web.Round {
		return web.Round{RoundRecord: fleet.RoundRecord{CommittedVersion: committed, Hot: hot}}
	}
	for name, test := range map[string]struct {
		status web.Status
		round  web.Round
		want   bool
	}{
		"nothing read yet":                      {web.Status{}, round(version(3), 5), false},
		"an older version":                      {web.Status{Loaded: true, StatsVersion: version(2)}, round(version(3), 5), false},
		"the version":                           {web.Status{Loaded: true, StatsVersion: version(3)}, round(version(3), 5), true},
		"a newer one":                           {web.Status{Loaded: true, StatsVersion: version(4)}, round(version(3), 5), true},
		"nothing committed, table not seen yet": {web.Status{Loaded: true, StatsVersion: version(0)}, round(nil, 5), false},
		"nothing committed, a table is shown":   {web.Status{Loaded: true, StatsVersion: version(3)}, round(nil, 5), true},
		"an empty fleet has no table":           {web.Status{Loaded: true, StatsVersion: version(0)}, round(nil, 0), true},
	} {
		require.Equal(t, test.want, shows(test.status, test.round), name)
	}
}
