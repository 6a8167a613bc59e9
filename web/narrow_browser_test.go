package web

import (
	"fmt"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// TestNoPageScrollsSideways looks at the states with the widest tables, on a phone and
// on a tablet.
func TestNoPageScrollsSideways(t *testing.T) {
	browser := chromium(t)
	states := []string{"list", "list-cold", "list-retired", "operations", "operations-observe-only", "rounds-on-s3", "experiment-failing", "experiment-retired", "batch-preview", "act-accept", "act-seal"}
	seen := 0
	for _, p := range previews() {
		if !slices.Contains(states, p.name) {
			continue
		}
		seen++
		t.Run(p.name, func(t *testing.T) {
			tab := open(browser, t, 1280, true)
			address := site(t, p.bench(t)) + p.target
			for _, width := range []int64{360, 768} {
				tab.do(chromedp.EmulateViewport(width, 900), chromedp.Navigate(address))
				wide := js[[]string](tab, `[document.documentElement, ...document.querySelectorAll(".scroll")].filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.tagName + " " + e.className + " " + e.innerText.slice(0, 60))`)
				require.Empty(t, wide, fmt.Sprint(width, " px"))
			}
		})
	}
	require.Equal(t, len(states), seen)
}
