package fleet

import "encoding/json"

// Facts are an experiment's numbers before or after a piece of maintenance, as
// the journal keeps them in Action.Before and Action.After. Unknown numbers are -1.
type Facts struct {
	Version        int64             `json:"version"` // of the base; -1 unknown
	Fragments      int64             `json:"fragments"`
	SmallFragments int64             `json:"small_fragments"`
	Rows           int64             `json:"rows"`
	Bytes          int64             `json:"bytes"`
	Pending        int64             `json:"pending"`                 // generations, over all shards
	Marks          map[string]uint64 `json:"marks,omitempty"`         // compacted mark by shard, where there is one
	Accepted       map[string]uint64 `json:"accepted,omitempty"`      // by shard: marks that an operator decided on; what was remembered before is void
	NoOpVersion    int64             `json:"noop_version,omitempty"`  // base version whose compaction plan was empty; 0 none
	NoOpOptions    string            `json:"noop_options,omitempty"`  // Policy.CompactOptions of that plan
	Stranded       int64             `json:"stranded"`                // WAL entries; -1 = not classified
	Unknown        int64             `json:"unknown"`                 // WAL entries; -1 = not classified
	ForeignDrain   bool              `json:"foreign_drain,omitempty"` // somebody else drained generations of it
}

// UnknownFacts are those of an experiment that nobody looked at.
func UnknownFacts() Facts {
	return Facts{Version: -1, Fragments: -1, SmallFragments: -1, Rows: -1, Bytes: -1, Pending: -1, Stranded: -1, Unknown: -1}
}

// FactsOf takes the numbers of a row; nil is unknown. A row does not tell what
// entries of a WAL tail are unless there are none: whoever classified them sets
// Stranded and Unknown.
func FactsOf(r *Row) Facts {
	f := UnknownFacts()
	if r == nil || !r.Known {
		return f
	}
	f.Version, f.Fragments, f.SmallFragments = r.Version, r.FragmentCount, r.SmallFragments
	f.Rows, f.Bytes, f.Pending = r.RowCount, r.Bytes, r.PendingWAL
	if f.Stranded = r.StrandedEntries; r.TailEntries == 0 {
		f.Stranded, f.Unknown = 0, 0
	}
	for _, s := range r.Shards {
		if s.CompactedMark > 0 {
			f.mark(s.ID, s.CompactedMark)
		}
	}
	return f
}

// FactsOfEvidence takes what VerifyZeroPending saw.
func FactsOfEvidence(e Evidence) Facts {
	f := UnknownFacts()
	f.Version, f.Fragments, f.Rows, f.Bytes = int64(e.Fingerprint.Version), e.Fragments, e.Rows, e.Bytes
	f.Pending, f.Stranded, f.Unknown = e.Pending, e.Stranded, e.Unknown
	for _, s := range e.Shards {
		if s.Mark > 0 {
			f.mark(s.ID, s.Mark)
		}
	}
	return f
}

func (f *Facts) mark(shard string, mark uint64) {
	if f.Marks == nil {
		f.Marks = map[string]uint64{}
	}
	f.Marks[shard] = mark
}

// UnmarshalJSON reads numbers that are not there as unknown.
func (f *Facts) UnmarshalJSON(text []byte) error {
	type plain Facts
	read := plain(UnknownFacts())
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}
	*f = Facts(read)
	return nil
}

// Text is the form in which the journal keeps them.
func (f Facts) Text() string {
	text, _ := json.Marshal(f) //nolint:errchkjson // numbers, words and a map of them: can't fail
	return string(text)
}

// ParseFacts reads what Text wrote. Anything else is unknown facts: an entry of
// another version, or of an action that is about something else.
func ParseFacts(text string) Facts {
	f := UnknownFacts()
	if text == "" || json.Unmarshal([]byte(text), &f) != nil {
		return UnknownFacts()
	}
	return f
}
