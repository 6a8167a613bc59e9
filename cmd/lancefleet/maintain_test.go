package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/web"
	"lancefleet/workflows"
)

// maintenanceServer answers as lancefleet does, and keeps what it was asked.
type maintenanceServer struct {
	*httptest.Server
	asked  []string
	bodies []string
	start  int // status of a start
	plan   web.MaintenancePlan
	ended  web.MaintenanceEnded
	polls  int // that find it running
	verify web.Verification
	far    []*workflows.MaintenanceProgress // poll by poll; none: no worker tells
}

func next(far *[]*workflows.MaintenanceProgress) *workflows.MaintenanceProgress {
	if len(*far) == 0 {
		return nil
	}
	first := (*far)[0]
	*far = (*far)[1:]
	return first
}

func newMaintenanceServer(t *testing.T) *maintenanceServer {
	t.Helper()
	clean(t)
	s := &maintenanceServer{start: http.StatusAccepted}
	s.Server = httptest.NewServer(http.HandlerFunc(s.answer))
	t.Cleanup(s.Close)
	return s
}

func (s *maintenanceServer) answer(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.asked, s.bodies = append(s.asked, r.Method+" "+r.URL.RequestURI()), append(s.bodies, string(body))
	status, answer := http.StatusOK, any(s.plan)
	switch {
	case strings.HasPrefix(r.URL.Path, "/api/v1/maintenance/"):
		if answer = s.ended; s.polls > 0 {
			s.polls--
			status, answer = http.StatusAccepted, web.MaintenanceRunning{RunningRound: web.RunningRound{Running: true}, Progress: next(&s.far)}
		}
	case strings.HasSuffix(r.URL.Path, "/verify"):
		answer = s.verify
	case r.Method == http.MethodPost && r.URL.RawQuery == "" && s.start >= 400:
		status, answer = s.start, web.ErrorBody{Message: "not started: written 2 h ago; due in 6 d"}
	case r.Method == http.MethodPost && r.URL.RawQuery == "":
		status, answer = s.start, web.MaintenanceStarted{ID: "rollout:x", Action: "retire", WorkflowID: "experiment/rollout:x", RunID: "r", Reason: "cold"}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		return // the client is gone
	}
}

func (s *maintenanceServer) run(t *testing.T, args ...string) (out, errs string, exit int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	exit = run(t.Context(), append(args, "--server", s.URL), &stdout, &stderr)
	return stdout.String(), stderr.String(), exit
}

func TestRetireStartsAndSaysWhichRun(t *testing.T) {
	s := newMaintenanceServer(t)
	out, _, exit := s.run(t, "retire", "x", "--force", "--by", "ada", "--why", "finished")
	require.Zero(t, exit)
	require.Equal(t, []string{"POST /api/v1/experiments/x/retire"}, s.asked)
	require.JSONEq(t, `{"by":"ada","why":"finished","force":true}`, s.bodies[0])
	require.Contains(t, out, "started, run r of experiment/rollout:x: cold")
	for _, action := range []string{"optimize", "wake"} {
		_, _, exit = s.run(t, action, "x")
		require.Zero(t, exit)
		require.Equal(t, "POST /api/v1/experiments/x/"+action, s.asked[len(s.asked)-1])
	}
}

func TestARefusalIsAFailureThatSaysWhenItIsDue(t *testing.T) {
	s := newMaintenanceServer(t)
	s.start = http.StatusConflict
	out, errs, exit := s.run(t, "retire", "x", "--json")
	require.Equal(t, exitFailed, exit)
	require.Contains(t, errs, "due in 6 d")
	require.Empty(t, out)
}

func TestWaitingPrintsWhatBecameOfIt(t *testing.T) {
	for outcome, want := range map[string]int{
		workflows.OutcomeDone: exitOK, workflows.OutcomeNoop: exitOK, workflows.OutcomeRefused: exitFailed, workflows.OutcomeFailed: exitFailed, workflows.OutcomeCancelled: exitFailed,
	} {
		s := newMaintenanceServer(t)
		s.polls = 2
		s.ended.MaintenanceResult = workflows.MaintenanceResult{ID: "rollout:x", Action: "retire", Outcome: outcome, Sentence: "said so",
			Before: factsWith(18), After: fleet.UnknownFacts(), Steps: []workflows.StepResult{{Action: "compact", Outcome: "done", Sentence: "18 fragments into 2"}}}
		out, errs, exit := s.run(t, "retire", "x", "--wait", "--json")
		require.Equal(t, want, exit, outcome)
		var ended web.MaintenanceEnded
		require.NoError(t, json.Unmarshal([]byte(out), &ended))
		require.Equal(t, outcome, ended.Outcome)
		require.Equal(t, want != exitOK, strings.Contains(errs, "said so"))
		require.Equal(t, "GET /api/v1/maintenance/experiment%2Frollout:x/r?wait_secs=30", s.asked[3])
		s.polls = 1
		out, _, _ = s.run(t, "retire", "x", "--wait")
		require.Contains(t, out, "18 fragments into 2")
		if outcome == workflows.OutcomeNoop {
			require.NotContains(t, out, "->", "what did nothing changed no number")
		} else {
			require.Regexp(t, `fragments +18 -> \?`, out, "unknown is no number")
		}
		require.NotContains(t, out, "pending generations", "what nobody knows is not told")
	}
}

func factsWith(fragments int64) fleet.Facts {
	facts := fleet.UnknownFacts()
	facts.Fragments = fragments
	return facts
}

func TestADryRunPrintsNumbersAndWhatBlocks(t *testing.T) {
	s := newMaintenanceServer(t)
	bytes := int64(500)
	s.plan = web.MaintenancePlan{ID: "rollout:x", Action: "retire", Reason: "written 2 h ago", Generations: 5, MergedBytes: &bytes, FragmentsIn: 18, FragmentsOut: 2,
		Versions: 7, Blocking: []string{"shard c: it is sealed"}, Preview: &lance.Preview{Versions: lance.CleanedVersions{Held: []lance.HeldVersion{{By: "tag v1", Version: 4}}}}}
	out, _, exit := s.run(t, "retire", "x", "--dry-run")
	require.Zero(t, exit)
	require.Equal(t, []string{"POST /api/v1/experiments/x/retire?dry_run=true"}, s.asked)
	for _, words := range []string{"would not start: written 2 h ago", "5 generations, ? rows at most, 500 bytes", "18 fragments into 2", "7 old ones would go", "version 4 by tag v1", "shard c: it is sealed"} {
		require.Contains(t, out, words)
	}
	s.plan.Generations, s.plan.FragmentsIn = 1, 0
	out, _, _ = s.run(t, "optimize", "x", "--dry-run")
	require.Regexp(t, `merge +1 generation, \? rows`, out)
	require.Regexp(t, `compact +nothing\n`, out)
	s.plan.FragmentsIn = 18
	out, _, _ = s.run(t, "optimize", "x", "--dry-run", "--json")
	var plan web.MaintenancePlan
	require.NoError(t, json.Unmarshal([]byte(out), &plan))
	require.EqualValues(t, 18, plan.FragmentsIn)
}

func TestVerifyFailsWithAListWhenAnythingIsLeft(t *testing.T) {
	s := newMaintenanceServer(t)
	s.verify = web.Verification{ID: "rollout:x", Clean: true, State: fleet.Hot}
	_, _, exit := s.run(t, "verify", "x", "--deep")
	require.Zero(t, exit)
	require.Equal(t, []string{"GET /api/v1/experiments/x/verify?deep=true"}, s.asked)
	s.verify.Clean = false
	s.verify.Evidence = fleet.Evidence{Pending: 2, Stranded: 3, Blocking: []string{"2 pending generations in shard a"}, Shards: []fleet.ShardEvidence{{ID: "a", Pending: 2}}}
	out, errs, exit := s.run(t, "verify", "x")
	require.Equal(t, exitFailed, exit)
	require.Contains(t, out, "2 pending generations in shard a")
	require.Contains(t, errs, "rollout:x is not clean: 2 pending generations in shard a\n")
	require.Regexp(t, `stranded entries +3`, out)
	require.NotContains(t, out, "not flushed yet")
	s.verify.Unflushed, s.verify.Blocking = 2, []string{"one", "two", "three"}
	out, errs, _ = s.run(t, "verify", "x")
	require.Contains(t, errs, "is not clean: one; two; and 1 more\n")
	require.Regexp(t, `stranded entries +1`, out)
	require.Regexp(t, `not flushed yet +2 entries of writers that may live`, out)
	out, _, exit = s.run(t, "verify", "x", "--json")
	require.Equal(t, exitFailed, exit)
	require.NoError(t, json.Unmarshal([]byte(out), &web.Verification{}))
}

func TestSealShowsAsksAndDoesNothingWithoutAYes(t *testing.T) {
	s := newMaintenanceServer(t)
	s.plan = web.MaintenancePlan{ID: "rollout:x", Action: "seal", Start: true, Reason: "shard s", Seal: &lance.Sealed{Shard: "s", Rows: 9, Entries: []lance.TailEntry{{Position: 4, Rows: 9, State: "stranded"}}}}
	seal := func(answer io.Reader, change func(*sealCommand)) (string, string, error) {
		var out, errs bytes.Buffer
		c := &sealCommand{Name: "x", Shard: "s"}
		c.Server, c.By = s.URL, "ada"
		if change != nil {
			change(c)
		}
		s.asked = nil
		err := c.Run(t.Context(), streams{in: answer, out: &out, err: &errs})
		return out.String(), errs.String(), err
	}
	for _, answer := range []string{"", "y\n", "no\n"} {
		out, errs, err := seal(strings.NewReader(answer), nil)
		require.ErrorContains(t, err, "nothing was done")
		require.Contains(t, out, "position 4, 9 rows, stranded")
		require.Contains(t, errs, "Replay 1 entries into shard s?")
		require.Len(t, s.asked, 1, "only looked")
	}
	_, _, err := seal(strings.NewReader("yes\n"), nil)
	require.NoError(t, err)
	require.Equal(t, "POST /api/v1/experiments/x/seal", s.asked[1])
	_, _, err = seal(nil, func(c *sealCommand) { c.Yes = true })
	require.NoError(t, err)
	require.Len(t, s.asked, 1)
	_, _, err = seal(nil, func(c *sealCommand) { c.DryRun, c.Yes = true, true })
	require.NoError(t, err)
	require.Equal(t, []string{"GET /api/v1/experiments/x/plan?action=seal&shard=s"}, s.asked)
	_, _, err = seal(nil, func(c *sealCommand) { c.JSON = true })
	require.Equal(t, exitUsage, exitCode(err))
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	s.plan.Start, s.plan.Reason = false, "2 entries of which nobody can tell"
	_, _, err = seal(null, nil)
	require.ErrorContains(t, err, "nobody can tell")
	require.Len(t, s.asked, 1)
}

func TestWhereNobodyCanBeAskedSealWantsAYes(t *testing.T) {
	file, err := os.Open(writeFile(t, "yes\n"))
	require.NoError(t, err)
	defer file.Close()
	err = confirm(streams{in: file, err: io.Discard}, "Really?")
	require.Equal(t, exitUsage, exitCode(err))
	require.ErrorContains(t, err, "--yes")
}

func TestThePlanAndTheHistoryArePrinted(t *testing.T) {
	out, _, exit, asked := command(t, http.StatusOK, web.FleetPlan{Maintain: true, Starts: []web.Planned{{ID: "rollout:a", Action: "merge", Reason: "9 pending generations"}},
		Blocked: []web.Planned{{ID: "rollout:b", Action: "none", Wants: "retire", Reason: "cooling down until 14:05"}}, BlockedAll: 1, CoolingDown: 1}, "plan", "--limit", "5")
	require.Zero(t, exit)
	require.Equal(t, "/api/v1/plan?limit=5", asked.URL.RequestURI())
	require.Regexp(t, `start +merge +rollout:a +9 pending`, out)
	require.Regexp(t, `blocked +retire +rollout:b +cooling down`, out)
	require.Contains(t, out, "1 to start, 0 waiting for a later round, 1 blocked, 1 cooling down")
	out, _, _, _ = command(t, http.StatusOK, web.FleetPlan{}, "plan")
	require.Contains(t, out, "maintenance is off")

	before, after := fleet.UnknownFacts(), fleet.UnknownFacts()
	before.Fragments, after.Fragments = 20, 2
	out, _, _, asked = command(t, http.StatusOK, web.History{ID: "rollout:a", Actions: []web.Done{{Action: fleet.Action{At: 1_796_000_000_000, Kind: "compact", Outcome: "failed", Error: "commit\nconflict"}, Before: &before, After: &after}}}, "history", "a")
	require.Equal(t, "/api/v1/experiments/a/history?limit=50", asked.URL.RequestURI())
	require.Regexp(t, `2026-11-30T\S+ +compact +failed +20 -> 2 +\? +a round +commit conflict`, out)
}
