package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"lancefleet/e2e/s3test"
	"lancefleet/fleet"
	"lancefleet/lance"
)

// SearchPart is a search that shows experiments without a row: each is looked at
// because a page shows it.
type SearchPart struct {
	Pages  []ColdPage `json:"pages"`
	Again  []ColdPage `json:"again"`  // the same pages asked a second time
	Script []float64  `json:"script"` // seconds of a script for the first page; empty = not run
}

// ColdPage is one page of them.
type ColdPage struct {
	Seconds float64 `json:"seconds"`
	Shown   int     `json:"shown"`
	Looked  int     `json:"looked"` // of these; the rest is shown as not looked at
	Why     string  `json:"why"`    // what the page says of the rest
}

const (
	coldPageSize = 50
	coldThreads  = 16
)

func (b *bench) search(ctx context.Context, g *ground, cold int) (*SearchPart, error) {
	part := &SearchPart{}
	var err error
	if part.Pages, err = g.coldPages(ctx, cold); err != nil {
		return nil, err
	}
	if part.Again, err = g.coldPages(ctx, cold); err != nil {
		return nil, err
	}
	b.say("pages of experiments without a row: slowest %.2f s, %d of %d looked at", spreadOf(part.seconds()).Max, part.looked(), part.shown())
	return part, nil
}

func (g *ground) coldPages(ctx context.Context, cold int) ([]ColdPage, error) {
	var pages []ColdPage
	for offset := 0; offset < cold; offset += coldPageSize {
		page, err := g.coldPage(ctx, offset)
		if err != nil {
			return nil, err
		}
		if want := min(coldPageSize, cold-offset); page.Shown != want {
			return nil, fmt.Errorf("page from %d shows %d experiments without a row instead of %d", offset, page.Shown, want)
		}
		pages = append(pages, page)
	}
	return pages, nil
}

func (g *ground) coldPage(ctx context.Context, offset int) (ColdPage, error) {
	var found struct {
		Experiments []struct {
			Stored   bool   `json:"stored"`
			RowCount *int64 `json:"row_count"`
		} `json:"experiments"`
		PartialWhy []string `json:"partial_why"`
	}
	begun := time.Now()
	err := ask(ctx, http.MethodGet, g.server+list("q", "unseen", "sort", "name", "order", "asc", "limit", strconv.Itoa(coldPageSize), "offset", strconv.Itoa(offset)), nil, &found)
	page := ColdPage{Seconds: time.Since(begun).Seconds(), Why: strings.Join(found.PartialWhy, "; ")}
	for _, e := range found.Experiments {
		if e.Stored {
			continue
		}
		page.Shown++
		if e.RowCount != nil {
			page.Looked++
		}
	}
	return page, err
}

// searchRemote does the same on an S3 server with latency, with nothing but names.
func (b *bench) searchRemote(ctx context.Context, s webSettings, r *webReport) error {
	if s.S3Cold == 0 {
		return nil
	}
	if err := b.missingForRemote(); err != nil {
		r.NotRun = append(r.NotRun, NotRun{"a search on S3", err.Error()})
		return nil
	}
	dir := filepath.Join(b.dir, "s3")
	if err := os.MkdirAll(filepath.Join(dir, "buckets", bucket), 0o755); err != nil {
		return err
	}
	server, err := s3test.Launch(ctx, dir)
	if err != nil {
		return err
	}
	defer server.Stop()
	proxy, err := startProxy(ctx, b, server.Endpoint, s.LatencyMS)
	if err != nil {
		return err
	}
	defer proxy.stop()
	engine, err := lance.Open(lance.Options{Library: b.tools.native, StorageOptions: server.StorageOptions()})
	if err != nil {
		return err
	}
	defer engine.Close()
	g := &ground{bench: b, name: "far", engine: engine, dataDir: "s3://" + bucket + "/fleet", env: server.Environment()}
	defer g.end()
	if err := g.fill(ctx, s.S3Cold, "--generations", "2"); err != nil {
		return err
	}
	g.env = s3test.EnvironmentFor(proxy.endpoint)
	if err := g.serve(ctx); err != nil {
		return err
	}
	if err := g.untilRead(ctx, webSettings{Cold: s.S3Cold}); err != nil {
		return err
	}
	if r.Remote, err = b.search(ctx, g, s.S3Cold); err != nil {
		return err
	}
	r.Remote.Script, err = b.openScript(ctx, firstOf(g.experiments), s3test.OptionsFor(proxy.endpoint))
	return err
}

// openScript opens the datasets of one page with pylance.
func (b *bench) openScript(ctx context.Context, exps []fleet.Experiment, options map[string]string) ([]float64, error) {
	if b.tools.python == "" {
		return nil, nil
	}
	p, err := b.poll(ctx, pollWork{look: lookOpen, concurrency: coldThreads, rounds: 5, experiments: exps, options: options})
	return p.Seconds, err
}

// firstOf are those of the first page.
func firstOf(exps []fleet.Experiment) []fleet.Experiment {
	sorted := slices.SortedFunc(slices.Values(exps), func(a, b fleet.Experiment) int { return strings.Compare(a.Name, b.Name) })
	return sorted[:min(len(sorted), coldPageSize)]
}

// tableScript reads the table for each question instead of asking a server.
func (b *bench) tableScript(ctx context.Context, g *ground) ([]Answered, error) {
	if b.tools.python == "" {
		return nil, nil
	}
	script := filepath.Join(filepath.Dir(b.tools.script), "web_table.py")
	text, err := output(ctx, pollLimit, nil, "", b.tools.python, script, g.dataDir+"/_stats.rollout.lance", "10")
	if err != nil {
		return nil, err
	}
	var seconds map[string][]float64
	if err := json.Unmarshal(text, &seconds); err != nil {
		return nil, fmt.Errorf("read what the script measured: %w: %s", err, text)
	}
	var out []Answered
	for what, took := range seconds {
		out = append(out, Answered{what, took})
	}
	slices.SortFunc(out, func(a, b Answered) int { return strings.Compare(b.What, a.What) })
	return out, nil
}

func (s *SearchPart) seconds() []float64 {
	var all []float64
	for _, p := range s.Pages {
		all = append(all, p.Seconds)
	}
	return all
}

func (s *SearchPart) shown() int  { return sumOf(s.Pages, func(p ColdPage) int { return p.Shown }) }
func (s *SearchPart) looked() int { return sumOf(s.Pages, func(p ColdPage) int { return p.Looked }) }

func sumOf(pages []ColdPage, of func(ColdPage) int) (n int) {
	for _, p := range pages {
		n += of(p)
	}
	return n
}

func (s *SearchPart) page(p *strings.Builder, head string) {
	fmt.Fprintf(p, "%s Pages of up to %d experiments that only a registry names; each is observed because the page shows it.\n\n", head, coldPageSize)
	rows := table{{"what", "seconds: min", "median", "max", "shown", "looked at"}}
	add := func(what string, pages []ColdPage) {
		spread := spreadOf((&SearchPart{Pages: pages}).seconds())
		rows = append(rows, []string{
			what, fmt.Sprintf("%.3f", spread.Min), fmt.Sprintf("%.3f", spread.Median), fmt.Sprintf("%.3f", spread.Max),
			strconv.Itoa((&SearchPart{Pages: pages}).shown()), strconv.Itoa((&SearchPart{Pages: pages}).looked()),
		})
	}
	add("asked for the first time", s.Pages)
	add("asked again", s.Again)
	if len(s.Script) > 0 {
		spread := spreadOf(s.Script)
		rows = append(rows, []string{
			fmt.Sprintf("a script opens those of one page, %d threads", coldThreads),
			fmt.Sprintf("%.3f", spread.Min), fmt.Sprintf("%.3f", spread.Median), fmt.Sprintf("%.3f", spread.Max),
		})
	}
	rows.write(p)
	for _, page := range s.Pages {
		if page.Why != "" {
			fmt.Fprintf(p, "A page that could not show all says: “%s”.\n\n", page.Why)
			break
		}
	}
}
