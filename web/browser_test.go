package web

import (
	"context"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"lancefleet/e2e/notrun"
	"lancefleet/fleet"
	"lancefleet/lance"
)

// site serves a bench on a real port.
func site(t *testing.T, b *bench) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	b.lookNoMore()
	go func() { served <- b.Serve(ctx, l) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-served) })
	return "http://" + l.Addr().String()
}

// chromium starts one browser with a fresh profile; tabs are children of the context.
func chromium(t *testing.T) context.Context {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		notrun.Skip(t, "pages in a browser", "no Chromium is installed")
	}
	flag := chromedp.Flag
	ctx, cancel := chromedp.NewExecAllocator(context.Background(),
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.Headless, chromedp.DisableGPU, chromedp.NoFirstRun,
		chromedp.UserDataDir(t.TempDir()), chromedp.WSURLReadTimeout(4*time.Minute), flag("disable-quic", true),
		flag("disable-background-networking", true), flag("disable-component-update", true), flag("disable-sync", true))
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	t.Cleanup(func() { _ = chromedp.Cancel(ctx) })
	require.NoError(t, chromedp.Do(ctx), "the browser starts")
	return ctx
}

// tab is one tab.
type tab struct {
	ctx context.Context
	t   *testing.T
}

// open opens a tab. What the page's console complains about (an exception, a
// script that the policy refused) fails the test.
func open(browser context.Context, t *testing.T, width int64, scripts bool) tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 4*time.Minute)
	t.Cleanup(cancel)
	said := chromedp.Console(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for m, err := range said {
			if err != nil {
				return
			}
			if m.Type == chromedp.ConsoleError || m.IsException() {
				t.Errorf("the page's console: %s (%s)", m, m.URL)
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	b := tab{ctx, t}
	b.do(chromedp.EmulateViewport(width, 800))
	if !scripts {
		_, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		require.NoError(t, err)
	}
	return b
}

func (b tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b.ctx, steps...))
}

// see waits until there is something visible; polling gently leaves a busy
// machine to the browser.
func (b tab) see(selector string) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b.ctx, chromedp.WaitVisible(chromedp.CSS(selector), gently)), "waiting for %s", selector)
}

func (b tab) click(selector string) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b.ctx, chromedp.Click(chromedp.CSS(selector), gently)), "clicking %s", selector)
}

func (b tab) typed(selector, keys string) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b.ctx, chromedp.SendKeys(chromedp.CSS(selector), keys, gently)), "typing into %s", selector)
}

// press sends keys as a keyboard does: the character belongs to the key going
// down, so a handler that prevents the default keeps it from being typed.
func (b tab) press(keys string) {
	b.t.Helper()
	for _, r := range keys {
		events := kb.Encode(r)
		down, up := *events[0], *events[len(events)-1]
		if len(events) == 3 {
			down.Text, down.UnmodifiedText = events[1].Text, events[1].UnmodifiedText
		}
		for _, e := range []input.DispatchKeyEventParams{down, up} {
			_, err := chromedp.Call(b.ctx, input.DispatchKeyEvent, e)
			require.NoError(b.t, err)
		}
	}
}

func (b tab) text(selector string) string {
	b.t.Helper()
	return value(b, chromedp.Text(chromedp.CSS(selector), gently))
}

var gently = chromedp.RetryInterval(50 * time.Millisecond)

func value[T any](b tab, a chromedp.Action[T]) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, a)
	require.NoError(b.t, err)
	return v
}

func js[T any](b tab, expression string) T {
	b.t.Helper()
	return value(b, chromedp.Evaluate[T](expression))
}

func (b tab) address() string { b.t.Helper(); return value(b, chromedp.Location()) }

// fits: nothing sticks out to the right at this width.
func (b tab) fits() {
	b.t.Helper()
	over := js[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`)
	if over > 0 {
		b.t.Logf("what sticks out: %s", js[string](b, `[...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1 && !e.firstElementChild).slice(0, 4).map((e) => e.outerHTML.slice(0, 160)).join(" | ")`))
	}
	require.LessOrEqual(b.t, over, 0, "pixels by which the page is wider than the window of %d at %s", js[int](b, `innerWidth`), b.address())
}

func TestPagesInABrowser(t *testing.T) {
	browser := chromium(t)
	t.Run("the journey with scripts", func(t *testing.T) { journey(browser, t, true, 1280) })
	t.Run("the journey without scripts", func(t *testing.T) { journey(browser, t, false, 1280) })
	t.Run("the journey without scripts on a phone", func(t *testing.T) { journey(browser, t, false, 360) })
	t.Run("the keyboard and the comfort of scripts", func(t *testing.T) { comfort(browser, t) })
}

// journey is the main one: find, sort, open, refresh, pause, see it said, resume.
func journey(browser context.Context, t *testing.T, scripts bool, width int64) {
	b := newBench(t, demoStore(3000))
	b.store.preview = func(lance.PreviewSpec) (lance.Preview, error) { return lance.Preview{}, nil }
	base := site(t, b)
	tab := open(browser, t, width, scripts)

	tab.do(chromedp.Navigate(base + "/"))
	require.Contains(t, tab.text(".pager"), "1–50 of 3,000")
	tab.fits()

	for _, narrower := range []int64{1024, 768} {
		tab.do(chromedp.EmulateViewport(min(width, narrower), 800))
		require.LessOrEqual(t, js[int](tab, `(() => { const s = document.querySelector(".scroll"); return s.scrollWidth - s.clientWidth })()`), 0, "the next action is seen without scrolling sideways, at %d", narrower)
	}
	tab.do(chromedp.EmulateViewport(width, 800))

	tab.typed("#search", "GSM8K"+kb.Enter)
	tab.see(`#search[value="GSM8K"]`)
	require.Contains(t, tab.address(), "q=GSM8K")
	tab.click(`.chip[href*="pending_wal_generations"]`)
	tab.see(`.chip.on[href*="pending_wal_generations"]`)
	require.Contains(t, tab.address(), "q=GSM8K", "sorting keeps the search")
	turned := js[string](tab, `document.querySelector('th[aria-sort="descending"] a').getAttribute("href")`)
	require.Contains(t, turned, "order=asc", "a second click turns the order round")

	tab.do(chromedp.Navigate(base + "/"))
	tab.click("a[data-row]")
	tab.see(".health")
	require.Contains(t, tab.address(), "/experiments/")
	tab.fits()
	tab.click(`form[action$="/refresh"] button`)
	tab.see(".banner.done")
	said := b.temporal.said()
	require.True(t, strings.HasPrefix(said[len(said)-1], "refresh "), said)

	tab.click(`a[href$="/do/optimize"]`)
	tab.see(`form[action$="/do/optimize"] button`)
	tab.fits()
	tab.click(`form[action$="/do/optimize"] button`)
	tab.see(".banner.done")
	said = b.temporal.said()
	require.True(t, strings.HasPrefix(said[len(said)-1], "optimize "), said)

	tab.do(chromedp.Navigate(base + "/rounds"))
	tab.see("table.rounds tbody")
	tab.fits()
	tab.typed(`form[action="/rounds/pause"] input[name="reason"]`, "moving the bucket")
	tab.click(`form[action="/rounds/pause"] button`)
	tab.see(`form[action="/rounds/resume"] button`)
	tab.do(chromedp.Navigate(base + "/"))
	require.Contains(t, tab.text(".banner"), "moving the bucket", "every page says that rounds are paused, and why")
	tab.do(chromedp.Navigate(base + "/rounds"))
	tab.click(`form[action="/rounds/resume"] button`)
	tab.see(`form[action="/rounds/pause"] button`)
	schedule, err := b.temporal.Schedule(tab.ctx)
	require.NoError(t, err)
	require.False(t, schedule.Paused)
}

func comfort(browser context.Context, t *testing.T) {
	b := newBench(t, demoStore(300))
	base := site(t, b)
	tab := open(browser, t, 1280, true)
	press := func(keys ...string) {
		t.Helper()
		for _, k := range keys {
			tab.press(k)
		}
	}

	tab.do(chromedp.Navigate(base + "/?kind=rollout"))
	tab.see("#theme")
	press("/")
	require.Equal(t, "search", js[string](tab, `document.activeElement.id`))
	press("rj/")
	require.Equal(t, "rj/", js[string](tab, `document.getElementById("search").value`), "typing is typing")

	press(kb.Escape, "j", "j", "k", "j")
	require.Equal(t, 1, js[int](tab, `[...document.querySelectorAll("a[data-row]")].indexOf(document.activeElement)`))

	press("?")
	tab.see("#help[open]")
	press(kb.Escape)
	require.False(t, js[bool](tab, `document.getElementById("help").open`))

	// A refresh shows what is new and keeps focus and view.
	b.store.set(func(f *fakeStore) {
		rows := append(demoRows(300), healthy(fleet.Rollout, "brand-new", testNow.UnixMilli()))
		f.snapshot = Snapshot{Version: 813, CommittedAt: testNow.UnixMilli(), Rows: rows}
	})
	wait, cancel := context.WithTimeout(tab.ctx, time.Minute)
	defer cancel()
	b.feed.await(wait, b.feed.reload, func(m moment) bool { return m.view.Version == 813 })
	press("r")
	tab.see(`a[href="/experiments/rollout:brand-new"]`)
	require.True(t, js[bool](tab, `document.activeElement.matches("a[data-row]")`), "focus stays on its row")
	require.Contains(t, tab.address(), "kind=rollout")

	tab.click("#theme")
	theme := js[string](tab, `document.documentElement.dataset.theme`)
	require.Contains(t, []string{"dark", "light"}, theme)
	tab.do(chromedp.Navigate(base + "/rounds"))
	require.Equal(t, theme, js[string](tab, `document.documentElement.dataset.theme`), "the choice is remembered")
	require.Equal(t, "now", value(tab, chromedp.Evaluate[string](`new Promise((told) => {
		const next = document.querySelector("time[data-due]");
		next.dateTime = "2020-01-01T00:00:00.000Z";
		new MutationObserver(() => told(next.textContent)).observe(next, { childList: true });
	})`, chromedp.EvalAwaitPromise)), "the next round is never some time ago while a page stays open")

	press("/")
	tab.see("#search")
	require.Equal(t, base+"/", tab.address(), "/ searches from every page")
}
