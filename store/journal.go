package store

import (
	"context"
	"slices"
	"sync"
	"time"

	"lancefleet/fleet"
	"lancefleet/lance"
)

const (
	keepActions = 90 * 24 * time.Hour
	// keepActionsMax bounds the memory of everybody who reads the journal. What a
	// busy fleet did longest ago goes first, but never the last word on an experiment.
	keepActionsMax = 100_000
)

// Journal reads `_journal`.
type Journal struct {
	log *logTable[fleet.Action]

	mu        sync.Mutex
	of        *edition[[]fleet.Action] // that histories was made from
	histories map[fleet.ID]fleet.History
}

// NewJournal reads the table of a data directory as [CleanDataDir] returns it.
func NewJournal(r Reader, dataDir string) *Journal {
	id := func(a *fleet.Action) string { return a.ID }
	at := func(a *fleet.Action) int64 { return a.At }
	return &Journal{log: newLogTable(r, join(dataDir, journalTable), actionCodec, 1, id, at)}
}

// Latest returns the newest n actions, newest first; n <= 0 means all.
func (j *Journal) Latest(ctx context.Context, n int) ([]fleet.Action, error) {
	return j.log.latest(ctx, n)
}

// All returns every action, newest first. It is the same slice until the journal
// changes, and shared: read only.
func (j *Journal) All(ctx context.Context) ([]fleet.Action, error) {
	e, err := j.log.table.head(ctx)
	if err != nil {
		return nil, err
	}
	return e.value, nil
}

// History is what the journal remembers of each experiment, made once per version
// of it. It is shared: read only.
func (j *Journal) History(ctx context.Context) (map[fleet.ID]fleet.History, error) {
	e, err := j.log.table.head(ctx)
	if err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.of != e {
		j.of, j.histories = e, fleet.Histories(e.value)
	}
	return j.histories, nil
}

// Upkeep is what the journal remembers of the upkeep of our own tables.
func (j *Journal) Upkeep(ctx context.Context) (fleet.UpkeepState, error) {
	e, err := j.log.table.head(ctx)
	if err != nil {
		return fleet.UpkeepState{}, err
	}
	return fleet.UpkeepOf(e.value), nil
}

// Of returns the newest n actions on one experiment, newest first; n <= 0 means all.
func (j *Journal) Of(ctx context.Context, id fleet.ID, n int) ([]fleet.Action, error) {
	e, err := j.log.table.head(ctx)
	if err != nil {
		return nil, err
	}
	var found []fleet.Action
	long, short := id.String(), id.StatsName()
	for i := range e.value {
		if n > 0 && len(found) == n {
			break
		}
		if target := e.value[i].Target; target == long || target == short {
			found = append(found, e.value[i])
		}
	}
	return found, nil
}

// LastOf returns the newest action of these kinds that had its effect, or nil when
// there was none: what a pause that the scheduler has lost is remembered by.
func (j *Journal) LastOf(ctx context.Context, kinds ...string) (*fleet.Action, error) {
	actions, err := j.log.latest(ctx, 0)
	if err != nil {
		return nil, err
	}
	for i := range actions {
		if actions[i].Outcome == fleet.OutcomeDone && slices.Contains(kinds, actions[i].Kind) {
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
	return &JournalWriter{j, newLogWriter(w, j.log, "journal", trimActions)}
}

// Append stores actions; calls in flight share one commit. Those that are there, by
// their ids, are left out.
func (w *JournalWriter) Append(ctx context.Context, actions ...fleet.Action) error {
	for _, a := range actions {
		if a.ID == "" {
			return &lance.Error{Class: lance.Invalid, Op: "append action", Message: "an action has no id"}
		}
	}
	return w.writer.append(ctx, actions)
}

// trimActions keeps what LastOf may be asked for, however old: a fleet that was
// paused long ago must not forget it. Of each experiment it keeps the newest word
// of each kind: marks, no-ops and tails are remembered by it as long as any action.
func trimActions(actions []fleet.Action) []fleet.Action {
	type word struct{ target, kind string }
	remembered := map[word]bool{}
	room := keepActionsMax
	var kept []fleet.Action
	for _, a := range actions {
		w := word{a.Target, a.Kind}
		young := actions[0].At-a.At <= keepActions.Milliseconds()
		last := !remembered[w] && (a.Target == "" && a.Outcome == fleet.OutcomeDone || a.Target != "" && young)
		if last {
			remembered[w] = true
		}
		if last || young && room > 0 {
			room--
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
