package main

import (
	"context"
	"fmt"
	"path/filepath"
)

// Soak is one worker over many rounds.
type Soak struct {
	Experiments int     `json:"experiments"`
	Warmup      []Round `json:"warmup"`
	Unchanged   []Round `json:"unchanged"`
	Changed     []Round `json:"changed"` // 1 % written before each; the table commits each time
}

// slopeOver is what the worker's memory grows by in this many rounds.
const slopeOver = 50

func growth(rounds []Round) float64 {
	var resident []float64
	for _, r := range rounds {
		resident = append(resident, float64(r.Memory.Resident))
	}
	return slopeOver * slope(resident)
}

func (b *bench) soak(ctx context.Context) (*Soak, error) {
	s := &Soak{Experiments: b.settings.SoakSize}
	g := &ground{bench: b, name: fmt.Sprintf("soak-%d", s.Experiments), engine: b.engine}
	g.dataDir = filepath.Join(b.dir, g.name)
	defer g.end()
	if _, err := g.make(ctx, s.Experiments); err != nil {
		return nil, err
	}
	if err := g.serve(ctx); err != nil {
		return nil, err
	}
	if _, err := g.first(ctx); err != nil {
		return nil, err
	}
	var err error
	// Both kinds of round warm up what they need.
	if s.Warmup, err = several(ctx, b.settings.WarmupRounds, alternate(g.touched, g.unchanged)); err != nil {
		return nil, err
	}
	if s.Unchanged, err = several(ctx, b.settings.SoakRounds, g.unchanged); err != nil {
		return nil, err
	}
	b.say("%s: %d unchanged rounds", g.name, len(s.Unchanged))
	if s.Changed, err = several(ctx, b.settings.SoakRounds, g.touched); err != nil {
		return nil, err
	}
	b.say("%s: %d rounds with 1 %% changed", g.name, len(s.Changed))
	g.end()
	return s, nil
}

func alternate(a, b func(context.Context) (Round, error)) func(context.Context) (Round, error) {
	turn := 0
	return func(ctx context.Context) (Round, error) {
		turn++
		if turn%2 == 1 {
			return a(ctx)
		}
		return b(ctx)
	}
}
