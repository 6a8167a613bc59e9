package main

import (
	"context"
	"fmt"
	"path/filepath"
)

// Local is one fleet on local disk.
type Local struct {
	Experiments int      `json:"experiments"`
	MakeSeconds float64  `json:"make_seconds"`
	First       Round    `json:"first"` // knows nothing: everything is observed in full
	Unchanged   []Round  `json:"unchanged"`
	Changed     []Round  `json:"changed"` // 1 % written before each
	Scripts     []Script `json:"scripts"` // empty = not run
}

// local measures one fleet, then the script on the same fleet with our programs
// ended. Fleets, tables and libraries are in the page cache for both.
func (b *bench) local(ctx context.Context, experiments int) (Local, error) {
	l := Local{Experiments: experiments}
	g := &ground{bench: b, name: fmt.Sprintf("local-%d", experiments), engine: b.engine}
	g.dataDir = filepath.Join(b.dir, g.name)
	defer g.end()
	var err error
	if l.MakeSeconds, err = g.make(ctx, experiments); err != nil {
		return l, err
	}
	b.say("%s: made in %.1f s", g.name, l.MakeSeconds)
	if err := b.localRounds(ctx, g, &l); err != nil {
		return l, err
	}
	g.end()
	if b.tools.python == "" {
		return l, nil
	}
	for _, look := range looks {
		script, err := b.script(ctx, look, g.experiments)
		if err != nil {
			return l, err
		}
		b.say("%s: script %s, concurrency %d, median %.2f s", g.name, said(look), script.Poll.Concurrency, median(script.Poll.Seconds))
		l.Scripts = append(l.Scripts, script)
	}
	return l, nil
}

func (b *bench) localRounds(ctx context.Context, g *ground, l *Local) (err error) {
	if err := g.serve(ctx); err != nil {
		return err
	}
	if l.First, err = g.first(ctx); err != nil {
		return err
	}
	b.say("%s: first round %.2f s", g.name, l.First.Seconds)
	if err := resetPeak(g.worker.PID()); err != nil {
		return fmt.Errorf("reset the peak memory of the worker: %w", err)
	}
	if l.Unchanged, err = several(ctx, b.settings.Rounds, g.unchanged); err != nil {
		return err
	}
	b.say("%s: unchanged, median %.2f s", g.name, median(secondsOf(l.Unchanged)))
	if l.Changed, err = several(ctx, b.settings.Rounds, g.touched); err != nil {
		return err
	}
	b.say("%s: 1 %% changed, median %.2f s", g.name, median(secondsOf(l.Changed)))
	return nil
}
