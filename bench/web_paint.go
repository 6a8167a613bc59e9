package main

import (
	"context"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"lancefleet/store"
)

// PaintPart is when a browser first shows something of a page.
type PaintPart struct {
	Loads int       `json:"loads"`
	Pages []Painted `json:"pages"`
}

// Painted is one page.
type Painted struct {
	What       string    `json:"what"`
	FirstPaint []float64 `json:"first_paint"` // seconds from the start of the navigation: something of its content
	Loaded     []float64 `json:"loaded"`      // seconds, everything
	Bytes      int64     `json:"bytes"`       // of the document, as sent
}

// chromiumPath is empty where there is none.
func chromiumPath() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

func (b *bench) paint(ctx context.Context, g *ground, path string, s webSettings) (*PaintPart, error) {
	snapshot, err := store.NewStats(g.engine.Reader, g.dataDir).Latest(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := chromedp.NewExecAllocator(ctx,
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.Headless, chromedp.DisableGPU, chromedp.NoFirstRun,
		chromedp.UserDataDir(filepath.Join(b.dir, "chromium")), chromedp.WSURLReadTimeout(startPatience),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true))
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()
	if err := chromedp.Do(ctx); err != nil {
		return nil, fmt.Errorf("start Chromium: %w", err)
	}
	defer func() { _ = chromedp.Cancel(ctx) }()
	part := &PaintPart{Loads: s.Loads}
	for _, page := range []struct {
		what   string
		target func(i int) string
	}{
		{"list", func(i int) string { return "/?offset=" + strconv.Itoa(50*i) }},
		{"search", func(i int) string { return "/?q=" + toldTasks[i%len(toldTasks)] + "+00" + strconv.Itoa(i) }},
		{"experiment", func(i int) string {
			return "/experiments/" + url.PathEscape(snapshot.Rows[i*len(snapshot.Rows)/s.Loads].ID.String())
		}},
		{"operations", func(int) string { return "/operations" }},
	} {
		painted := Painted{What: page.what}
		for i := range s.Loads {
			if err := painted.load(ctx, g.server+page.target(i)); err != nil {
				return nil, fmt.Errorf("%s: %w", page.what, err)
			}
		}
		b.say("first paint of %s: median %s, slowest %s", page.what, milliseconds(median(painted.FirstPaint)), milliseconds(slices.Max(painted.FirstPaint)))
		part.Pages = append(part.Pages, painted)
	}
	return part, nil
}

// paintTimes waits for the paint, which may come after everything has loaded.
const paintTimes = `new Promise((done) => {
  const told = (paint) => { const n = performance.getEntriesByType("navigation")[0]; done([paint.startTime, n.loadEventStart, n.transferSize]); };
  new PerformanceObserver((seen, self) => {
    const paint = seen.getEntriesByName("first-contentful-paint")[0];
    if (paint) { self.disconnect(); told(paint); }
  }).observe({type: "paint", buffered: true});
})`

// load opens the page in a tab of its own, with the cache off.
func (p *Painted) load(browser context.Context, address string) error {
	ctx, cancel := chromedp.NewContext(browser)
	defer cancel()
	ctx, cancel = context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1440, 900)); err != nil {
		return err
	}
	if _, err := chromedp.Call(ctx, network.SetCacheDisabled, network.SetCacheDisabledParams{CacheDisabled: true}); err != nil {
		return err
	}
	if err := chromedp.Do(ctx, chromedp.Navigate(address)); err != nil {
		return err
	}
	times, err := chromedp.Run(ctx, chromedp.Evaluate[[]float64](paintTimes, chromedp.EvalAwaitPromise))
	if err != nil {
		return err
	}
	p.FirstPaint, p.Loaded, p.Bytes = append(p.FirstPaint, times[0]/1000), append(p.Loaded, times[1]/1000), int64(times[2])
	return nil
}

func (p *PaintPart) worst() Painted {
	return slices.MaxFunc(p.Pages, func(x, y Painted) int { return int(1e6 * (slices.Max(x.FirstPaint) - slices.Max(y.FirstPaint))) })
}

func (p *PaintPart) page(out *strings.Builder) {
	fmt.Fprintf(out, "## First paint\nThe same fleet in headless Chromium, %d loads of each page.\n\n", p.Loads)
	rows := table{{"page", "first paint: median", "max", "all loaded: median", "kB sent"}}
	for _, page := range p.Pages {
		paint := spreadOf(page.FirstPaint)
		rows = append(rows, []string{page.What, milliseconds(paint.Median), milliseconds(paint.Max), milliseconds(median(page.Loaded)), fmt.Sprintf("%.1f", float64(page.Bytes)/1000)})
	}
	rows.write(out)
}
