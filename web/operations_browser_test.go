package web

import (
	"context"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
)

func TestOperationsInABrowser(t *testing.T) {
	browser := chromium(t)
	t.Run("with scripts", func(t *testing.T) { operate(browser, t, true, 1280) })
	t.Run("without scripts", func(t *testing.T) { operate(browser, t, false, 1280) })
	t.Run("without scripts on a phone", func(t *testing.T) { operate(browser, t, false, 360) })
	t.Run("at every width", func(t *testing.T) { fitting(browser, t) })
	t.Run("charts follow the theme", func(t *testing.T) { themed(browser, t) })
}

// operate is what an operator does: see what fails, read what to do, look at the one
// that is stopped, verify it, retire another by hand, pause and resume.
func operate(browser context.Context, t *testing.T, scripts bool, width int64) {
	b := newBench(t, busyStore())
	b.store.evidence = func(string, bool) (fleet.Evidence, error) {
		return fleet.Evidence{Pending: 3, DistinctKeys: -1, Blocking: []string{"3 pending generations in a sealed shard"}}, nil
	}
	base := site(t, b)
	tab := open(browser, t, width, scripts)

	tab.do(chromedp.Navigate(base + "/operations"))
	tab.see("table.failures tbody tr")
	tab.fits()
	tab.click(`table.failures a[href$="#denied"]`)
	tab.see("#denied")
	require.Contains(t, tab.address(), "/runbook#denied")
	tab.fits()

	tab.do(chromedp.Navigate(base + "/operations"))
	tab.click(`#live-work a.chip[href*="kind=tables"]`)
	tab.see(`#live-work a.chip.on[href*="kind=tables"]`)
	require.Contains(t, tab.address(), "kind=tables")
	require.Contains(t, tab.text("table.work"), "own tables")

	stuck := b.store.snapshot.Rows[40].String()
	tab.do(chromedp.Navigate(base + "/operations"))
	tab.click(`#live-retirement a[href^="/experiments/` + stuck + `"]`)
	tab.see(".health")
	tab.fits()
	tab.click(`a[href$="/do/verify"]`)
	tab.see("#seen")
	require.Contains(t, tab.text("main"), "3 pending generations in a sealed shard")
	tab.fits()

	tab.do(chromedp.Navigate(base + "/operations"))
	tab.typed(`form[action="/rounds/pause"] input[name="reason"]`, "moving the bucket")
	tab.click(`form[action="/rounds/pause"] button`)
	tab.see(`form[action="/rounds/resume"] button`)
	require.True(t, strings.HasPrefix(tab.address(), base+"/operations"), "one stays on the page")
	require.Contains(t, tab.text(".banner"), "moving the bucket")
	tab.click(`form[action="/rounds/resume"] button`)
	tab.see(`form[action="/rounds/pause"] button`)
}

func fitting(browser context.Context, t *testing.T) {
	for _, p := range previews() {
		ours := strings.HasPrefix(p.name, "operations") || strings.HasPrefix(p.name, "experiment") || strings.HasPrefix(p.name, "act-")
		if p.status != 200 || !ours {
			continue
		}
		base := site(t, p.bench(t))
		tab := open(browser, t, 360, false)
		for _, width := range []int64{360, 768, 1440} {
			tab.do(chromedp.EmulateViewport(width, 800), chromedp.Navigate(base+p.target))
			tab.fits()
		}
	}
}

func themed(browser context.Context, t *testing.T) {
	b := newBench(t, busyStore())
	base := site(t, b)
	tab := open(browser, t, 1280, true)
	shown := func() string {
		return value(tab, chromedp.Evaluate[string](`(async () => {
			const seen = [...document.querySelectorAll("figure img")].filter((i) => i.offsetParent);
			for (const i of seen) { i.loading = "eager"; await i.decode(); }
			return seen.length + " " + [...new Set(seen.map((i) => new URL(i.src).searchParams.get("theme")))].join();
		})()`, chromedp.EvalAwaitPromise))
	}
	one := base + "/experiments/" + b.store.snapshot.Rows[10].String()
	tab.inTheme("dark")
	tab.do(chromedp.Navigate(one))
	require.Equal(t, "4 dark", shown(), "each of them could be decoded")
	tab.click("#theme")
	require.Equal(t, "4 light", shown())
	tab.inTheme("light")
	tab.do(chromedp.Navigate(base + "/operations"))
	require.Equal(t, "4 light", shown())
	tab.click("#theme")
	require.Equal(t, "4 dark", shown())
}
