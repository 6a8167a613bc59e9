package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"lancefleet/e2e/temporaltest"
	"lancefleet/fleet"
	"lancefleet/workflows"
)

// lostStep is a heavy step that is under way when its run is cancelled, and ends
// with an error of its own. The test environment cancels such a step by itself, so
// this is for a real server.
type lostStep struct {
	of        string // workflow
	step      string // activity
	err       error
	cancelled bool // is how the run ends
	recorded  *workflows.MaintenanceRecord
	pass      *workflows.UpkeepRecord
}

func TestACancelledRunEndsAsWhatEndedItsStepSays(t *testing.T) {
	server := temporaltest.Start(t, temporaltest.Options{})
	addAttributes(t, server.Client)
	gone := temporal.NewApplicationError("no heartbeat reached temporal in time", "lease-lost")
	stopping := temporal.NewApplicationError("the worker is stopping", "worker-stopping")
	for name, s := range map[string]*lostStep{
		"its lease ended, in a merge":             {of: workflows.RetireWorkflowName, step: workflows.MergeWALName, err: gone, cancelled: true},
		"its worker was stopped, in a compaction": {of: workflows.OptimizeWorkflowName, step: workflows.CompactName, err: stopping, cancelled: true},
		"its lease ended, in a check":             {of: workflows.RetireWorkflowName, step: workflows.VerifyName, err: gone, cancelled: true},
		"its lease ended, in upkeep":              {of: workflows.TablesWorkflowName, step: workflows.UpkeepName, err: gone, cancelled: true},
		"what no attempt mends":                   {of: workflows.RetireWorkflowName, step: workflows.MergeWALName, err: final("corrupt")},
		"what no attempt mends, in upkeep":        {of: workflows.TablesWorkflowName, step: workflows.UpkeepName, err: final("corrupt")},
	} {
		t.Run(name, func(t *testing.T) {
			err := s.run(t, server.Client)
			require.Equal(t, s.cancelled, temporal.IsCanceledError(err), "%v", err)
			class, outcome := "corrupt", workflows.OutcomeFailed
			if s.cancelled {
				class, outcome = "cancelled", workflows.OutcomeCancelled
			}
			if s.pass != nil {
				require.Equal(t, class, s.pass.ErrorClass)
				return
			}
			result := s.recorded.Result
			require.Equal(t, []any{class, outcome}, []any{s.recorded.ErrorClass, result.Outcome})
			require.Equal(t, outcome, result.Steps[len(result.Steps)-1].Outcome)
		})
	}
}

// run cancels the run within its step, which then ends as it ends.
func (s *lostStep) run(t *testing.T, c client.Client) error {
	t.Helper()
	begun, end := make(chan struct{}, 1), make(chan struct{})
	name := "lost-" + uuid.NewString()
	u := cold()
	u.prepared.Limits.Grace = 0
	defer s.serve(t, c, name, u, func() error {
		begun <- struct{}{}
		<-end
		return s.err
	})()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	args := any(workflows.MaintenanceArgs{Fleet: name, FleetID: "fleet", ID: exp1})
	if s.of == workflows.TablesWorkflowName {
		args = workflows.TablesArgs{Fleet: name}
	}
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: name, TaskQueue: name}, s.of, args)
	require.NoError(t, err)
	<-begun
	require.NoError(t, c.CancelWorkflow(ctx, run.GetID(), run.GetRunID()))
	asked := func() bool {
		for _, e := range historyOf(ctx, t, c, run).Events {
			if e.EventType == enumspb.EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED {
				return true
			}
		}
		return false
	}
	require.Eventually(t, asked, time.Minute, 20*time.Millisecond)
	close(end)
	return run.Get(ctx, nil)
}

// serve takes work from every queue, with one step that ends as it is told.
func (s *lostStep) serve(t *testing.T, c client.Client, name string, u *upkept, end func() error) (stop func()) {
	t.Helper()
	activities := u.activities()
	switch s.step {
	case workflows.MergeWALName:
		activities[s.step] = func(context.Context, workflows.MergeInput) (r workflows.MergeResult, err error) { return r, end() }
	case workflows.CompactName:
		activities[s.step] = func(context.Context, workflows.CompactInput) (r workflows.CompactResult, err error) { return r, end() }
	case workflows.VerifyName:
		activities[s.step] = func(context.Context, workflows.VerifyInput) (r fleet.Evidence, err error) { return r, end() }
	case workflows.UpkeepName:
		activities[s.step] = func(context.Context, workflows.TablesArgs) (r workflows.Upkeep, err error) { return r, end() }
	}
	activities[workflows.RecordMaintenanceName] = func(_ context.Context, in workflows.MaintenanceRecord) error {
		s.recorded = &in
		return nil
	}
	activities[workflows.RecordUpkeepName] = func(_ context.Context, in workflows.UpkeepRecord) (workflows.TablesResult, error) {
		s.pass = &in
		return workflows.TablesResult{Outcome: workflows.OutcomeFailed, ErrorClass: in.ErrorClass}, nil
	}
	names := workflows.Names{Fleet: name}
	var workers []worker.Worker
	for _, queue := range []string{name, names.MaintenanceQueue(), names.MergeQueue(), names.CompactQueue(), names.CheckQueue(), names.TablesQueue()} {
		w := worker.New(c, queue, worker.Options{DisableWorkflowWorker: queue != name})
		if queue == name {
			registerMaintenanceWorkflows(w)
		}
		for name, a := range activities {
			w.RegisterActivityWithOptions(a, activity.RegisterOptions{Name: name})
		}
		require.NoError(t, w.Start())
		workers = append(workers, w)
	}
	return func() {
		for _, w := range workers {
			w.Stop()
		}
	}
}
