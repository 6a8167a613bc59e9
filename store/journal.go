package store

import (
	"context"
	"slices"
	"time"

	"lancefleet/fleet"
	"lancefleet/lance"
)

const keepActions = 90 * 24 * time.Hour

// done is the outcome of an action that had its effect.
const done = "done"

// Journal reads `_journal`.
type Journal struct{ log *logTable[fleet.Action] }

// NewJournal reads the table of a data directory as [CleanDataDir] returns it.
func NewJournal(r Reader, dataDir string) *Journal {
	id := func(a *fleet.Action) string { return a.ID }
	at := func(a *fleet.Action) int64 { return a.At }
	return &Journal{newLogTable(r, join(dataDir, journalTable), actionCodec, id, at)}
}

// Latest returns the newest n actions, newest first; n <= 0 means all.
func (j *Journal) Latest(ctx context.Context, n int) ([]fleet.Action, error) {
	return j.log.latest(ctx, n)
}

// LastOf returns the newest action of these kinds that had its effect, or nil when
// there was none: what a pause that the scheduler has lost is remembered by.
func (j *Journal) LastOf(ctx context.Context, kinds ...string) (*fleet.Action, error) {
	actions, err := j.log.latest(ctx, 0)
	if err != nil {
		return nil, err
	}
	for i := range actions {
		if actions[i].Outcome == done && slices.Contains(kinds, actions[i].Kind) {
			return &actions[i], nil
		}
	}
	return nil, nil
}

// JournalWriter appends to `_journal`.
type JournalWriter struct {
	*Journal
	writer *logWriter[fleet.Action]
}

// NewJournalWriter appends to the table that j reads.
func NewJournalWriter(w Writer, j *Journal) *JournalWriter {
	return &JournalWriter{j, &logWriter[fleet.Action]{writer: w, log: j.log, action: "journal", trim: trimActions}}
}

// Append stores actions in one commit. Those that are there, by their ids, are
// left out.
func (w *JournalWriter) Append(ctx context.Context, actions ...fleet.Action) error {
	for _, a := range actions {
		if a.ID == "" {
			return &lance.Error{Class: lance.Invalid, Op: "append action", Message: "an action has no id"}
		}
	}
	return w.writer.append(ctx, actions)
}

// trimActions keeps what LastOf may be asked for, however old: a fleet that was
// paused long ago must not forget it.
func trimActions(actions []fleet.Action) []fleet.Action {
	remembered := map[string]bool{}
	var kept []fleet.Action
	for _, a := range actions {
		young := actions[0].At-a.At <= keepActions.Milliseconds()
		last := a.Outcome == done && a.Target == "" && !remembered[a.Kind]
		if last {
			remembered[a.Kind] = true
		}
		if young || last {
			kept = append(kept, a)
		}
	}
	return kept
}

var actionCodec = newCodec([]column[fleet.Action]{
	uniqueColumn("id", false, func(a *fleet.Action) *string { return &a.ID }),
	actionInt("at", func(a *fleet.Action) *int64 { return &a.At }),
	actionText("kind", func(a *fleet.Action) *string { return &a.Kind }),
	actionText("target", func(a *fleet.Action) *string { return &a.Target }),
	actionText("outcome", func(a *fleet.Action) *string { return &a.Outcome }),
	actionText("error_class", func(a *fleet.Action) *string { return &a.ErrorClass }),
	actionText("error", func(a *fleet.Action) *string { return &a.Error }),
	actionText("before", func(a *fleet.Action) *string { return &a.Before }),
	actionText("after", func(a *fleet.Action) *string { return &a.After }),
	actionInt("duration_ms", func(a *fleet.Action) *int64 { return &a.DurationMS }),
	actionText("by", func(a *fleet.Action) *string { return &a.By }),
	actionText("why", func(a *fleet.Action) *string { return &a.Why }),
	actionText("workflow_id", func(a *fleet.Action) *string { return &a.WorkflowID }),
	actionText("run_id", func(a *fleet.Action) *string { return &a.RunID }),
})

func actionText(name string, at func(*fleet.Action) *string) column[fleet.Action] {
	return textColumn(name, true, at)
}

func actionInt(name string, at func(*fleet.Action) *int64) column[fleet.Action] {
	c := intColumn(name, false, 0, at)
	c.field.Nullable = true // a later version may drop it
	return c
}
