package workflows

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"lancefleet/fleet"
)

// maintenance is the state of one run over one experiment. Its steps are listed by
// the workflow function, in the order in which they are done.
type maintenance struct {
	args     MaintenanceArgs
	names    Names
	prepared Prepared
	started  time.Time
	result   MaintenanceResult
	strict   bool   // a step that is refused ends the run
	drained  int64  // generations taken out by this run: their folders have a grace
	class    string // of the error that ended it
	evidence fleet.Evidence
	now      string // what it does, for those who ask
	until    int64  // when what it waits for comes, unix ms; 0 = it waits for no time
}

// step is one entry of a run's history. It tells how it ended, or nothing.
type stepOf struct {
	action string
	do     func(ctx workflow.Context) (told, error)
}

// told is what a step has to say. No outcome: it had no part in this run.
type told struct {
	outcome  string
	sentence string
}

func newMaintenance(ctx workflow.Context, action string, args MaintenanceArgs) *maintenance {
	m := &maintenance{
		args:    args,
		names:   Names{Fleet: args.Fleet},
		started: workflow.Now(ctx),
		result: MaintenanceResult{
			ID: args.ID.String(), Action: action, Before: fleet.UnknownFacts(), After: fleet.UnknownFacts(), Steps: []StepResult{},
		},
	}
	m.answerProgress(ctx)
	return m
}

// run does the steps until one of them ends the run, and records what became of it.
func (m *maintenance) run(ctx workflow.Context, steps ...stepOf) (MaintenanceResult, error) {
	err := m.prepare(ctx)
	for _, s := range steps {
		if err != nil || m.result.Outcome != "" {
			break
		}
		err = m.step(ctx, s)
	}
	return m.result, m.end(ctx, err)
}

// prepare looks at the experiment and decides afresh: the row that the run was
// started for may be old, and a run that is started twice finds nothing to do.
func (m *maintenance) prepare(ctx workflow.Context) error {
	m.describe(ctx, "Looking whether it is due.")
	actx := m.light(ctx, "observe in full, decide: is it due?")
	in := PrepareInput{Args: m.args, Action: m.result.Action}
	if err := workflow.ExecuteActivity(actx, PrepareName, in).Get(ctx, &m.prepared); err != nil {
		return err
	}
	m.result.Before, m.result.After = withoutMarks(m.prepared.Facts), m.prepared.Facts
	switch p := m.prepared; {
	case p.Refused:
		m.finish(OutcomeRefused, p.Reason)
	case !p.Due:
		m.finish(OutcomeNoop, p.Reason)
	}
	return nil
}

// step does one step and adds what it told.
func (m *maintenance) step(ctx workflow.Context, s stepOf) error {
	before, began := m.result.After, workflow.Now(ctx)
	t, err := s.do(ctx)
	err = endedBy(ctx, err)
	result := StepResult{Action: s.action, Outcome: t.outcome, Sentence: t.sentence}
	if err != nil {
		result.Outcome, result.Sentence, result.ErrorClass = outcomeOf(err), Sentence(err), ErrorClass(err)
		err = &stepError{s.action, err}
	}
	if result.Outcome == "" {
		return nil
	}
	result.Before, result.After = withoutMarks(before), m.result.After
	if s.action != StepMergeWAL {
		result.After = withoutMarks(result.After)
	}
	result.DurationMS = workflow.Now(ctx).Sub(began).Milliseconds()
	m.result.Steps = append(m.result.Steps, result)
	if result.Outcome == OutcomeRefused && m.strict {
		m.finish(OutcomeRefused, result.Sentence)
	}
	m.describe(ctx, "")
	return err
}

// withoutMarks are facts without those numbers of which there is one for each shard:
// only the step that moves them tells them, so that a history stays small.
func withoutMarks(f fleet.Facts) fleet.Facts {
	f.Marks, f.Accepted = nil, nil
	return f
}

// stepError is the failure of a step, by its name.
type stepError struct {
	step  string
	cause error
}

func (e *stepError) Error() string { return e.step + ": " + Sentence(e.cause) }
func (e *stepError) Unwrap() error { return e.cause }

func (m *maintenance) finish(outcome, sentence string) {
	m.result.Outcome, m.result.Sentence = outcome, sentence
}

// end says what became of the run, for those who look at the workflow, and has it
// written to the journal. Being cancelled does not keep it from being recorded.
func (m *maintenance) end(ctx workflow.Context, err error) error {
	switch {
	case err != nil:
		m.finish(outcomeOf(err), m.failure(err))
		m.class = ErrorClass(err)
	case m.result.Outcome == "":
		m.finish(m.summedUp())
	}
	m.describe(ctx, "")
	setOutcome(ctx, m.result.Outcome)
	recorded := m.record(ctx)
	if err != nil {
		return failed(m.result.Action+" "+m.result.ID, err)
	}
	return recorded
}

func (m *maintenance) failure(err error) string {
	if temporal.IsCanceledError(err) {
		return "cancelled; it stays as the finished steps left it"
	}
	text := Sentence(err)
	if n := len(m.result.Steps); n > 0 {
		text = m.result.Steps[n-1].Action + ": " + text
	}
	return text
}

// summedUp is the end of a run in which no step ended it: what those did that did
// something, or that there was nothing to do.
func (m *maintenance) summedUp() (outcome, sentence string) {
	var did, refused []string
	outcome = OutcomeNoop
	for _, s := range m.result.Steps {
		switch s.Outcome {
		case OutcomeDone:
			outcome = OutcomeDone
			did = append(did, s.Sentence)
		case OutcomeRefused:
			refused = append(refused, s.Sentence)
		}
	}
	if len(refused) > 0 {
		outcome = OutcomeRefused
	}
	if parts := append(did, refused...); len(parts) > 0 {
		return outcome, strings.Join(parts, "; ")
	}
	return outcome, "nothing to do"
}

// record writes the journal's entries. A round's start that found nothing to do is
// left out: it is normal, and says nothing about the experiment.
func (m *maintenance) record(ctx workflow.Context) error {
	if m.result.Outcome == OutcomeNoop && len(m.result.Steps) == 0 && m.args.By == "" {
		return nil
	}
	if ctx.Err() != nil {
		ctx, _ = workflow.NewDisconnectedContext(ctx)
	}
	in := MaintenanceRecord{
		Args: m.args, Result: m.result, ErrorClass: m.class,
		StartedAt: m.started.UnixMilli(), FinishedAt: workflow.Now(ctx).UnixMilli(),
	}
	actx := m.light(ctx, "append to _journal: "+m.result.Outcome)
	if err := workflow.ExecuteActivity(actx, RecordMaintenanceName, in).Get(ctx, nil); err != nil {
		return failed("record "+m.result.Action+" "+m.result.ID, err)
	}
	return nil
}

// describe keeps the run's page in Temporal's web UI readable: what was done, and
// what it is doing or waiting for.
func (m *maintenance) describe(ctx workflow.Context, now string) {
	m.now, m.until = now, 0
	var text strings.Builder
	text.WriteString(fmt.Sprintf("%s `%s`", strings.ToUpper(m.result.Action[:1])+m.result.Action[1:], m.result.ID)) //nolint:staticcheck // Fprintf is more than the determinism check can follow
	if why := m.prepared.Reason; why != "" {
		text.WriteString(": " + why)
	}
	text.WriteString("\n")
	for _, s := range m.result.Steps {
		text.WriteString(fmt.Sprintf("\n- **%s** %s: %s", s.Action, s.Outcome, s.Sentence)) //nolint:staticcheck // Fprintf is more than the determinism check can follow
	}
	if now != "" {
		text.WriteString("\n- " + now)
	}
	if m.result.Outcome != "" {
		text.WriteString(fmt.Sprintf("\n\n**%s**: %s", m.result.Outcome, m.result.Sentence)) //nolint:staticcheck // Fprintf is more than the determinism check can follow
	}
	workflow.SetCurrentDetails(ctx, text.String())
}

// light makes the options of a step that reads or commits something small.
func (m *maintenance) light(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithTaskQueue(step(ctx, lightTimeout, lightAttempts, summary), m.names.MaintenanceQueue())
}
