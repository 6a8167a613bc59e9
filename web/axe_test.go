package web

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"lancefleet/e2e/notrun"
)

// axe is the source of the audit, as tools/axe-core has fetched it.
func axe(t *testing.T) string {
	t.Helper()
	path := os.Getenv("LANCEFLEET_AXE")
	if path == "" {
		path = cachedAxe(t)
	}
	source, err := os.ReadFile(path)
	if err != nil {
		notrun.Skip(t, "accessibility audit of pages", fmt.Sprintf("axe-core is not there (%v); tools/axe-core fetches it", err))
	}
	return string(source)
}

func cachedAxe(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("LANCEFLEET_CACHE")
	if dir == "" {
		home, err := os.UserCacheDir()
		require.NoError(t, err)
		dir = filepath.Join(home, "lancefleet")
	}
	version, err := os.ReadFile("../tools/axe/version")
	require.NoError(t, err)
	return filepath.Join(dir, "axe", "axe-"+strings.TrimSpace(string(version))+".min.js")
}

// violation is what axe calls one: a rule and the parts of the page that break it.
type violation struct {
	ID     string `json:"id"`
	Impact string `json:"impact"`
	Help   string `json:"help"`
	Nodes  []struct {
		HTML    string `json:"html"`
		Summary string `json:"failureSummary"`
	} `json:"nodes"`
}

func (v violation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s): %s", v.ID, v.Impact, v.Help)
	for i, n := range v.Nodes {
		if i == 3 {
			fmt.Fprintf(&b, "\n  and %d more", len(v.Nodes)-i)
			break
		}
		fmt.Fprintf(&b, "\n  %s\n    %s", n.HTML, strings.ReplaceAll(n.Summary, "\n", "\n    "))
	}
	return b.String()
}

// audit is one that ran: how many rules it looked at, so that none is not a pass.
type audit struct {
	Violations []violation `json:"violations"`
	Passes     int         `json:"passes"`
}

// runAxe answers by value: the elements in axe's own result have no JSON.
const runAxe = `axe.run(document, {resultTypes: ["violations"]}).then((r) => ({
  passes: r.passes.length,
  violations: r.violations.map((v) => ({id: v.id, impact: v.impact, help: v.help, nodes: v.nodes.map((n) => ({html: n.html, failureSummary: n.failureSummary}))})),
}))`

// accessible fails the test for what axe finds serious or critical on the page that
// is shown, and logs the rest. Source is what axe returned.
func (b tab) accessible(source string) {
	b.t.Helper()
	b.do(chromedp.Evaluate[chromedp.Void](source))
	found := value(b, chromedp.Evaluate[audit](runAxe, chromedp.EvalAwaitPromise))
	require.Greater(b.t, found.Passes, 10, "the audit looked at the page")
	for _, v := range found.Violations {
		if v.Impact == "serious" || v.Impact == "critical" {
			b.t.Errorf("%s: %s", b.address(), v)
		} else {
			b.t.Logf("%s: %s", b.address(), v)
		}
	}
}

// inTheme shows pages as for somebody who prefers light or dark.
func (b tab) inTheme(scheme string) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	require.NoError(b.t, err)
}

// audited are the pages and states that are looked at; add yours.
var audited = []string{"list", "list-filtered", "list-mistake", "list-no-match", "list-paused", "list-failing", "list-retired", "list-cold", "list-partial", "batch-preview", "batch",
	"operations", "operations-not-read", "experiment-busy", "experiment-came", "experiment-retired", "act-verify", "act-seal", "act-accept", "act-accept-leave-out", "rounds", "runbook"}

func TestPagesHaveNoSeriousFindingsOfAxe(t *testing.T) {
	source := axe(t)
	browser := chromium(t)
	for _, p := range previews() {
		for _, name := range audited {
			if p.name == name {
				t.Run(name, func(t *testing.T) { auditPage(browser, t, p, source) })
			}
		}
	}
}

// auditPage looks at one page in both themes, and as cards. A dozen rows are enough:
// the audit's time grows with them.
func auditPage(browser context.Context, t *testing.T, p preview, source string) {
	base := site(t, p.bench(t))
	tab := open(browser, t, 1280, true)
	for _, look := range []struct {
		scheme string
		width  int64
	}{{"light", 1280}, {"dark", 1280}, {"light", 360}} {
		tab.inTheme(look.scheme)
		tab.do(chromedp.EmulateViewport(look.width, 800), chromedp.Navigate(base+few(p.target)))
		tab.accessible(source)
	}
}

func few(target string) string {
	if path, query, _ := strings.Cut(target, "?"); path == "/" {
		return strings.TrimSuffix("/?limit=12&"+query, "&")
	}
	return target
}
