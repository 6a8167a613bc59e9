package fleet

import (
	"errors"
	"fmt"
	"path"
	"time"
)

// LiveShards says what may be done with shards that somebody is writing.
type LiveShards string

// What may be done with live shards.
const (
	MergeLiveShards LiveShards = "merge" // merge them beside their writer
	LeaveLiveShards LiveShards = "leave" // written within the hour: their worker's business
)

// Policy says when an experiment is maintained and retired. The zero Policy does
// nothing at all; start from DefaultPolicy.
type Policy struct {
	Maintain bool   // false: observe only, nothing is ever rewritten
	Paused   string // why nothing new is started; "" = not paused

	RetireAfter         time.Duration // without a write; 0 = never
	MergeMinGenerations int64         // pending generations worth a merge; 0 = never
	MergeTailsAfter     time.Duration // fewer are merged too when nothing was written for so long; 0 = never
	CompactMinFragments int64         // fragments worth a compaction; 0 = never
	TargetBytes         int64         // wanted size of a fragment, bytes: rows follow from bytes per row
	TargetRows          int64         // at most so many rows in a fragment
	CleanupOlderThan    time.Duration // versions; 0 = never: history is the user's
	LiveShards          LiveShards
	QuietWindow         Window // no maintenance starts inside it
	CooldownAfter       int64  // failures in a row; 0 = never
	CooldownBase        time.Duration
	CooldownMax         time.Duration
	LiveWithin          time.Duration // a shard written within this is live: else it is merged and sealed as one without a writer
}

// DefaultPolicy maintains everything as lance-context does and retires after a week.
func DefaultPolicy() Policy {
	return Policy{
		Maintain:            true,
		RetireAfter:         7 * 24 * time.Hour,
		MergeMinGenerations: 8,
		MergeTailsAfter:     24 * time.Hour,
		CompactMinFragments: 16,
		TargetBytes:         1 << 30,
		TargetRows:          1 << 20,
		LiveShards:          MergeLiveShards,
		CooldownAfter:       3,
		CooldownBase:        10 * time.Minute,
		CooldownMax:         6 * time.Hour,
		LiveWithin:          time.Hour,
	}
}

// ObserveOnly is the policy that looks and never rewrites.
func ObserveOnly() Policy {
	p := DefaultPolicy()
	p.Maintain = false
	return p
}

// Window is a time of day in UTC, which may span midnight. From == To is empty.
type Window struct {
	From, To time.Duration // since midnight UTC
}

const day = 24 * time.Hour

// Contains says whether now (unix ms) lies in the window, and when it ends.
func (w Window) Contains(now int64) (end int64, inside bool) {
	length := (w.To - w.From + day) % day
	since := (time.Duration(now)*time.Millisecond - w.From) % day
	if since < 0 {
		since += day
	}
	return now + (length - since).Milliseconds(), since < length
}

// Override changes a policy for the experiments it matches. Unset fields stay.
type Override struct {
	Pattern string // of path.Match over the bare name; "" = every name
	Kind    Kind   // "" = every kind

	Maintain            *bool
	Paused              *string
	RetireAfter         *time.Duration
	MergeMinGenerations *int64
	MergeTailsAfter     *time.Duration
	CompactMinFragments *int64
	TargetBytes         *int64
	TargetRows          *int64
	CleanupOlderThan    *time.Duration
	LiveShards          *LiveShards
	QuietWindow         *Window
}

// Policies are the fleet's policy and what differs for some experiments.
type Policies struct {
	Default   Policy
	Overrides []Override // applied in order: a later one wins
}

// For is the policy in force for one experiment, and the overrides it comes from
// (indexes into Overrides).
func (p Policies) For(id ID) (Policy, []int) {
	policy := p.Default
	var from []int
	for i, o := range p.Overrides {
		if o.matches(id) {
			o.apply(&policy)
			from = append(from, i)
		}
	}
	return policy, from
}

func (o Override) matches(id ID) bool {
	if o.Kind != "" && o.Kind != id.Kind {
		return false
	}
	matched, err := path.Match(o.Pattern, id.Name)
	return o.Pattern == "" || matched && err == nil
}

func (o Override) apply(p *Policy) {
	set(&p.Maintain, o.Maintain)
	set(&p.Paused, o.Paused)
	set(&p.RetireAfter, o.RetireAfter)
	set(&p.MergeMinGenerations, o.MergeMinGenerations)
	set(&p.MergeTailsAfter, o.MergeTailsAfter)
	set(&p.CompactMinFragments, o.CompactMinFragments)
	set(&p.TargetBytes, o.TargetBytes)
	set(&p.TargetRows, o.TargetRows)
	set(&p.CleanupOlderThan, o.CleanupOlderThan)
	set(&p.LiveShards, o.LiveShards)
	set(&p.QuietWindow, o.QuietWindow)
}

func set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

// Validate refuses patterns, kinds and values that can't be meant.
func (p Policies) Validate() error {
	if err := p.Default.validate(); err != nil {
		return err
	}
	for i, o := range p.Overrides {
		if _, err := path.Match(o.Pattern, ""); err != nil {
			return fmt.Errorf("override %d: pattern %q: want a shell pattern with *, ? and [..]", i+1, o.Pattern)
		}
		if _, err := ParseKind(string(o.Kind)); o.Kind != "" && err != nil {
			return fmt.Errorf("override %d: %w", i+1, err)
		}
		policy := p.Default
		o.apply(&policy)
		if err := policy.validate(); err != nil {
			return fmt.Errorf("override %d: %w", i+1, err)
		}
	}
	return nil
}

func (p Policy) validate() error {
	switch {
	case min(p.RetireAfter, p.MergeTailsAfter, p.CleanupOlderThan, p.CooldownBase, p.CooldownMax, p.LiveWithin) < 0:
		return errors.New("durations: want 0 or more")
	case min(p.MergeMinGenerations, p.CompactMinFragments, p.CooldownAfter, p.TargetBytes, p.TargetRows) < 0:
		return errors.New("counts and sizes: want 0 or more")
	case p.LiveShards != MergeLiveShards && p.LiveShards != LeaveLiveShards:
		return fmt.Errorf("live_shards %q: want merge or leave", p.LiveShards)
	case min(p.QuietWindow.From, p.QuietWindow.To) < 0 || max(p.QuietWindow.From, p.QuietWindow.To) >= day:
		return errors.New("quiet_window: want times of day from 00:00 to 23:59")
	}
	return nil
}

// Cooldown is how long a kind of maintenance rests after so many failures in a row.
func (p Policy) Cooldown(failures int64) time.Duration {
	if p.CooldownAfter <= 0 || failures < p.CooldownAfter {
		return 0
	}
	doublings := min(failures-p.CooldownAfter, 30) // of a second: 34 years
	wait := p.CooldownBase
	for range doublings {
		wait = min(2*wait, p.CooldownMax)
	}
	return min(wait, p.CooldownMax)
}

// RowsPerFragment is how many rows a fragment of this experiment should have, at
// least 1: TargetRows, or fewer where rows are so wide that TargetBytes is reached
// first. r may be nil or unknown: then only TargetRows counts.
func (p Policy) RowsPerFragment(r *Row) int64 {
	rows := max(p.TargetRows, 1)
	if r == nil || r.Bytes <= 0 || r.RowCount <= 0 || p.TargetBytes <= 0 {
		return rows
	}
	perRow := max(r.Bytes/r.RowCount, 1)
	return max(min(rows, p.TargetBytes/perRow), 1)
}
