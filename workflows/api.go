// Package workflows holds lancefleet's Temporal workflows. What may be started is said
// in two places: here for rounds, with all names, ids and queues, and in
// maintenance_api.go for work on one experiment.
package workflows

import "lancefleet/fleet"

// Search attributes (type Keyword) of every workflow of ours. They have to be
// registered in the namespace before anything is started.
const (
	AttrExperiment = "LfExperiment" // "kind:name"
	AttrAction     = "LfAction"     // scan, retire, optimize, ...
	AttrOutcome    = "LfOutcome"    // done, noop, refused, ...; set when it ends, and while it waits for a grace
)

// Values of AttrAction. Those of maintenance are kinds of journal entries too.
const (
	ActionScan     = "scan"
	ActionRefresh  = "refresh"
	ActionRecord   = "record"
	ActionOptimize = "optimize" // merge, compact, clean up
	ActionRetire   = "retire"   // the same, and then verify and drop the row
	ActionSeal     = "seal"     // one shard's stranded WAL entries
	ActionAccept   = "accept"   // an operator decided about what merges refuse
	ActionWake     = "wake"     // look at a retired experiment now
	ActionTables   = "tables"   // upkeep of our own tables
	ActionHint     = "hint"     // experiments that events named
)

// Values of AttrOutcome.
const (
	OutcomeDone      = "done"
	OutcomeNoop      = "noop"    // there was nothing to do: normal when it was started twice
	OutcomeRefused   = "refused" // something stands in the way; it stays as it was
	OutcomePartial   = "partial" // a page failed for good; the rest was committed
	OutcomeFailed    = "failed"
	OutcomeCancelled = "cancelled"
	OutcomeWaiting   = "waiting" // of a run: nothing is to be done before a grace is over
)

// Registered names. They are part of recorded histories: never rename one.
const (
	ScanWorkflowName    = "ScanWorkflow"
	RefreshWorkflowName = "RefreshWorkflow"
	RecordWorkflowName  = "RecordWorkflow" // appends an operator's action to the journal
	HintWorkflowName    = "HintWorkflow"   // takes in what events named

	OptimizeWorkflowName = "OptimizeWorkflow"
	RetireWorkflowName   = "RetireWorkflow"
	SealWorkflowName     = "SealWorkflow"
	AcceptWorkflowName   = "AcceptWorkflow"
	WakeWorkflowName     = "WakeWorkflow"
	TablesWorkflowName   = "TablesWorkflow"

	BeginRoundName       = "BeginRound"
	ObserveName          = "ObserveActivity"
	CommitRoundName      = "CommitRound"
	RecordRoundName      = "RecordRound"
	StartMaintenanceName = "StartMaintenance"
	RefreshRowsName      = "RefreshRows"
	RecordActionName     = "RecordAction"
	TakeHintsName        = "TakeHints"

	PrepareName           = "PrepareMaintenance"
	MergeWALName          = "MergeWAL"
	CompactName           = "Compact"
	CleanupVersionsName   = "CleanupVersions"
	SweepGenerationsName  = "SweepGenerations"
	SealShardName         = "SealShard"
	AcceptShardsName      = "AcceptShards"
	VerifyName            = "VerifyZeroPending"
	DropRowName           = "DropRow"
	WakeName              = "WakeExperiment"
	RefreshRowName        = "RefreshRow"
	RecordMaintenanceName = "RecordMaintenance"
	UpkeepName            = "UpkeepTables"
	RecordUpkeepName      = "RecordUpkeep"

	DefaultFleet = "default"
)

// Schedule and queues of the fleet `default`. Each heavy queue has slots of its own,
// so that a thousand merges leave compaction what it had, and none of them keeps a
// round or a light step waiting. See docs/decisions/0007-maintenance-on-temporal.md.
const (
	ScanScheduleBase = "lancefleet-scan"
	ScanQueueBase    = "lancefleet-scan"          // rounds, observations, refreshes
	MaintenanceBase  = "lancefleet-maintenance"   // maintenance workflows and their light steps
	MergeBase        = "lancefleet-heavy-merge"   // merging and sealing of WAL
	CompactBase      = "lancefleet-heavy-compact" // compaction, cleanup of versions
	CheckBase        = "lancefleet-heavy-check"   // verifying, sweeping
	TablesBase       = "lancefleet-tables"        // upkeep of our own tables
)

// Names gives every id and queue of one fleet. The fleet `default` has plain
// names; another fleet's name is part of each, so two fleets can share a namespace.
type Names struct{ Fleet string }

// ScanSchedule is the id of the schedule of rounds.
func (n Names) ScanSchedule() string { return n.suffix(ScanScheduleBase) }

// ScanQueue has rounds, observations and refreshes.
func (n Names) ScanQueue() string { return n.suffix(ScanQueueBase) }

// ScanNow is the fixed id of rounds that are started directly (`scan`, `rescan`).
func (n Names) ScanNow() string { return n.suffix(ScanScheduleBase + "-now") }

// Refresh is the id of the full observation of one experiment.
func (n Names) Refresh(id fleet.ID) string {
	return n.prefix() + "refresh/" + string(id.Kind) + ":" + id.Name
}

// MaintenanceQueue has the maintenance workflows and their light steps.
func (n Names) MaintenanceQueue() string { return n.suffix(MaintenanceBase) }

// MergeQueue has merging and sealing of WAL.
func (n Names) MergeQueue() string { return n.suffix(MergeBase) }

// CompactQueue has compaction and cleanup of versions.
func (n Names) CompactQueue() string { return n.suffix(CompactBase) }

// CheckQueue has verifying and sweeping.
func (n Names) CheckQueue() string { return n.suffix(CheckBase) }

// TablesQueue has the upkeep of our own tables, which may hang without hurting
// anything else.
func (n Names) TablesQueue() string { return n.suffix(TablesBase) }

// Maintenance is the id of every workflow that rewrites an experiment, so that one
// of them runs at a time. That is for economy: their steps are safe beside each other.
func (n Names) Maintenance(id fleet.ID) string { return n.prefix() + "experiment/" + id.String() }

// Wake is the id of the workflow that looks at a retired experiment.
func (n Names) Wake(id fleet.ID) string { return n.prefix() + "wake/" + id.String() }

// Tables is the fixed id of TablesWorkflow.
func (n Names) Tables() string { return n.suffix("lancefleet-tables") }

// Hints is the fixed id of HintWorkflow: one takes in what many events named.
func (n Names) Hints() string { return n.suffix("lancefleet-hints") }

// Record is the id of a workflow that writes one journal entry.
func (n Names) Record(entryID string) string { return n.prefix() + "record/" + entryID }

func (n Names) suffix(base string) string {
	if n.Fleet == "" || n.Fleet == DefaultFleet {
		return base
	}
	return base + "-" + n.Fleet
}

func (n Names) prefix() string {
	if n.Fleet == "" || n.Fleet == DefaultFleet {
		return ""
	}
	return n.Fleet + "/"
}

// ScanArgs is the input of ScanWorkflow. It carries the configuration, so that a
// replay never reads anything outside its history.
type ScanArgs struct {
	Fleet          string `json:"fleet"`
	FleetID        string `json:"fleet_id"`
	DataDir        string `json:"data_dir"`
	ConfigHash     string `json:"config_hash"`   // of the schedule's wanted settings; see control
	IntervalSecs   int64  `json:"interval_secs"` // between rounds
	PageSize       int    `json:"page_size"`     // experiments per ObserveActivity
	MaxPagesAtOnce int    `json:"max_pages_at_once"`
	Full           bool   `json:"full"`         // observe everything, skip nothing, forget back-offs
	By             string `json:"by,omitempty"` // who asked for it; "" = the schedule
}

// Round is what one page needs to know about its round. Only counts, versions
// and one hash travel through Temporal, never lists of names.
type Round struct {
	ID           string         `json:"round_id"`      // workflow run id
	Number       int64          `json:"number"`        // climbs by one per round: staggers deep probes
	StartedAt    int64          `json:"started_at"`    // unix ms
	Listing      string         `json:"listing"`       // content hash of the staged list of experiments
	Experiments  int            `json:"experiments"`   // in it
	StatsVersion uint64         `json:"stats_version"` // pinned; 0 = no table yet
	LastRoundAt  int64          `json:"last_round_at"` // start of the newest finished round, unix ms; 0 none
	IntervalSecs int64          `json:"interval_secs"` // between rounds; 0 = no schedule
	Full         bool           `json:"full"`
	Hints        string         `json:"hints,omitempty"` // key of the staged experiments that events named; "" = none
	First        []int          `json:"first,omitempty"` // pages that have some of them
	Observed     fleet.Requests `json:"requests"`        // spent by BeginRound itself
}

// Page is the input of ObserveActivity.
type Page struct {
	Round  Round `json:"round"`
	Number int   `json:"number"`
	Offset int   `json:"offset"`
	Count  int   `json:"count"`
}

// PageResult is what ObserveActivity answers: counts and the key of the staged rows.
type PageResult struct {
	Page       int            `json:"page"`
	Skipped    int            `json:"skipped"`          // fingerprint unchanged: carried
	Observed   int            `json:"observed"`         // observed in full
	Failed     int            `json:"failed"`           // asked and got no answer
	BackingOff int            `json:"backing_off"`      // failing, not asked this time
	Retired    int            `json:"retired"`          // by the ledger; asked only in their slice of an hour
	Checked    int            `json:"retired_checked"`  // of those, asked this time
	Written    int            `json:"retired_written"`  // of those, found written: hot again
	Staged     string         `json:"staged,omitempty"` // object key of changed rows; "" = none
	Requests   fleet.Requests `json:"storage_requests"`
}

// CommitInput is the input of CommitRound.
type CommitInput struct {
	Round       Round        `json:"round"`
	Pages       []PageResult `json:"pages"`
	FailedPages int          `json:"failed_pages"` // pages whose activity failed for good: their rows are carried
	PageSize    int          `json:"page_size"`    // tells which experiments stood in a page that is not in Pages
}

// CommitResult is what CommitRound answers.
type CommitResult struct {
	Version       *uint64        `json:"committed_version"` // of `_stats`; null = nothing to commit
	Hot           int64          `json:"hot"`               // rows after the round
	Added         int            `json:"added"`
	Dropped       int            `json:"dropped"`
	MissingOnce   int            `json:"missing_once"`   // not named by their source this time: kept for one more round
	FreshnessOnly bool           `json:"freshness_only"` // nothing but scan times moved
	Returned      int            `json:"returned"`       // left the ledger: written since they were retired
	Requests      fleet.Requests `json:"storage_requests"`
}

// RoundResult is the result of ScanWorkflow.
type RoundResult = fleet.RoundRecord

// RefreshArgs is the input of RefreshWorkflow: observe these fully, now, and
// store the rows of those that are hot.
type RefreshArgs struct {
	Fleet string     `json:"fleet"`
	IDs   []fleet.ID `json:"ids"`
	By    string     `json:"by,omitempty"`
}

// RefreshResult says what became of each, in the order asked.
type RefreshResult struct {
	Version *uint64           `json:"committed_version"`
	Failed  map[string]string `json:"failed,omitempty"` // "kind:name" -> sentence
}
