package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"lancefleet/web"
	"lancefleet/workflows"
)

// askFlags are those of every command that has something done with one experiment.
type askFlags struct {
	clientFlags
	By  string `help:"Who asks; default: your user name."`
	Why string `help:"Kept in the journal."`
}

type retireCommand struct {
	askFlags
	Name   experimentName `arg:"" help:"kind:name, or a bare name: the rollout of that name, else the only match."`
	Wait   bool           `help:"Wait for its end and print what became of it."`
	DryRun bool           `help:"Say what it would do, and do nothing."`
	Force  bool           `help:"Also when it was written lately. Only the age is overlooked."`
}

// Run retires one experiment.
func (c *retireCommand) Run(ctx context.Context, io streams) error {
	request := web.RetireRequest{By: orMe(c.By), Why: c.Why, Force: c.Force}
	return maintain(ctx, io, c.clientFlags, asking{"retire", c.Name, request, c.DryRun, c.Wait})
}

type optimizeCommand struct {
	askFlags
	Name   experimentName `arg:"" help:"kind:name, or a bare name: the rollout of that name, else the only match."`
	Wait   bool           `help:"Wait for its end and print what became of it."`
	DryRun bool           `help:"Say what it would do, and do nothing."`
}

// Run merges and compacts one experiment.
func (c *optimizeCommand) Run(ctx context.Context, io streams) error {
	return maintain(ctx, io, c.clientFlags, asking{"optimize", c.Name, web.MaintenanceRequest{By: orMe(c.By), Why: c.Why}, c.DryRun, c.Wait})
}

type wakeCommand struct {
	askFlags
	Name experimentName `arg:"" help:"kind:name, or a bare name: the rollout of that name, else the only match."`
	Wait bool           `help:"Wait for its end and print what became of it."`
}

// Run has a retired experiment looked at now.
func (c *wakeCommand) Run(ctx context.Context, io streams) error {
	return maintain(ctx, io, c.clientFlags, asking{"wake", c.Name, web.MaintenanceRequest{By: orMe(c.By), Why: c.Why}, false, c.Wait})
}

// asking is one request about one experiment.
type asking struct {
	action  string
	name    experimentName
	request any
	dry     bool
	wait    bool
}

func (a asking) path() string { return experimentPath(a.name) + "/" + a.action }

func maintain(ctx context.Context, io streams, flags clientFlags, a asking) error {
	api, err := flags.api()
	if err != nil {
		return err
	}
	if a.dry {
		var plan web.MaintenancePlan
		if _, err := api.call(ctx, http.MethodPost, a.path(), url.Values{"dry_run": {"true"}}, a.request, &plan); err != nil {
			return err
		}
		if flags.JSON {
			return printJSON(io.out, plan)
		}
		printPlan(io.out, plan)
		return nil
	}
	var started web.MaintenanceStarted
	if err := api.post(ctx, a.path(), a.request, &started); err != nil {
		return err
	}
	if !a.wait {
		return printMaintenanceStarted(io, flags.JSON, started)
	}
	return api.follow(ctx, io, flags.JSON, started)
}

func printMaintenanceStarted(io streams, asJSON bool, s web.MaintenanceStarted) error {
	if asJSON {
		return printJSON(io.out, s)
	}
	if s.AlreadyRunning {
		_, err := fmt.Fprintf(io.out, "%s is being worked on already: run %s of %s\n", s.ID, s.RunID, s.WorkflowID)
		return err
	}
	_, err := fmt.Fprintf(io.out, "%s %s: started, run %s of %s: %s\n", s.Action, s.ID, s.RunID, s.WorkflowID, s.Reason)
	return err
}

// follow waits for a run and prints what became of it.
func (a *api) follow(ctx context.Context, io streams, asJSON bool, s web.MaintenanceStarted) error {
	path := fmt.Sprintf("/api/v1/maintenance/%s/%s", url.PathEscape(s.WorkflowID), url.PathEscape(s.RunID))
	asking := polling{path: path, wait: pollWait}
	if !asJSON {
		what := "started: " + s.Reason
		if s.AlreadyRunning {
			what = "is being worked on already: waiting for that"
		}
		fmt.Fprintf(io.err, "%s %s %s (run %s)\n", s.Action, s.ID, what, s.RunID)
		told := progress{to: io.err}
		asking.wait, asking.running = progressWait, told.tell
	}
	ended := new(web.MaintenanceEnded)
	if err := a.poll(ctx, asking, ended); err != nil {
		return fmt.Errorf("run %s: %w", s.RunID, err)
	}
	if asJSON {
		if err := printJSON(io.out, ended); err != nil {
			return err
		}
	} else {
		printEnded(io.out, *ended)
	}
	if ended.Outcome != workflows.OutcomeDone && ended.Outcome != workflows.OutcomeNoop {
		return fmt.Errorf("%s %s: %s: %s", ended.Action, ended.ID, ended.Outcome, ended.Sentence)
	}
	return nil
}
