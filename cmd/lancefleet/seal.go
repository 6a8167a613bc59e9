package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"lancefleet/web"
)

type sealCommand struct {
	askFlags
	Name         experimentName `arg:"" help:"kind:name, or a bare name: the rollout of that name, else the only match."`
	Shard        string         `help:"Id of the shard, as verify and show tell it." required:""`
	AllowUnknown bool           `help:"Replay entries too of which nobody can tell whether the table has them: deleted rows and old values may come back."`
	DryRun       bool           `help:"Show what would be replayed, and do nothing."`
	Yes          bool           `help:"Don't ask."`
	Wait         bool           `help:"Wait for its end and print what became of it."`
}

// Run shows what would be replayed, asks, and has it replayed.
func (c *sealCommand) Run(ctx context.Context, io streams) error {
	if c.JSON && !c.Yes && !c.DryRun {
		return usageError{errors.New("--json asks no questions: add --yes, or --dry-run to look")}
	}
	api, err := c.api()
	if err != nil {
		return err
	}
	if !c.Yes || c.DryRun {
		plan, err := c.plan(ctx, api)
		if err != nil || c.DryRun {
			return c.told(io, plan, err)
		}
		printPlan(io.out, plan)
		if !plan.Start {
			return fmt.Errorf("seal %s: not started: %s", plan.ID, plan.Reason)
		}
		if err := confirm(io, fmt.Sprintf("Replay %d entries into shard %s?", len(plan.Seal.Entries), c.Shard)); err != nil {
			return err
		}
	}
	request := web.SealRequest{Shard: c.Shard, By: orMe(c.By), Why: c.Why, AllowUnknown: c.AllowUnknown}
	return maintain(ctx, io, c.clientFlags, asking{"seal", c.Name, request, false, c.Wait})
}

func (c *sealCommand) plan(ctx context.Context, api *api) (web.MaintenancePlan, error) {
	query := url.Values{"action": {"seal"}, "shard": {c.Shard}}
	if c.AllowUnknown {
		query.Set("allow_unknown", "true")
	}
	var plan web.MaintenancePlan
	_, err := api.get(ctx, experimentPath(c.Name)+"/plan", query, &plan)
	return plan, err
}

func (c *sealCommand) told(io streams, plan web.MaintenancePlan, err error) error {
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(io.out, plan)
	}
	printPlan(io.out, plan)
	return nil
}

// confirm asks the person at the terminal. Where there is none nobody can be asked.
func confirm(io streams, question string) error {
	if f, isFile := io.in.(*os.File); isFile && !isTerminal(f) {
		return usageError{errors.New("nobody can be asked here: add --yes")}
	}
	fmt.Fprint(io.err, question+" Type yes: ")
	answer, _ := bufio.NewReader(io.in).ReadString('\n') // the end of input is no yes
	if strings.TrimSpace(answer) != "yes" {
		return errors.New("nothing was done")
	}
	return nil
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
