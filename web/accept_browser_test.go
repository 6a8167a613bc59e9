package web

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

func TestADecisionIsMadeInABrowserWithoutScripts(t *testing.T) {
	browser := chromium(t)
	b := newBench(t, busyStore())
	restored(b)
	b.renew(t)
	base := site(t, b)
	tab := open(browser, t, 360, false)
	tab.do(chromedp.Navigate(base + "/experiments/" + b.store.snapshot.Rows[10].String()))
	tab.click(`a[href$="/do/accept"]`)
	tab.see("#would")
	tab.fits()
	tab.click(`a[href$="/do/accept?leave_out=true"]`)
	tab.see(`input[name="leave_out"] ~ button`)
	tab.fits()
	tab.typed(`form[action$="/do/accept"] input[name="why"]`, "the old log is not wanted")
	tab.click(`form[action$="/do/accept"] button`)
	tab.see(".came")
	asked := b.temporal.asked
	require.Equal(t, []any{"as it is", true, "the old log is not wanted"}, []any{asked.Seen, asked.LeaveOut, asked.Why})
}
