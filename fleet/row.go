package fleet

// Row is what `_stats` keeps of one experiment. The first ten fields after the
// experiment are lance-context's columns with its meaning; the rest is ours and
// nullable in the table: a table without a column reads as unknown.
type Row struct {
	Experiment

	RowCount         int64 // base + pending rows; -1 unknown
	FragmentCount    int64 // -1 unknown
	LastWrite        int64 // upstream `last_updated`: when rows last arrived by any path, unix ms; 0 unknown
	PendingWAL       int64 // upstream `pending_wal_generations`; -1 unknown
	LastCompaction   int64 // unix ms; -1 never
	TotalCompactions int64
	ScannedAt        int64 // when a round or refresh last confirmed this row, unix ms
	Version          int64 // base version; -1 unknown

	Known bool // observed at least once: without it the numbers mean nothing

	RowsExact       bool  // RowCount is exact; else an upper bound: keys may repeat between base and WAL
	PendingRows     int64 // -1 unknown
	SmallFragments  int64 // -1 unknown
	DeletedRows     int64 // -1 unknown
	Bytes           int64 // -1 unknown
	TailEntries     int64 // WAL entries with rows past the flush cursor, all shards; -1 unknown
	StrandedEntries int64 // proven to be in no generation and not in the base; -1 unknown (not classified)
	LastMaintenance int64 // newest maintenance commit, by anybody; -1 never seen
	LastBaseWrite   int64 // newest base commit that is not maintenance; 0 none or unknown
	ObservedAt      int64 // last full observation; 0 never
	Fingerprint     Fingerprint
	Shards          []Shard
	Indexes         []string
	Tags            []string
	Branches        []string

	Failures      int64  // observations that failed in a row
	FailingSince  int64  // unix ms; 0 = not failing
	NextAttemptAt int64  // not asked before this; unix ms
	ErrorClass    string // class of the last failure, see native/README.md
	Error         string // its sentence
	MissingRounds int64  // rounds in a row in which the source did not name it
}
