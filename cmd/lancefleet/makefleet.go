package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"lancefleet/cmd/internal/makefleet"
	"lancefleet/lance"
)

type makeFleetCommand struct {
	DataDir     string   `help:"Folder or bucket to make it in." required:"" env:"DATA_DIR"`
	Experiments int      `help:"How many." required:""`
	Shards      int      `help:"Write-ahead log shards of each rollout and generic store." default:"1"`
	Generations int      `help:"Flushed and not yet merged, in each shard." default:"3"`
	Rows        int      `help:"Rows in each fragment and each generation." default:"5"`
	Fragments   int      `help:"Fragments of each base table." default:"1"`
	Tombstones  bool     `help:"Newest generations delete some keys."`
	Stranded    bool     `help:"Writers died with acknowledged rows in the log that no generation holds."`
	ColdShare   float64  `help:"Share of experiments that nobody has written for more than a week, 0 to 1." default:"0"`
	Kinds       []string `help:"rollout, generic, table; taken in turn." default:"rollout"`
	Seed        int64    `help:"The same seed makes the same fleet." default:"1"`
	Live        bool     `help:"Then keep writing to a few of them like real workers, until interrupted."`
	JSON        bool     `name:"json" help:"Print one JSON document."`
}

type madeDocument struct {
	DataDir         string  `json:"data_dir"`
	Made            int     `json:"made"`
	Existing        int     `json:"existing"`
	DurationSeconds float64 `json:"duration_seconds"`
}

func (c *makeFleetCommand) plan() (makefleet.Plan, error) {
	kinds, err := makefleet.ParseKinds(c.Kinds)
	if err != nil {
		return makefleet.Plan{}, usageError{fmt.Errorf("--kinds: %w", err)}
	}
	plan := makefleet.Plan{
		Experiments: c.Experiments, Shards: c.Shards, Generations: c.Generations, Rows: c.Rows, Fragments: c.Fragments,
		Tombstones: c.Tombstones, Stranded: c.Stranded, ColdShare: c.ColdShare, Kinds: kinds, Seed: c.Seed,
	}
	if err := plan.Validate(); err != nil {
		return plan, usageError{fmt.Errorf("--%w", err)}
	}
	return plan, nil
}

// Run makes the fleet.
func (c *makeFleetCommand) Run(ctx context.Context, io streams, log *slog.Logger) error {
	plan, err := c.plan()
	if err != nil {
		return err
	}
	dataDir, err := cleanDataDir(c.DataDir)
	if err != nil {
		return err
	}
	engine, err := lance.Open(lance.Options{})
	if err != nil {
		return err
	}
	defer engine.Close()
	made, err := makefleet.Make(ctx, engine, dataDir, plan, time.Now())
	if err != nil {
		return err
	}
	if err := c.print(io, dataDir, made); err != nil || !c.Live {
		return err
	}
	return makefleet.Live(ctx, engine, dataDir, plan, log)
}

func (c *makeFleetCommand) print(io streams, dataDir string, made makefleet.Result) error {
	if c.JSON {
		return printJSON(io.out, madeDocument{dataDir, made.Made, made.Existing, made.Duration.Seconds()})
	}
	_, err := fmt.Fprintf(io.out, "made %d experiments in %s in %.1f s; %d were there already\n", made.Made, dataDir, made.Duration.Seconds(), made.Existing)
	if len(c.Kinds) > 1 {
		fmt.Fprintln(io.err, "tables have no registry: look at this fleet with --sources registry,folder")
	}
	return err
}
