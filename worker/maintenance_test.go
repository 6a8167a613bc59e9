package worker_test

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"lancefleet/activities"
	"lancefleet/control"
	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/workflows"
)

func TestMaintenanceOnARealServer(t *testing.T) {
	engine, temporal := openEngine(t), server(t)
	for name, test := range map[string]func(*testing.T, *lance.Engine, client.Client){
		"what is cold retires and what is written again is hot": coldRetiresAndReturns,
		"a paused fleet starts nothing":                         pausedStartsNothing,
		"where maintenance is off nothing is rewritten":         offRewritesNothing,
		"what runs is listed and awaited":                       runningIsListed,
		"a worker that stops leaves its step to another":        stoppedStepGoesOn,
	} {
		t.Run(name, func(t *testing.T) { test(t, engine, temporal.Client) })
	}
}

// idle is a process that finds nothing to merge or compact, and sees what is there.
type idle struct {
	engine *lance.Engine
	block  chan struct{} // a merge waits for it, if set
	merges *atomic.Int64
	kills  *atomic.Int64
}

func (h idle) start(context.Context) (activities.Heavy, error) { return h, nil }

func (h idle) MergeWAL(ctx context.Context, s lance.MergeSpec) (lance.Merged, error) {
	return lance.Merged{Shard: s.Shard}, nil
}

func (h idle) Compact(ctx context.Context, s lance.CompactSpec) (lance.Compacted, error) {
	return lance.Compacted{}, nil
}

func (h idle) SealShard(ctx context.Context, s lance.SealSpec) (lance.Sealed, error) {
	return lance.Sealed{Shard: s.Shard}, nil
}

func (h idle) AcceptShards(context.Context, lance.AcceptSpec) (lance.Accepted, error) {
	return lance.Accepted{}, nil
}

func (h idle) CleanExperiment(context.Context, string, time.Duration) (lance.CleanedVersions, error) {
	return lance.CleanedVersions{}, nil
}

func (h idle) SweepGenerations(context.Context, lance.SweepSpec) (lance.Swept, error) {
	return lance.Swept{}, nil
}

// ClassifyTail is where every merge begins.
func (h idle) ClassifyTail(ctx context.Context, _ string) ([]lance.Tail, error) {
	h.merges.Add(1)
	if h.block == nil {
		return nil, nil
	}
	select {
	case <-h.block:
		return nil, nil
	case <-ctx.Done():
		h.kills.Add(1)
		return nil, &lance.Error{Class: lance.Cancelled, Op: "classify_tail"}
	}
}

func (h idle) Verify(ctx context.Context, uri string, _ lance.VerifyOptions) (fleet.Evidence, error) {
	answers, err := h.engine.Observe(ctx, []lance.ObserveTarget{{URI: uri, TargetRows: 1}}, lance.ObserveOptions{
		BatchOptions: lance.BatchOptions{Concurrency: 1, Timeout: time.Minute}, WalkPast: fleet.MaintenanceWalk(),
	})
	if err != nil {
		return fleet.Evidence{}, err
	}
	o := answers[0].Observation
	return fleet.Evidence{Fingerprint: o.Fingerprint, Rows: o.BaseRows, Fragments: o.Fragments, Bytes: o.Bytes, VerifiedAt: o.ObservedAt}, nil
}

func (h idle) Close() error { return nil }

// maintained is a rig whose experiments turn cold at once.
func maintained(t *testing.T, e *lance.Engine, c client.Client, name string, experiments ...string) (*rig, idle) {
	t.Helper()
	r := newRig(t, e, c, name, experiments...)
	h := idle{engine: e, merges: &atomic.Int64{}, kills: &atomic.Int64{}}
	r.heavy = h.start
	r.config.Maintenance = true
	r.config.Policies.Default.RetireAfter = time.Millisecond
	r.config.GenerationGrace = time.Millisecond
	r.config.MaintenanceEveryNScans = 1
	return r, h
}

func (r *rig) entry(name string) *fleet.LedgerEntry {
	r.t.Helper()
	view, err := r.browser.Ledger.Latest(r.t.Context())
	require.NoError(r.t, err)
	return view.Get(rollout(name))
}

func (r *rig) retired(name string) bool {
	e := r.entry(name)
	return e != nil && e.Retired()
}

func rollout(name string) fleet.ID { return fleet.ID{Kind: fleet.Rollout, Name: name} }

func coldRetiresAndReturns(t *testing.T, e *lance.Engine, c client.Client) {
	r, h := maintained(t, e, c, "cold", "a", "b")
	r.start()

	first := r.round()
	require.Equal(t, int64(2), first.Hot)
	r.eventually("both are retired", func() bool { return r.retired("a") && r.retired("b") })
	r.eventually("and journalled", func() bool { return len(r.journalOf(fleet.ActRetire)) == 2 })
	before := r.snapshot().Version
	require.NoError(t, r.control.Pause(t.Context(), "alice", "so that none retires again"))

	second := r.round()
	require.Zero(t, second.Hot)
	require.Equal(t, before+1, r.snapshot().Version, "two retirements are one commit: the round's own")
	require.Contains(t, scrape(r.metrics), "master_stats_experiments_retired_total 2\n")
	require.GreaterOrEqual(t, h.merges.Load(), int64(2))
	retirement := r.journalOf(fleet.ActRetire)[0]
	require.Equal(t, fleet.OutcomeDone, retirement.Outcome, retirement.Error)
	require.Contains(t, retirement.Why, "verified: nothing pending")
	require.Equal(t, "retire", attribute(t, c, retirement, workflows.AttrAction))
	require.Equal(t, "done", attribute(t, c, retirement, workflows.AttrOutcome))
	require.Equal(t, retirement.Target, attribute(t, c, retirement, workflows.AttrExperiment))
	r.eventually("upkeep of our tables is journalled", func() bool { return len(r.journalOf(fleet.ActTables)) > 0 })

	asleep := r.entry("a")
	_, err := e.MakeWrites(t.Context(), lance.WritesSpec{URI: filepath.Join(r.config.DataDir, "a.rollout.lance"), Rows: 4, Flush: true, Seed: 99})
	require.NoError(t, err)
	third := r.round()
	require.Equal(t, int64(1), third.Hot)
	require.False(t, r.retired("a"))
	require.True(t, r.retired("b"))
	row, _ := r.snapshot().Row(rollout("a"))
	require.Greater(t, row.LastWrite, asleep.LastWrite)
	require.Len(t, r.journalOf(fleet.ActReturn), 1)

	_, err = e.MakeWrites(t.Context(), lance.WritesSpec{URI: filepath.Join(r.config.DataDir, "b.rollout.lance"), Rows: 4, Seed: 98})
	require.NoError(t, err)
	s, err := r.control.Wake(t.Context(), control.MaintenanceRequest{ID: rollout("b"), By: "alice"})
	require.NoError(t, err)
	woken, err := r.control.AwaitMaintenance(t.Context(), s.WorkflowID, s.RunID)
	require.NoError(t, err)
	require.Equal(t, workflows.OutcomeDone, woken.Outcome, woken.Sentence)
	require.False(t, r.retired("b"))
	require.Len(t, r.snapshot().Rows, 2)
}

// attribute reads a search attribute of the workflow that an entry names.
func attribute(t *testing.T, c client.Client, a fleet.Action, name string) string {
	t.Helper()
	d, err := c.DescribeWorkflow(t.Context(), a.WorkflowID, a.RunID)
	require.NoError(t, err)
	fields := d.RawResponse.GetWorkflowExecutionInfo().GetSearchAttributes().GetIndexedFields()
	return textOf(t, fields[name])
}

func textOf(t *testing.T, p *commonpb.Payload) string {
	t.Helper()
	var text string
	require.NoError(t, converter.GetDefaultDataConverter().FromPayload(p, &text))
	return text
}

func pausedStartsNothing(t *testing.T, e *lance.Engine, c client.Client) {
	r, _ := maintained(t, e, c, "maintenance-paused", "a")
	r.config.ScanInterval = 0 // no round before the pause
	r.start()
	require.NoError(t, r.control.Pause(t.Context(), "alice", "disk is full"))

	require.Equal(t, int64(1), r.round().Hot)

	s, err := r.control.Retire(t.Context(), control.MaintenanceRequest{ID: rollout("a"), By: "bob", Force: true})
	require.NoError(t, err)
	require.False(t, s.AlreadyRunning)
	result, err := r.control.AwaitMaintenance(t.Context(), s.WorkflowID, s.RunID)
	require.NoError(t, err)
	require.Equal(t, workflows.OutcomeRefused, result.Outcome)
	require.Contains(t, result.Sentence, "paused: disk is full")
	require.Nil(t, r.entry("a"))
	require.Len(t, workflowsOf(t, c, "maintenance-paused"), 1, "only bob's own")
}

// workflowsOf lists the maintenance workflows that a fleet ever had.
func workflowsOf(t *testing.T, c client.Client, fleetName string) []string {
	t.Helper()
	page, err := c.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{
		Query: "TaskQueue = '" + workflows.Names{Fleet: fleetName}.MaintenanceQueue() + "'",
	})
	require.NoError(t, err)
	var ids []string
	for _, e := range page.GetExecutions() {
		ids = append(ids, e.GetExecution().GetWorkflowId())
	}
	return ids
}

func offRewritesNothing(t *testing.T, e *lance.Engine, c client.Client) {
	r, h := maintained(t, e, c, "maintenance-off", "a")
	r.config.Maintenance = false
	on := true
	r.config.Policies.Overrides = []fleet.Override{{Maintain: &on}}
	r.start()
	r.round()

	s, err := r.control.Retire(t.Context(), control.MaintenanceRequest{ID: rollout("a"), By: "bob"})
	require.NoError(t, err)
	result, err := r.control.AwaitMaintenance(t.Context(), s.WorkflowID, s.RunID)

	require.NoError(t, err)
	require.Equal(t, workflows.OutcomeRefused, result.Outcome)
	require.Contains(t, result.Sentence, "maintenance is off")
	require.Zero(t, h.merges.Load())
	require.Nil(t, r.entry("a"))
}

func runningIsListed(t *testing.T, e *lance.Engine, c client.Client) {
	r, h := maintained(t, e, c, "running", "a")
	h.block = make(chan struct{})
	r.heavy = h.start
	r.config.ScanInterval = 0
	r.start()

	s, err := r.control.Retire(t.Context(), control.MaintenanceRequest{ID: rollout("a"), By: "bob", Why: "it is done"})
	require.NoError(t, err)
	require.Equal(t, workflows.Names{Fleet: "running"}.Maintenance(rollout("a")), s.WorkflowID)

	var list []control.Running
	r.eventually("it is listed", func() bool {
		list, err = r.control.RunningMaintenance(t.Context())
		require.NoError(t, err)
		return len(list) == 1
	})
	require.Equal(t, control.Running{
		ID: rollout("a"), Action: "retire", Wanted: "retire", WorkflowID: s.WorkflowID, RunID: s.RunID, StartedAt: list[0].StartedAt,
	}, list[0])
	again, err := r.control.Optimize(t.Context(), control.MaintenanceRequest{ID: rollout("a"), By: "alice"})
	require.NoError(t, err)
	require.True(t, again.AlreadyRunning, "one at a time")
	require.Equal(t, s.RunID, again.RunID)
	close(h.block)
	result, err := r.control.AwaitMaintenance(t.Context(), s.WorkflowID, s.RunID)
	require.NoError(t, err)
	require.Equal(t, workflows.OutcomeDone, result.Outcome, result.Sentence)
	require.Equal(t, "bob", r.entry("a").By)
	require.Equal(t, "it is done", r.entry("a").Why)
}

func stoppedStepGoesOn(t *testing.T, e *lance.Engine, c client.Client) {
	r, h := maintained(t, e, c, "stopped", "a")
	h.block = make(chan struct{})
	r.heavy = h.start
	r.config.ScanInterval = 0
	stop := r.start()
	s, err := r.control.Retire(t.Context(), control.MaintenanceRequest{ID: rollout("a"), By: "bob"})
	require.NoError(t, err)
	r.eventually("the merge runs", func() bool { return h.merges.Load() == 1 })

	stop()
	require.Equal(t, int64(1), h.kills.Load(), "its process is ended with it")
	require.Nil(t, r.entry("a"))
	d, err := c.DescribeWorkflow(t.Context(), s.WorkflowID, s.RunID)
	require.NoError(t, err)
	require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, d.RawResponse.GetWorkflowExecutionInfo().GetStatus())
	close(h.block)
	r.start()

	result, err := r.control.AwaitMaintenance(t.Context(), s.WorkflowID, s.RunID)
	require.NoError(t, err)
	require.Equal(t, workflows.OutcomeDone, result.Outcome, result.Sentence)
	require.True(t, r.retired("a"))
}
