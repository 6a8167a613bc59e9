package lance

import (
	"time"

	"lancefleet/fleet"
)

// DatasetSpec says what dataset to make, for demonstrations and tests. The same
// spec makes the same rows.
type DatasetSpec struct {
	URI         string
	Kind        fleet.Kind
	Shards      int           // MemWAL shards; 0 = no MemWAL writes
	Generations int           // pending in each shard
	Rows        int           // in each generation, and in each fragment
	Fragments   int           // of the base table
	Tombstones  bool          // some generations delete keys
	Stranded    bool          // some rows are left in WAL entries alone
	Age         time.Duration // how long ago the newest write was
	Seed        int64
}
