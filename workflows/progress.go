package workflows

import "go.temporal.io/sdk/workflow"

// ProgressQuery asks a run of maintenance how far it is. The answer is a
// MaintenanceProgress.
const ProgressQuery = "progress"

// MaintenanceProgress is how far a run is, for people who wait for its end.
type MaintenanceProgress struct {
	Now   string         `json:"now"`             // what it does, or waits for
	Until int64          `json:"until,omitempty"` // when that wait is over, unix ms
	Steps []StepProgress `json:"steps"`           // that are over
}

// StepProgress is one step that is over.
type StepProgress struct {
	Action   string `json:"action"`
	Outcome  string `json:"outcome"`
	Sentence string `json:"sentence"`
}

// answerProgress lets the run be asked. A run that can't be asked runs all the same.
func (m *maintenance) answerProgress(ctx workflow.Context) {
	if err := workflow.SetQueryHandler(ctx, ProgressQuery, m.progress); err != nil {
		workflow.GetLogger(ctx).Warn("answer queries", "query", ProgressQuery, "error", err)
	}
}

func (m *maintenance) progress() (MaintenanceProgress, error) {
	p := MaintenanceProgress{Now: m.now, Until: m.until, Steps: make([]StepProgress, len(m.result.Steps))}
	for i, s := range m.result.Steps {
		p.Steps[i] = StepProgress{s.Action, s.Outcome, s.Sentence}
	}
	return p, nil
}
