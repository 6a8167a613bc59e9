package workflows_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"

	"lancefleet/e2e/temporaltest"
	"lancefleet/fleet"
	"lancefleet/workflows"
)

var record = flag.Bool("record", false, "run the workflows on a real server and write their histories to testdata")

// Temporal's limits, and the share of them that a round over 30,000 experiments may
// take.
const (
	share        = 10
	eventLimit   = 51_200
	historyLimit = 50 << 20
	payloadLimit = 512 << 10 // where the server begins to warn
)

func TestRecordedHistoriesReplay(t *testing.T) {
	files := recorded(t)
	require.GreaterOrEqual(t, len(files), len(scenarios()))
	older, err := filepath.Glob("testdata/*/*.json") // of versions before a change of logic: see workflow.GetVersion
	require.NoError(t, err)
	require.NotEmpty(t, older)
	for _, file := range append(files, older...) {
		t.Run(strings.TrimSuffix(strings.TrimPrefix(file, "testdata/"), ".json"), func(t *testing.T) {
			replayer := worker.NewWorkflowReplayer()
			registerWorkflows(replayer)
			require.NoError(t, replayer.ReplayWorkflowHistoryFromJSONFile(temporaltest.Quiet(), file))
		})
	}
}

func TestARoundOver30000ExperimentsTakesUnderATenthOfTemporalsLimits(t *testing.T) {
	history := readHistory(t, "testdata/scan-30000.json")
	pages := 0
	largest := 0
	for _, e := range history.Events {
		if a := e.GetActivityTaskScheduledEventAttributes(); a.GetActivityType().GetName() == workflows.ObserveName {
			pages++
		}
		for _, p := range payloadsOf(e) {
			largest = max(largest, proto.Size(p))
		}
	}
	t.Logf("%d events, %d bytes, largest payloads of an event %d bytes", len(history.Events), proto.Size(history), largest)
	require.Equal(t, 30, pages)
	require.Less(t, len(history.Events), eventLimit/share)
	require.Less(t, proto.Size(history), historyLimit/share)
	require.Positive(t, largest)
	require.Less(t, largest, payloadLimit/share)
}

// payloadsOf are the inputs and results that an event carries.
func payloadsOf(e *historypb.HistoryEvent) []*commonpb.Payloads {
	return []*commonpb.Payloads{
		e.GetWorkflowExecutionStartedEventAttributes().GetInput(),
		e.GetActivityTaskScheduledEventAttributes().GetInput(),
		e.GetActivityTaskCompletedEventAttributes().GetResult(),
		e.GetWorkflowExecutionCompletedEventAttributes().GetResult(),
	}
}

func readHistory(t *testing.T, file string) *historypb.History {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var history historypb.History
	require.NoError(t, temporalproto.CustomJSONUnmarshalOptions{}.Unmarshal(text, &history))
	return &history
}

// scenario is one way that a workflow takes, with activities that play the parts.
type scenario struct {
	name     string
	workflow string
	args     any
	world    *stubs
	kept     *upkept // plays maintenance
	cancel   bool    // once a page has begun
	fails    bool
}

func scenarios() []scenario {
	scan := func(name string, experiments int, s stubs) scenario {
		s.experiments = experiments
		s.begun = make(chan struct{}, 100)
		return scenario{name: name, workflow: workflows.ScanWorkflowName, world: &s, args: workflows.ScanArgs{
			Fleet: "default", FleetID: "7d0f5f0e-6f5c-4f0d-9f59-6ad7f4c0a001", DataDir: "s3://a-bucket-with-a-long-name/and/a/folder",
			ConfigHash: "0123456789abcdef", IntervalSecs: 300, PageSize: 1000, MaxPagesAtOnce: 8,
		}}
	}
	cancelled := scan("scan-cancelled", 3000, stubs{block: true})
	cancelled.cancel, cancelled.fails = true, true
	unreadable := scan("scan-source-unreadable", 0, stubs{beginErr: temporal.NewNonRetryableApplicationError("list experiments: denied", "denied", nil)})
	unreadable.fails = true
	hinted := scan("scan-hinted", 3000, stubs{first: []int{2}})
	all := []scenario{
		scan("scan-empty", 0, stubs{}),
		scan("scan-starts-maintenance", 1000, stubs{started: workflows.StartMaintenanceResult{Retirements: 50, Waiting: 3, Tables: true}}),
		scan("scan-maintenance-not-started", 10, stubs{startErr: temporal.NewNonRetryableApplicationError("no answer", "denied", nil)}),
		scan("scan-30000", 30_000, stubs{}),
		scan("scan-page-failed", 3000, stubs{badPage: 2}),
		unreadable,
		cancelled,
		{name: "refresh", workflow: workflows.RefreshWorkflowName, world: &stubs{},
			args: workflows.RefreshArgs{Fleet: "default", IDs: []fleet.ID{{Kind: fleet.Rollout, Name: "a"}, {Kind: fleet.Table, Name: "b"}}, By: "alice"}},
		{name: "record", workflow: workflows.RecordWorkflowName, world: &stubs{},
			args: fleet.Action{ID: "id", At: 1, Kind: "pause", Outcome: "done", By: "alice", Why: "moving"}},
		hinted,
		{name: "hint", workflow: workflows.HintWorkflowName, world: &stubs{},
			args: workflows.HintArgs{Fleet: "default", FleetID: "id", IDs: []fleet.ID{{Kind: fleet.Rollout, Name: "a"}, {Kind: fleet.Table, Name: "b"}}}},
	}
	return append(all, maintenanceScenarios()...)
}

// maintenanceScenarios are the ways of one experiment. Each is a fleet of its own, so
// that its queues are.
func maintenanceScenarios() []scenario {
	var all []scenario
	add := func(name, workflow string, change func(u *upkept, args *workflows.MaintenanceArgs)) *scenario {
		args := upkeepArgs()
		args.Fleet = name
		u := cold()
		u.prepared.Limits.Grace = 10
		if change != nil {
			change(u, &args)
		}
		all = append(all, scenario{name: name, workflow: workflow, args: args, kept: u})
		return &all[len(all)-1]
	}
	add("retire", workflows.RetireWorkflowName, func(u *upkept, _ *workflows.MaintenanceArgs) {
		first := u.merges[0]
		first.More = true
		u.merges = append([]workflows.MergeResult{first}, u.merges...)
	})
	add("retire-not-due", workflows.RetireWorkflowName, func(u *upkept, _ *workflows.MaintenanceArgs) {
		u.prepared.Due, u.prepared.Reason = false, "written 2 h ago"
	})
	add("retire-merge-refused", workflows.RetireWorkflowName, func(u *upkept, _ *workflows.MaintenanceArgs) {
		u.merges = []workflows.MergeResult{{Left: 3, Refused: []string{"shard s1 is sealed"}}}
	})
	add("retire-not-clean", workflows.RetireWorkflowName, func(u *upkept, _ *workflows.MaintenanceArgs) { u.evidence.Stranded = 2 })
	add("retire-written-meanwhile", workflows.RetireWorkflowName, func(u *upkept, _ *workflows.MaintenanceArgs) {
		u.drop = workflows.DropResult{Refused: "it moved since it was verified: wal tail"}
	})
	add("retire-failed", workflows.RetireWorkflowName, func(u *upkept, _ *workflows.MaintenanceArgs) { u.fail[workflows.CompactName] = final("corrupt") }).fails = true
	cancelled := add("retire-cancelled", workflows.RetireWorkflowName, func(u *upkept, _ *workflows.MaintenanceArgs) {
		u.prepared.Limits.Grace = time.Hour.Milliseconds()
		u.compacted = make(chan struct{}, 1)
	})
	cancelled.cancel, cancelled.fails = true, true
	add("optimize", workflows.OptimizeWorkflowName, func(u *upkept, _ *workflows.MaintenanceArgs) { u.refresh.Facts = fleet.UnknownFacts() })
	add("seal", workflows.SealWorkflowName, func(u *upkept, a *workflows.MaintenanceArgs) {
		a.Shard, a.By = "s1", "alice"
		u.seal = workflows.SealResult{Entries: 2, Rows: 7, Generation: 5}
	})
	decide := func(u *upkept, a *workflows.MaintenanceArgs) {
		a.By, a.Why, a.Seen = "ada", "restored on purpose", "as it was"
		u.accept = workflows.AcceptResult{Marks: map[string]uint64{"s1": 3}, Generations: 2, Version: 8}
		u.refresh.Facts = fleet.UnknownFacts()
	}
	add("accept", workflows.AcceptWorkflowName, decide)
	add("accept-leave-out", workflows.AcceptWorkflowName, func(u *upkept, a *workflows.MaintenanceArgs) {
		decide(u, a)
		a.LeaveOut = true
		u.merges = []workflows.MergeResult{{Passes: 1, Drained: 2, Version: 9, Marks: map[string]uint64{"s1": 5}}}
	})
	add("accept-moved", workflows.AcceptWorkflowName, func(u *upkept, a *workflows.MaintenanceArgs) {
		decide(u, a)
		u.accept = workflows.AcceptResult{Refused: "look again, then decide"}
	})
	add("accept-merge-failed", workflows.AcceptWorkflowName, func(u *upkept, a *workflows.MaintenanceArgs) {
		decide(u, a)
		u.fail[workflows.MergeWALName] = final("corrupt")
	}).fails = true
	add("wake", workflows.WakeWorkflowName, func(u *upkept, _ *workflows.MaintenanceArgs) {
		u.wake = workflows.WakeResult{Outcome: workflows.OutcomeDone, Sentence: "hot again: an entry was added"}
	})
	all = append(all,
		scenario{name: "tables", workflow: workflows.TablesWorkflowName, kept: cold(), args: workflows.TablesArgs{Fleet: "tables"}},
		scenario{name: "tables-failed", workflow: workflows.TablesWorkflowName, kept: failingTables(), fails: true, args: workflows.TablesArgs{Fleet: "tables-failed"}},
	)
	return all
}

func failingTables() *upkept {
	u := cold()
	u.fail[workflows.UpkeepName] = final("denied")
	return u
}

// stubs play the activities.
type stubs struct {
	experiments int
	badPage     int // fails for good, from 1; 0 = none
	beginErr    error
	block       bool
	begun       chan struct{}
	started     workflows.StartMaintenanceResult
	startErr    error
	first       []int
}

func (s *stubs) BeginRound(ctx context.Context, _ workflows.ScanArgs) (workflows.Round, error) {
	return workflows.Round{
		ID: activity.GetInfo(ctx).WorkflowExecution.RunID, Number: 123_456, StartedAt: 1_700_000_000_000,
		Listing: strings.Repeat("0123456789abcdef", 4), Experiments: s.experiments, StatsVersion: 123_456,
		LastRoundAt: 1_700_000_000_000, Observed: fleet.Requests{List: 10, Get: 10}, First: s.first,
	}, s.beginErr
}

func (s *stubs) ObserveActivity(ctx context.Context, p workflows.Page) (workflows.PageResult, error) {
	s.begun <- struct{}{}
	if s.block {
		<-ctx.Done()
		return workflows.PageResult{}, ctx.Err()
	}
	if p.Number+1 == s.badPage {
		return workflows.PageResult{}, temporal.NewNonRetryableApplicationError("read the staged listing: gone", "gone", nil)
	}
	return workflows.PageResult{
		Page: p.Number, Skipped: 500, Observed: 400, Failed: 50, BackingOff: 50,
		Staged:   "_lancefleet/rounds/" + p.Round.ID + "/page-12-attempt-1-ABCDEFGHIJKLMNOPQRSTUVWXYZ.arrow",
		Requests: fleet.Requests{List: 123_456, Head: 123_456, Get: 123_456, Put: 1},
	}, nil
}

func (s *stubs) CommitRound(_ context.Context, in workflows.CommitInput) (workflows.CommitResult, error) {
	version := in.Round.StatsVersion + 1
	return workflows.CommitResult{Version: &version, Hot: int64(s.experiments), Requests: fleet.Requests{Put: 3}}, nil
}

func (s *stubs) StartMaintenance(context.Context, workflows.StartMaintenanceInput) (workflows.StartMaintenanceResult, error) {
	return s.started, s.startErr
}

func (s *stubs) RecordRound(context.Context, fleet.RoundRecord) error { return nil }

func (s *stubs) RefreshRows(context.Context, workflows.RefreshArgs) (workflows.RefreshResult, error) {
	version := uint64(9)
	return workflows.RefreshResult{Version: &version, Failed: map[string]string{"table:b": "denied"}}, nil
}

func (s *stubs) RecordAction(context.Context, fleet.Action) error { return nil }

func (s *stubs) TakeHints(_ context.Context, args workflows.HintArgs) (workflows.HintResult, error) {
	return workflows.HintResult{Waiting: len(args.IDs) - 1, Retired: 1, Returned: 1}, nil
}

func (s *stubs) register(r worker.ActivityRegistry) {
	for name, a := range map[string]any{
		workflows.BeginRoundName: s.BeginRound, workflows.ObserveName: s.ObserveActivity,
		workflows.CommitRoundName: s.CommitRound, workflows.RecordRoundName: s.RecordRound,
		workflows.RefreshRowsName: s.RefreshRows, workflows.RecordActionName: s.RecordAction,
		workflows.StartMaintenanceName: s.StartMaintenance, workflows.TakeHintsName: s.TakeHints,
	} {
		r.RegisterActivityWithOptions(a, activity.RegisterOptions{Name: name})
	}
}

func registerWorkflows(r interface {
	RegisterWorkflowWithOptions(w any, o workflow.RegisterOptions)
}) {
	for name, w := range map[string]any{
		workflows.ScanWorkflowName:    workflows.ScanWorkflow,
		workflows.RefreshWorkflowName: workflows.RefreshWorkflow,
		workflows.RecordWorkflowName:  workflows.RecordWorkflow,
		workflows.HintWorkflowName:    workflows.HintWorkflow,
	} {
		r.RegisterWorkflowWithOptions(w, workflow.RegisterOptions{Name: name})
	}
	registerMaintenanceWorkflows(r)
}

// TestEveryWayOfAWorkflowRunsOnARealServer runs what the recorded histories hold.
// With -record it writes them:
//
//	go test ./workflows -run RealServer -record
func TestEveryWayOfAWorkflowRunsOnARealServer(t *testing.T) {
	server := temporaltest.Start(t, temporaltest.Options{})
	addAttributes(t, server.Client)
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			history := s.run(t, server.Client)
			if *record {
				text, err := temporalproto.CustomJSONMarshalOptions{Indent: " "}.Marshal(history)
				require.NoError(t, err)
				require.NoError(t, os.MkdirAll("testdata", 0o755))
				require.NoError(t, os.WriteFile(filepath.Join("testdata", s.name+".json"), append(text, '\n'), 0o644))
			}
		})
	}
}

func addAttributes(t *testing.T, c client.Client) {
	t.Helper()
	keyword := enumspb.INDEXED_VALUE_TYPE_KEYWORD
	_, err := c.OperatorService().AddSearchAttributes(t.Context(), &operatorservice.AddSearchAttributesRequest{
		Namespace: client.DefaultNamespace,
		SearchAttributes: map[string]enumspb.IndexedValueType{
			workflows.AttrExperiment: keyword, workflows.AttrAction: keyword, workflows.AttrOutcome: keyword,
		},
	})
	require.NoError(t, err)
}

// run runs the scenario on a queue of its own and returns its history.
func (s scenario) run(t *testing.T, c client.Client) *historypb.History {
	t.Helper()
	queue := "record-" + s.name
	w := worker.New(c, queue, worker.Options{Identity: "worker"})
	registerWorkflows(w)
	if s.kept != nil {
		defer s.kept.serve(t, c, s.name)()
	} else {
		s.world.register(w)
	}
	require.NoError(t, w.Start())
	defer w.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: s.name + "-" + uuid.NewString(), TaskQueue: queue}, s.workflow, s.args)
	require.NoError(t, err)
	if s.cancel {
		<-s.begun()
		require.NoError(t, c.CancelWorkflow(ctx, run.GetID(), run.GetRunID()))
	}
	err = run.Get(ctx, nil)
	require.Equal(t, s.fails, err != nil, "%v", err)
	require.Equal(t, s.cancel, temporal.IsCanceledError(err), "%v", err)
	return historyOf(ctx, t, c, run)
}

// begun tells when a scenario has come to where it is to be cancelled.
func (s scenario) begun() <-chan struct{} {
	if s.kept != nil {
		return s.kept.compacted
	}
	return s.world.begun
}

// serve takes work from every queue of the fleet's maintenance.
func (u *upkept) serve(t *testing.T, c client.Client, fleetName string) (stop func()) {
	t.Helper()
	names := workflows.Names{Fleet: fleetName}
	var workers []worker.Worker
	for _, queue := range []string{names.MaintenanceQueue(), names.MergeQueue(), names.CompactQueue(), names.CheckQueue(), names.TablesQueue()} {
		w := worker.New(c, queue, worker.Options{Identity: "worker", DisableWorkflowWorker: true})
		for name, a := range u.activities() {
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

func historyOf(ctx context.Context, t *testing.T, c client.Client, run client.WorkflowRun) *historypb.History {
	t.Helper()
	var history historypb.History
	events := c.GetWorkflowHistory(ctx, run.GetID(), run.GetRunID(), false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		require.NoError(t, err)
		history.Events = append(history.Events, event)
	}
	return &history
}

// A run that lets a grace pass needs no slot, and rounds have to know. When it goes on
// it needs one again.
func TestARunThatWaitsSaysSo(t *testing.T) {
	waited := 0
	for _, file := range recorded(t) {
		var outcomes []string
		for _, e := range readHistory(t, file).Events {
			if e.GetTimerStartedEventAttributes() != nil {
				waited++
				require.Equal(t, workflows.OutcomeWaiting, outcomes[len(outcomes)-1], "%s: event %d", file, e.GetEventId())
			}
			if e.GetActivityTaskScheduledEventAttributes() != nil && len(outcomes) > 0 {
				require.NotEqual(t, workflows.OutcomeWaiting, outcomes[len(outcomes)-1], "%s: event %d: it works", file, e.GetEventId())
			}
			if p := e.GetUpsertWorkflowSearchAttributesEventAttributes().GetSearchAttributes().GetIndexedFields()[workflows.AttrOutcome]; p != nil {
				var outcome string
				require.NoError(t, converter.GetDefaultDataConverter().FromPayload(p, &outcome))
				outcomes = append(outcomes, outcome)
			}
		}
		if len(outcomes) > 0 {
			require.NotEqual(t, workflows.OutcomeWaiting, outcomes[len(outcomes)-1], "%s: it ended", file)
		}
	}
	require.GreaterOrEqual(t, waited, 6)
}

func recorded(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.json")
	require.NoError(t, err)
	return files
}
