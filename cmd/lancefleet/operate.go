package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/user"
	"strconv"
	"strings"
	"time"

	"lancefleet/web"
)

func printJSON(w io.Writer, document any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(document)
}

// whoAmI is the name that pauses and rounds are signed with.
func whoAmI() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "command line"
}

type scanCommand struct {
	clientFlags
	Wait bool   `help:"Wait for the result of a round that starts after this call."`
	Full bool   `help:"Observe everything, skip nothing, forget back-offs."`
	By   string `help:"Who asks; default: your user name."`
}

// Run starts a round, and with --wait prints what it found.
func (c *scanCommand) Run(ctx context.Context, io streams) error {
	api, err := c.api()
	if err != nil {
		return err
	}
	var started web.Started
	request := web.RescanRequest{Full: c.Full, By: orMe(c.By), Next: c.Wait}
	if err := api.post(ctx, "/api/v1/rescan", request, &started); err != nil {
		return err
	}
	if !c.Wait {
		return c.printStarted(io.out, started)
	}
	if !c.JSON {
		fmt.Fprintf(io.err, "round %s runs\n", started.RunID)
	}
	round, err := api.waitRound(ctx, started)
	if err != nil {
		return fmt.Errorf("round %s: %w", started.RunID, err)
	}
	if err := api.waitShown(ctx, *round); err != nil { // the round is over all the same
		fmt.Fprintln(io.err, "warning: whether the server shows the round already is not known:", err)
	}
	if c.JSON {
		return printJSON(io.out, round)
	}
	printRound(io.out, *round)
	return nil
}

func (c *scanCommand) printStarted(w io.Writer, started web.Started) error {
	if c.JSON {
		return printJSON(w, started)
	}
	what := "started"
	if started.AlreadyRunning {
		what = "was running already"
	}
	_, err := fmt.Fprintf(w, "round %s of %s %s\n", started.RunID, started.WorkflowID, what)
	return err
}

// A round goes on while its server is restarted, so waiting for it outlives that.
const (
	unansweredMost  = 30 // polls in a row
	unansweredPause = 2 * time.Second
)

// waitRound polls until the round has ended.
func (a *api) waitRound(ctx context.Context, started web.Started) (*web.Round, error) {
	round := new(web.Round)
	path := fmt.Sprintf("/api/v1/rounds/%s/%s", url.PathEscape(started.WorkflowID), url.PathEscape(started.RunID))
	return round, a.poll(ctx, polling{path: path, wait: pollWait}, round)
}

// polling is what is asked for until it is there.
type polling struct {
	path    string
	wait    time.Duration              // of each question, on the server
	running func(text json.RawMessage) // told each time it still runs; nil = nobody
}

// pollWait is how long a question waits on the server when only the end matters.
const pollWait = 30 * time.Second

// poll asks until the answer is there (200) and no longer running (202); each
// question waits on the server.
func (a *api) poll(ctx context.Context, p polling, into any) error {
	query := url.Values{"wait_secs": {strconv.Itoa(int(p.wait.Seconds()))}}
	for unanswered := 0; ; {
		var text json.RawMessage
		status, err := a.get(ctx, p.path, query, &text)
		switch {
		case err == nil && status == http.StatusOK:
			return json.Unmarshal(text, into)
		case err == nil:
			unanswered = 0
			if p.running != nil {
				p.running(text)
			}
		case exitCode(err) != exitUnreachable || unanswered == unansweredMost:
			return err
		default:
			unanswered++
			if err := pause(ctx, unansweredPause); err != nil {
				return err
			}
		}
	}
}

// How long a server may take to show what a round has committed.
const (
	shownPolls = 50
	shownPause = 200 * time.Millisecond
)

// waitShown waits until the server shows what the round committed, so that an `ls`
// that follows sees it. A server that can't read its table is not waited for.
func (a *api) waitShown(ctx context.Context, round web.Round) error {
	for range shownPolls {
		var status web.Status
		if _, err := a.get(ctx, "/api/v1/status", nil, &status); err != nil {
			return err
		}
		if shows(status, round) || status.StorageProblem != "" {
			return nil
		}
		if err := pause(ctx, shownPause); err != nil {
			return err
		}
	}
	return nil
}

// shows is false while the server's copy of the table is older than the round. Of
// one that committed nothing it is only known that there is a table, when anything
// is hot: another round has committed it.
func shows(status web.Status, round web.Round) bool {
	if !status.Loaded || status.StatsVersion == nil {
		return false
	}
	if round.CommittedVersion == nil {
		return *status.StatsVersion > 0 || round.Hot == 0
	}
	return *status.StatsVersion >= *round.CommittedVersion
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func printRound(w io.Writer, r web.Round) {
	version := "nothing to commit"
	if r.CommittedVersion != nil {
		version = "committed as version " + strconv.FormatUint(*r.CommittedVersion, 10)
	}
	q := r.StorageRequests
	fmt.Fprintf(w, "round %s: %d observed, %d unchanged, %d failed, %d backing off; %d hot; %s; %.2f s\n",
		r.RoundID, r.Observed, r.Skipped, r.Failed, r.BackingOff, r.Hot, version, r.DurationSeconds)
	fmt.Fprintf(w, "storage requests: %d list, %d head, %d get, %d put, %d delete\n", q.List, q.Head, q.Get, q.Put, q.Delete)
}

type pauseCommand struct {
	clientFlags
	Reason string `help:"Why; shown on every page while paused." required:""`
	By     string `help:"Who; default: your user name."`
}

// Run stops the schedule.
func (c *pauseCommand) Run(ctx context.Context, io streams) error {
	return steer(ctx, io, c.clientFlags, "pause", web.PauseRequest{Reason: c.Reason, By: orMe(c.By)})
}

type resumeCommand struct {
	clientFlags
	Reason string `help:"Why; kept in the journal."`
	By     string `help:"Who; default: your user name."`
}

// Run lets the schedule go on.
func (c *resumeCommand) Run(ctx context.Context, io streams) error {
	return steer(ctx, io, c.clientFlags, "resume", web.ResumeRequest{Reason: c.Reason, By: orMe(c.By)})
}

func steer(ctx context.Context, io streams, flags clientFlags, action string, request any) error {
	api, err := flags.api()
	if err != nil {
		return err
	}
	var state web.Schedule
	if err := api.post(ctx, "/api/v1/schedule/"+action, request, &state); err != nil {
		return err
	}
	if state.Warning != "" {
		fmt.Fprintln(io.err, "warning:", state.Warning)
	}
	if flags.JSON {
		return printJSON(io.out, state)
	}
	if state.Paused {
		_, err = fmt.Fprintf(io.out, "paused by %s: %s\n", state.By, state.Reason)
	} else {
		_, err = fmt.Fprintf(io.out, "running, a round every %d s\n", state.IntervalSecs)
	}
	return err
}

func orMe(by string) string {
	if strings.TrimSpace(by) == "" {
		return whoAmI()
	}
	return by
}
