package web

import (
	"lancefleet/control"
	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/workflows"
)

// MaintenanceRequest asks for something to be done with one experiment.
type MaintenanceRequest struct {
	By  string `json:"by,omitempty" maxLength:"100" doc:"Who asks"`
	Why string `json:"why,omitempty" maxLength:"500" doc:"Kept in the journal"`
}

// RetireRequest asks for a retirement.
type RetireRequest struct {
	By    string `json:"by,omitempty" maxLength:"100" doc:"Who asks"`
	Why   string `json:"why,omitempty" maxLength:"500" doc:"Kept in the journal"`
	Force bool   `json:"force,omitempty" doc:"Also when it was written lately. Only the age is overlooked"`
}

// SealRequest asks for the replay of one shard's stranded WAL entries.
type SealRequest struct {
	Shard        string `json:"shard" maxLength:"100" doc:"Its id"`
	By           string `json:"by,omitempty" maxLength:"100" doc:"Who asks"`
	Why          string `json:"why,omitempty" maxLength:"500" doc:"Kept in the journal"`
	AllowUnknown bool   `json:"allow_unknown,omitempty" doc:"Replay entries too of which nobody can tell whether the table has them. Deleted rows and old values may come back"`
}

// AcceptRequest tells what an operator decided about an experiment that was restored,
// overwritten, or lost a shard: merges refuse it until somebody decides.
type AcceptRequest struct {
	By       string `json:"by,omitempty" maxLength:"100" doc:"Who decides"`
	Why      string `json:"why,omitempty" maxLength:"500" doc:"Kept in the journal. Needed, but for a dry run"`
	LeaveOut bool   `json:"leave_out,omitempty" doc:"Take what is listed out of the log without merging it. Rows that are nowhere else are lost"`
	Seen     string `json:"seen,omitempty" maxLength:"100" doc:"accept.seen of a dry run: the decision is about that. Needed, but for a dry run"`
}

// Running is maintenance that runs.
type Running struct {
	ID         string `json:"id" doc:"kind:name"`
	Action     string `json:"action" doc:"retire, optimize, seal, accept, wake"`
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"`
	StartedAt  int64  `json:"started_at"`
	Waiting    bool   `json:"waiting,omitempty" doc:"For a grace to pass: until then there is nothing to do"`
	Link       string `json:"link,omitempty" doc:"In Temporal's UI"`

	Progress *workflows.MaintenanceProgress `json:"progress,omitempty" doc:"How far it is; only where one run is asked for, and a worker answers"`
}

// MaintenanceRunning answers a long poll that ended before the run did.
type MaintenanceRunning struct {
	RunningRound
	Progress *workflows.MaintenanceProgress `json:"progress" doc:"null = no worker answered"`
}

func (s *Server) running(r control.Running) Running {
	return Running{
		ID: r.ID.String(), Action: r.Action, WorkflowID: r.WorkflowID, RunID: r.RunID, StartedAt: r.StartedAt, Waiting: r.Waiting,
		Link: s.workflowPath(r.WorkflowID, r.RunID),
	}
}

// MaintenanceStarted says which run does what was asked for.
type MaintenanceStarted struct {
	ID             string `json:"id" doc:"kind:name"`
	Action         string `json:"action"`
	WorkflowID     string `json:"workflow_id"`
	RunID          string `json:"run_id"`
	AlreadyRunning bool   `json:"already_running" doc:"Something ran already, perhaps of another kind: this is it"`
	Reason         string `json:"reason,omitempty" doc:"What it is done for"`
	Location       string `json:"location" doc:"Path to poll for its result"`
	Link           string `json:"link,omitempty" doc:"In Temporal's UI"`
}

// MaintenanceEnded is what became of a run.
type MaintenanceEnded struct {
	workflows.MaintenanceResult
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"`
	Link       string `json:"link,omitempty"`
}

// MaintenancePlan says what maintenance would do now. Nothing was done. Numbers
// that are not known are null.
type MaintenancePlan struct {
	ID        string `json:"id" doc:"kind:name"`
	Action    string `json:"action" enum:"retire,optimize,seal,accept,wake"`
	Start     bool   `json:"start" doc:"Asking for it would start it"`
	Reason    string `json:"reason" doc:"Why that, or why not"`
	NotBefore *int64 `json:"not_before" doc:"Waiting alone changes it then; null = it does not"`

	Generations   int64    `json:"generations" doc:"That would be merged into the base table"`
	MergedRows    *int64   `json:"merged_rows" doc:"In these, at most: repeated keys included"`
	MergedBytes   *int64   `json:"merged_bytes"`
	FragmentsIn   int64    `json:"fragments_in" doc:"That a compaction would read"`
	FragmentsOut  int64    `json:"fragments_out" doc:"And write"`
	CompactBytes  *int64   `json:"compact_bytes"`
	Versions      int64    `json:"versions" doc:"Old versions that would be removed"`
	VersionsBytes int64    `json:"versions_bytes"`
	Blocking      []string `json:"blocking" doc:"What stops a retirement, and a run does not take away, a sentence each"`
	Clears        []string `json:"clears" doc:"What stands in the way of a retirement now, and a run takes away itself: it merges and replays what it can"`

	Preview *lance.Preview  `json:"preview" doc:"Shard by shard; null = not looked at"`
	Seal    *lance.Sealed   `json:"seal,omitempty" doc:"What sealing would replay"`
	Accept  *lance.Accepted `json:"accept,omitempty" doc:"What an operator would decide about"`
}

// Verification is a close look at one experiment, without caches.
type Verification struct {
	ID    string `json:"id" doc:"kind:name"`
	URI   string `json:"uri"`
	Clean bool   `json:"clean" doc:"Nothing is pending, stranded or unknown, and nothing else stands in the way of a retirement"`
	Deep  bool   `json:"deep" doc:"Rows were compared with distinct keys"`
	fleet.Evidence
	Unflushed int64 `json:"unflushed" doc:"Of the stranded entries: their shard was touched within LIVE_WITHIN, so their writer may flush them yet"`
	State     State `json:"state"`
	// AgainstLedger is for retired ones.
	AgainstLedger string `json:"against_ledger,omitempty" doc:"Of a retired one, in words: whether it is as its evidence has it"`
}

// History is what was done with one experiment, newest first.
type History struct {
	ID      string   `json:"id" doc:"kind:name"`
	Running *Running `json:"running" doc:"null = nothing"`
	Actions []Done   `json:"actions"`
}

// Done is one entry of the journal.
type Done struct {
	fleet.Action
	Before *fleet.Facts `json:"before"`
	After  *fleet.Facts `json:"after"`
	Link   string       `json:"link,omitempty" doc:"In Temporal's UI"`
}

func (s *Server) done(a fleet.Action) Done {
	return Done{Action: a, Before: factsOf(a.Before), After: factsOf(a.After), Link: s.workflowPath(a.WorkflowID, a.RunID)}
}

// factsOf is null where an action is about nothing that has numbers.
func factsOf(text string) *fleet.Facts {
	facts := fleet.ParseFacts(text)
	if text == "" || facts.Text() == fleet.UnknownFacts().Text() {
		return nil
	}
	return &facts
}

// FleetPlan is what the next round would start, and why not for the rest. Lists are
// cut at limit, the counts are not.
type FleetPlan struct {
	Maintain    bool      `json:"maintain" doc:"false: this fleet is only observed, and nothing is started"`
	Starts      []Planned `json:"starts" doc:"Kind by kind, worst first"`
	Waiting     []Planned `json:"waiting" doc:"Due, but over budget; worst first"`
	Blocked     []Planned `json:"blocked" doc:"Wanted, but something stands in the way"`
	Running     []Running `json:"running"`
	WaitingAll  int       `json:"waiting_total"`
	BlockedAll  int       `json:"blocked_total"`
	Causes      []Cause   `json:"causes" doc:"All that are blocked, by what stops them"`
	CoolingDown int       `json:"cooling_down" doc:"Resting after failures"`
	NotDue      int       `json:"not_due" doc:"Nothing is wanted"`
	Retired     int       `json:"retired"`
	Budgets     Budgets   `json:"budgets" doc:"Starts of each kind in one round"`
	AsOf        *int64    `json:"as_of"`
}

// Planned is one experiment of a plan.
type Planned struct {
	ID        string `json:"id" doc:"kind:name"`
	Action    string `json:"action" enum:"none,merge,compact,retire" doc:"none: see wants"`
	Wants     string `json:"wants,omitempty" doc:"What would be started if nothing stood in the way"`
	Reason    string `json:"reason"`
	NotBefore *int64 `json:"not_before"`
	Score     int64  `json:"score" doc:"How bad: pending generations, small fragments, or milliseconds without a write"`
}

// Budgets are starts of each kind in one round.
type Budgets struct {
	Merge   int `json:"merge"`
	Compact int `json:"compact"`
	Retire  int `json:"retire"`
}
