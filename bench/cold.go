package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"lancefleet/store"
)

// ColdPart is a fleet of which all turned cold at once.
type ColdPart struct {
	Experiments  int          `json:"experiments"`
	Before       []Round      `json:"before"` // rounds without maintenance
	Minutes      []ColdMinute `json:"minutes"`
	StatsCommits int64        `json:"stats_commits"` // versions of `_stats` that came while maintained
	Rounds       int          `json:"rounds"`        // meanwhile
}

// ColdMinute is one of those in which they were retired.
type ColdMinute struct {
	Retired     int     `json:"retired"` // at its end
	Rounds      int     `json:"rounds"`
	RoundMedian float64 `json:"round_median"` // seconds
	RoundMax    float64 `json:"round_max"`
}

func (b *bench) cold(ctx context.Context, s maintenanceSettings) (*ColdPart, error) {
	part := &ColdPart{Experiments: s.Cold}
	g := &ground{bench: b, name: "cold", engine: b.engine}
	g.dataDir = filepath.Join(b.dir, g.name)
	defer g.end()
	if err := g.fill(ctx, s.Cold, "--generations", "1", "--cold-share", "1"); err != nil {
		return nil, err
	}
	b.say("made %d cold ones", s.Cold)
	if err := g.serve(ctx); err != nil {
		return nil, err
	}
	if _, err := g.first(ctx); err != nil {
		return nil, err
	}
	var err error
	if part.Before, err = several(ctx, s.Rounds, g.unchanged); err != nil {
		return nil, err
	}
	g.end()
	b.say("rounds without maintenance: median %.2f s", median(secondsOf(part.Before)))
	return part, b.retireCold(ctx, g, s, part)
}

func (b *bench) retireCold(ctx context.Context, g *ground, s maintenanceSettings, part *ColdPart) error {
	stats, rounds := store.NewStats(g.engine.Reader, g.dataDir), store.NewRounds(g.engine.Reader, g.dataDir)
	before, err := stats.Latest(ctx)
	if err != nil {
		return err
	}
	if err := g.serve(ctx, "SCAN_INTERVAL="+busyEvery, "MAINTENANCE=on", "GENERATION_GRACE=5s"); err != nil {
		return err
	}
	begun := time.Now()
	for i := range s.Minutes {
		from := begun.Add(time.Duration(i) * time.Minute)
		if err := wait(ctx, time.Until(from.Add(time.Minute))); err != nil {
			return err
		}
		m := ColdMinute{}
		finished, err := rounds.Latest(ctx, 1000)
		if err != nil {
			return err
		}
		var seconds []float64
		for _, r := range finished {
			if r.FinishedAt >= from.UnixMilli() && r.FinishedAt < from.Add(time.Minute).UnixMilli() {
				seconds = append(seconds, r.DurationSeconds)
			}
		}
		m.Rounds, m.RoundMedian, m.RoundMax = len(seconds), median(seconds), spreadOf(seconds).Max
		ledger, err := store.NewLedger(g.engine.Reader, g.dataDir).Latest(ctx)
		if err != nil {
			return err
		}
		m.Retired = len(ledger.Retired())
		b.say("minute %d: %d retired, %d rounds, median %.2f s", i+1, m.Retired, m.Rounds, m.RoundMedian)
		part.Minutes, part.Rounds = append(part.Minutes, m), part.Rounds+m.Rounds
	}
	after, err := stats.Latest(ctx)
	if err != nil {
		return err
	}
	part.StatsCommits = int64(after.Version - before.Version)
	return nil
}

func (c *ColdPart) page(p *strings.Builder) {
	fmt.Fprintf(p, "## Many that turn cold at once\nLocal disk. %s experiments, each with one pending generation, all of them cold; a round every %s, budgets and slots as they are by default, 5 s of grace for readers.\n\n", thousands(c.Experiments), busyEvery)
	rows := table{{"minute", "retired by its end", "rounds", "seconds of a round: median", "max"}}
	s := make([]float64, 0, len(c.Before))
	for _, r := range c.Before {
		s = append(s, r.Record.DurationSeconds)
	}
	rows = append(rows, []string{"without maintenance", "", strconv.Itoa(len(s)), fmt.Sprintf("%.2f", median(s)), fmt.Sprintf("%.2f", spreadOf(s).Max)})
	for i, m := range c.Minutes {
		rows = append(rows, []string{
			strconv.Itoa(i + 1), thousands(m.Retired), strconv.Itoa(m.Rounds), fmt.Sprintf("%.2f", m.RoundMedian), fmt.Sprintf("%.2f", m.RoundMax),
		})
	}
	rows.write(p)
	fmt.Fprintf(p, "`_stats` got %d versions in %d rounds.\n\n", c.StatsCommits, c.Rounds)
}
