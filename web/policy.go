package web

import (
	"fmt"
	"time"

	"lancefleet/fleet"
)

// Policy is what is in force for one experiment. Times are seconds, sizes bytes; 0
// is never where nothing else is said.
type Policy struct {
	Maintain              bool   `json:"maintain" doc:"false: it is only observed"`
	Paused                string `json:"paused,omitempty" doc:"Why nothing new is started"`
	RetireAfterSecs       int64  `json:"retire_after_secs" doc:"Without a write"`
	MergeMinGenerations   int64  `json:"merge_min_generations"`
	MergeTailsAfterSecs   int64  `json:"merge_tails_after_secs"`
	CompactMinFragments   int64  `json:"compact_min_fragments"`
	TargetRows            int64  `json:"target_rows_per_fragment"`
	TargetBytes           int64  `json:"target_bytes_per_fragment"`
	CleanupOlderThanSecs  int64  `json:"cleanup_older_than_secs" doc:"Old versions; 0 = they are the user's"`
	LiveShards            string `json:"live_shards" enum:"merge,leave"`
	QuietWindow           string `json:"quiet_window,omitempty" doc:"UTC, as 22:00-06:00"`
	CooldownAfterFailures int64  `json:"cooldown_after_failures"`
	From                  []int  `json:"from" doc:"Numbers of the overrides it comes from, from 1; empty = the fleet's own"`

	Origins map[string]string `json:"origins" doc:"Where each value comes from, by its name here: default, the environment variable, flag or file that set it, or the override"`
}

func (s *Server) policyOf(id fleet.ID) Policy {
	p, from := s.policies.For(id)
	out := Policy{
		Maintain: p.Maintain, Paused: p.Paused, RetireAfterSecs: secondsOf(p.RetireAfter),
		MergeMinGenerations: p.MergeMinGenerations, MergeTailsAfterSecs: secondsOf(p.MergeTailsAfter),
		CompactMinFragments: p.CompactMinFragments, TargetRows: p.TargetRows, TargetBytes: p.TargetBytes,
		CleanupOlderThanSecs: secondsOf(p.CleanupOlderThan), LiveShards: string(p.LiveShards), QuietWindow: windowText(p.QuietWindow),
		CooldownAfterFailures: p.CooldownAfter, From: []int{}, Origins: s.originsOf(from),
	}
	for _, i := range from {
		out.From = append(out.From, i+1)
	}
	return out
}

// policySetting is one value of a policy: how it is told, and what sets it.
type policySetting struct {
	name  string // in Policy's JSON
	title string
	value func(Policy) string
	same  func(a, b fleet.Policy) bool
	set   func(fleet.Override) bool
}

// setting is one that an override may set.
func setting[T comparable](name, title string, value func(Policy) string, of func(fleet.Policy) T, by func(fleet.Override) *T) policySetting {
	return policySetting{name, title, value,
		func(a, b fleet.Policy) bool { return of(a) == of(b) }, func(o fleet.Override) bool { return by(o) != nil }}
}

var policySettings = []policySetting{
	setting("maintain", "Maintained", func(p Policy) string { return yesNo(p.Maintain, "yes", "no: only observed") },
		func(p fleet.Policy) bool { return p.Maintain }, func(o fleet.Override) *bool { return o.Maintain }),
	setting("paused", "Paused", func(p Policy) string { return or(p.Paused, "no") },
		func(p fleet.Policy) string { return p.Paused }, func(o fleet.Override) *string { return o.Paused }),
	setting("retire_after_secs", "Retired after", func(p Policy) string {
		return every(p.RetireAfterSecs) + yesNo(p.RetireAfterSecs > 0, " without a write", "")
	},
		func(p fleet.Policy) time.Duration { return p.RetireAfter }, func(o fleet.Override) *time.Duration { return o.RetireAfter }),
	setting("merge_min_generations", "Merged from", func(p Policy) string { return fromOn(p.MergeMinGenerations, "generation") },
		func(p fleet.Policy) int64 { return p.MergeMinGenerations }, func(o fleet.Override) *int64 { return o.MergeMinGenerations }),
	setting("merge_tails_after_secs", "Fewer merged after", func(p Policy) string { return every(p.MergeTailsAfterSecs) },
		func(p fleet.Policy) time.Duration { return p.MergeTailsAfter }, func(o fleet.Override) *time.Duration { return o.MergeTailsAfter }),
	setting("compact_min_fragments", "Compacted from", func(p Policy) string { return fromOn(p.CompactMinFragments, "fragment") },
		func(p fleet.Policy) int64 { return p.CompactMinFragments }, func(o fleet.Override) *int64 { return o.CompactMinFragments }),
	setting("target_rows_per_fragment", "Rows of a fragment, at most", func(p Policy) string { return count(p.TargetRows) },
		func(p fleet.Policy) int64 { return p.TargetRows }, func(o fleet.Override) *int64 { return o.TargetRows }),
	setting("target_bytes_per_fragment", "Size of a fragment", func(p Policy) string { return size(p.TargetBytes) },
		func(p fleet.Policy) int64 { return p.TargetBytes }, func(o fleet.Override) *int64 { return o.TargetBytes }),
	setting("cleanup_older_than_secs", "Old versions go after", func(p Policy) string { return every(p.CleanupOlderThanSecs) },
		func(p fleet.Policy) time.Duration { return p.CleanupOlderThan }, func(o fleet.Override) *time.Duration { return o.CleanupOlderThan }),
	setting("live_shards", "Live shards", func(p Policy) string { return p.LiveShards },
		func(p fleet.Policy) fleet.LiveShards { return p.LiveShards }, func(o fleet.Override) *fleet.LiveShards { return o.LiveShards }),
	setting("quiet_window", "Quiet (UTC)", func(p Policy) string { return or(p.QuietWindow, "never") },
		func(p fleet.Policy) fleet.Window { return p.QuietWindow }, func(o fleet.Override) *fleet.Window { return o.QuietWindow }),
	setting("cooldown_after_failures", "Rests after", func(p Policy) string { return fromOn(p.CooldownAfterFailures, "failure") },
		func(p fleet.Policy) int64 { return p.CooldownAfter }, func(fleet.Override) *int64 { return nil }),
}

func yesNo(on bool, yes, no string) string {
	if on {
		return yes
	}
	return no
}

func fromOn(n int64, thing string) string {
	if n == 0 {
		return "never"
	}
	return plural(n, thing)
}

// originsOf says where each value of a policy comes from; overrides are indexes.
func (s *Server) originsOf(overrides []int) map[string]string {
	out := map[string]string{}
	standard := fleet.DefaultPolicy()
	for _, field := range policySettings {
		switch named := s.origins[field.name]; {
		case named != "":
			out[field.name] = named
		case field.same(s.policies.Default, standard):
			out[field.name] = "default"
		default:
			out[field.name] = "configuration"
		}
		for _, i := range overrides {
			if field.set(s.policies.Overrides[i]) {
				out[field.name] = overrideWords(i, s.policies.Overrides[i])
			}
		}
	}
	return out
}

func overrideWords(i int, o fleet.Override) string {
	words := fmt.Sprintf("override %d", i+1)
	if o.Pattern != "" {
		words += ": " + o.Pattern
	}
	if o.Kind != "" {
		words += ", kind " + string(o.Kind)
	}
	return words
}

// policyRow is one value as a page shows it.
type policyRow struct{ Title, Value, Origin string }

func policyRows(p Policy) []policyRow {
	out := []policyRow{}
	for _, field := range policySettings {
		out = append(out, policyRow{field.title, field.value(p), p.Origins[field.name]})
	}
	return out
}

func secondsOf(d time.Duration) int64 { return int64(d / time.Second) }

func windowText(w fleet.Window) string {
	if w.From == w.To {
		return ""
	}
	clock := func(d time.Duration) string {
		return fmt.Sprintf("%02d:%02d", int(d.Hours()), int(d.Minutes())%60)
	}
	return clock(w.From) + "-" + clock(w.To)
}
