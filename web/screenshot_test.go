//go:build screenshots

package web

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// TestScreenshots is a tool, no test: ./task screenshots writes pictures of pages
// for people to look at into the folder that SCREENSHOT_DIR names.
func TestScreenshots(t *testing.T) {
	dir := os.Getenv("SCREENSHOT_DIR")
	require.NotEmpty(t, dir, "SCREENSHOT_DIR must name a folder that exists")
	wanted := map[string]bool{"list": true, "list-cold": true, "list-partial": true, "batch-preview": true, "list-paused": true, "list-mistake": true, "experiment": true, "experiment-failing": true,
		"experiment-backlog": true, "rounds": true, "rounds-on-s3": true, "rounds-paused": true, "list-empty": true, "list-temporal-down": true}
	browser := chromium(t)
	for _, p := range previews() {
		if !wanted[p.name] {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			base := site(t, p.bench(t))
			tab := open(browser, t, 1280, true)
			for _, scheme := range []string{"light", "dark"} {
				_, err := chromedp.Call(tab.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
					Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
				require.NoError(t, err)
				for _, size := range [][2]int64{{1440, 900}, {768, 900}, {360, 860}} {
					tab.do(chromedp.EmulateViewport(size[0], size[1]), chromedp.Navigate(base+p.target))
					picture := value(tab, chromedp.CaptureScreenshot())
					name := fmt.Sprintf("%s-%s-%d.png", p.name, scheme, size[0])
					require.NoError(t, os.WriteFile(filepath.Join(dir, name), picture, 0o600))
				}
			}
		})
	}
}
