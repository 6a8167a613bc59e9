package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"lancefleet/web"
)

type acceptCommand struct {
	askFlags
	Name     experimentName `arg:"" help:"kind:name, or a bare name: the rollout of that name, else the only match."`
	LeaveOut bool           `help:"Take what the log lists out without merging it. Rows that are nowhere else are lost."`
	DryRun   bool           `help:"Show what would be decided about and what comes of it, and do nothing."`
	Yes      bool           `help:"Don't ask."`
	Wait     bool           `help:"Wait for its end and print what became of it."`
}

// Run shows what every merge refuses and what comes of accepting it, asks, and has it
// done for exactly what was shown.
func (c *acceptCommand) Run(ctx context.Context, io streams) error {
	switch {
	case c.JSON && !c.Yes && !c.DryRun:
		return usageError{errors.New("--json asks no questions: add --yes, or --dry-run to look")}
	case c.Why == "" && !c.DryRun:
		return usageError{errors.New("--why: must be given: the journal keeps why it was decided so")}
	}
	api, err := c.api()
	if err != nil {
		return err
	}
	query := url.Values{"action": {"accept"}}
	if c.LeaveOut {
		query.Set("leave_out", "true")
	}
	var plan web.MaintenancePlan
	if _, err := api.get(ctx, experimentPath(c.Name)+"/plan", query, &plan); err != nil {
		return err
	}
	if c.JSON && c.DryRun {
		return printJSON(io.out, plan)
	}
	if !c.JSON {
		printPlan(io.out, plan)
	}
	if c.DryRun {
		return nil
	}
	if !plan.Start || plan.Accept == nil {
		return fmt.Errorf("accept %s: not started: %s", plan.ID, plan.Reason)
	}
	if !c.Yes {
		if err := confirm(io, fmt.Sprintf("Accept %s as it is?", plan.ID)); err != nil {
			return err
		}
	}
	request := web.AcceptRequest{By: orMe(c.By), Why: c.Why, LeaveOut: c.LeaveOut, Seen: plan.Accept.Seen}
	return maintain(ctx, io, c.clientFlags, asking{"accept", c.Name, request, false, c.Wait})
}
