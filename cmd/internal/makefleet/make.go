package makefleet

import (
	"context"
	"errors"
	"fmt"
	"path"
	"runtime"
	"time"

	"lancefleet/lance"
)

// Result says what Make did.
type Result struct {
	Made     int
	Existing int // were there already and were left as they are
	Duration time.Duration
}

// Make makes the plan's datasets below dataDir and registers them. Datasets that
// exist stay as they are, so a run that was cut short can be repeated, and a
// larger plan of the same seed makes a fleet grow.
func Make(ctx context.Context, engine *lance.Engine, dataDir string, plan Plan, now time.Time) (Result, error) {
	if err := plan.Validate(); err != nil {
		return Result{}, err
	}
	begun := time.Now()
	datasets := plan.Datasets(dataDir, now)
	missing, err := absent(ctx, engine, dataDir, datasets)
	if err != nil {
		return Result{}, err
	}
	if len(missing) > 0 {
		if err := makeAll(ctx, engine, plan, missing); err != nil {
			return Result{}, fmt.Errorf("make %d experiments: %w", len(missing), err)
		}
	}
	if err := register(ctx, engine, dataDir, datasets); err != nil {
		return Result{}, err
	}
	return Result{Made: len(missing), Existing: len(datasets) - len(missing), Duration: time.Since(begun)}, nil
}

func absent(ctx context.Context, engine *lance.Engine, dataDir string, datasets []Dataset) ([]Dataset, error) {
	names, err := engine.ListDirs(ctx, dataDir)
	if err != nil && !errors.Is(err, lance.ErrGone) {
		return nil, fmt.Errorf("list %s: %w", dataDir, err)
	}
	there := make(map[string]bool, len(names))
	for _, name := range names {
		there[name] = true
	}
	var missing []Dataset
	for _, d := range datasets {
		if !there[path.Base(d.URI)] {
			missing = append(missing, d)
		}
	}
	return missing, nil
}

func makeAll(ctx context.Context, engine *lance.Engine, plan Plan, datasets []Dataset) error {
	used := map[int]int{}                                      // a small fleet needs few of the templates
	spec := lance.FleetSpec{Concurrency: 4 * runtime.NumCPU()} // each waits for storage most of the time
	templates := plan.Templates()
	for _, d := range datasets {
		number, ok := used[d.Template]
		if !ok {
			number = len(spec.Templates)
			used[d.Template] = number
			spec.Templates = append(spec.Templates, templates[d.Template])
		}
		spec.Items = append(spec.Items, lance.FleetItem{URI: d.URI, Template: number})
	}
	_, err := engine.MakeFleet(ctx, spec)
	return err
}
