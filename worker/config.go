package worker

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"lancefleet/activities"
	"lancefleet/fleet"
	"lancefleet/store"
	"lancefleet/workflows"
)

// Config is what an operator can set about a worker. The names in messages are
// those of the environment variables.
type Config struct {
	Fleet           string           // FLEET: part of every id and queue; "default" has plain names
	DataDir         string           // DATA_DIR, as store.CleanDataDir returns it
	Sources         store.SourceMode // SOURCES
	ScanInterval    time.Duration    // between rounds; 0 = no scheduled rounds
	PageSize        int              // experiments per activity
	MaxPagesAtOnce  int              // of one round, over all workers
	ScanConcurrency int              // experiments asked at once, per worker
	ActivitySlots   int              // activities at once, per worker
	ProbeTimeout    time.Duration    // for one experiment
	ObserveTimeout  time.Duration    // for one experiment
	TargetRows      int64            // a fragment with fewer rows counts as small
	Freshness       time.Duration    // between commits of _stats when nothing changed
	StopTimeout     time.Duration    // for activities to end when the worker stops

	Maintenance            bool           // MAINTENANCE; false: looks and never rewrites an experiment, whatever the policies say
	Policies               fleet.Policies // when experiments are merged, compacted, retired
	Budgets                fleet.Budgets  // workflows of a kind that a round may start
	MergeGenerations       int            // of one pass
	MergeBytes             int64          // of one pass
	CompactFragments       int            // read by one pass
	CompactBytes           int64          // read by one pass
	GenerationGrace        time.Duration  // GENERATION_GRACE_SECS: from a merge until the folders it emptied go
	HeavySlots             int            // heavy steps at once, per worker: so many merges, as many compactions, as many checks
	ChildMemory            int64          // bytes that a heavy step may use; 0 = not watched
	MaintenanceEveryNScans int            // STATS_MAINTENANCE_EVERY_N_SCANS: rounds between upkeep of our own tables; 0 = never
	StatsHistory           time.Duration  // STATS_HISTORY_TTL_SECS: older versions of our own tables go
	RegistryMaintenance    bool           // REGISTRY_MAINTENANCE: upkeep of lance-context's registries too
}

// DefaultConfig works for fleets of any size on local disk and object storage.
func DefaultConfig() Config {
	return Config{
		Fleet:           workflows.DefaultFleet,
		ScanInterval:    5 * time.Minute,
		PageSize:        1000,
		MaxPagesAtOnce:  8,
		ScanConcurrency: 256,
		ActivitySlots:   12,
		ProbeTimeout:    10 * time.Second,
		ObserveTimeout:  30 * time.Second,
		TargetRows:      fleet.DefaultPolicy().TargetRows,
		Freshness:       fleet.DefaultFreshness,
		StopTimeout:     time.Minute,

		Policies:               fleet.Policies{Default: fleet.DefaultPolicy()},
		Budgets:                fleet.DefaultBudgets(),
		MergeGenerations:       8,
		MergeBytes:             1 << 30,
		CompactFragments:       32,
		CompactBytes:           1 << 30,
		GenerationGrace:        5 * time.Minute,
		HeavySlots:             1,
		ChildMemory:            4 << 30,
		MaintenanceEveryNScans: 12,
		StatsHistory:           time.Hour,
	}
}

// Bounds that other parts rely on: the listing's hash, versions and counts of a
// page fit Temporal's payloads whatever is set here.
const (
	longestInterval = 24 * time.Hour
	largestPage     = 10_000
	mostPages       = 256
	mostConcurrency = 4096
	mostSlots       = 1000
	longestTimeout  = 5 * time.Minute
	longestStop     = 10 * time.Minute
	sweepEvery      = 12 // rounds
	observeChunk    = 250
	mostHeavy       = 64
	mostBudget      = 10_000
	mostGenerations = 4096
	mostFragments   = 10_000
	leastBytes      = 1 << 20
	leastMemory     = 64 << 20
	longestLive     = 30 * 24 * time.Hour
	longestHistory  = 90 * 24 * time.Hour
	keepVersions    = 2
	attemptFor      = 20 * time.Second // then the slot goes to the next in the queue: one with very much to do holds up nobody
	graces          = 12               // a folder whose drain nobody can prove waits so many times as long
)

// SettingError is a value that a setting can't have. Its name is that of the
// environment variable: programs with flags say theirs instead.
type SettingError struct {
	Name    string
	Value   any
	Allowed string // in words
}

// Error names setting, value and what is allowed.
func (e *SettingError) Error() string {
	return fmt.Sprintf("%s=%v: allowed is %s", e.Name, e.Value, e.Allowed)
}

var fleetName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,40}[a-z0-9])?$`)

// Validate names every value that can't be used, and what is allowed: [SettingError]s,
// joined.
func (c Config) Validate() error {
	var errs []error
	refuse := func(name string, value any, allowed string) {
		errs = append(errs, &SettingError{name, value, allowed})
	}
	number := func(name string, value, low, high int) {
		if value < low || value > high {
			refuse(name, value, fmt.Sprintf("%d to %d", low, high))
		}
	}
	duration := func(name string, value, low, high time.Duration) {
		if value < low || value > high {
			refuse(name, value, fmt.Sprintf("%v to %v", low, high))
		}
	}
	if !fleetName.MatchString(c.Fleet) {
		refuse("FLEET", fmt.Sprintf("%q", c.Fleet), "1 to 42 lower-case letters, digits and inner dashes")
	}
	if c.DataDir == "" {
		refuse("DATA_DIR", `""`, "an absolute path or a url such as s3://bucket/folder")
	}
	if _, err := store.ParseSources(string(c.Sources)); err != nil {
		refuse("SOURCES", fmt.Sprintf("%q", string(c.Sources)), store.AllowedSources)
	}
	if c.ScanInterval != 0 {
		duration("STATS_SCAN_INTERVAL_SECS", c.ScanInterval, time.Second, longestInterval)
	}
	if c.ScanInterval%time.Second != 0 {
		refuse("STATS_SCAN_INTERVAL_SECS", c.ScanInterval, "whole seconds, 0 = off")
	}
	number("SCAN_PAGE_SIZE", c.PageSize, 1, largestPage)
	number("SCAN_PAGES_AT_ONCE", c.MaxPagesAtOnce, 1, mostPages)
	number("SCAN_CONCURRENCY", c.ScanConcurrency, 1, mostConcurrency)
	number("ACTIVITY_SLOTS", c.ActivitySlots, 2, mostSlots)
	duration("PROBE_TIMEOUT", c.ProbeTimeout, 100*time.Millisecond, longestTimeout)
	duration("OBSERVE_TIMEOUT", c.ObserveTimeout, 100*time.Millisecond, longestTimeout)
	duration("STATS_FRESHNESS", c.Freshness, time.Second, longestInterval)
	duration("WORKER_STOP_TIMEOUT", c.StopTimeout, time.Second, longestStop)
	if c.TargetRows < 1 {
		refuse("TARGET_ROWS_PER_FRAGMENT", c.TargetRows, "1 or more")
	}
	errs = append(errs, c.validateMaintenance()...)
	return errors.Join(errs...)
}

func (c Config) validateMaintenance() []error {
	var errs []error
	number := func(name string, value, low, high int64) {
		if value < low || value > high {
			errs = append(errs, &SettingError{name, value, fmt.Sprintf("%d to %d", low, high)})
		}
	}
	duration := func(name string, value, high time.Duration) {
		if value < 0 || value > high {
			errs = append(errs, &SettingError{name, value, fmt.Sprintf("0s to %v", high)})
		}
	}
	if err := c.Policies.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("policy: %w", err))
	}
	number("MERGE_BUDGET", int64(c.Budgets.Merge), 0, mostBudget)
	number("COMPACT_BUDGET", int64(c.Budgets.Compact), 0, mostBudget)
	number("RETIRE_BUDGET", int64(c.Budgets.Retire), 0, mostBudget)
	number("ROLLOUT_MERGE_MAX_GENERATIONS", int64(c.MergeGenerations), 1, mostGenerations)
	number("ROLLOUT_MERGE_MAX_BYTES", c.MergeBytes, leastBytes, 1<<40)
	number("COMPACTION_MAX_SOURCE_FRAGMENTS", int64(c.CompactFragments), 2, mostFragments)
	number("COMPACTION_MAX_BYTES", c.CompactBytes, leastBytes, 1<<40)
	number("HEAVY_SLOTS", int64(c.HeavySlots), 1, mostHeavy)
	if c.ChildMemory != 0 {
		number("CHILD_MEMORY_BYTES", c.ChildMemory, leastMemory, 1<<44)
	}
	number("STATS_MAINTENANCE_EVERY_N_SCANS", int64(c.MaintenanceEveryNScans), 0, 10_000)
	duration("STATS_HISTORY_TTL_SECS", c.StatsHistory, longestHistory)
	duration("LIVE_WITHIN", c.Policies.Default.LiveWithin, longestLive)
	duration("GENERATION_GRACE_SECS", c.GenerationGrace, 24*time.Hour)
	return errs
}

func (c Config) names() workflows.Names { return workflows.Names{Fleet: c.Fleet} }

// scanArgs is the input of every round of this fleet.
func (c Config) scanArgs(fleetID string) workflows.ScanArgs {
	return workflows.ScanArgs{
		Fleet:          c.Fleet,
		FleetID:        fleetID,
		DataDir:        c.DataDir,
		IntervalSecs:   int64(c.ScanInterval / time.Second),
		PageSize:       c.PageSize,
		MaxPagesAtOnce: c.MaxPagesAtOnce,
	}
}

func (c Config) activities() activities.Config {
	return activities.Config{
		Concurrency:    c.ScanConcurrency,
		PagesAtOnce:    min(c.MaxPagesAtOnce, c.ActivitySlots),
		ProbeTimeout:   c.ProbeTimeout,
		ObserveTimeout: c.ObserveTimeout,
		ObserveChunk:   observeChunk,
		TargetRows:     c.TargetRows,
		Freshness:      c.Freshness,
		SweepEvery:     sweepEvery,
		Probe:          fleet.DefaultProbePolicy(c.ScanInterval),
	}
}

// policies are those in force. Where maintenance is off no override switches it on.
func (c Config) policies() fleet.Policies {
	p := fleet.Policies{Default: c.Policies.Default, Overrides: slices.Clone(c.Policies.Overrides)}
	if c.Maintenance {
		return p
	}
	p.Default.Maintain = false
	for i := range p.Overrides {
		p.Overrides[i].Maintain = nil
	}
	return p
}

func (c Config) maintenance() activities.MaintenanceConfig {
	return activities.MaintenanceConfig{
		MergeGenerations: c.MergeGenerations,
		MergeBytes:       c.MergeBytes,
		CompactSources:   c.CompactFragments,
		CompactBytes:     c.CompactBytes,
		Grace:            c.GenerationGrace,
		UnknownGrace:     graces * c.GenerationGrace,
		AttemptFor:       attemptFor,
	}
}

func (c Config) upkeep() store.UpkeepOptions {
	return store.UpkeepOptions{
		HistoryTTL: c.StatsHistory, KeepVersions: keepVersions, Registries: c.RegistryMaintenance && c.Maintenance,
	}
}

// watchEvery is how often the watchdog looks at the schedule: at least once an
// interval, so that three missed ones are noticed in time.
func (c Config) watchEvery() time.Duration {
	const longest = 30 * time.Second
	if c.ScanInterval == 0 {
		return longest
	}
	return min(c.ScanInterval, longest)
}
