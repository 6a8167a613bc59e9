package fleet

// Evidence is what VerifyZeroPending saw with its own eyes between two equal
// fingerprints: the state that a retirement rests on.
type Evidence struct {
	Fingerprint  Fingerprint     `json:"fingerprint"`
	Rows         int64           `json:"rows"` // of the base table, counted
	Fragments    int64           `json:"fragments"`
	Bytes        int64           `json:"bytes"` // -1 unknown
	Shards       []ShardEvidence `json:"shards"`
	Pending      int64           `json:"pending"`       // generations, over all shards
	Stranded     int64           `json:"stranded"`      // WAL entries
	Unknown      int64           `json:"unknown"`       // WAL entries
	Blocking     []string        `json:"blocking"`      // one sentence for each thing that stops a retirement
	DistinctKeys int64           `json:"distinct_keys"` // -1 = not compared, or the table has no key
	VerifiedAt   int64           `json:"verified_at"`   // unix ms, before the first request
}

// ShardEvidence is one shard's part of an Evidence. The fields of entries count
// WAL entries with rows past the flush cursor; see native/README.md, classify_tail.
type ShardEvidence struct {
	ID         string `json:"id"`
	Epoch      uint64 `json:"epoch"`
	Mark       uint64 `json:"mark"`
	Pending    int64  `json:"pending"`
	Contained  int64  `json:"contained"`
	InBase     int64  `json:"in_base"`
	Superseded int64  `json:"superseded"`
	Stranded   int64  `json:"stranded"`
	Unknown    int64  `json:"unknown"`
}

// Clean says whether nothing stands in the way of a retirement.
func (e Evidence) Clean() bool {
	return e.Pending == 0 && e.Stranded == 0 && e.Unknown == 0 && len(e.Blocking) == 0
}
