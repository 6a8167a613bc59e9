package makefleet

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"lancefleet/fleet"
	"lancefleet/lance"
)

const (
	liveWriters = 8               // experiments that are written at the same time
	liveEvery   = 2 * time.Second // between one writer's batches
	liveRows    = 5               // rows of a batch
	flushOneIn  = 3               // batches that end in a flush; the rest stay in the write-ahead log
)

// Live keeps writing to a few of the plan's experiments, as workers do, until the
// context ends. A write that fails is logged and the next one tried.
func Live(ctx context.Context, engine *lance.Engine, dataDir string, plan Plan, log *slog.Logger) error {
	written := plan.written(dataDir)
	if len(written) == 0 {
		return errors.New("live: no experiment to write to")
	}
	ticker := time.NewTicker(liveEvery / time.Duration(len(written)))
	defer ticker.Stop()
	// Keys must not repeat those of an earlier run: they would be updates only.
	random := rand.New(rand.NewPCG(uint64(plan.Seed), uint64(time.Now().UnixNano())))
	for turn := 0; ; turn++ {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := writeOnce(ctx, engine, written[turn%len(written)], random); err != nil && ctx.Err() == nil {
			log.Warn("live write", "error", err)
		}
	}
}

// written are the first hot experiments.
func (p Plan) written(dataDir string) []Dataset {
	var found []Dataset
	for _, d := range p.Datasets(dataDir, time.Time{}) {
		hot := d.Template%(len(hotAges)+len(coldAges)) < len(hotAges)
		if hot && len(found) < liveWriters {
			found = append(found, d)
		}
	}
	return found
}

func writeOnce(ctx context.Context, engine *lance.Engine, d Dataset, random *rand.Rand) error {
	_, err := engine.MakeWrites(ctx, lance.WritesSpec{
		URI: d.URI, Rows: liveRows, Seed: random.Int64(),
		Flush:  random.IntN(flushOneIn) == 0,
		Append: d.Kind == fleet.Table,
	})
	return err
}
