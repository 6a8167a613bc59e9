//go:build screenshots

package web

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// longest bounds the height of a picture, in pixels.
const longest = 6000

// TestScreenshots is a tool, no test: ./task screenshots writes pictures of pages
// for people to look at into the folder that SCREENSHOT_DIR names: whole pages, in
// three widths and both themes. SCREENSHOT_ONLY names some of the previews, with commas.
func TestScreenshots(t *testing.T) {
	dir := os.Getenv("SCREENSHOT_DIR")
	require.NotEmpty(t, dir, "SCREENSHOT_DIR must name a folder that exists")
	wanted := []string{"list", "list-paused", "list-mistake", "experiment", "experiment-failing", "experiment-backlog", "experiment-busy",
		"rounds", "rounds-on-s3", "rounds-paused", "list-empty", "list-temporal-down", "operations", "operations-paused", "runbook", "list-cold", "list-partial", "batch-preview"}
	if only := os.Getenv("SCREENSHOT_ONLY"); only != "" {
		wanted = strings.Split(only, ",")
	}
	browser := chromium(t)
	for _, p := range previews() {
		if !slices.Contains(wanted, p.name) {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			base := site(t, p.bench(t))
			tab := open(browser, t, 1280, true)
			for _, scheme := range []string{"light", "dark"} {
				tab.inTheme(scheme)
				for _, width := range []int64{360, 768, 1440} {
					tab.do(chromedp.EmulateViewport(width, 900), chromedp.Navigate(base+p.target))
					height := js[int64](tab, `document.documentElement.scrollHeight`)
					tab.do(chromedp.EmulateViewport(width, min(max(height, 900), longest)))
					value(tab, chromedp.Evaluate[bool](`Promise.all([...document.images].map((i) => i.offsetParent ? i.decode().catch(() => 0) : 0)).then(() => true)`, chromedp.EvalAwaitPromise))
					picture := value(tab, chromedp.CaptureScreenshot())
					name := fmt.Sprintf("%s-%s-%d.png", p.name, scheme, width)
					require.NoError(t, os.WriteFile(filepath.Join(dir, name), picture, 0o600))
				}
			}
		})
	}
}
