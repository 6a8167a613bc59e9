package fleet

// Observation is the full measurement of one experiment, as the native library
// reports it. Unknown numbers are -1, never 0.
type Observation struct {
	Fingerprint    Fingerprint `json:"fingerprint"`
	ManifestTime   int64       `json:"manifest_time"`   // unix ms of the head's manifest
	Fragments      int64       `json:"fragments"`       // of the base table
	SmallFragments int64       `json:"small_fragments"` // with fewer live rows than the target asked for
	BaseRows       int64       `json:"base_rows"`       // live rows of the base table
	DeletedRows    int64       `json:"deleted_rows"`    // rows hidden by deletion files
	Bytes          int64       `json:"bytes"`           // data files of the base and, where known, of pending generations; -1 unknown
	Keyed          bool        `json:"keyed"`           // the schema names a primary key
	Indexes        []string    `json:"indexes"`         // user's indexes, without Lance's own
	Tags           []string    `json:"tags"`
	Branches       []string    `json:"branches"`
	Commits        []Commit    `json:"commits"`     // newest first; see native/README.md, observe
	Shards         []Shard     `json:"shards"`      // sorted by ID
	ObservedAt     int64       `json:"observed_at"` // unix ms, taken before the first request
}

// Commit is one version of the base table.
type Commit struct {
	Version   uint64 `json:"version"`
	Time      int64  `json:"time"`      // unix ms
	Operation string `json:"operation"` // Lance's name: Append, Rewrite, Update, ...; "" = the transaction is gone
	Marks     bool   `json:"marks"`     // an Update that records compacted generations
	Action    string `json:"action"`    // value of lancefleet's transaction property, "" = none
}

// Shard is what one MemWAL shard holds.
type Shard struct {
	ShardMark
	Epoch             uint64 `json:"epoch"`
	CurrentGeneration uint64 `json:"current_generation"`     // number of the next one
	CompactedMark     uint64 `json:"compacted_mark"`         // generations up to this are in the base already
	Status            string `json:"status"`                 // active or sealed
	Pending           int64  `json:"pending"`                // generations named by the manifest above the mark
	PendingRows       int64  `json:"pending_rows"`           // rows in them; -1 unknown
	PendingBytes      int64  `json:"pending_bytes"`          // -1 unknown
	Tombstones        bool   `json:"tombstones"`             // a pending generation may hold deletes
	FlushCursor       uint64 `json:"flush_cursor"`           // replay starts after this WAL position; may lag
	TailEntries       int64  `json:"tail_entries"`           // WAL entries past the cursor that have rows
	TailRows          int64  `json:"tail_rows"`              // rows in them, repeated keys included; -1 unknown
	NewestEntry       uint64 `json:"newest_entry"`           // position of the newest WAL entry with rows; 0 none or unknown
	NewestEntryTime   int64  `json:"newest_entry_time"`      // unix ms; 0 none or unknown
	NewestGenTime     int64  `json:"newest_generation_time"` // unix ms the newest pending generation was written; 0 none
}
