package fleet

import "encoding/json"

// UpkeepFacts is what the journal keeps, in Action.After, of a pass of upkeep over
// our own tables.
type UpkeepFacts struct {
	Cleaned uint64 `json:"cleaned"` // newest version of `_stats` when its old ones went; 0 = they did not
	Head    uint64 `json:"head"`    // newest version of `_stats` at the end; 0 unknown
	OnDisk  int64  `json:"on_disk"` // versions of `_stats` at the end; -1 unknown
	Removed int64  `json:"removed"` // versions, of all tables
}

// Text is the form in which the journal keeps them.
func (f UpkeepFacts) Text() string {
	text, _ := json.Marshal(f) //nolint:errchkjson // numbers: they always encode
	return string(text)
}

// UpkeepState is what the journal remembers of the upkeep of our own tables, so
// that no restart forgets a failure.
type UpkeepState struct {
	Failures int64  // passes that failed since the last one that did not
	At       int64  // of the newest pass, unix ms; 0 none
	Error    string // of the newest pass, in words; "" = it succeeded
	counted  UpkeepFacts
}

// UpkeepOf reads it from actions, newest first.
func UpkeepOf(actions []Action) UpkeepState {
	s := UpkeepState{counted: UpkeepFacts{OnDisk: -1}}
	for i := range actions {
		a := &actions[i]
		if a.Kind != ActTables {
			continue
		}
		if s.At == 0 {
			s.At, s.Error = a.At, a.Error
		}
		facts := UpkeepFacts{OnDisk: -1}
		_ = json.Unmarshal([]byte(a.After), &facts) // of another version: nothing is known
		if a.Outcome == OutcomeDone {
			s.counted = facts
			return s
		}
		s.Failures++
		if s.counted.Head == 0 && facts.OnDisk >= 0 {
			s.counted = UpkeepFacts{Head: facts.Head, OnDisk: facts.OnDisk}
		}
	}
	return s
}

// Unreclaimed is how many versions of `_stats` have come since a pass last removed
// old ones, given the newest. Without any such pass it is all there are: those that
// were counted on disk and what came since, or where nobody could count them as many
// as the newest one's number.
func (s UpkeepState) Unreclaimed(version uint64) int64 {
	since := func(v uint64) int64 { return int64(version - min(v, version)) }
	switch c := s.counted; {
	case c.Cleaned > 0:
		return since(c.Cleaned)
	case c.Head > 0 && c.OnDisk >= 0:
		return c.OnDisk + since(c.Head)
	}
	return int64(version)
}
