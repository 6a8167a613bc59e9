package web

import (
	"net/http"

	"lancefleet/fleet"
)

// Summary is one experiment in a list. The first nine fields are lance-context's
// with its meaning. Times are unix milliseconds, sizes bytes. Unknown is null,
// never 0.
type Summary struct {
	Name           string `json:"name" doc:"As in _stats: bare for rollouts, kind:name else" example:"generic:eval-17"`
	URI            string `json:"uri" doc:"Where the dataset is"`
	RowCount       *int64 `json:"row_count" doc:"Rows of base and pending generations; see rows_exact"`
	FragmentCount  *int64 `json:"fragment_count" doc:"Fragments of the base table"`
	LastUpdated    *int64 `json:"last_updated" doc:"Same as last_write"`
	PendingWAL     *int64 `json:"pending_wal_generations" doc:"Flushed MemWAL generations that are not in the base table yet"`
	LastCompaction *int64 `json:"last_compaction" doc:"null = never"`
	Compactions    *int64 `json:"total_compactions"`
	ScannedAt      *int64 `json:"scanned_at" doc:"When a round or a refresh last confirmed this row"`

	ID              string     `json:"id" doc:"kind:name: what URLs and commands take" example:"rollout:exp-1"`
	Kind            fleet.Kind `json:"kind" enum:"rollout,generic,datagen,table"`
	State           State      `json:"state" enum:"hot,retiring,retired"`
	LastWrite       *int64     `json:"last_write" doc:"When rows last arrived by any path; maintenance never moves it"`
	LastMaintenance *int64     `json:"last_maintenance" doc:"Newest maintenance commit seen, by anybody"`
	Action          string     `json:"action" enum:"none,merge,compact,retire" doc:"What maintenance would do next"`
	Reason          string     `json:"reason" doc:"Why that, or why nothing, in words"`
	NotBefore       *int64     `json:"not_before" doc:"The action waits until then; null = no waiting"`
	Evidence        *Evidence  `json:"evidence" doc:"What a retirement saw; null while hot"`
	RowsExact       *bool      `json:"rows_exact" doc:"false: row_count is an upper bound, keys may repeat between base and pending generations"`
	PendingRows     *int64     `json:"pending_rows" doc:"Rows in pending generations"`
	SmallFragments  *int64     `json:"small_fragments"`
	DeletedRows     *int64     `json:"deleted_rows" doc:"Rows hidden by deletion files"`
	TailEntries     *int64     `json:"tail_entries" doc:"WAL entries with rows that no generation holds yet"`
	Stranded        *int64     `json:"stranded_entries" doc:"WAL entries proven to be in no generation and not in the base"`
	Shards          *int64     `json:"shards" doc:"MemWAL shards"`
	Bytes           *int64     `json:"bytes"`
	Version         *int64     `json:"version" doc:"Of the base table"`
	ObservedAt      *int64     `json:"observed_at" doc:"Last full observation"`
	Staleness       *int64     `json:"staleness" doc:"Seconds since scanned_at when this was answered"`
	Failures        int64      `json:"failures" doc:"Observations that failed in a row"`
	FailingSince    *int64     `json:"failing_since"`
	NextAttemptAt   *int64     `json:"next_attempt_at" doc:"When a failing experiment is asked again at the latest, by the round that follows; null = by the next one"`
	ErrorClass      string     `json:"error_class,omitempty"`
	Error           string     `json:"error,omitempty" doc:"Of the last failed observation"`
	MissingRounds   int64      `json:"missing_rounds" doc:"Rounds in a row in which no source named it"`
	Stored          bool       `json:"stored" doc:"false: only a source names it; what is shown was seen for this answer, if anything"`
}

// State is where an experiment is in its life.
type State = fleet.State

// States of an experiment. One that no round has reached yet is hot.
const (
	Hot      = fleet.Hot
	Retiring = fleet.Retiring
	Retired  = fleet.Retired
)

// Evidence is what a retirement saw with its own eyes before it dropped the row,
// and how it came about.
type Evidence struct {
	RetiredAt  int64  `json:"retired_at"`
	VerifiedAt int64  `json:"verified_at" doc:"When everything was reopened and counted"`
	CheckedAt  int64  `json:"checked_at" doc:"When it was last found to hold, or renewed"`
	Version    uint64 `json:"version" doc:"Of the base table"`
	Rows       int64  `json:"rows"`
	Fragments  int64  `json:"fragments"`
	Shards     int    `json:"shards"`
	By         string `json:"by,omitempty"`
	Why        string `json:"why,omitempty"`
	WorkflowID string `json:"workflow_id,omitempty"`
	RunID      string `json:"run_id,omitempty"`
}

// Detail is everything known about one experiment.
type Detail struct {
	Summary
	Source      fleet.Source       `json:"source" doc:"Which listing named it"`
	CreatedAt   *int64             `json:"created_at" doc:"As its registry says"`
	Health      string             `json:"health" doc:"One sentence"`
	Fresh       bool               `json:"fresh" doc:"Observed for this answer and not stored"`
	WALShards   []Shard            `json:"wal_shards" doc:"null = unknown"`
	Indexes     []string           `json:"indexes"`
	Tags        []string           `json:"tags"`
	Branches    []string           `json:"branches"`
	Fingerprint *fleet.Fingerprint `json:"fingerprint" doc:"What the next probe compares"`
	AsOf        *int64             `json:"as_of" doc:"When what is shown was true"`
	Stale       bool               `json:"stale"`
	Policy      Policy             `json:"policy" doc:"In force for it"`
	Running     *Running           `json:"running" doc:"Maintenance that runs; null = none"`

	AwaitsDecision bool `json:"awaits_decision" doc:"Merges stand refused until an operator decides: accept shows what is there"`
}

// Shard is one MemWAL shard.
type Shard struct {
	ID                string `json:"id"`
	Status            string `json:"status" doc:"active, sealed, or at rest: of a retired one, as it was verified"`
	Epoch             uint64 `json:"epoch"`
	Manifest          uint64 `json:"manifest"`
	CurrentGeneration uint64 `json:"current_generation" doc:"0 = not known: the evidence of a retired one does not keep it, nor the flush cursor"`
	CompactedMark     uint64 `json:"compacted_mark"`
	Pending           int64  `json:"pending"`
	PendingRows       *int64 `json:"pending_rows"`
	PendingBytes      *int64 `json:"pending_bytes"`
	Tombstones        bool   `json:"tombstones"`
	FlushCursor       uint64 `json:"flush_cursor"`
	WALNext           uint64 `json:"wal_next"`
	TailEntries       *int64 `json:"tail_entries"`
	TailRows          *int64 `json:"tail_rows"`
	NewestEntry       *int64 `json:"newest_entry_time"`
	NewestGeneration  *int64 `json:"newest_generation_time"`
}

// ExperimentList is one page of experiments; total and totals are of all that match.
type ExperimentList struct {
	Experiments []Summary `json:"experiments"`
	Total       int       `json:"total" doc:"Of all that match, not of this page"`
	Stale       bool      `json:"stale" doc:"The data is older than it should be; stale_why says why"`
	StaleWhy    string    `json:"stale_why,omitempty"`
	AsOf        *int64    `json:"as_of" doc:"When what is shown was true"`
	Partial     bool      `json:"partial" doc:"A search could not look everywhere; partial_why says where not"`
	PartialWhy  []string  `json:"partial_why,omitempty"`
	NamesAsOf   *int64    `json:"names_as_of,omitempty" doc:"Of a search: when the sources were read for names"`
	Version     uint64    `json:"version" doc:"Of _stats"`
	Limit       int       `json:"limit"`
	Offset      int       `json:"offset"`
	Sort        string    `json:"sort"`
	Order       string    `json:"order"`
	Totals      Totals    `json:"totals" doc:"Sums over all that match"`
}

// Totals sums what is known; experiments whose number is unknown count in Unknown.
type Totals struct {
	Experiments int64 `json:"experiments"`
	Rows        int64 `json:"rows"`
	RowsExact   bool  `json:"rows_exact"`
	Fragments   int64 `json:"fragments"`
	Pending     int64 `json:"pending_wal_generations"`
	Backlogged  int64 `json:"backlogged" doc:"Experiments with pending generations"`
	Stranded    int64 `json:"stranded_entries"`
	Bytes       int64 `json:"bytes"`
	Failing     int64 `json:"failing"`
	Unknown     int64 `json:"unknown" doc:"Experiments never observed: not in the sums"`
}

// Round is one finished round.
type Round struct {
	fleet.RoundRecord
	PricePerDay *float64 `json:"price_per_day" doc:"US dollars, if every round of a day made these requests; null on local disk"`

	link string // to its run in Temporal's UI; pages only
}

// RoundList is newest first.
type RoundList struct {
	Rounds []Round `json:"rounds"`
	Limit  int     `json:"limit"`
	Offset int     `json:"offset"`
	More   bool    `json:"more" doc:"Older ones follow"`
}

// RunningRound answers a long poll that ended before the round did.
type RunningRound struct {
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"`
	Running    bool   `json:"running"`
}

// Schedule is the state of the schedule that starts rounds.
type Schedule struct {
	Exists         bool   `json:"exists" doc:"false: no worker has created it yet"`
	Paused         bool   `json:"paused"`
	Reason         string `json:"reason,omitempty"`
	By             string `json:"by,omitempty"`
	Since          *int64 `json:"since"`
	NextAt         *int64 `json:"next_at"`
	LastAt         *int64 `json:"last_at"`
	IntervalSecs   int64  `json:"interval_secs"`
	SkippedOverlap int64  `json:"skipped_overlap" doc:"Starts left out because a round was still running"`
	MissedCatchup  int64  `json:"missed_catchup" doc:"Starts missed while Temporal was away"`
	Warning        string `json:"warning,omitempty" doc:"What was asked for took effect, and this is what it made of the schedule, but Temporal did not tell it: why"`
}

// RescanRequest asks for a round.
type RescanRequest struct {
	Full bool   `json:"full,omitempty" doc:"Observe everything, skip nothing, forget back-offs"`
	By   string `json:"by,omitempty" maxLength:"100" doc:"Who asks"`
	// Next is for those who need what is true after the call.
	Next bool `json:"next,omitempty" doc:"A round that starts after this call: one that runs already is waited for first"`
}

// Started is the round that answers a request.
type Started struct {
	WorkflowID     string `json:"workflow_id"`
	RunID          string `json:"run_id"`
	AlreadyRunning bool   `json:"already_running" doc:"It had been started before"`
	Location       string `json:"location" doc:"Path to poll for its result"`
}

// PauseRequest stops rounds.
type PauseRequest struct {
	Reason string `json:"reason" maxLength:"500" doc:"Why; shown on every page while paused"`
	By     string `json:"by,omitempty" maxLength:"100" doc:"Who"`
}

// ResumeRequest lets rounds go on.
type ResumeRequest struct {
	Reason string `json:"reason,omitempty" maxLength:"500" doc:"Why; kept in the journal"`
	By     string `json:"by,omitempty" maxLength:"100" doc:"Who"`
}

// Rescanned is the result of the full observation of one experiment.
type Rescanned struct {
	ID               string  `json:"id" doc:"kind:name"`
	Experiment       *Detail `json:"experiment" doc:"As stored now; null = see warning"`
	CommittedVersion *uint64 `json:"committed_version" doc:"Of _stats; null = it had nothing new to store"`
	Warning          string  `json:"warning,omitempty" doc:"It was observed, but what it is now could not be read: why"`
}

// Status is what one needs to know about this server and its fleet.
type Status struct {
	Fleet           string    `json:"fleet"`
	DataDir         string    `json:"data_dir"`
	Build           string    `json:"build"`
	Now             int64     `json:"now"`
	Loaded          bool      `json:"loaded" doc:"The fleet's table has been read"`
	StatsVersion    *uint64   `json:"stats_version"`
	CommittedAt     *int64    `json:"committed_at"`
	AsOf            *int64    `json:"as_of"`
	Stale           bool      `json:"stale"`
	StaleWhy        string    `json:"stale_why,omitempty"`
	StorageProblem  string    `json:"storage_problem,omitempty"`
	TemporalProblem string    `json:"temporal_problem,omitempty"`
	Schedule        *Schedule `json:"schedule" doc:"null = Temporal has not answered yet"`
	LastRound       *Round    `json:"last_round"`
	Totals          *Totals   `json:"totals"`
}

// Readiness says whether this process can answer and what is missing.
type Readiness struct {
	Ready    bool     `json:"ready" doc:"The fleet's table is in memory"`
	Missing  []string `json:"missing" doc:"What does not work; Temporal away leaves the browser working"`
	Snapshot bool     `json:"snapshot"`
	Temporal bool     `json:"temporal"`
}

// Health says that this process serves.
type Health struct {
	Status string `json:"status" enum:"ok"`
}

// ErrorBody is the body of every error.
type ErrorBody struct { //nolint:errname // it is a body first, and part of the API by this name
	Message    string    `json:"error" doc:"What went wrong, in words"`
	Candidates []string  `json:"candidates,omitempty" doc:"With 409: what the name could mean"`
	Mistakes   []Mistake `json:"mistakes,omitempty" doc:"With 422 of a list: each word of the query that was not understood"`
	status     int
	header     http.Header
}

// Error says what went wrong.
func (e *ErrorBody) Error() string { return e.Message }

// GetStatus is the HTTP status of the answer.
func (e *ErrorBody) GetStatus() int { return e.status }
