package fleet

import "slices"

// Fingerprint is what a probe compares: if none of it moved, nothing was written.
// The base version alone is not enough: MemWAL writes and flushes never move it.
type Fingerprint struct {
	Version uint64      `json:"version"`          // head of the base table
	ETag    string      `json:"etag,omitempty"`   // of the head's manifest; drop and recreate resets versions
	Naming  string      `json:"naming"`           // "v1" or "v2": how manifest files are named
	Gaps    bool        `json:"gaps,omitempty"`   // version numbers are not gap-free below the head: list, don't HEAD
	Refs    bool        `json:"refs,omitempty"`   // tags or branches exist: list, don't HEAD
	Shards  []ShardMark `json:"shards,omitempty"` // sorted by ID
}

// ShardMark is one MemWAL shard's part of a Fingerprint.
type ShardMark struct {
	ID       string `json:"id"`             // uuid
	Manifest uint64 `json:"manifest"`       // latest shard manifest version; 0 = folder without a manifest
	ETag     string `json:"etag,omitempty"` // of that manifest
	WALNext  uint64 `json:"wal_next"`       // first WAL position that does not exist yet
}

// Equal says whether nothing at all moved between two fingerprints.
func (f Fingerprint) Equal(o Fingerprint) bool {
	return f.Version == o.Version && f.ETag == o.ETag && f.Naming == o.Naming &&
		f.Gaps == o.Gaps && f.Refs == o.Refs && slices.Equal(f.Shards, o.Shards)
}

// IsZero says that there is nothing to compare: never observed, or stored by a
// writer that keeps no fingerprints.
func (f Fingerprint) IsZero() bool { return f.Version == 0 && len(f.Shards) == 0 }
