package web

import (
	"cmp"
	"regexp"
	"slices"

	"lancefleet/fleet"
)

// How much something asks of a person.
const (
	levelOK   = "ok"
	levelNote = "note" // it passes by itself
	levelWarn = "warn" // look when there is time
	levelBad  = "bad"  // somebody has to do something
)

// Failure is one cause and everything that fails by it now.
type Failure struct {
	Where    string   `json:"where" doc:"observing, merge_wal, compact, retire, ... or tables: upkeep of our own"`
	Class    string   `json:"class" doc:"As errors have it; refused: it was not tried any further"`
	Cause    string   `json:"cause" doc:"One sentence; … stands for names, and for numbers in which they differ"`
	Level    string   `json:"level" enum:"note,warn,bad"`
	Count    int      `json:"count" doc:"Experiments that it stops now"`
	Attempts int64    `json:"attempts" doc:"Failures in a row, summed over them"`
	FirstAt  *int64   `json:"first_at" doc:"First of these failures"`
	LastAt   *int64   `json:"last_at"`
	NextAt   *int64   `json:"next_at" doc:"Next attempt at any of them; null = with the next round that wants it"`
	Sample   string   `json:"sample" doc:"The newest one's own words"`
	Examples []string `json:"examples" doc:"Some of them, kind:name"`
	Runbook  string   `json:"runbook" doc:"Path of what to do about it"`
}

const examplesShown = 5

// failureSet gathers failures by cause.
type failureSet struct {
	byCause map[string]*Failure
	words   map[string]*wording // of each
}

// one is a single experiment's failure.
type oneFailure struct {
	id, where, class, text string
	refused                bool
	attempts               int64
	first, last, next      int64 // unix ms; 0 unknown
}

func (f *failureSet) add(o oneFailure) {
	words := wordingOf(o.text, o.id)
	key := o.where + "|" + o.class + "|" + words.key()
	g := f.byCause[key]
	if g == nil {
		f.words[key] = &words
		g = &Failure{Where: o.where, Class: cmp.Or(o.class, "internal"), Level: levelOfFailure(o.class, o.text, o.refused),
			Examples: []string{}, Runbook: runbookPath(o.class, o.text)}
		f.byCause[key] = g
	}
	g.Cause = f.words[key].with(words)
	g.Count++
	g.Attempts += o.attempts
	if o.first > 0 && (g.FirstAt == nil || o.first < *g.FirstAt) {
		g.FirstAt = timeOf(o.first)
	}
	if g.LastAt == nil || o.last > *g.LastAt {
		g.LastAt, g.Sample = timeOf(o.last), o.text
	}
	if o.next > 0 && (g.NextAt == nil || o.next < *g.NextAt) {
		g.NextAt = timeOf(o.next)
	}
	if o.id != "" && len(g.Examples) < examplesShown {
		g.Examples = append(g.Examples, o.id)
	}
}

// list is the worst first: what needs a person, then what stops most.
func (f *failureSet) list() []Failure {
	out := []Failure{}
	for _, g := range f.byCause {
		out = append(out, *g)
	}
	rank := map[string]int{levelBad: 0, levelWarn: 1, levelNote: 2}
	slices.SortFunc(out, func(a, b Failure) int {
		return cmp.Or(cmp.Compare(rank[a.Level], rank[b.Level]), cmp.Compare(b.Count, a.Count),
			cmp.Compare(a.Where, b.Where), cmp.Compare(a.Class, b.Class), cmp.Compare(a.Cause, b.Cause))
	})
	return out
}

// failuresOf are those that are not over: observations that fail, maintenance whose
// newest attempt failed or was refused half way, upkeep.
func failuresOf(v *view, ops []operation) []Failure {
	set := failureSet{map[string]*Failure{}, map[string]*wording{}}
	if v != nil {
		for i := range v.Rows {
			if r := v.Rows[i]; r.Failing() && v.retired[int32(i)] == nil {
				set.add(oneFailure{id: r.String(), where: "observing", class: r.ErrorClass, text: r.Error, attempts: r.Failures,
					first: r.FailingSince, last: max(r.FailedAt, r.FailingSince), next: r.NextAttempt(v.builtAt)})
			}
		}
	}
	over := map[string]bool{} // a newer operation of this kind on this target is known
	for i := range ops {
		o := &ops[i]
		if o.running != nil {
			over[o.running.Action+" "+o.running.ID.String()] = true
			continue
		}
		a := o.newest()
		key := a.Kind + " " + a.Target
		if over[key] {
			continue
		}
		over[key] = true
		if f, failing := failureOf(v, o); failing {
			set.add(f)
		}
	}
	return set.list()
}

// failureOf is what an operation that did not succeed tells; v may be nil.
func failureOf(v *view, o *operation) (oneFailure, bool) {
	a := o.newest()
	if a.Outcome != fleet.OutcomeFailed && a.Outcome != fleet.OutcomeRefused || a.ErrorClass == fleet.ClassHeld {
		return oneFailure{}, false
	}
	f := oneFailure{id: a.Target, where: a.Kind, class: a.ErrorClass, text: cmp.Or(a.Error, a.Why), refused: a.Outcome == fleet.OutcomeRefused,
		attempts: int64(len(o.runs)), first: o.oldest().At, last: a.At}
	if f.refused {
		f.class = fleet.OutcomeRefused
	}
	for _, step := range o.runs[0].steps { // the step that failed says more than its run
		if step.Outcome == a.Outcome {
			f.where, f.text = step.Kind, cmp.Or(step.Error, step.Why, f.text)
		}
	}
	if v == nil || a.Target == "" {
		return f, true
	}
	id, err := fleet.ParseStatsName(a.Target)
	if err != nil {
		return f, true
	}
	at, there := v.find(id)
	if !there || v.retired[at] != nil {
		return f, false // it is gone, or at rest: nothing is stopped any more
	}
	f.next = nextTry(v, id, a.Kind)
	return f, true
}

// nextTry is when a kind of maintenance that rests after failures is tried again.
func nextTry(v *view, id fleet.ID, kind string) int64 {
	policy, _ := v.policies.For(id)
	h := v.histories[id]
	todo := map[string][]fleet.Todo{fleet.ActRetire: {fleet.DoRetire}, fleet.ActMergeWAL: {fleet.DoMerge}, fleet.ActCompact: {fleet.DoCompact},
		fleet.ActOptimize: {fleet.DoMerge, fleet.DoCompact}}[kind]
	var next int64
	for _, t := range todo {
		tries := h.Tries(t)
		if wait := policy.Cooldown(tries.Failures); wait > 0 {
			next = max(next, tries.LastAt+wait.Milliseconds())
		}
	}
	return next
}

var throttled = regexp.MustCompile(`(?i)slow ?down|throttl|too many requests|\b429\b|\b503\b|reduce your request rate`)

// levelOf says how much an entry of the journal asks of a person.
func levelOf(a *fleet.Action) string {
	switch a.Outcome {
	case fleet.OutcomeFailed, fleet.OutcomeRefused:
		if a.ErrorClass == fleet.ClassHeld {
			return levelNote
		}
		return levelOfFailure(a.ErrorClass, a.Error, a.Outcome == fleet.OutcomeRefused)
	case outcomeCancelled:
		return levelNote
	}
	return levelOK
}

// levelOfFailure: a store that throttles and a writer that was faster are a part of
// normal life, and pass.
func levelOfFailure(class, text string, refused bool) string {
	switch {
	case class == "conflict", class == "cancelled", throttled.MatchString(text):
		return levelNote
	case refused, class == fleet.OutcomeRefused, class == "timeout":
		return levelWarn
	}
	return levelBad
}
