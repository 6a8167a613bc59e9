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
}

func (s *Server) policyOf(id fleet.ID) Policy {
	p, from := s.policies.For(id)
	out := Policy{
		Maintain: p.Maintain, Paused: p.Paused, RetireAfterSecs: secondsOf(p.RetireAfter),
		MergeMinGenerations: p.MergeMinGenerations, MergeTailsAfterSecs: secondsOf(p.MergeTailsAfter),
		CompactMinFragments: p.CompactMinFragments, TargetRows: p.TargetRows, TargetBytes: p.TargetBytes,
		CleanupOlderThanSecs: secondsOf(p.CleanupOlderThan), LiveShards: string(p.LiveShards), QuietWindow: windowText(p.QuietWindow),
		CooldownAfterFailures: p.CooldownAfter, From: []int{},
	}
	for _, i := range from {
		out.From = append(out.From, i+1)
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
