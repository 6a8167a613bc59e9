package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// maintenanceReport is what `bench maintenance` measured: rounds beside much that is
// retired, much that is to be merged, and much that turned cold at once.
type maintenanceReport struct {
	Machine    Machine             `json:"machine"`
	Settings   maintenanceSettings `json:"settings"`
	StartedAt  time.Time           `json:"started_at"`
	FinishedAt time.Time           `json:"finished_at"`
	LoadBefore string              `json:"load_before"`
	LoadAfter  string              `json:"load_after"`
	Retired    *RetiredPart        `json:"retired"` // null = left out, as all parts
	Fair       *FairPart           `json:"fair"`
	Cold       *ColdPart           `json:"cold"`
}

// measureMaintenance runs the parts, one after the other.
func (b *bench) measureMaintenance(ctx context.Context, s maintenanceSettings) (*maintenanceReport, error) {
	machine, err := b.describe(ctx)
	if err != nil {
		return nil, err
	}
	r := &maintenanceReport{Machine: machine, Settings: s, StartedAt: time.Now().UTC(), LoadBefore: loadAverage()}
	if b.temporal, err = startTemporal(ctx, b); err != nil {
		return nil, err
	}
	if s.Retired > 0 {
		if r.Retired, err = b.retired(ctx, s); err != nil {
			return nil, fmt.Errorf("rounds beside retired ones: %w", err)
		}
	}
	if s.Candidates > 0 {
		if r.Fair, err = b.fair(ctx, s); err != nil {
			return nil, fmt.Errorf("merges beside one large compaction: %w", err)
		}
	}
	if s.Cold > 0 {
		if r.Cold, err = b.cold(ctx, s); err != nil {
			return nil, fmt.Errorf("rounds beside many cold ones: %w", err)
		}
	}
	r.FinishedAt, r.LoadAfter = time.Now().UTC(), loadAverage()
	return r, nil
}

func (r *maintenanceReport) page() string {
	var p strings.Builder
	fmt.Fprintf(&p, "# Benchmarks of maintenance\n\nWritten by `./task bench:maintenance` (%s).\n\n", r.StartedAt.Format("2006-01-02 15:04 UTC"))
	(&Report{Machine: r.Machine, StartedAt: r.StartedAt, FinishedAt: r.FinishedAt, LoadBefore: r.LoadBefore, LoadAfter: r.LoadAfter}).pageMachine(&p)
	if r.Retired != nil {
		r.Retired.page(&p)
	}
	if r.Fair != nil {
		r.Fair.page(&p)
	}
	if r.Cold != nil {
		r.Cold.page(&p)
	}
	return p.String()
}
