package metrics

import "github.com/prometheus/client_golang/prometheus"

// Descriptions of what is read from shared state. HELP says what to alert on.
var (
	experiments      = desc("master_experiments", "Experiments in _stats.")
	hotExperiments   = desc("master_stats_hot_experiments", "Hot experiments: rows of _stats that the ledger has not retired. Alert when it falls to zero in a fleet that is not empty.")
	rolloutRows      = desc("master_rollout_rows", "Rows of all hot experiments, pending ones included; where keys may repeat an upper bound.")
	rolloutFragments = desc("master_rollout_fragments", "Fragments of all hot experiments' base tables.")
	pendingMax       = desc("master_wal_pending_generations_max", "Pending WAL generations of the experiment that has most. Alert above 1000.")
	pendingOver1k    = desc("master_stores_pending_over_1k", "Experiments with more than 1000 pending WAL generations: reads are slow.")
	pendingOverCap   = desc("master_stores_pending_over_read_cap", "Experiments with more than 4096 pending WAL generations: lance-context's workers refuse to read them. Alert on any.")
	statsVersion     = desc("master_stats_version", "Newest version of _stats. It climbs by design: not an alert.")
	scanSkipped      = desc("master_scan_experiments_skipped", "Experiments that the last round's probes found unchanged.")
	scanObserved     = desc("master_scan_experiments_observed", "Experiments that the last round observed in full.")
	scanFailed       = desc("lancefleet_scan_experiments_failed", "Experiments that the last round asked and got no answer from. Alert when it is most of the fleet: storage or credentials are broken.")
	scanBackingOff   = desc("lancefleet_scan_experiments_backing_off", "Experiments that the last round left alone because they keep failing.")
	failing          = desc("lancefleet_experiments_failing", "Experiments whose last attempt gave no answer. Alert when it grows.")
	missing          = desc("lancefleet_experiments_missing", "Experiments that their source did not name in the last round; gone when the next one misses them too.")

	retiredExperiments = desc("lancefleet_retired_experiments", "Experiments that the ledger has retired.")
	strandedEntries    = desc("lancefleet_stranded_wal_entries", "WAL entries of hot experiments that are proven to be in no generation and not in the base, as last looked at: those of live writers are just not flushed yet. Alert when it stays above zero on a fleet that is at rest: they are replayed once their shard has been silent for an hour.")
	unknownEntries     = desc("lancefleet_unknown_wal_entries", "WAL entries of hot experiments of which nobody can tell whether the base has them. Alert on any: an operator has to decide, see seal.")
	coolingDown        = desc("lancefleet_maintenance_cooling_down", "Hot experiments of which a kind of maintenance rests after failures. Alert when it grows.")
	upkeepFailures     = desc("master_stats_maintenance_consecutive_failures", "Passes of upkeep over our own tables that failed since the last one that did not; 0 after any success.")
	unreclaimed        = desc("master_stats_unreclaimed_versions", "The alert: versions of _stats since upkeep last removed old ones; all there are where it never did. Up to one per round between two passes is normal (12 by default). Alert above 100.")

	snapshotAge      = desc("lancefleet_snapshot_age_seconds", "Age of the newest commit of _stats. Up to 15 minutes and one interval is normal in a quiet fleet. Alert above 30 minutes while not paused.")
	roundAge         = desc("lancefleet_last_round_age_seconds", "Time since a round last finished. The alert: above three intervals (lancefleet_schedule_interval_seconds) while lancefleet_schedule_paused is 0.")
	roundDuration    = desc("lancefleet_round_duration_seconds", "Duration of the last finished round.")
	roundRequests    = desc("lancefleet_round_storage_requests", "Storage requests of the last finished round, by kind.", "op")
	roundPrice       = desc("lancefleet_round_price_dollars_per_day", "What a day of rounds like the last one costs at the configured price sheet, at the schedule's interval. Local disk costs nothing.")
	storageRequests  = desc("lancefleet_storage_requests_total", "Storage requests of this process since it started, by kind.", "op")
	scheduleExists   = desc("lancefleet_schedule_exists", "1 if the schedule of rounds exists. Alert on 0 for longer than a minute: no worker restores it.")
	schedulePaused   = desc("lancefleet_schedule_paused", "1 while the schedule is paused.")
	scheduleInterval = desc("lancefleet_schedule_interval_seconds", "Time between scheduled rounds; 0 = off.")
	scheduleSkipped  = desc("lancefleet_schedule_skipped_total", "Rounds that were not started because the one before still ran. Alert when it keeps climbing: raise the interval or add workers.")
	scheduleMissed   = desc("lancefleet_schedule_missed_total", "Rounds that were not started because Temporal was away for longer than the catch-up window.")
	sharedReadable   = desc("lancefleet_shared_state_readable", "1 if this part of the shared state could be read for this scrape; its metrics are absent otherwise. Alert on 0.", "part")
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}
