package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Report is what one run measured.
type Report struct {
	Machine    Machine   `json:"machine"`
	Settings   Settings  `json:"settings"`
	StartedAt  time.Time `json:"started_at"`
	FinishedAt time.Time `json:"finished_at"`
	LoadBefore string    `json:"load_before"` // of the machine, over a minute
	LoadAfter  string    `json:"load_after"`
	Local      []Local   `json:"local"`
	Remote     *Remote   `json:"remote"` // null = not run
	Soak       *Soak     `json:"soak"`   // null = not run
	NotRun     []NotRun  `json:"not_run"`
}

// NotRun is a part that could not be measured here.
type NotRun struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

func (r *Report) notRun(what, why string) { r.NotRun = append(r.NotRun, NotRun{what, why}) }

// publish prints a page, and leaves it in a file with the raw numbers beside it.
func publish(stdout io.Writer, path, page string, numbers any) error {
	if _, err := io.WriteString(stdout, page); err != nil || path == "" {
		return err
	}
	raw, err := json.Marshal(numbers)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	beside := strings.TrimSuffix(path, filepath.Ext(path)) + ".json"
	page += fmt.Sprintf("\nRaw numbers: [%[1]s](%[1]s).\n", filepath.Base(beside))
	if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
		return err
	}
	return os.WriteFile(beside, append(raw, '\n'), 0o644)
}

// Aim is what a run is held against.
type Aim struct {
	Words    string
	Measured string
	Verdict  string // met, not met, not measured
}

// The aims, as the project set them before anything was measured.
const (
	aimedFleet       = 30_000
	aimedSeconds     = 10.0
	aimedTimesFaster = 10.0
	aimedGrowth      = 1e6 // bytes in slopeOver rounds
)

func verdict(met bool) string {
	if met {
		return "met"
	}
	return "**not met**"
}

const notMeasured = "not measured"

func (r *Report) aims() []Aim {
	speed := Aim{Words: fmt.Sprintf("%s unchanged local experiments in under %.0f s, end to end", thousands(aimedFleet), aimedSeconds), Verdict: notMeasured}
	for _, l := range r.Local {
		if l.Experiments == aimedFleet {
			s := spreadOf(secondsOf(l.Unchanged))
			speed.Measured = fmt.Sprintf("%.2f s (median; worst %.2f s)", s.Median, s.Max)
			speed.Verdict = verdict(s.Median < aimedSeconds)
		}
	}
	latency := Aim{Words: fmt.Sprintf("under latency at least %.0f times faster than opening at concurrency %d", aimedTimesFaster, aimedAgainst), Verdict: notMeasured}
	if faster, ok := r.timesFaster(); ok {
		latency.Measured = fmt.Sprintf("%.1f times (%s experiments, %d ms)", faster, thousands(r.Remote.Experiments), r.Remote.LatencyMS)
		latency.Verdict = verdict(faster >= aimedTimesFaster)
	}
	memory := Aim{Words: fmt.Sprintf("the worker's memory grows by less than %.0f MB in %d rounds after warm-up", aimedGrowth/1e6, slopeOver), Verdict: notMeasured}
	if r.Soak != nil {
		unchanged, touched := growth(r.Soak.Unchanged), growth(r.Soak.Changed)
		memory.Measured = fmt.Sprintf("%+.2f MB unchanged, %+.2f MB with 1 %% changed", unchanged/1e6, touched/1e6)
		memory.Verdict = verdict(max(unchanged, touched) < aimedGrowth)
	}
	return []Aim{speed, latency, memory}
}

// timesFaster compares medians on the S3 server.
func (r *Report) timesFaster() (times float64, ok bool) {
	if r.Remote == nil || len(r.Remote.Unchanged) == 0 {
		return 0, false
	}
	for _, p := range r.Remote.Polls {
		if p.Look == lookOpen && p.Concurrency == aimedAgainst {
			return median(p.Seconds) / median(secondsOf(r.Remote.Unchanged)), true
		}
	}
	return 0, false
}
