package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"lancefleet/web"
)

type lsCommand struct {
	clientFlags
	Query  string `short:"q" help:"Words and terms, as the page's text box takes them: gsm8k state:retired pending:>=100 last-write:<7d failing. See docs/api.md."`
	Search string `help:"Part of a name, any case; % and _ are ordinary characters. Finds also what only a source names."`
	Sort   string `help:"A column: name, last_write, row_count, fragment_count, pending_wal_generations, ... Default: last_write."`
	Order  string `help:"asc or desc. Default: names from a, everything else the largest first." enum:",asc,desc" default:""`
	State  string `help:"Only these: hot, retiring, retired; several with commas. Unset: hot and retiring, and with --search all."`
	Limit  int    `help:"At most so many, 1 to 500." default:"50"`
	Offset int    `help:"Leave out the first so many." default:"0"`
}

// Run prints one page of experiments.
func (c *lsCommand) Run(ctx context.Context, io streams) error {
	api, err := c.api()
	if err != nil {
		return err
	}
	query, err := c.query()
	if err != nil {
		return err
	}
	var list web.ExperimentList
	if _, err := api.get(ctx, "/api/v1/experiments", query, &list); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(io.out, list)
	}
	printList(io.out, list, time.Now())
	if list.Stale {
		fmt.Fprintln(io.err, "stale:", list.StaleWhy)
	}
	for _, why := range list.PartialWhy {
		fmt.Fprintln(io.err, "partial:", why)
	}
	return nil
}

func (c *lsCommand) query() (url.Values, error) {
	if c.Limit < 1 || c.Limit > 500 {
		return nil, usageError{fmt.Errorf("--limit %d: 1 to 500 is allowed", c.Limit)}
	}
	if c.Offset < 0 {
		return nil, usageError{fmt.Errorf("--offset %d: at least 0 is allowed", c.Offset)}
	}
	query := url.Values{"limit": {strconv.Itoa(c.Limit)}, "offset": {strconv.Itoa(c.Offset)}}
	if c.Query != "" {
		query.Set("q", c.Query)
	}
	if c.Search != "" {
		query.Set("search", c.Search)
	}
	if c.Sort != "" {
		query.Set("sort", c.Sort)
	}
	if c.State != "" {
		query.Set("state", c.State)
	}
	if c.Order != "" {
		query.Set("order", c.Order)
	}
	return query, nil
}

func printList(w io.Writer, list web.ExperimentList, now time.Time) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tSTATE\tLAST WRITE\tROWS\tFRAGMENTS\tPENDING\tREASON")
	for _, e := range list.Experiments {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", e.Name, e.State, ago(e.LastWrite, now), rows(e), count(e.FragmentCount), count(e.PendingWAL), e.Reason)
	}
	_ = table.Flush()
	fmt.Fprintf(w, "%d of %d\n", len(list.Experiments), list.Total)
}

// rows marks upper bounds, so that nobody takes one for a count.
func rows(e web.Summary) string {
	text := count(e.RowCount)
	if e.RowCount != nil && e.RowsExact != nil && !*e.RowsExact {
		return "≤" + text
	}
	return text
}

func count(n *int64) string {
	if n == nil {
		return "?"
	}
	return strconv.FormatInt(*n, 10)
}

func ago(at *int64, now time.Time) string {
	if at == nil {
		return "?"
	}
	d := now.Sub(time.UnixMilli(*at))
	switch {
	case d < time.Minute:
		return "now"
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	default:
		return fmt.Sprintf("%d d ago", int(d.Hours()/24))
	}
}

type showCommand struct {
	clientFlags
	Name  experimentName `arg:"" help:"kind:name, or a bare name: the rollout of that name, else the only match."`
	Fresh bool           `help:"Observe it now for this answer; nothing is stored."`
}

// Run prints one experiment.
func (c *showCommand) Run(ctx context.Context, io streams) error {
	api, err := c.api()
	if err != nil {
		return err
	}
	query := url.Values{}
	if c.Fresh {
		query.Set("fresh", "true")
	}
	var detail web.Detail
	if _, err := api.get(ctx, experimentPath(c.Name), query, &detail); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(io.out, detail)
	}
	printDetail(io.out, detail, time.Now())
	return nil
}

func printDetail(w io.Writer, d web.Detail, now time.Time) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(name string, value any) { fmt.Fprintf(table, "%s\t%v\n", name, value) }
	line("experiment", d.ID)
	line("uri", d.URI)
	line("state", d.State)
	line("health", d.Health)
	line("next", fmt.Sprintf("%s: %s", d.Action, d.Reason))
	line("last write", moment(d.LastWrite, now))
	line("last maintenance", moment(d.LastMaintenance, now))
	line("last observed", moment(d.ObservedAt, now))
	line("rows", rows(d.Summary))
	line("fragments", count(d.FragmentCount))
	line("pending generations", count(d.PendingWAL))
	line("shards", count(d.Shards))
	line("version", count(d.Version))
	line("bytes", count(d.Bytes))
	if e := d.Evidence; e != nil {
		line("retired", moment(&e.RetiredAt, now))
		line("verified", moment(&e.VerifiedAt, now))
	}
	if d.Running != nil {
		line("running", fmt.Sprintf("%s since %s", d.Running.Action, moment(&d.Running.StartedAt, now)))
	}
	if len(d.Tags) > 0 {
		line("tags", strings.Join(d.Tags, ", "))
	}
	if d.Error != "" {
		line("error", fmt.Sprintf("%s (%s)", d.Error, d.ErrorClass))
	}
	_ = table.Flush()
}

// moment is relative and exact: the first to read, the second to copy.
func moment(at *int64, now time.Time) string {
	if at == nil {
		return "unknown"
	}
	return fmt.Sprintf("%s (%s)", ago(at, now), time.UnixMilli(*at).UTC().Format(time.RFC3339))
}
