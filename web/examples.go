package web

import (
	"reflect"

	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/workflows"
)

// Times and numbers of the examples in the API's description.
const (
	exampleNow     = int64(1796031000000)
	exampleWritten = exampleNow - 300_000
	exampleRun     = "6f0c6c1e-9b53-4e7a-8f21-0b1e77a0c9d4"
	exampleFlow    = "experiment/rollout:exp-1"
	exampleRound   = "lancefleet-scan-now"
)

// examples are one of each kind of answer and request, by the name of its type.
func examples() map[string]any {
	all := map[string]any{}
	for _, example := range []any{
		exampleList(), exampleDetail(), exampleSchedule(), exampleStatus(), exampleRounds(), exampleRounds().Rounds[0], examplePlan(), exampleFleetPlan(),
		Rescanned{ID: "rollout:exp-1", Experiment: exampleOf(exampleDetail()), CommittedVersion: exampleOf(uint64(813))},
		Started{WorkflowID: exampleRound, RunID: exampleRun, Location: apiPrefix + "/rounds/" + exampleRound + "/" + exampleRun},
		RunningRound{WorkflowID: exampleRound, RunID: exampleRun, Running: true},
		MaintenanceStarted{ID: "rollout:exp-1", Action: "optimize", WorkflowID: exampleFlow, RunID: exampleRun, Reason: "9 pending generations, at least 8",
			Location: apiPrefix + "/maintenance/experiment%2Frollout:exp-1/" + exampleRun},
		MaintenanceEnded{WorkflowID: exampleFlow, RunID: exampleRun, MaintenanceResult: exampleResult()},
		History{ID: "rollout:exp-1", Actions: []Done{exampleDone()}},
		Verification{ID: "rollout:exp-1", URI: "/data/exp-1.rollout.lance", Clean: true, State: Hot,
			Evidence: fleet.Evidence{Fingerprint: exampleFingerprint(), Rows: 12_000, Fragments: 4, Bytes: 48 << 20, Shards: []fleet.ShardEvidence{}, Blocking: []string{}, DistinctKeys: -1, VerifiedAt: exampleNow}},
		TaskList{Tasks: []Task{exampleTask()}, Total: 1, Limit: 50}, exampleTask(),
		CompactStatus{State: taskDone, FragmentsRemoved: exampleOf(int64(20)), FragmentsAdded: exampleOf(int64(2))},
		EventsTaken{Events: 3, Taken: 2, Experiments: 1, Ignored: 1},
		Series{ID: "rollout:exp-1", Days: 7, From: exampleNow - 7*86_400_000, To: exampleNow, Points: []Point{{At: exampleWritten, Rows: exampleOf(int64(12_000))}}, Marks: []Mark{}},
		FleetSeries{Days: 7, From: exampleNow - 7*86_400_000, To: exampleNow, Rounds: []RoundPoint{}, Backlog: []BacklogPoint{}},
		Operations{AsOf: exampleOf(exampleNow - 60_000), Missing: []string{}, Schedule: exampleOf(exampleSchedule()), RunningRounds: []RoundRunning{}, Running: []Running{}, Plan: exampleOf(exampleFleetPlan()), Rounds: exampleRounds().Rounds, Failures: []Failure{}},
		exampleBatch(), BatchStarted{BatchPlan: exampleBatch(), ID: "b0123456789ab", Started: 2, Failed: []BatchCause{}, Location: apiPrefix + "/batches/b0123456789ab"},
		Batch{ID: "b0123456789ab", Found: true, By: "ada", Running: []Running{}, Ended: []Done{exampleDone()}, Outcomes: map[string]int{fleet.OutcomeDone: 1}},
		BatchRequest{Action: "optimize", IDs: []string{"rollout:exp-1", "rollout:exp-2"}, By: "ada"},
		Readiness{Ready: true, Snapshot: true, Temporal: true, Missing: []string{}}, Health{Status: "ok"},
		RescanRequest{By: "ada", Next: true}, PauseRequest{Reason: "moving the bucket", By: "ada"}, ResumeRequest{By: "ada"},
		MaintenanceRequest{By: "ada", Why: "slow to read"}, RetireRequest{By: "ada", Why: "finished", Force: true},
		SealRequest{Shard: "02e81b29-f150-54b9-9a08-ce75944f6889", By: "ada"},
		AcceptRequest{By: "ada", Why: "restored on purpose after a bad import", Seen: "9f86d081884c7d65"}, TaskRequest{Kind: "compact", Target: "rollout:exp-1", By: "ada"},
	} {
		all[reflect.TypeOf(example).Name()] = example
	}
	return all
}

func exampleOf[T any](v T) *T { return &v }

func exampleSummary() Summary {
	row := fleet.UnknownRow(fleet.Experiment{ID: fleet.ID{Kind: fleet.Rollout, Name: "exp-1"}, URI: "/data/exp-1.rollout.lance"})
	row.Known, row.RowsExact, row.RowCount, row.FragmentCount, row.Version, row.Bytes = true, true, 12_000, 4, 37, 48<<20
	row.PendingWAL, row.PendingRows, row.SmallFragments, row.DeletedRows, row.TailEntries, row.StrandedEntries = 0, 0, 2, 0, 0, 0
	row.LastWrite, row.ScannedAt, row.ObservedAt = exampleWritten, exampleNow-60_000, exampleNow-60_000
	row.Fingerprint = exampleFingerprint()
	return summarise(shown{row: &row, state: Hot, decision: fleet.Decision{Action: fleet.DoNothing, Reason: "nothing pending; 2 small fragments, below 16"}}, exampleNow)
}

func exampleFingerprint() fleet.Fingerprint {
	return fleet.Fingerprint{Version: 37, ETag: "9f3a-1c", Naming: "v2"}
}

func exampleDetail() Detail {
	return Detail{
		Summary: exampleSummary(), Source: fleet.FromRegistry, Health: "Healthy; nothing pending.", Indexes: []string{}, Tags: []string{"v1"}, Branches: []string{},
		Fingerprint: exampleOf(exampleFingerprint()), AsOf: exampleOf(exampleNow - 60_000), Policy: Policy{Maintain: true, LiveShards: "merge", From: []int{}},
	}
}

func exampleList() ExperimentList {
	return ExperimentList{
		Experiments: []Summary{exampleSummary()}, Total: 1, AsOf: exampleOf(exampleNow - 60_000), Version: 812, Limit: 50, Sort: "last_write", Order: "desc",
		Totals: Totals{Experiments: 1, Rows: 12_000, RowsExact: true, Fragments: 4, Bytes: 48 << 20},
	}
}

func exampleSchedule() Schedule {
	return Schedule{Exists: true, IntervalSecs: 300, NextAt: exampleOf(exampleNow + 200_000), LastAt: exampleOf(exampleNow - 100_000)}
}

func exampleRounds() RoundList {
	record := fleet.RoundRecord{
		RoundID: exampleRun, Number: 4211, Observed: 40, Skipped: 2960, Hot: 3000, CommittedVersion: exampleOf(uint64(812)),
		StorageRequests: fleet.Requests{List: 750, Head: 6000, Get: 420, Put: 3}, StartedAt: exampleNow - 65_000, FinishedAt: exampleNow - 60_800,
		DurationSeconds: 4.2, By: "ada", WorkflowID: exampleRound,
	}
	return RoundList{Rounds: []Round{{RoundRecord: record}}, Limit: 50}
}

func exampleStatus() Status {
	return Status{
		Fleet: "default", DataDir: "/data", Build: "0.1.0", Now: exampleNow, Loaded: true, StatsVersion: exampleOf(uint64(812)), AsOf: exampleOf(exampleNow - 60_000),
		Schedule: exampleOf(exampleSchedule()), LastRound: &exampleRounds().Rounds[0], Totals: exampleOf(exampleList().Totals),
	}
}

func examplePlan() MaintenancePlan {
	plan := MaintenancePlan{ID: "rollout:exp-1", Action: "retire", Reason: "written 5 min ago", NotBefore: exampleOf(exampleWritten + 7*86_400_000), Blocking: []string{}}
	plan.count(lance.Preview{Merge: []lance.MergePreview{}, Tails: []lance.Tail{}, Blocking: []string{}, Compact: lance.Compacted{FragmentsRemoved: 4, FragmentsAdded: 1, Bytes: 48 << 20}})
	return plan
}

func exampleFleetPlan() FleetPlan {
	return FleetPlan{
		Maintain: true, Waiting: []Planned{}, Blocked: []Planned{}, Running: []Running{}, NotDue: 2999, AsOf: exampleOf(exampleNow - 60_000), Budgets: Budgets{Merge: 50, Compact: 50, Retire: 50},
		Starts: []Planned{{ID: "rollout:exp-1", Action: "merge", Reason: "9 pending generations, at least 8", Score: 9}},
	}
}

func exampleResult() workflows.MaintenanceResult {
	before, after := fleet.UnknownFacts(), fleet.UnknownFacts()
	before.Fragments, after.Fragments = 20, 2
	return workflows.MaintenanceResult{ID: "rollout:exp-1", Action: "optimize", Outcome: fleet.OutcomeDone, Sentence: "compacted 20 fragments into 2", Before: before, After: after, Steps: []workflows.StepResult{}}
}

func exampleDone() Done {
	return Done{Action: fleet.Action{
		ID: "0b1e77a0-c9d4-4e7a-8f21-6f0c6c1e9b53", At: exampleNow, Kind: fleet.ActOptimize, Target: "rollout:exp-1", Outcome: fleet.OutcomeDone, DurationMS: 2100, By: "ada", WorkflowID: exampleFlow, RunID: exampleRun,
	}}
}

func exampleBatch() BatchPlan {
	return BatchPlan{Action: "optimize", Asked: 3, Start: 2, Refused: 1, Sample: []string{"rollout:exp-1", "rollout:exp-2"},
		Causes: []BatchCause{{Reason: "nothing pending; 2 small fragments, below 16", Count: 1, Sample: []string{"rollout:exp-3"}}}}
}

func exampleTask() Task {
	return Task{ID: exampleRun, Kind: "compact", Target: "exp-1", State: taskDone, Detail: "removed 20 / added 2 fragments",
		EnqueuedAt: exampleNow - 2100, StartedAt: exampleOf(exampleNow - 2100), FinishedAt: exampleOf(exampleNow)}
}
