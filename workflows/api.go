// Package workflows holds lancefleet's Temporal workflows. This file is the one
// place that says what may be started: names, ids, queues, inputs and results.
package workflows

import "lancefleet/fleet"

// Search attributes (type Keyword) of every workflow of ours. They have to be
// registered in the namespace before anything is started.
const (
	AttrExperiment = "LfExperiment" // "kind:name"
	AttrAction     = "LfAction"     // scan, refresh, record
	AttrOutcome    = "LfOutcome"    // done, partial, failed, cancelled; set when it ends
)

// Values of AttrAction.
const (
	ActionScan    = "scan"
	ActionRefresh = "refresh"
	ActionRecord  = "record"
)

// Values of AttrOutcome.
const (
	OutcomeDone      = "done"
	OutcomePartial   = "partial" // a page failed for good; the rest was committed
	OutcomeFailed    = "failed"
	OutcomeCancelled = "cancelled"
)

// Registered names. They are part of recorded histories: never rename one.
const (
	ScanWorkflowName    = "ScanWorkflow"
	RefreshWorkflowName = "RefreshWorkflow"
	RecordWorkflowName  = "RecordWorkflow" // appends an operator's action to the journal

	BeginRoundName   = "BeginRound"
	ObserveName      = "ObserveActivity"
	CommitRoundName  = "CommitRound"
	RecordRoundName  = "RecordRound"
	RefreshRowsName  = "RefreshRows"
	RecordActionName = "RecordAction"
	ScanScheduleBase = "lancefleet-scan"        // schedule id of the fleet `default`
	ScanQueueBase    = "lancefleet-scan"        // rounds, observations, refreshes
	MaintenanceBase  = "lancefleet-maintenance" // later: maintenance workflows and light steps
	HeavyBase        = "lancefleet-heavy"       // later: merge, compact, cleanup
	DefaultFleet     = "default"
)

// Names gives every id and queue of one fleet. The fleet `default` has plain
// names; another fleet's name is part of each, so two fleets can share a namespace.
type Names struct{ Fleet string }

func (n Names) ScanSchedule() string { return n.suffix(ScanScheduleBase) }
func (n Names) ScanQueue() string    { return n.suffix(ScanQueueBase) }

// ScanNow is the fixed id of rounds that are started directly (`scan`, `rescan`).
func (n Names) ScanNow() string { return n.suffix(ScanScheduleBase + "-now") }

// Refresh is the id of the full observation of one experiment.
func (n Names) Refresh(id fleet.ID) string {
	return n.prefix() + "refresh/" + string(id.Kind) + ":" + id.Name
}

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
	Full         bool           `json:"full"`
	Observed     fleet.Requests `json:"requests"` // spent by BeginRound itself
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
