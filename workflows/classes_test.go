package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"lancefleet/fleet"
	"lancefleet/workflows"
)

// options keeps with what options a workflow asks for each of its activities.
type options struct {
	interceptor.WorkerInterceptorBase
	of    map[string]workflow.ActivityOptions
	times map[string]int // each was asked for
}

func watchOptions(e *testsuite.TestWorkflowEnvironment) *options {
	o := &options{of: map[string]workflow.ActivityOptions{}, times: map[string]int{}}
	e.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{o}})
	return o
}

func (o *options) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	in := &optionsInbound{options: o}
	in.Next = next
	return in
}

type optionsInbound struct {
	interceptor.WorkflowInboundInterceptorBase
	options *options
}

func (in *optionsInbound) Init(next interceptor.WorkflowOutboundInterceptor) error {
	out := &optionsOutbound{options: in.options}
	out.Next = next
	return in.Next.Init(out)
}

type optionsOutbound struct {
	interceptor.WorkflowOutboundInterceptorBase
	options *options
}

func (out *optionsOutbound) ExecuteActivity(ctx workflow.Context, name string, args ...any) workflow.Future {
	out.options.of[name] = workflow.GetActivityOptions(ctx)
	out.options.times[name]++
	return out.Next.ExecuteActivity(ctx, name, args...)
}

// class is what decides how often and how long a step is tried.
type class struct {
	limit, heartbeat time.Duration
	attempts         int32
	first, longest   time.Duration // between attempts; twice as long each time
	waits            bool          // a cancelled run waits for it
}

func classOf(o workflow.ActivityOptions) class {
	c := class{limit: o.StartToCloseTimeout, heartbeat: o.HeartbeatTimeout, waits: o.WaitForCancellation}
	if p := o.RetryPolicy; p != nil {
		c.attempts, c.first, c.longest = p.MaximumAttempts, p.InitialInterval, p.MaximumInterval
		if p.BackoffCoefficient != 2 {
			c.longest = -1
		}
	}
	return c
}

// light steps read or commit something small.
func light(limit time.Duration, attempts int32) class {
	return class{limit, 30 * time.Second, attempts, time.Second, 30 * time.Second, false}
}

// heavySteps rewrite data, or read much of it.
var heavySteps = class{30 * time.Minute, time.Minute, 5, 10 * time.Second, 2 * time.Minute, true}

func TestEachStepIsTriedAsOftenAndAsLongAsItsClassSays(t *testing.T) {
	want := map[string]class{
		workflows.BeginRoundName: light(5*time.Minute, 3), workflows.ObserveName: light(10*time.Minute, 3),
		workflows.CommitRoundName: light(5*time.Minute, 10), workflows.RecordRoundName: light(time.Minute, 10),
		workflows.StartMaintenanceName: light(5*time.Minute, 3), workflows.RefreshRowsName: light(5*time.Minute, 3),
		workflows.RecordActionName: light(time.Minute, 10), workflows.TakeHintsName: light(5*time.Minute, 10),

		workflows.PrepareName: light(5*time.Minute, 10), workflows.DropRowName: light(5*time.Minute, 10),
		workflows.WakeName: light(5*time.Minute, 10), workflows.RefreshRowName: light(5*time.Minute, 10),
		workflows.RecordMaintenanceName: light(5*time.Minute, 10),
		workflows.MergeWALName:          heavySteps, workflows.CompactName: heavySteps, workflows.CleanupVersionsName: heavySteps,
		workflows.SweepGenerationsName: heavySteps, workflows.SealShardName: heavySteps, workflows.AcceptShardsName: heavySteps,
		workflows.VerifyName: heavySteps,

		workflows.UpkeepName:       {30 * time.Minute, time.Minute, 1, 0, -1, true}, // the next pass comes by itself
		workflows.RecordUpkeepName: light(time.Minute, 10),
	}
	got := map[string]class{}
	for _, seen := range []map[string]workflow.ActivityOptions{optionsOfMaintenance(t), optionsOfTheRest(t)} {
		for name, o := range seen {
			require.NotEmpty(t, o.Summary, name)
			require.Zero(t, o.ScheduleToStartTimeout, "%s: a queue without workers waits, it does not fail", name)
			got[name] = classOf(o)
		}
	}
	require.Equal(t, want, got)
}

func optionsOfMaintenance(t *testing.T) map[string]workflow.ActivityOptions {
	t.Helper()
	seen := map[string]workflow.ActivityOptions{}
	for _, name := range []string{
		workflows.RetireWorkflowName, workflows.OptimizeWorkflowName, workflows.SealWorkflowName,
		workflows.AcceptWorkflowName, workflows.WakeWorkflowName,
	} {
		env := newUpkeepEnv(t, cold())
		o := watchOptions(env.TestWorkflowEnvironment)
		_, err := env.run(name, upkeepArgs())
		require.NoError(t, err, name)
		for activity, options := range o.of {
			seen[activity] = options
		}
	}
	env := newUpkeepEnv(t, cold())
	o := watchOptions(env.TestWorkflowEnvironment)
	env.ExecuteWorkflow(workflows.TablesWorkflowName, workflows.TablesArgs{Fleet: "default"})
	require.NoError(t, env.GetWorkflowError())
	for activity, options := range o.of {
		seen[activity] = options
	}
	return seen
}

func optionsOfTheRest(t *testing.T) map[string]workflow.ActivityOptions {
	t.Helper()
	seen := map[string]workflow.ActivityOptions{}
	for name, in := range map[string]any{
		workflows.ScanWorkflowName: args(10), workflows.RefreshWorkflowName: workflows.RefreshArgs{},
		workflows.RecordWorkflowName: fleet.Action{}, workflows.HintWorkflowName: workflows.HintArgs{},
	} {
		env := newEnv(t)
		o := watchOptions(env.TestWorkflowEnvironment)
		env.begin(round(10))
		env.observe(func(p workflows.Page) (workflows.PageResult, error) { return workflows.PageResult{Page: p.Number}, nil })
		env.commit(nil, workflows.CommitResult{})
		env.record()
		env.OnActivity(workflows.RefreshRowsName, mock.Anything, mock.Anything).Return(workflows.RefreshResult{}, nil)
		env.OnActivity(workflows.TakeHintsName, mock.Anything, mock.Anything).Return(workflows.HintResult{}, nil)
		env.OnActivity(workflows.RecordActionName, mock.Anything, mock.Anything).Return(func(context.Context, fleet.Action) error { return nil })
		env.ExecuteWorkflow(name, in)
		require.NoError(t, env.GetWorkflowError(), name)
		for activity, options := range o.of {
			seen[activity] = options
		}
	}
	return seen
}

func TestTheErrorOfARunHasTheClassAndTheSentenceOfItsStep(t *testing.T) {
	for name, c := range map[string]struct {
		err             error
		class, sentence string
	}{
		"with a class":      {temporal.NewApplicationError("disk is full", "denied"), "denied", "disk is full"},
		"without a class":   {temporal.NewApplicationError("odd", ""), workflows.ClassUnknown, "odd"},
		"of a timeout":      {temporal.NewHeartbeatTimeoutError(), "timeout", "no worker finished it in time: Heartbeat"},
		"of a cancellation": {temporal.NewCanceledError(), "cancelled", "canceled"},
		"of another kind":   {context.DeadlineExceeded, workflows.ClassUnknown, "context deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.class, workflows.ErrorClass(c.err))
			require.Equal(t, c.sentence, workflows.Sentence(c.err))
		})
	}
	require.Empty(t, workflows.Sentence(nil))
}
