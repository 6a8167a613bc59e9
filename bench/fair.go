package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/store"
)

// FairPart is maintenance of many experiments that want a merge beside one table
// that wants a long compaction.
type FairPart struct {
	Candidates int      `json:"candidates"`
	Fragments  int      `json:"fragments"`
	Minutes    []Minute `json:"minutes"`
}

// Minute is what was done in one of them.
type Minute struct {
	Merged    int     `json:"merged"`    // experiments that rounds saw with nothing pending any more
	Fragments int64   `json:"fragments"` // of the one table, at its end
	RoundMax  float64 `json:"round_max"` // seconds, the longest round that ended in it
	Rounds    int     `json:"rounds"`
}

const (
	waiting   = 10 // generations: above what is worth a merge
	busyEvery = "10s"
)

func (b *bench) fair(ctx context.Context, s maintenanceSettings) (*FairPart, error) {
	part := &FairPart{Candidates: s.Candidates, Fragments: s.Fragments}
	g := &ground{bench: b, name: "fair", engine: b.engine}
	g.dataDir = filepath.Join(b.dir, g.name)
	defer g.end()
	if err := g.fill(ctx, s.Candidates, "--generations", strconv.Itoa(waiting)); err != nil {
		return nil, err
	}
	if err := g.fill(ctx, 1, "--kinds", "table", "--fragments", strconv.Itoa(s.Fragments)); err != nil {
		return nil, err
	}
	wide, err := g.widest(ctx)
	if err != nil {
		return nil, err
	}
	b.say("made %d candidates and %s with %d fragments", s.Candidates, wide.ID, s.Fragments)
	if err := g.serve(ctx, "SCAN_INTERVAL="+busyEvery, "MAINTENANCE=on", "SOURCES=registry,folder"); err != nil {
		return nil, err
	}
	begun, total := time.Now(), 0
	for i := range s.Minutes {
		if err := wait(ctx, time.Until(begun.Add(time.Duration(i+1)*time.Minute))); err != nil {
			return nil, err
		}
		m, err := g.minute(ctx, begun.Add(time.Duration(i)*time.Minute), total, wide)
		if err != nil {
			return nil, err
		}
		b.say("minute %d: %d merged, %d fragments, longest round %.2f s", i+1, m.Merged, m.Fragments, m.RoundMax)
		total += m.Merged
		part.Minutes = append(part.Minutes, m)
	}
	return part, nil
}

// widest is the one table among the experiments.
func (g *ground) widest(ctx context.Context) (fleet.Experiment, error) {
	listing, err := store.NewSources(g.engine.Reader, g.dataDir, "registry,folder").List(ctx)
	if err != nil {
		return fleet.Experiment{}, err
	}
	for _, exp := range listing.Experiments {
		if exp.Kind == fleet.Table {
			return exp, nil
		}
	}
	return fleet.Experiment{}, fmt.Errorf("no table among %d experiments of %s", len(listing.Experiments), g.dataDir)
}

// merged counts the experiments of `_stats` that have nothing pending. The runs that
// merged them go on until readers' grace is over.
func (g *ground) merged(ctx context.Context, wide fleet.Experiment) (n int, err error) {
	stats, err := store.NewStats(g.engine.Reader, g.dataDir).Latest(ctx)
	for _, row := range stats.Rows {
		if row.Known && row.PendingWAL == 0 && row.ID != wide.ID {
			n++
		}
	}
	return n, err
}

// minute reads what `_stats` and the table say of the minute from begun on; before are
// those merged until then.
func (g *ground) minute(ctx context.Context, begun time.Time, before int, wide fleet.Experiment) (Minute, error) {
	var m Minute
	until := begun.Add(time.Minute).UnixMilli()
	in := func(at int64) bool { return at >= begun.UnixMilli() && at < until }
	merged, err := g.merged(ctx, wide)
	if err != nil {
		return m, err
	}
	m.Merged = merged - before
	if m.Rounds, m.RoundMax, err = g.roundsIn(ctx, in); err != nil {
		return m, err
	}
	found, err := g.engine.Observe(ctx, []lance.ObserveTarget{{URI: wide.URI}}, lance.ObserveOptions{BatchOptions: lance.BatchOptions{Concurrency: 1, Timeout: time.Minute}})
	if err != nil {
		return m, err
	}
	if found[0].Err != nil {
		return m, found[0].Err
	}
	m.Fragments = found[0].Observation.Fragments
	return m, nil
}

func (g *ground) roundsIn(ctx context.Context, in func(int64) bool) (n int, longest float64, err error) {
	rounds, err := store.NewRounds(g.engine.Reader, g.dataDir).Latest(ctx, 1000)
	for _, r := range rounds {
		if in(r.FinishedAt) {
			n++
			longest = max(longest, r.DurationSeconds)
		}
	}
	return n, longest, err
}

func (f *FairPart) page(p *strings.Builder) {
	fmt.Fprintf(p, "## Merges beside one large compaction\nLocal disk, a round every %s, budgets and slots as they are by default. %s experiments with %d pending generations each, and one table of %s fragments.\n\n",
		busyEvery, thousands(f.Candidates), waiting, thousands(f.Fragments))
	rows := table{{"minute", "merged", "fragments left in the table", "rounds", "longest round"}}
	for i, m := range f.Minutes {
		rows = append(rows, []string{
			strconv.Itoa(i + 1), thousands(m.Merged), thousands(int(m.Fragments)), strconv.Itoa(m.Rounds), fmt.Sprintf("%.2f s", m.RoundMax),
		})
	}
	rows.write(p)
}
