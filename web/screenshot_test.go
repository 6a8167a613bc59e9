//go:build screenshots

package web

import (
	"context"
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
			photograph(t, browser, dir, p.name, site(t, p.bench(t))+p.target)
		})
	}
}

// TestScreenshotsOfAServer takes pictures of one that runs: SCREENSHOT_SERVER is its
// address, SCREENSHOT_PAGES names pages as list=/?limit=12 with spaces between.
func TestScreenshotsOfAServer(t *testing.T) {
	dir, server := os.Getenv("SCREENSHOT_DIR"), os.Getenv("SCREENSHOT_SERVER")
	if server == "" {
		t.Skip("SCREENSHOT_SERVER names none")
	}
	require.NotEmpty(t, dir, "SCREENSHOT_DIR must name a folder that exists")
	browser := chromium(t)
	for page := range strings.FieldsSeq(os.Getenv("SCREENSHOT_PAGES")) {
		name, target, _ := strings.Cut(page, "=")
		t.Run(name, func(t *testing.T) { photograph(t, browser, dir, name, server+target) })
	}
}

// photograph writes pictures of one page in both themes and three widths.
func photograph(t *testing.T, browser context.Context, dir, name, address string) {
	t.Helper()
	tab := open(browser, t, 1280, true)
	for _, scheme := range []string{"light", "dark"} {
		tab.inTheme(scheme)
		for _, width := range []int64{360, 768, 1440} {
			tab.do(chromedp.EmulateViewport(width, 900), chromedp.Navigate(address))
			height := js[int64](tab, `document.documentElement.scrollHeight`)
			tab.do(chromedp.EmulateViewport(width, min(max(height, 900), longest)))
			value(tab, chromedp.Evaluate[bool](`Promise.all([...document.images].map((i) => i.offsetParent ? i.decode().catch(() => 0) : 0)).then(() => true)`, chromedp.EvalAwaitPromise))
			shot := value(tab, chromedp.CaptureScreenshot())
			file := fmt.Sprintf("%s-%s-%d.png", name, scheme, width)
			require.NoError(t, os.WriteFile(filepath.Join(dir, file), shot, 0o600))
		}
	}
}
