package web

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"

	"lancefleet/control"
	"lancefleet/fleet"
	"lancefleet/workflows"
)

// Task is a piece of maintenance in the shape of lance-context's task list, for
// programs that know that. Both kinds are carried out by one run here, which merges
// and compacts.
type Task struct {
	ID         string `json:"id" doc:"Run id"`
	Kind       string `json:"kind" doc:"compact, merge_wal; also optimize, retire, seal of lancefleet"`
	Target     string `json:"target" doc:"As in _stats: bare for rollouts, kind:name else"`
	State      string `json:"state" enum:"queued,running,done,failed"`
	Error      string `json:"error,omitempty"`
	Detail     string `json:"detail,omitempty"`
	EnqueuedAt int64  `json:"enqueued_at"`
	StartedAt  *int64 `json:"started_at,omitempty"`
	FinishedAt *int64 `json:"finished_at,omitempty"`
}

// TaskList is one page of tasks, newest first.
type TaskList struct {
	Tasks  []Task `json:"tasks"`
	Total  int    `json:"total"`
	Limit  int    `json:"limit"`
	Offset int    `json:"offset"`
}

// TaskRequest asks for a task.
type TaskRequest struct {
	Kind   string `json:"kind" enum:"compact,merge_wal"`
	Target string `json:"target" doc:"kind:name, or bare"`
	By     string `json:"by,omitempty" maxLength:"100"`
}

// CompactStatus is the newest compaction of one experiment.
type CompactStatus struct {
	State            string `json:"state" enum:"none,queued,running,done,failed"`
	FragmentsRemoved *int64 `json:"fragments_removed,omitempty"`
	FragmentsAdded   *int64 `json:"fragments_added,omitempty"`
	Error            string `json:"error,omitempty"`
}

// The states of a task. Temporal keeps what waits for a slot as running.
const (
	taskRunning = "running"
	taskDone    = "done"
	taskFailed  = "failed"
	taskNone    = "none"
)

// taskKinds are the kinds of journal entries that are tasks.
var taskKinds = []string{fleet.ActMergeWAL, fleet.ActCompact, fleet.ActOptimize, fleet.ActRetire, fleet.ActSeal}

type tasksInput struct {
	Limit  int `query:"limit" default:"50" doc:"Clamped to 1..500"`
	Offset int `query:"offset" default:"0"`
}

type tasksOutput struct {
	Body TaskList
}

func (s *Server) listTasks(ctx context.Context, in *tasksInput) (*tasksOutput, error) {
	all, err := s.tasks(ctx)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b unworded) int { return cmp.Compare(b.began(), a.began()) })
	out := TaskList{Tasks: []Task{}, Total: len(all), Limit: min(max(in.Limit, 1), maxLimit), Offset: max(in.Offset, 0)}
	for _, t := range cut(all[min(out.Offset, len(all)):], out.Limit) {
		out.Tasks = append(out.Tasks, t.task())
	}
	return &tasksOutput{Body: out}, nil
}

// unworded is a task before it is told: a run, or an entry of the journal. There may
// be a hundred thousand of them, and a page tells few.
type unworded struct {
	running *control.Running
	action  *fleet.Action
}

func (t unworded) id() string {
	if t.running != nil {
		return t.running.RunID
	}
	return cmp.Or(t.action.RunID, t.action.ID)
}

func (t unworded) began() int64 {
	if t.running != nil {
		return t.running.StartedAt
	}
	return t.action.At - t.action.DurationMS
}

func (t unworded) task() Task {
	if t.running != nil {
		return runningTask(t.running)
	}
	return taskOf(t.action)
}

// tasks are what runs, and what the journal keeps by its end, newest first.
func (s *Server) tasks(ctx context.Context) ([]unworded, error) {
	m := s.feed.moment()
	d, err := s.journalled(ctx)
	if err != nil {
		return nil, err
	}
	var all []unworded
	for i := range m.running {
		if r := &m.running[i]; slices.Contains(taskKinds, r.Action) {
			all = append(all, unworded{running: r})
		}
	}
	for i := range d.actions {
		if a := &d.actions[i]; slices.Contains(taskKinds, a.Kind) {
			all = append(all, unworded{action: a})
		}
	}
	return all, nil
}

func runningTask(r *control.Running) Task {
	at := r.StartedAt
	return Task{ID: r.RunID, Kind: taskKind(r.Action, r.Wanted), Target: r.ID.StatsName(), State: taskRunning, EnqueuedAt: at, StartedAt: &at}
}

// taskKind says what a run is in lance-context's words, where it has one.
func taskKind(action, wanted string) string {
	if action != workflows.ActionOptimize {
		return action
	}
	switch fleet.Todo(wanted) {
	case fleet.DoMerge:
		return fleet.ActMergeWAL
	case fleet.DoCompact:
		return fleet.ActCompact
	}
	return action
}

func taskOf(a *fleet.Action) Task {
	started := a.At - a.DurationMS
	t := Task{ID: cmp.Or(a.RunID, a.ID), Kind: a.Kind, Target: a.Target, State: taskDone, EnqueuedAt: started, StartedAt: &started, FinishedAt: &a.At}
	if id, err := fleet.ParseStatsName(a.Target); err == nil {
		t.Target = id.StatsName()
	}
	switch a.Outcome {
	case fleet.OutcomeFailed, fleet.OutcomeRefused:
		t.State, t.Error = taskFailed, cmp.Or(a.Error, a.ErrorClass, a.Outcome)
	case outcomeCancelled: // lance-context has no word for it, and it is not done
		t.State, t.Error = taskFailed, cmp.Or(a.Error, a.Outcome)
	default:
		t.Detail = fragmentsWords(a)
	}
	return t
}

// fragmentsWords is lance-context's detail of a compaction.
func fragmentsWords(a *fleet.Action) string {
	removed, added, known := fragmentsOf(a)
	if !known {
		return a.Outcome
	}
	return fmt.Sprintf("removed %d / added %d fragments", removed, added)
}

// fragmentsOf says how many fragments went and came, as far as the numbers before
// and after tell: those that stayed are in neither.
func fragmentsOf(a *fleet.Action) (removed, added int64, known bool) {
	before, after := fleet.ParseFacts(a.Before), fleet.ParseFacts(a.After)
	if before.Fragments < 0 || after.Fragments < 0 {
		return 0, 0, false
	}
	if less := before.Fragments - after.Fragments; less > 0 {
		return less, 0, true
	}
	return 0, after.Fragments - before.Fragments, true
}

type taskInput struct {
	ID string `path:"id" doc:"Run id"`
}

type taskOutput struct {
	Body Task
}

func (s *Server) getTask(ctx context.Context, in *taskInput) (*taskOutput, error) {
	all, err := s.tasks(ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range all { // of a run's entries its own ended last
		if t.id() == in.ID {
			return &taskOutput{Body: t.task()}, nil
		}
	}
	return nil, refuse(http.StatusNotFound, fmt.Sprintf("no task %q: the journal keeps 90 days", in.ID))
}

type newTaskInput struct {
	Body TaskRequest
}

// addTask starts a run that merges and compacts; lance-context has one for each.
func (s *Server) addTask(ctx context.Context, in *newTaskInput) (*taskOutput, error) {
	r := asked{action: workflows.ActionOptimize}
	r.By = in.Body.By
	started, err := s.start(ctx, in.Body.Target, r)
	if err != nil {
		return nil, err
	}
	now := s.now().UnixMilli()
	id, err := fleet.ParseStatsName(started.ID)
	if err != nil {
		return nil, err
	}
	return &taskOutput{Body: Task{ID: started.RunID, Kind: in.Body.Kind, Target: id.StatsName(), State: taskRunning, EnqueuedAt: now, StartedAt: &now}}, nil
}

type compactOutput struct {
	Body CompactStatus
}

func (s *Server) compact(ctx context.Context, in *nameInput) (*compactOutput, error) {
	r := asked{action: workflows.ActionOptimize}
	r.By = in.By
	if _, err := s.start(ctx, in.Name, r); err != nil {
		return nil, err
	}
	return &compactOutput{Body: CompactStatus{State: taskRunning}}, nil
}

type compactStatusInput struct {
	Name string `path:"name"`
}

func (s *Server) getCompactStatus(ctx context.Context, in *compactStatusInput) (*compactOutput, error) {
	m := s.feed.moment()
	if m.view == nil {
		return nil, notLoaded(m)
	}
	t, err := s.resolve(ctx, m.view, in.Name)
	if err != nil {
		return nil, err
	}
	if r := m.runningOf(t.exp.ID); r != nil && (r.Action == workflows.ActionOptimize || r.Action == workflows.ActionRetire) {
		return &compactOutput{Body: CompactStatus{State: taskRunning}}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	actions, err := s.journal.Of(ctx, t.exp.ID, 0)
	if err != nil {
		return nil, fmt.Errorf("reading the journal: %w", err)
	}
	return &compactOutput{Body: compactStatusOf(actions)}, nil
}

// compactStatusOf goes by the newest compaction's own entry; a run that never got
// as far has only one for itself.
func compactStatusOf(newestFirst []fleet.Action) CompactStatus {
	for _, kind := range []string{fleet.ActCompact, fleet.ActOptimize} {
		at := slices.IndexFunc(newestFirst, func(a fleet.Action) bool { return a.Kind == kind })
		if at < 0 {
			continue
		}
		task := taskOf(&newestFirst[at])
		out := CompactStatus{State: task.State, Error: task.Error}
		if removed, added, known := fragmentsOf(&newestFirst[at]); known && out.State == taskDone {
			out.FragmentsRemoved, out.FragmentsAdded = &removed, &added
		}
		return out
	}
	return CompactStatus{State: taskNone}
}
