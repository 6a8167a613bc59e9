package fleet

import (
	"cmp"
	"slices"
)

// History is what the journal remembers of an experiment's maintenance. The zero
// History is that of one that was never maintained.
type History struct {
	Merge, Compact, Retire Tries // each kind backs off by itself

	RememberedMarks map[string]uint64 // newest compacted mark that we saw, by shard; see Marks
	MarksVersion    int64             // base version at which they were seen; 0 none
	NoOpVersion     int64             // base version whose compaction plan was empty; 0 = none
	NoOpOptions     string            // Policy.CompactOptions of that plan: other options, other plan
	ForeignDrain    bool              // somebody else drained generations of it: live shards are left to their writers

	Stranded int64 // WAL entries that the last look at its tails found in no generation and not in the base
	Unknown  int64 // WAL entries of which nobody can tell: an operator decides
	TailsAt  int64 // when that was, unix ms; 0 never

	MaintainedAt int64 // when a step last rewrote something of it, unix ms; 0 never
}

// Tries are the failures of one kind of maintenance in a row. A refusal counts:
// asking again at once would be refused again.
type Tries struct {
	Failures int64
	LastAt   int64  // of the last failure, unix ms
	Error    string // in words: "commit conflict"
}

// Tries of one kind.
func (h History) Tries(kind Todo) Tries {
	switch kind {
	case DoMerge:
		return h.Merge
	case DoCompact:
		return h.Compact
	case DoRetire:
		return h.Retire
	}
	return Tries{}
}

// Marks are the remembered marks that hold for a row: none when its version is
// lower than that they were seen at, since versions of one table only climb. It was
// dropped and made anew then, and its generations count from the beginning.
func (h History) Marks(r *Row) map[string]uint64 {
	if r != nil && r.Version >= 0 && r.Version < h.MarksVersion {
		return nil
	}
	return h.RememberedMarks
}

// Histories reads the journal. The order of the actions does not matter, nor that
// an action is there twice.
func Histories(actions []Action) map[ID]History {
	steps := stepsOfRuns(actions)
	histories := map[ID]History{}
	counted := map[string]bool{} // failures, by run and kind
	for _, a := range inOrder(actions) {
		id, err := ParseStatsName(a.Target)
		if a.Target == "" || err != nil {
			continue
		}
		h := histories[id]
		for _, kind := range kindsOf(a, steps) {
			h.tried(kind, a, counted)
		}
		h.learn(a)
		histories[id] = h
	}
	return histories
}

// inOrder sorts by time and takes each action once. Of two with one id the first
// counts; those of one moment have some order, any, so that all agree on it.
func inOrder(actions []Action) []*Action {
	sorted := make([]*Action, len(actions))
	for i := range actions {
		sorted[i] = &actions[i]
	}
	slices.SortFunc(sorted, func(a, b *Action) int {
		return cmp.Or(
			cmp.Compare(a.At, b.At), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Target, b.Target),
			cmp.Compare(a.Outcome, b.Outcome), cmp.Compare(a.Error, b.Error), cmp.Compare(a.After, b.After),
		)
	})
	seen := make(map[string]bool, len(sorted))
	return slices.DeleteFunc(sorted, func(a *Action) bool {
		twice := a.ID != "" && seen[a.ID]
		seen[a.ID] = true
		return twice
	})
}

// stepsOfRuns names the runs that recorded a merge or a compaction by itself: their
// OptimizeWorkflow's own record then says nothing more about either.
func stepsOfRuns(actions []Action) map[string]bool {
	runs := map[string]bool{}
	for i := range actions {
		if a := &actions[i]; a.RunID != "" && (a.Kind == ActMergeWAL || a.Kind == ActCompact) {
			runs[a.RunID] = true
		}
	}
	return runs
}

// kindsOf says which kinds of maintenance an action is about.
func kindsOf(a *Action, steps map[string]bool) []Todo {
	switch a.Kind {
	case ActMergeWAL:
		return []Todo{DoMerge}
	case ActCompact:
		return []Todo{DoCompact}
	case ActRetire:
		return []Todo{DoRetire}
	case ActAccept:
		if a.Outcome == OutcomeDone { // what was refused before is not refused any more
			return []Todo{DoMerge, DoRetire}
		}
	case ActOptimize:
		if !steps[a.RunID] {
			return []Todo{DoMerge, DoCompact}
		}
	}
	return nil
}

// tried counts a failure, one of each run, or forgets those before a success.
func (h *History) tried(kind Todo, a *Action, counted map[string]bool) {
	if a.ErrorClass == ClassHeld {
		return
	}
	tries := h.Tries(kind)
	switch a.Outcome {
	case OutcomeDone, OutcomeNoOp:
		tries = Tries{}
	case OutcomeFailed, OutcomeRefused:
		key := a.RunID + "/" + string(kind) + "/" + a.Target
		if again := a.RunID != "" && counted[key]; !again {
			tries.Failures++
		}
		counted[key] = true
		tries.LastAt, tries.Error = a.At, cmp.Or(a.Error, a.ErrorClass)
	}
	switch kind {
	case DoMerge:
		h.Merge = tries
	case DoCompact:
		h.Compact = tries
	case DoRetire:
		h.Retire = tries
	}
}

// learn takes in what an action found the experiment to be afterwards.
func (h *History) learn(a *Action) {
	if rewrites[a.Kind] && a.Outcome == OutcomeDone {
		h.MaintainedAt = max(h.MaintainedAt, a.At)
	}
	f := ParseFacts(a.After)
	h.ForeignDrain = h.ForeignDrain || f.ForeignDrain
	if f.NoOpVersion > 0 {
		h.NoOpVersion, h.NoOpOptions = f.NoOpVersion, f.NoOpOptions
	}
	if f.Stranded >= 0 && f.Unknown >= 0 {
		h.Stranded, h.Unknown, h.TailsAt = f.Stranded, f.Unknown, a.At
	}
	h.learnMarks(f)
}

// rewrites are the kinds of actions that change a table or its log.
var rewrites = map[string]bool{ActMergeWAL: true, ActCompact: true, ActCleanup: true, ActSeal: true, ActSweep: true}

func (h *History) learnMarks(f Facts) {
	if f.Version < 0 || len(f.Marks)+len(f.Accepted) == 0 && f.Version >= h.MarksVersion {
		return
	}
	marks := map[string]uint64{}
	if f.Version >= h.MarksVersion { // else another table: what we knew is about the old one
		for shard, mark := range h.RememberedMarks {
			marks[shard] = mark
		}
	}
	for shard, mark := range f.Accepted {
		if marks[shard] = mark; mark == 0 {
			delete(marks, shard)
		}
	}
	for shard, mark := range f.Marks {
		marks[shard] = max(marks[shard], mark)
	}
	h.RememberedMarks, h.MarksVersion = marks, f.Version
	if len(marks) == 0 {
		h.RememberedMarks, h.MarksVersion = nil, 0
	}
}
