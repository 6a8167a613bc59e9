package web

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/control"
	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/workflows"
)

const daysOfMinutes = 24 * 60

// oneRow is a fleet of one rollout, written so many minutes ago.
func oneRow(written int64) *fakeStore {
	return &fakeStore{snapshot: Snapshot{Version: 9, CommittedAt: minutesAgo(1), Rows: []fleet.Row{healthy(fleet.Rollout, "run-1", minutesAgo(written))}}}
}

// retiredOne is the ledger's entry of an experiment at rest.
func retiredOne(kind fleet.Kind, name string) fleet.LedgerEntry {
	row := healthy(kind, name, minutesAgo(30*daysOfMinutes))
	e := fleet.NewRetirement(row, fleet.Evidence{
		Fingerprint: fleet.Fingerprint{Version: 37, ETag: "9f3a-1c", Naming: "v2"}, Rows: 12_000, Fragments: 2, Bytes: 48 << 20,
		Shards: []fleet.ShardEvidence{{ID: "a"}, {ID: "b"}}, VerifiedAt: minutesAgo(3 * daysOfMinutes),
	}, nil, minutesAgo(3*daysOfMinutes))
	e.By, e.Why, e.WorkflowID, e.RunID = "ada", "finished", "experiment/"+row.String(), "run-3"
	return e
}

func TestARetirementOfOneThatIsNotColdIsRefusedSayingWhenItIsDue(t *testing.T) {
	b := newBench(t, oneRow(120))
	w := b.do("POST", "/api/v1/experiments/run-1/retire", `{"by":"ada"}`)
	requireError(t, w, 409, "written 2 h ago; due in 6 d (2026-12-07 07:30:00 UTC); force overlooks its age")
	require.Empty(t, b.temporal.said())

	w = b.do("POST", "/api/v1/experiments/run-1/retire", `{"by":"ada","why":"finished","force":true}`)
	started := decode[MaintenanceStarted](t, w, 202)
	require.Equal(t, "rollout:run-1", started.ID)
	require.Equal(t, "/api/v1/maintenance/experiment%2Frollout:run-1/run-7", started.Location)
	require.Equal(t, started.Location, w.Header().Get("Location"))
	require.Equal(t, []string{"retire rollout:run-1 by ada: finished force=true shard= unknown=false"}, b.temporal.said())

	cold := newBench(t, oneRow(8*daysOfMinutes))
	decode[MaintenanceStarted](t, cold.do("POST", "/api/v1/experiments/run-1/retire", ""), 202)
	require.Equal(t, []string{"retire rollout:run-1 by somebody over HTTP:  force=false shard= unknown=false"}, cold.temporal.said())
}

func TestWhatForceCanNotOverlookIsNotOffered(t *testing.T) {
	store := oneRow(120)
	row := &store.snapshot.Rows[0]
	row.PendingWAL, row.Shards = 2, []fleet.Shard{{ShardMark: fleet.ShardMark{ID: "s"}, Pending: 2, CurrentGeneration: 5, Status: "sealed"}}
	b := newBench(t, store)
	w := b.do("POST", "/api/v1/experiments/run-1/retire", "")
	requireError(t, w, 409, "written 2 h ago")
	require.NotContains(t, w.Body.String(), "force")
	requireError(t, b.do("POST", "/api/v1/experiments/run-1/retire", `{"force":true}`), 409, "not retired: shard s is sealed")
	require.Empty(t, b.temporal.said())
}

func TestNothingIsStartedWhereMaintenanceIsOffOrPaused(t *testing.T) {
	off := newBench(t, oneRow(8*daysOfMinutes), func(_ *Config, p *parts) { p.policies.Default = fleet.ObserveOnly() })
	for _, action := range []string{"retire", "optimize"} {
		requireError(t, off.do("POST", "/api/v1/experiments/run-1/"+action, ""), 409, "by MAINTENANCE")
	}
	requireError(t, off.do("POST", "/api/v1/experiments/run-1/seal", `{"shard":"02e81b29-f150-54b9-9a08-ce75944f6889"}`), 409, "by MAINTENANCE")
	paused := newBench(t, oneRow(8*daysOfMinutes))
	paused.temporal.setPaused(true, "ada", "moving the bucket")
	paused.renew(t)
	requireError(t, paused.do("POST", "/api/v1/experiments/run-1/optimize", ""), 409, "moving the bucket")
	require.Empty(t, append(off.temporal.said(), paused.temporal.said()...))
}

func TestWhatAPersonAsksForIsDoneBelowThresholdsAndAfterFailures(t *testing.T) {
	store := oneRow(120)
	store.snapshot.Rows[0].PendingWAL = 1
	for i := range 5 {
		store.actions = append(store.actions, fleet.Action{ID: string(rune('a' + i)), At: minutesAgo(int64(i + 1)), Kind: fleet.ActMergeWAL,
			Target: "rollout:run-1", Outcome: fleet.OutcomeFailed, Error: "commit conflict"})
	}
	b := newBench(t, store)
	d := decode[Detail](t, b.get("/api/v1/experiments/run-1"), 200)
	require.Equal(t, "none", d.Action, "one generation is not worth it")
	require.Equal(t, 202, b.do("POST", "/api/v1/experiments/run-1/optimize", "").Code)
}

func TestWhatDoesNotFitAStateIsRefused(t *testing.T) {
	store := oneRow(120)
	store.retired = []fleet.LedgerEntry{retiredOne(fleet.Table, "old")}
	b := newBench(t, store)
	requireError(t, b.do("POST", "/api/v1/experiments/run-1/wake", ""), 409, "it is not retired")
	for _, action := range []string{"retire", "optimize"} {
		requireError(t, b.do("POST", "/api/v1/experiments/old/"+action, ""), 409, "wake looks at it now")
	}
	requireError(t, b.do("POST", "/api/v1/experiments/run-1/seal", `{}`), 422, "shard: must be given")
	requireError(t, b.do("POST", "/api/v1/experiments/run-1/seal", `{"shard":" "}`), 422, "shard: must be given")
	requireError(t, b.do("POST", "/api/v1/experiments/run-1/seal", `{"shard":"nope"}`), 422, `shard: "nope" is not the id of a shard`)
	requireError(t, b.get("/api/v1/experiments/run-1/plan?action=seal&shard=nope"), 422, `"nope"`)
	require.Empty(t, b.temporal.said())
	require.Equal(t, 202, b.do("POST", "/api/v1/experiments/old/wake", "").Code)
	require.Equal(t, 202, b.do("POST", "/api/v1/experiments/run-1/seal", `{"shard":"02e81b29-f150-54b9-9a08-ce75944f6889","allow_unknown":true}`).Code)
	require.Contains(t, b.temporal.said()[1], "shard=02e81b29-f150-54b9-9a08-ce75944f6889 unknown=true")
}

func previews2(t *testing.T, b *bench) {
	b.store.preview = func(spec lance.PreviewSpec) (lance.Preview, error) {
		require.Equal(t, "/srv/fleet/run-1.rollout.lance", spec.URI)
		return lance.Preview{
			Merge: []lance.MergePreview{{Shard: "a", Generations: 3, Rows: 30, Bytes: 300}, {Shard: "b", Generations: 2, Rows: -1, Bytes: 200},
				{Shard: "c", Refused: &lance.Refusal{Code: "sealed", Sentence: "it is sealed"}}},
			Compact:  lance.Compacted{FragmentsRemoved: 18, FragmentsAdded: 2, Bytes: 5000},
			Versions: lance.CleanedVersions{Removed: 7, Bytes: 900, Held: []lance.HeldVersion{{By: "tag v1", Version: 4}}},
			Blocking: []string{"2 stranded entries in shard a"},
		}, nil
	}
}

func TestADryRunSaysWhatItWouldDoAndStartsNothing(t *testing.T) {
	b := newBench(t, oneRow(8*daysOfMinutes))
	previews2(t, b)
	b.store.observe = looksLike(b.store.snapshot.Rows[0], nil)
	plan := decode[MaintenancePlan](t, b.do("POST", "/api/v1/experiments/run-1/retire?dry_run=true", ""), 200)
	require.False(t, plan.Start, "its merge would be refused")
	require.EqualValues(t, 5, plan.Generations)
	require.Nil(t, plan.MergedRows, "one part is not known")
	require.EqualValues(t, 500, *plan.MergedBytes)
	require.EqualValues(t, 18, plan.FragmentsIn)
	require.EqualValues(t, 2, plan.FragmentsOut)
	require.EqualValues(t, 7, plan.Versions)
	require.Equal(t, []string{"shard c: it is sealed", "2 stranded entries in shard a"}, plan.Blocking)
	require.Equal(t, "tag v1", plan.Preview.Versions.Held[0].By)
	require.Equal(t, plan, decode[MaintenancePlan](t, b.get("/api/v1/experiments/run-1/plan?action=retire"), 200))
	require.Empty(t, b.temporal.said())

	young := newBench(t, oneRow(120))
	previews2(t, young)
	plan = decode[MaintenancePlan](t, young.get("/api/v1/experiments/run-1/plan"), 200)
	require.False(t, plan.Start)
	require.Equal(t, minutesAgo(120)+(7*24*time.Hour).Milliseconds(), *plan.NotBefore)
	requireError(t, young.get("/api/v1/experiments/run-1/plan?action=burn"), 422, "action")
	none := newBench(t, oneRow(120), func(_ *Config, p *parts) { p.inspect = nil })
	requireError(t, none.get("/api/v1/experiments/run-1/plan"), 503, "native library")
}

func TestADryRunOfSealingShowsWhatWouldBeReplayed(t *testing.T) {
	b := newBench(t, oneRow(120))
	b.store.sealing = func(spec lance.SealSpec) (lance.Sealed, error) {
		require.Equal(t, time.Hour, spec.SilentFor)
		if !spec.AllowUnknown {
			return lance.Sealed{Shard: spec.Shard, Refused: &lance.Refusal{Code: "unknown_tail", Sentence: "2 entries of which nobody can tell"}}, nil
		}
		return lance.Sealed{Shard: spec.Shard, Rows: 9, Entries: []lance.TailEntry{{Position: 4, Rows: 9, State: "unknown"}}}, nil
	}
	plan := decode[MaintenancePlan](t, b.do("POST", "/api/v1/experiments/run-1/seal?dry_run=true", `{"shard":"02e81b29-f150-54b9-9a08-ce75944f6889"}`), 200)
	require.False(t, plan.Start)
	require.Equal(t, "2 entries of which nobody can tell", plan.Reason)
	plan = decode[MaintenancePlan](t, b.get("/api/v1/experiments/run-1/plan?action=seal&shard=02e81b29-f150-54b9-9a08-ce75944f6889&allow_unknown=true"), 200)
	require.True(t, plan.Start)
	require.EqualValues(t, 9, plan.Seal.Rows)
	requireError(t, b.get("/api/v1/experiments/run-1/plan?action=seal"), 422, "shard")
}

func TestARunIsPolledLikeARound(t *testing.T) {
	b := newBench(t, oneRow(120))
	path := "/api/v1/maintenance/experiment%2Frollout:run-1/run-7"
	require.True(t, decode[RunningRound](t, b.get(path+"?wait_secs=5"), 202).Running)
	b.temporal.result = &workflows.MaintenanceResult{ID: "rollout:run-1", Action: "retire", Outcome: "done", Sentence: "retired"}
	ended := decode[MaintenanceEnded](t, b.get(path), 200)
	require.Equal(t, "done", ended.Outcome)
	require.Contains(t, ended.Link, "/workflows/experiment%2Frollout:run-1/run-7/history")
	require.Equal(t, "maintenance experiment/rollout:run-1 run-7 wait=5s", b.temporal.said()[0])
	b.temporal.err = &control.Error{Class: control.ClassGone, Op: "wait for", ID: "x", Err: errors.New("no such run")}
	requireError(t, b.get(path), 404, "no such run")
}

func TestAVerificationListsWhatStandsInTheWay(t *testing.T) {
	store := oneRow(120)
	store.retired = []fleet.LedgerEntry{retiredOne(fleet.Table, "old")}
	b := newBench(t, store)
	store.evidence = func(uri string, deep bool) (fleet.Evidence, error) {
		e := fleet.Evidence{Fingerprint: store.retired[0].Evidence.Fingerprint, DistinctKeys: -1, Blocking: []string{}}
		if deep {
			e.Pending, e.Blocking = 2, []string{"2 pending generations in shard a"}
		}
		return e, nil
	}
	v := decode[Verification](t, b.get("/api/v1/experiments/run-1/verify"), 200)
	require.True(t, v.Clean)
	require.Equal(t, Hot, v.State)
	v = decode[Verification](t, b.get("/api/v1/experiments/run-1/verify?deep=true"), 200)
	require.False(t, v.Clean)
	require.Equal(t, []string{"2 pending generations in shard a"}, v.Blocking)
	v = decode[Verification](t, b.get("/api/v1/experiments/old/verify"), 200)
	require.Equal(t, Retired, v.State)
	require.Contains(t, v.AgainstLedger, "same")
	store.evidence = func(uri string, _ bool) (fleet.Evidence, error) {
		return fleet.Evidence{}, &lance.Error{Class: lance.Conflict, Op: "verify", URI: uri, Message: "it moved while it was looked at"}
	}
	requireError(t, b.get("/api/v1/experiments/run-1/verify"), 409, "it moved")
}

func TestThePlanOfAFleetSaysWhatStartsWhatWaitsAndWhy(t *testing.T) {
	store := oneRow(120)
	backlog := func(name string, pending int64) fleet.Row {
		r := healthy(fleet.Rollout, name, minutesAgo(60))
		r.PendingWAL = pending
		return r
	}
	sealed := backlog("sealed", 9)
	sealed.Shards = []fleet.Shard{{ShardMark: fleet.ShardMark{ID: "s"}, Pending: 9, CurrentGeneration: 10, Status: "sealed"}}
	store.snapshot.Rows = append(store.snapshot.Rows, backlog("worse", 90), backlog("bad", 20), backlog("busy", 50), sealed)
	store.retired = []fleet.LedgerEntry{retiredOne(fleet.Table, "old")}
	b := newBench(t, store, func(_ *Config, p *parts) { p.budgets.Merge = 1 })
	b.temporal.maintaining = []control.Running{{ID: fleet.ID{Kind: fleet.Rollout, Name: "busy"}, Action: "optimize", WorkflowID: "w", RunID: "r"}}
	b.renew(t)
	plan := decode[FleetPlan](t, b.get("/api/v1/plan"), 200)
	require.Len(t, plan.Starts, 1)
	require.Equal(t, "rollout:worse", plan.Starts[0].ID)
	require.EqualValues(t, 90, plan.Starts[0].Score)
	require.Equal(t, "rollout:bad", plan.Waiting[0].ID)
	require.Equal(t, "rollout:sealed", plan.Blocked[0].ID)
	require.Equal(t, "merge", plan.Blocked[0].Wants)
	require.Equal(t, "rollout:busy", plan.Running[0].ID)
	require.Equal(t, 1, plan.Retired)
	require.Equal(t, 1, plan.NotDue)
	require.Empty(t, b.temporal.said(), "it is only a plan")
	short := decode[FleetPlan](t, b.get("/api/v1/plan?limit=1"), 200)
	require.Equal(t, 1, short.WaitingAll)
}

func TestTheHistoryOfOneTellsWhatWasDoneWithNumbersAndLinks(t *testing.T) {
	store := oneRow(120)
	before, after := fleet.UnknownFacts(), fleet.UnknownFacts()
	before.Fragments, after.Fragments = 20, 2
	store.actions = []fleet.Action{
		{ID: "2", At: minutesAgo(1), Kind: fleet.ActCompact, Target: "rollout:run-1", Outcome: "done", Before: before.Text(), After: after.Text(), WorkflowID: "experiment/rollout:run-1", RunID: "r2"},
		{ID: "1", At: minutesAgo(5), Kind: fleet.ActWake, Target: "rollout:run-1", Outcome: "noop", By: "ada"},
		{ID: "0", At: minutesAgo(9), Kind: fleet.ActCompact, Target: "rollout:other", Outcome: "done"},
	}
	b := newBench(t, store)
	h := decode[History](t, b.get("/api/v1/experiments/run-1/history"), 200)
	require.Len(t, h.Actions, 2)
	require.EqualValues(t, 20, h.Actions[0].Before.Fragments)
	require.EqualValues(t, 2, h.Actions[0].After.Fragments)
	require.Contains(t, h.Actions[0].Link, "/r2/history")
	require.Nil(t, h.Actions[1].Before)
	require.Nil(t, h.Running)
	require.Len(t, decode[History](t, b.get("/api/v1/experiments/run-1/history?limit=1"), 200).Actions, 1)
	page := b.get("/experiments/rollout:run-1").Body.String()
	require.Contains(t, page, "/r2/history")
}

func TestLanceContextsTasksAreAnswered(t *testing.T) {
	store := oneRow(120)
	store.snapshot.Rows[0].PendingWAL = 3
	before, after := fleet.UnknownFacts(), fleet.UnknownFacts()
	before.Fragments, after.Fragments = 20, 2
	store.actions = []fleet.Action{
		{ID: "3", At: minutesAgo(1), Kind: fleet.ActMergeWAL, Target: "rollout:run-1", Outcome: "failed", Error: "commit conflict", RunID: "r3"},
		{ID: "2", At: minutesAgo(5), DurationMS: 1000, Kind: fleet.ActCompact, Target: "rollout:run-1", Outcome: "done", Before: before.Text(), After: after.Text(), RunID: "r2"},
		{ID: "1", At: minutesAgo(6), Kind: fleet.ActPause, Outcome: "done"},
	}
	require.Equal(t, CompactStatus{State: "failed", Error: "commit conflict"}, compactStatusOf([]fleet.Action{{Kind: fleet.ActOptimize, Outcome: "failed", Error: "commit conflict"}}))
	require.Equal(t, CompactStatus{State: "done"}, compactStatusOf([]fleet.Action{{Kind: fleet.ActOptimize, Outcome: "failed"}, {Kind: fleet.ActCompact, Outcome: "done"}}),
		"a compaction's own entry tells more than that of the run")
	require.Equal(t, CompactStatus{State: "none"}, compactStatusOf(nil))
	b := newBench(t, store)
	b.temporal.maintaining = []control.Running{{ID: fleet.ID{Kind: fleet.Table, Name: "x"}, Action: "optimize", Wanted: "merge", RunID: "r9", StartedAt: testNow.UnixMilli()}}
	b.renew(t)
	list := decode[TaskList](t, b.get("/api/v1/tasks"), 200)
	require.Equal(t, 3, list.Total)
	require.Equal(t, Task{ID: "r9", Kind: "merge_wal", Target: "table:x", State: "running", EnqueuedAt: testNow.UnixMilli(), StartedAt: list.Tasks[0].StartedAt}, list.Tasks[0])
	require.Equal(t, "failed", list.Tasks[1].State)
	require.Equal(t, "run-1", list.Tasks[1].Target, "a rollout's name is bare there")
	require.Equal(t, "removed 18 / added 0 fragments", list.Tasks[2].Detail)
	require.Equal(t, "r2", decode[TaskList](t, b.get("/api/v1/tasks?limit=1&offset=2"), 200).Tasks[0].ID)
	require.Empty(t, decode[TaskList](t, b.get("/api/v1/tasks?offset=99"), 200).Tasks)
	require.Equal(t, "compact", decode[Task](t, b.get("/api/v1/tasks/r2"), 200).Kind)
	requireError(t, b.get("/api/v1/tasks/none"), 404, "none")
	status := decode[map[string]any](t, b.get("/api/v1/experiments/run-1/compact/status"), 200)
	require.Equal(t, map[string]any{"state": "done", "fragments_removed": 18.0, "fragments_added": 0.0}, status)
	require.Empty(t, b.temporal.said())

	task := decode[Task](t, b.do("POST", "/api/v1/tasks", `{"kind":"merge_wal","target":"run-1"}`), 202)
	require.Equal(t, "run-7", task.ID)
	require.Equal(t, http.StatusAccepted, b.do("POST", "/api/v1/experiments/run-1/compact", "").Code)
	require.Len(t, b.temporal.said(), 2)
	requireError(t, b.do("POST", "/api/v1/tasks", `{"kind":"index_id","target":"run-1"}`), 422, "kind")
	requireError(t, b.do("POST", "/api/v1/tasks", `{"kind":"compact","target":"nobody"}`), 404, "nobody")
}

func TestAPageSaysWhatAnActionWouldDoBeforeItDoesIt(t *testing.T) {
	b := newBench(t, oneRow(120))
	previews2(t, b)
	page := b.get("/experiments/rollout:run-1/do/retire")
	require.Equal(t, 200, page.Code)
	for _, words := range []string{"Would not start", "18 fragments into 2", "2 stranded entries in shard a", "although it was written lately"} {
		require.Contains(t, page.Body.String(), words)
	}
	refused := b.postForm("/experiments/rollout:run-1/do/retire", "by=ada")
	require.Equal(t, 409, refused.Code)
	require.Contains(t, refused.Body.String(), "due in 6 d")
	require.Empty(t, b.temporal.said())
	done := b.postForm("/experiments/rollout:run-1/do/retire", "by=ada&why=finished&force=true")
	require.Equal(t, http.StatusSeeOther, done.Code)
	require.Contains(t, b.get(done.Header().Get("Location")).Body.String(), "It has been started")
	require.Equal(t, []string{"retire rollout:run-1 by ada: finished force=true shard= unknown=false"}, b.temporal.said())
	require.Equal(t, 404, b.postForm("/experiments/rollout:run-1/do/burn", "").Code)
}
