package main

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"lancefleet/web"
)

type verifyCommand struct {
	clientFlags
	Name experimentName `arg:"" help:"kind:name, or a bare name: the rollout of that name, else the only match."`
	Deep bool           `help:"Compare rows with distinct keys too: reads the key columns."`
}

// Run reopens everything and fails when anything is pending, stranded or unknown.
func (c *verifyCommand) Run(ctx context.Context, io streams) error {
	api, err := c.api()
	if err != nil {
		return err
	}
	query := url.Values{}
	if c.Deep {
		query.Set("deep", "true")
	}
	var v web.Verification
	if _, err := api.get(ctx, experimentPath(c.Name)+"/verify", query, &v); err != nil {
		return err
	}
	if c.JSON {
		err = printJSON(io.out, v)
	} else {
		printVerification(io.out, v)
	}
	if err == nil && !v.Clean {
		return fmt.Errorf("%s is not clean: %s", v.ID, notClean(v))
	}
	return err
}

// blockingTold is how many sentences the last line has; all are listed above it.
const blockingTold = 2

// notClean says in one line what stands in the way of a retirement.
func notClean(v web.Verification) string {
	if len(v.Blocking) == 0 {
		return fmt.Sprintf("%d pending, %d stranded, %d unknown", v.Pending, v.Stranded, v.Unknown)
	}
	told := v.Blocking[:min(blockingTold, len(v.Blocking))]
	words := strings.Join(told, "; ")
	if more := len(v.Blocking) - len(told); more > 0 {
		words += fmt.Sprintf("; and %d more", more)
	}
	return words
}

type planCommand struct {
	clientFlags
	Limit int `help:"At most so many of each list, 1 to 500." default:"100"`
}

// Run prints what the next round would start, and why not for the rest.
func (c *planCommand) Run(ctx context.Context, io streams) error {
	api, err := c.api()
	if err != nil {
		return err
	}
	query, err := limited(c.Limit)
	if err != nil {
		return err
	}
	var plan web.FleetPlan
	if _, err := api.get(ctx, "/api/v1/plan", query, &plan); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(io.out, plan)
	}
	printFleetPlan(io.out, plan)
	return nil
}

type historyCommand struct {
	clientFlags
	Name  experimentName `arg:"" help:"kind:name, or a bare name: the rollout of that name, else the only match."`
	Limit int            `help:"At most so many, 1 to 500." default:"50"`
}

// Run prints what was done with one experiment.
func (c *historyCommand) Run(ctx context.Context, io streams) error {
	api, err := c.api()
	if err != nil {
		return err
	}
	query, err := limited(c.Limit)
	if err != nil {
		return err
	}
	var history web.History
	if _, err := api.get(ctx, experimentPath(c.Name)+"/history", query, &history); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(io.out, history)
	}
	if len(history.Actions) == 0 && history.Running == nil {
		fmt.Fprintln(io.out, "nothing was done with it yet, as far as the journal goes back (90 days)")
		return nil
	}
	printHistory(io.out, history, time.Now())
	return nil
}

func limited(n int) (url.Values, error) {
	if n < 1 || n > 500 {
		return nil, usageError{fmt.Errorf("--limit %d: 1 to 500 is allowed", n)}
	}
	return url.Values{"limit": {strconv.Itoa(n)}}, nil
}
