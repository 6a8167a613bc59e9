package main

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"lancefleet/lance"
)

const (
	writersAtOnce = 4
	writtenRows   = 5
)

// write has workers write to 1 % of the experiments, other ones each time, and
// flush: a generation appears, the base version stays.
func (g *ground) write(ctx context.Context) (written int, err error) {
	n := changed(len(g.experiments))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writersAtOnce)
	for _, i := range chosen(len(g.experiments), n, g.writes) {
		spec := lance.WritesSpec{URI: g.experiments[i].URI, Rows: writtenRows, Flush: true, Seed: 1_000_000 + g.writes}
		g.writes++
		group.Go(func() error {
			if _, err := g.engine.MakeWrites(ctx, spec); err != nil {
				return fmt.Errorf("write to %s: %w", spec.URI, err)
			}
			return nil
		})
	}
	return n, group.Wait()
}

// chosen spreads n over a fleet, so that every page has its share, and moves on
// with what was written before.
func chosen(experiments, n int, before int64) []int {
	indexes := make([]int, n)
	for i := range indexes {
		indexes[i] = (i*experiments/n + int(before/int64(n))) % experiments
	}
	return indexes
}
