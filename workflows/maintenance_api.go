package workflows

import "lancefleet/fleet"

// MaintenanceArgs is the input of every workflow about one experiment.
type MaintenanceArgs struct {
	Fleet        string   `json:"fleet"`
	FleetID      string   `json:"fleet_id"`
	ID           fleet.ID `json:"id"`
	By           string   `json:"by,omitempty"` // who asked for it; "" = a round's plan
	Why          string   `json:"why,omitempty"`
	Force        bool     `json:"force,omitempty"`         // skips only the age of a retirement
	Shard        string   `json:"shard,omitempty"`         // of SealWorkflow
	AllowUnknown bool     `json:"allow_unknown,omitempty"` // of SealWorkflow: an operator decided
	Seen         string   `json:"seen,omitempty"`          // of AcceptWorkflow: what the operator looked at
	LeaveOut     bool     `json:"leave_out,omitempty"`     // of AcceptWorkflow: what is listed is taken out, not merged
}

// MaintenanceResult is what became of it, for people, the API and the journal.
type MaintenanceResult struct {
	ID       string       `json:"id"` // "kind:name"
	Action   string       `json:"action"`
	Outcome  string       `json:"outcome"`
	Sentence string       `json:"sentence"`
	Before   fleet.Facts  `json:"before"`
	After    fleet.Facts  `json:"after"`
	Steps    []StepResult `json:"steps"`
}

// StepResult is one step of a MaintenanceResult.
type StepResult struct {
	Action     string      `json:"action"` // merge_wal, compact, cleanup, sweep, seal, verify, drop, ...: kinds of journal entries
	Outcome    string      `json:"outcome"`
	Sentence   string      `json:"sentence"`
	ErrorClass string      `json:"error_class,omitempty"`
	DurationMS int64       `json:"duration_ms"`
	Before     fleet.Facts `json:"before"`
	After      fleet.Facts `json:"after"`
}

// Values of StepResult.Action that are no workflow of their own.
const (
	StepMergeWAL = "merge_wal"
	StepCompact  = "compact"
	StepCleanup  = "cleanup"
	StepSweep    = "sweep"
	stepRefresh  = "refresh"
	StepVerify   = "verify"
	StepDrop     = "drop"
	StepReturn   = "return"
	StepRenew    = "renew"
)

// PrepareInput is the input of PrepareMaintenance.
type PrepareInput struct {
	Args   MaintenanceArgs `json:"args"`
	Action string          `json:"action"`
}

// Prepared says whether there is something to do, and the limits it is done within.
// They are the policy in force when the run began, whatever changes meanwhile.
type Prepared struct {
	Due     bool              `json:"due"`
	Refused bool              `json:"refused"` // not due because something stands in the way
	Reason  string            `json:"reason"`
	NoMerge bool              `json:"no_merge"` // nothing to merge, or not enough to be worth it
	Target  Target            `json:"target"`
	Facts   fleet.Facts       `json:"facts"`           // as observed now
	Marks   map[string]uint64 `json:"marks,omitempty"` // by shard, as the journal remembers them
	Limits  Limits            `json:"limits"`
}

// Target names what a step works on.
type Target struct {
	FleetID string   `json:"fleet_id"`
	ID      fleet.ID `json:"id"`
	URI     string   `json:"uri"`
}

// Limits bound the steps of one run. Times are in ms.
type Limits struct {
	MergeGenerations   int    `json:"merge_generations"`    // of one pass
	MergeBytes         int64  `json:"merge_bytes"`          // of one pass
	SilentFor          int64  `json:"silent_for"`           // a shard written within this is not sealed
	LeaveWrittenWithin int64  `json:"leave_written_within"` // shards written within this are their worker's business; 0 = merge them
	CompactFragments   int    `json:"compact_fragments"`    // fewer that can be merged: no-op; 0 = no compaction
	CompactTargetRows  int64  `json:"compact_target_rows"`
	CompactSources     int    `json:"compact_sources"`    // fragments of one pass
	CompactBytes       int64  `json:"compact_bytes"`      // of one pass
	CompactOptions     string `json:"compact_options"`    // canonical text: an empty plan is remembered with it
	CleanupOlderThan   int64  `json:"cleanup_older_than"` // 0 = no cleanup
	Grace              int64  `json:"grace"`              // from a drain until its folders go
	UnknownGrace       int64  `json:"unknown_grace"`      // of folders whose drain nobody can prove
}

// Reach says which shards a merge keeps away from.
func (l Limits) Reach() fleet.Reach {
	return fleet.Reach{LeaveWithin: l.LeaveWrittenWithin, SilentFor: l.SilentFor}
}

// MergeInput is the input of MergeWAL.
type MergeInput struct {
	Target Target            `json:"target"`
	Limits Limits            `json:"limits"`
	Marks  map[string]uint64 `json:"marks,omitempty"` // by shard: what the journal and earlier calls remember
}

// MergeResult is what one call of MergeWAL did, over all shards.
type MergeResult struct {
	More        bool              `json:"more"` // the attempt's time was over: call again
	Passes      int               `json:"passes"`
	Generations int64             `json:"generations"`
	Rows        int64             `json:"rows"`
	Deletes     int64             `json:"deletes"`
	Drained     int64             `json:"drained"`
	Shards      int               `json:"shards"` // of which something was merged
	Sealed      int               `json:"sealed"` // shards
	SealedRows  int64             `json:"sealed_rows"`
	Live        int               `json:"live"` // shards left to their live writer
	Left        int64             `json:"left"` // generations still pending
	Stranded    int64             `json:"stranded"`
	Unflushed   int64             `json:"unflushed"` // of the stranded ones: their writer may live
	Unknown     int64             `json:"unknown"`
	Version     uint64            `json:"version"` // of the base, after the last pass; 0 = none was made
	Marks       map[string]uint64 `json:"marks"`
	Refused     []string          `json:"refused,omitempty"` // sentences, at most refusalsTold; these shards stay as they are
	Requests    fleet.Requests    `json:"storage_requests"`
}

// CompactInput is the input of Compact.
type CompactInput struct {
	Target Target `json:"target"`
	Limits Limits `json:"limits"`
}

// CompactResult is what one call of Compact did.
type CompactResult struct {
	More            bool           `json:"more"` // the attempt's time was over: call again
	Passes          int            `json:"passes"`
	Removed         int64          `json:"removed"` // fragments
	Added           int64          `json:"added"`
	Rows            int64          `json:"rows"`
	FragmentsBefore int64          `json:"fragments_before"`
	Fragments       int64          `json:"fragments"`
	Version         uint64         `json:"version"` // afterwards; of an empty plan the version that it is about
	Requests        fleet.Requests `json:"storage_requests"`
}

// CleanupInput is the input of CleanupVersions.
type CleanupInput struct {
	Target    Target `json:"target"`
	OlderThan int64  `json:"older_than"` // ms
}

// CleanupResult is what CleanupVersions did.
type CleanupResult struct {
	Removed  int64          `json:"removed"`
	Bytes    int64          `json:"bytes"`
	Held     []string       `json:"held,omitempty"` // "tag v1"
	Requests fleet.Requests `json:"storage_requests"`
}

// SweepInput is the input of SweepGenerations.
type SweepInput struct {
	Target Target `json:"target"`
	Limits Limits `json:"limits"`
}

// SweepResult is what SweepGenerations did.
type SweepResult struct {
	Deleted  int            `json:"deleted"` // folders
	Bytes    int64          `json:"bytes"`
	Kept     int            `json:"kept"`
	NextDue  int64          `json:"next_due"` // unix ms: from then on the first of those kept may go; 0 = waiting does not help
	Requests fleet.Requests `json:"storage_requests"`
}

// SealInput is the input of SealShard.
type SealInput struct {
	Target       Target `json:"target"`
	Limits       Limits `json:"limits"`
	Shard        string `json:"shard"`
	AllowUnknown bool   `json:"allow_unknown"`
}

// SealResult is what SealShard did.
type SealResult struct {
	Refused    string `json:"refused,omitempty"` // why nothing was touched
	Entries    int    `json:"entries"`
	Rows       int64  `json:"rows"`
	Generation uint64 `json:"generation"`
}

// AcceptInput is the input of AcceptShards.
type AcceptInput struct {
	Target   Target            `json:"target"`
	Marks    map[string]uint64 `json:"marks,omitempty"` // by shard, as the journal remembers them
	Seen     string            `json:"seen"`
	LeaveOut bool              `json:"leave_out"`
}

// AcceptResult is what AcceptShards did.
type AcceptResult struct {
	Refused     string            `json:"refused,omitempty"` // why nothing was touched
	Marks       map[string]uint64 `json:"marks"`             // by shard, that hold from then on
	Generations int64             `json:"generations"`       // merged next, or left out
	Version     uint64            `json:"version"`
}

// VerifyInput is the input of VerifyZeroPending.
type VerifyInput struct {
	Target Target `json:"target"`
}

// DropInput is the input of DropRow.
type DropInput struct {
	Args     MaintenanceArgs `json:"args"`
	Target   Target          `json:"target"`
	Evidence fleet.Evidence  `json:"evidence"`
}

// DropResult is what DropRow did.
type DropResult struct {
	Refused   string `json:"refused,omitempty"` // why it stays hot
	LastWrite int64  `json:"last_write"`        // unix ms, by the ledger
}

// WakeResult is what WakeExperiment found.
type WakeResult struct {
	Outcome  string      `json:"outcome"` // done: hot again; noop; refused
	Sentence string      `json:"sentence"`
	Renewed  bool        `json:"renewed"` // only the evidence is new
	Facts    fleet.Facts `json:"facts"`
}

// RefreshRowResult is what RefreshRow saw and stored.
type RefreshRowResult struct {
	Facts fleet.Facts `json:"facts"`
}

// MaintenanceRecord is the input of RecordMaintenance.
type MaintenanceRecord struct {
	Args       MaintenanceArgs   `json:"args"`
	Result     MaintenanceResult `json:"result"`
	ErrorClass string            `json:"error_class,omitempty"` // of a failed run
	StartedAt  int64             `json:"started_at"`            // unix ms
	FinishedAt int64             `json:"finished_at"`
}

// StartMaintenanceInput is the input of StartMaintenance.
type StartMaintenanceInput struct {
	Fleet   string `json:"fleet"`
	FleetID string `json:"fleet_id"`
	Round   Round  `json:"round"`
}

// StartMaintenanceResult says what a round started.
type StartMaintenanceResult struct {
	Merges         int    `json:"merges"`
	Compactions    int    `json:"compactions"`
	Retirements    int    `json:"retirements"`
	AlreadyRunning int    `json:"already_running"`
	Waiting        int    `json:"waiting"` // over budget: a later round's
	CoolingDown    int    `json:"cooling_down"`
	Blocked        int    `json:"blocked"`
	Tables         bool   `json:"tables"`            // upkeep of our own tables was started
	Nothing        string `json:"nothing,omitempty"` // why nothing was to be started
}

// TablesArgs is the input of TablesWorkflow.
type TablesArgs struct {
	Fleet   string `json:"fleet"`
	FleetID string `json:"fleet_id"`
	By      string `json:"by,omitempty"`
}

// Upkeep is what UpkeepTables did.
type Upkeep struct {
	Tables       []TableUpkeep `json:"tables"`
	StatsVersion uint64        `json:"stats_version"` // newest of `_stats` when it was cleaned; 0 = it was not
}

// TableUpkeep is one table's part of an Upkeep.
type TableUpkeep struct {
	Table      string `json:"table"`
	Before     int64  `json:"before"` // versions on disk; -1 unknown
	After      int64  `json:"after"`
	Removed    int64  `json:"removed"`
	Bytes      int64  `json:"bytes"`
	ErrorClass string `json:"error_class,omitempty"`
	Error      string `json:"error,omitempty"`
}

// UpkeepRecord is the input of RecordUpkeep.
type UpkeepRecord struct {
	Args       TablesArgs `json:"args"`
	Upkeep     Upkeep     `json:"upkeep"`
	ErrorClass string     `json:"error_class,omitempty"` // of a pass that ended without a result
	Error      string     `json:"error,omitempty"`
	StartedAt  int64      `json:"started_at"` // unix ms
	FinishedAt int64      `json:"finished_at"`
}

// TablesResult is the result of TablesWorkflow.
type TablesResult struct {
	Outcome     string        `json:"outcome"`
	Sentence    string        `json:"sentence"`
	ErrorClass  string        `json:"error_class,omitempty"`
	Removed     int64         `json:"removed"`     // versions
	Failures    int64         `json:"failures"`    // passes that failed in a row, this one included
	Unreclaimed int64         `json:"unreclaimed"` // versions of `_stats` since a pass last succeeded; without one all there are
	Tables      []TableUpkeep `json:"tables"`
}
