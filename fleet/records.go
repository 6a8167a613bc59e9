package fleet

import "strings"

// RoundRecord is the result of one round and one row of `_rounds`.
type RoundRecord struct {
	RoundID          string   `json:"round_id"` // run id of its ScanWorkflow
	Number           int64    `json:"number"`   // climbs by one per round; two that begin at one moment may share one
	Observed         int64    `json:"observed"` // observed in full
	Skipped          int64    `json:"skipped"`  // fingerprint unchanged
	Failed           int64    `json:"failed"`   // asked and got no answer
	BackingOff       int64    `json:"backing_off"`
	Hot              int64    `json:"hot"`               // rows after the round
	CommittedVersion *uint64  `json:"committed_version"` // of `_stats`; null = nothing to commit
	StorageRequests  Requests `json:"storage_requests"`
	StartedAt        int64    `json:"started_at"` // unix ms
	FinishedAt       int64    `json:"finished_at"`
	DurationSeconds  float64  `json:"duration_seconds"`
	By               string   `json:"by,omitempty"` // who asked for it; "" = the schedule
	WorkflowID       string   `json:"workflow_id"`
}

// Kinds of an Action: what operators do, and what maintenance does.
const (
	ActPause    = "pause"
	ActResume   = "resume"
	ActScan     = "scan"
	ActRescan   = "rescan"
	ActMergeWAL = "merge_wal"
	ActCompact  = "compact"
	ActCleanup  = "cleanup"
	ActOptimize = "optimize" // merge_wal, compact and cleanup as one
	ActRetire   = "retire"
	ActReturn   = "return" // hot again by itself
	ActRenew    = "renew"  // evidence, after foreign maintenance
	ActWake     = "wake"
	ActSeal     = "seal"
	ActAccept   = "accept" // an operator decided about what merges refuse
	ActSweep    = "sweep"
	ActTables   = "tables"        // upkeep of our own tables
	ActForeign  = "foreign_merge" // somebody else was seen to merge: live shards are left to them
)

// Outcomes of an Action.
const (
	OutcomeDone    = "done"
	OutcomeNoOp    = "noop"    // there was nothing to do
	OutcomeRefused = "refused" // something stood in the way; nothing was touched
	OutcomeFailed  = "failed"
)

// ClassHeld is the error class of a refusal before anything was tried: paused, say,
// or too young. It is no failure to back off from.
const ClassHeld = "held"

// Action is one row of `_journal`: an operator's action, or one finished
// piece of maintenance.
type Action struct {
	ID         string `json:"id"`               // uuid: makes a retried append recognisable
	At         int64  `json:"at"`               // unix ms
	Kind       string `json:"kind"`             // ActPause, ...
	Target     string `json:"target,omitempty"` // "kind:name"; "" = the fleet
	Outcome    string `json:"outcome"`          // OutcomeDone, ...
	ErrorClass string `json:"error_class,omitempty"`
	Error      string `json:"error,omitempty"`
	Before     string `json:"before,omitempty"` // JSON; of maintenance: Facts
	After      string `json:"after,omitempty"`  // JSON
	DurationMS int64  `json:"duration_ms"`
	By         string `json:"by"`
	Why        string `json:"why,omitempty"`
	WorkflowID string `json:"workflow_id,omitempty"`
	RunID      string `json:"run_id,omitempty"`
}

// Words are why it was done, and what went wrong, each said once: a run that fails or
// is refused has the same sentence in both.
func (a Action) Words() string {
	switch {
	case a.Error == "" || strings.Contains(a.Why, a.Error):
		return a.Why
	case a.Why == "" || strings.Contains(a.Error, a.Why):
		return a.Error
	}
	return a.Why + ": " + a.Error
}
