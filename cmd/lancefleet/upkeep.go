package main

import (
	"log/slog"
	"os"
	"time"

	"lancefleet/worker"
)

// maintenanceFlags say how a worker carries maintenance out.
type maintenanceFlags struct {
	MergeMaxGenerations         atLeastOne  `help:"Generations of one merge pass." default:"8" env:"MERGE_MAX_GENERATIONS,ROLLOUT_MERGE_MAX_GENERATIONS"`
	MergeMaxBytes               byteSize    `help:"Bytes of one merge pass; a single larger generation still moves." default:"1GiB" env:"MERGE_MAX_BYTES,ROLLOUT_MERGE_MAX_BYTES"`
	CompactMaxSourceFragments   atLeastOne  `help:"Fragments that one compaction pass reads." default:"32" env:"COMPACT_MAX_SOURCE_FRAGMENTS,COMPACTION_MAX_SOURCE_FRAGMENTS"`
	CompactMaxBytes             byteSize    `help:"Bytes that one compaction pass reads." default:"1GiB" env:"COMPACT_MAX_BYTES,COMPACTION_MAX_BYTES"`
	GenerationGrace             seconds     `help:"How long the folders of merged generations stay, for readers that still look at them." default:"5m" env:"GENERATION_GRACE,GENERATION_GRACE_SECS"`
	HeavySlots                  atLeastOne  `help:"Heavy steps at once, per worker: so many merges, as many compactions, as many checks. Each is a process of its own." default:"1" env:"HEAVY_SLOTS"`
	ChildMemory                 byteSize    `help:"Memory that one heavy step may use; then it is ended and tried again smaller. 0 = not watched." default:"4GiB" env:"CHILD_MEMORY,CHILD_MEMORY_BYTES"`
	StatsMaintenanceEveryNScans atLeastZero `help:"Rounds between upkeep of lancefleet's own tables; 0 = never." default:"12" env:"STATS_MAINTENANCE_EVERY_N_SCANS"`
	StatsHistory                seconds     `help:"Older versions of lancefleet's own tables go." default:"1h" env:"STATS_HISTORY,STATS_HISTORY_TTL_SECS"`
	RegistryMaintenance         bool        `help:"Upkeep of lance-context's registries too." env:"REGISTRY_MAINTENANCE"`
}

// into makes worker.Config what the flags say.
func (f maintenanceFlags) into(config *worker.Config, p policyFlags, maintain bool) error {
	policies, err := p.policies(maintain)
	if err != nil {
		return err
	}
	config.Maintenance, config.Policies, config.Budgets = maintain, policies, p.budgets()
	config.TargetRows = policies.Default.TargetRows
	config.MergeGenerations, config.MergeBytes = int(f.MergeMaxGenerations), int64(f.MergeMaxBytes)
	config.CompactFragments, config.CompactBytes = int(f.CompactMaxSourceFragments), int64(f.CompactMaxBytes)
	config.GenerationGrace, config.HeavySlots, config.ChildMemory = time.Duration(f.GenerationGrace), int(f.HeavySlots), int64(f.ChildMemory)
	config.MaintenanceEveryNScans, config.StatsHistory = int(f.StatsMaintenanceEveryNScans), time.Duration(f.StatsHistory)
	config.RegistryMaintenance = f.RegistryMaintenance
	return nil
}

// withoutEffect are lance-context's settings that have no counterpart here.
var withoutEffect = map[string]string{
	"COMPACTION_INTERVAL_SECS": "every round plans compactions",
	"MERGE_WAL_INTERVAL_SECS":  "every round plans merges",
}

// warnWithoutEffect tells of settings that somebody may rely on in vain.
func warnWithoutEffect(log *slog.Logger) {
	for name, why := range withoutEffect {
		if value := os.Getenv(name); value != "" {
			log.Warn("a setting of lance-context has no effect here", "name", name, "value", value, "why", why)
		}
	}
}
