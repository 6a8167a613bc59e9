package web

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Secrets of the tests.
const (
	opsSecret  = "ops-7c1f20b9e4d35a86-0123456789"
	lookSecret = "look-03b5d9f7a2c4e681-0123456789"

	eventSecret = "bucket-5e2c90b7d1f3a846-0123456789"
)

func withTokens(c *Config, _ *parts) {
	c.Tokens = "ops:operator:" + opsSecret + ", grafana:viewer:" + lookSecret + ", minio:notifier:" + eventSecret
}

func bearer(secret string) []string {
	return []string{"Authorization", "Bearer " + secret}
}

// whoAsks are all the callers that a server with tokens tells apart, and what each is
// answered by a route of each kind of access: 0 = what the route answers to anybody
// who may.
var whoAsks = map[string]struct {
	headers             []string
	open, read, operate int
}{
	"nobody":                       {nil, 0, 401, 401},
	"a browser of nobody":          {[]string{"Accept", "text/html"}, 0, 303, 303},
	"a viewer":                     {bearer(lookSecret), 0, 0, 403},
	"an operator":                  {bearer(opsSecret), 0, 0, 0},
	"a notifier":                   {bearer(eventSecret), 0, 403, 403},
	"a wrong token":                {bearer("wrong"), 0, 401, 401},
	"a token by another scheme":    {[]string{"Authorization", "Basic " + opsSecret}, 0, 401, 401},
	"a browser with a wrong token": {append(bearer("wrong"), "Accept", "text/html"), 0, 401, 401},
	"an operator by another site":  {append(bearer(opsSecret), "Origin", "https://evil.example"), 0, 0, 403},
}

// TestWhoMayDoWhat goes through every route and every caller. TestEveryRouteIsListed
// fails where a route is missing from the list.
func TestWhoMayDoWhat(t *testing.T) {
	b := guarded(t, withTokens)
	for _, r := range everyRoute {
		for name, who := range whoAsks {
			want := map[Access]int{Open: who.open, Read: who.read, Operate: who.operate, Notify: who.operate}[r.access]
			if r.access == Notify && name == "a notifier" {
				want = 0
			}
			if want == 303 && isAPI(r.path) {
				want = 401 // programs are not led to a page
			}
			if r.method == "POST" && r.access == Open && strings.Contains(name, "another site") {
				want = 403 // nobody is logged in or out from elsewhere
			}
			before := len(b.temporal.said())
			w := b.do(r.method, r.example, r.body, append([]string{"Content-Type", contentType(r.path)}, who.headers...)...)
			told := r.method + " " + r.path + " for " + name + ": " + w.Body.String()
			if want != 0 {
				require.Equal(t, want, w.Code, told)
				require.Len(t, b.temporal.said(), before, told)
				if want != 403 {
					require.NotContains(t, w.Body.String(), "run-1", told)
					require.NotContains(t, w.Body.String(), "/srv/fleet", told)
				}
			} else {
				require.NotContains(t, []int{401, 403, 429}, w.Code, told)
				require.Less(t, w.Code, 500, told)
			}
			switch w.Code {
			case 401:
				require.Contains(t, w.Header().Get("WWW-Authenticate"), `Bearer realm="lancefleet"`, told)
			case 303:
				if want == 303 {
					require.Contains(t, w.Header().Get("Location"), "/login?next=", told)
				}
			}
		}
	}
	require.Empty(t, b.gate.left)
}

func TestOneWhoMayOnlyLookIsToldSoInWords(t *testing.T) {
	b := guarded(t, withTokens)
	requireError(t, b.do("POST", "/api/v1/rescan", "", bearer(lookSecret)...), 403, "grafana may look and not change anything: this needs an operator's token")
	require.Contains(t, b.do("POST", "/rounds/start", "", bearer(lookSecret)...).Body.String(), "needs an operator&#39;s token")
}

func TestAViewerSeesNoButtonsThatWouldNotWork(t *testing.T) {
	b := guarded(t, withTokens)
	for _, r := range everyRoute {
		if r.method != "GET" || r.access != Read || isAPI(r.path) || strings.HasPrefix(r.path, "/export") || strings.Contains(r.path, "/charts/") {
			continue
		}
		viewer, operator := b.do("GET", r.example, "", bearer(lookSecret)...), b.do("GET", r.example, "", bearer(opsSecret)...)
		require.Equal(t, 200, viewer.Code, r.path)
		require.NotContains(t, viewer.Body.String(), `method="post"`, r.path)
		require.Contains(t, viewer.Body.String(), "grafana", "the page says who one is: %s", r.path)
		if r.path == "/rounds" || r.path == "/operations" || r.path == "/experiments/:name" {
			require.Contains(t, operator.Body.String(), `method="post"`, r.path)
		}
	}
}

func TestWhatIsDoneIsSignedWithTheNameOfTheToken(t *testing.T) {
	b := guarded(t, withTokens)
	for body, by := range map[string]string{
		`{"reason":"x"}`: "ops", `{"reason":"x","by":"ada"}`: "ops (ada)", `{"reason":"x","by":"ops"}`: "ops",
		`{"reason":"x","by":"` + strings.Repeat("x", 100) + `"}`: "ops (" + strings.Repeat("x", 95),
	} {
		state := decode[Schedule](t, b.do("POST", "/api/v1/schedule/pause", body, append(bearer(opsSecret), "Content-Type", "application/json")...), 200)
		require.Equal(t, by, state.By)
	}
	for _, path := range []string{"/api/v1/rescan", "/api/v1/experiments/run-1/rescan", "/api/v1/experiments/run-1/optimize", "/api/v1/experiments/run-1/compact?by=ada"} {
		b.do("POST", path, "", bearer(opsSecret)...)
		said := b.temporal.said()
		require.Contains(t, said[len(said)-1], "ops", path)
	}
}

// logIn answers the cookie of a session.
func logIn(t *testing.T, b *bench, secret string, headers ...string) *http.Cookie {
	t.Helper()
	w := b.do("POST", "/login", "token="+secret+"&next=/rounds", append(headers, "Content-Type", "application/x-www-form-urlencoded")...)
	require.Equal(t, 303, w.Code, w.Body.String())
	require.Equal(t, "/rounds", w.Header().Get("Location"))
	require.Len(t, w.Result().Cookies(), 1)
	return w.Result().Cookies()[0]
}

func TestABrowserLogsInAndOut(t *testing.T) {
	b := guarded(t, withTokens)
	page := b.do("GET", "/experiments/run-1?fresh=true", "", "Accept", "text/html")
	require.Equal(t, "/login?next=%2Fexperiments%2Frun-1%3Ffresh%3Dtrue", page.Header().Get("Location"))
	form := b.get(page.Header().Get("Location")).Body.String()
	require.Contains(t, form, `name="next" value="/experiments/run-1?fresh=true"`)
	require.NotContains(t, form, "/srv/fleet", "the form tells nothing of the fleet")
	require.NotContains(t, form, "demo")

	cookie := logIn(t, b, opsSecret)
	require.Equal(t, "lancefleet", cookie.Name)
	require.True(t, cookie.HttpOnly)
	require.Equal(t, http.SameSiteLaxMode, cookie.SameSite)
	require.Equal(t, "/", cookie.Path)
	require.Equal(t, 12*3600, cookie.MaxAge)
	require.NotContains(t, cookie.Value, opsSecret)
	mine := []string{"Cookie", cookie.Name + "=" + cookie.Value}
	w := b.do("GET", "/rounds", "", mine...)
	require.Equal(t, 200, w.Code)
	require.Contains(t, w.Body.String(), `action="/logout"`)
	require.Equal(t, "private, no-cache", w.Header().Get("Cache-Control"))
	require.Equal(t, 303, b.do("POST", "/rounds/start", "", append(mine, "Content-Type", "application/x-www-form-urlencoded")...).Code)
	require.Equal(t, []string{"scan full=false next=false ops"}, b.temporal.said())
	requireError(t, b.do("POST", "/api/v1/rescan", "", append(mine, "Sec-Fetch-Site", "cross-site")...), 403, "another site")

	out := b.do("POST", "/logout", "", mine...)
	require.Equal(t, "/login", out.Header().Get("Location"))
	require.Negative(t, out.Result().Cookies()[0].MaxAge)
	require.Equal(t, 401, b.do("GET", "/rounds", "", mine...).Code, "a copy of the cookie is worth nothing now")
}

func TestOverHTTPSTheCookieIsBoundToTheHost(t *testing.T) {
	b := guarded(t, withTokens)
	https := []string{"X-Forwarded-Proto", "https"}
	cookie := logIn(t, b, lookSecret, https...)
	require.Equal(t, "__Host-lancefleet", cookie.Name)
	require.True(t, cookie.Secure)
	require.Empty(t, cookie.Domain)
	require.Equal(t, 200, b.do("GET", "/rounds", "", append(https, "Cookie", cookie.Name+"="+cookie.Value)...).Code)
	require.Equal(t, 401, b.do("GET", "/rounds", "", append(https, "Cookie", "lancefleet="+cookie.Value)...).Code, "one that another host may have set")
}

func TestASessionEndsWithItsTimeItsTokenAndAnyChange(t *testing.T) {
	now := testNow
	b := guarded(t, withTokens, func(c *Config, p *parts) {
		c.SessionTime = time.Hour
		p.now = func() time.Time { return now }
	})
	cookie := logIn(t, b, opsSecret)
	try := func(value string) int { return b.do("GET", "/", "", "Cookie", "lancefleet="+value).Code }
	require.Equal(t, 200, try(cookie.Value))
	end, rest, _ := strings.Cut(cookie.Value, ".")
	for name, value := range map[string]string{
		"a later end": "9" + end + "." + rest, "an end that is none": "x." + rest, "no signature": end + "." + rest[:32],
		"a signature that is cut": cookie.Value[:len(cookie.Value)-1], "nothing": "", "dots": "...",
	} {
		require.Equal(t, 401, try(value), name)
	}
	now = now.Add(time.Hour - time.Second)
	require.Equal(t, 200, try(cookie.Value))
	now = now.Add(time.Second)
	require.Equal(t, 401, try(cookie.Value), "its hour is over")

	cookie = logIn(t, b, opsSecret)
	other := guarded(t, withTokens, func(_ *Config, p *parts) { p.now = func() time.Time { return now } })
	require.Equal(t, 200, other.do("GET", "/", "", "Cookie", "lancefleet="+cookie.Value).Code, "another server with the same tokens knows it")
	gone := guarded(t, func(c *Config, p *parts) {
		c.Tokens, p.now = "ops:operator:"+"another-secret-ab-0123456789", func() time.Time { return now }
	})
	require.Equal(t, 401, gone.do("GET", "/", "", "Cookie", "lancefleet="+cookie.Value).Code, "the token was taken away")
}

func TestGuessingIsStoppedAndNotByTheRightGuess(t *testing.T) {
	now := testNow
	b := guarded(t, withTokens, func(_ *Config, p *parts) { p.now = func() time.Time { return now } })
	login := func(secret string) *httptest.ResponseRecorder { return b.postForm("/login", "token="+secret) }
	for range failedLogins.atOnce {
		w := login("wrong")
		require.Equal(t, 401, w.Code)
		require.Contains(t, w.Body.String(), "not one of this server")
	}
	w := login(opsSecret)
	require.Equal(t, 429, w.Code)
	require.Equal(t, "10", w.Header().Get("Retry-After"))
	require.Empty(t, w.Result().Cookies())
	require.Equal(t, 200, b.do("GET", "/api/v1/status", "", bearer(opsSecret)...).Code, "a program with the right one goes on behind the same address")
	now = now.Add(11 * time.Second)
	require.Equal(t, 303, login(opsSecret).Code)
}

func TestTheLoginLeadsNowhereElse(t *testing.T) {
	for next, to := range map[string]string{
		"/rounds": "/rounds", "/?search=a%20b&sort=rows": "/?search=a%20b&sort=rows", "": "/", "https://evil.example/": "/", "//evil.example": "/",
		`/\evil.example`: "/", "javascript:alert(1)": "/", "/\t/evil.example": "/", "rounds": "/", "/login?next=/login": "/", "/%": "/", "///evil": "/",
	} {
		require.Equal(t, to, localPath(next), next)
	}
}

func TestTokensThatCanBeGuessedOrMisreadAreRefused(t *testing.T) {
	good := opsSecret
	for text, words := range map[string]string{
		"ops:operator:short": "5 characters: 24 to 256", "ops:operator:" + strings.Repeat("ab", 20): "2 different characters",
		"ops:operator:" + strings.Repeat("0123456789", 30): "300 characters", "ops:operator:" + good + " x": "letters, digits",
		good: "NAME:ROLE:SECRET", "ops:" + good: "NAME:ROLE:SECRET", "ops:admin:" + good: "viewer, operator and notifier", "o ps:viewer:" + good: "name of a token",
		":viewer:" + good: "name of a token", "a:viewer:" + good + ",b:operator:" + good: "that of a too", "a:viewer:" + good + "\na:operator:" + good + "1": "line 2: token a",
		good + good + ":viewer:x": "name of a token", "ada:" + good + ":operator": "role of token ada",
	} {
		_, err := ParseTokens(text)
		require.ErrorContains(t, err, words, text)
		require.NotContains(t, err.Error(), opsSecret, "no secret in an error: it goes to logs")
	}
	tokens, err := ParseTokens("# who\n\n ada:operator:" + good + " \n ada:operator:" + good + "2,b@c.d:viewer:" + good + "3")
	require.NoError(t, err)
	require.Len(t, tokens, 3, "one name may have two secrets while they are changed")
	found, ok := tokens.find(good + "3")
	require.True(t, ok)
	require.Equal(t, "b@c.d", found.Name)
	_, ok = tokens.find("")
	require.False(t, ok)
}

func TestTheFileOfTokensIsReadAgainWhenItChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	var at time.Time
	write := func(text string) {
		at = at.Add(time.Hour)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		require.NoError(t, os.Chtimes(path, at, at))
	}
	at = testNow
	write("ops:operator:" + opsSecret)
	b := guarded(t, func(c *Config, _ *parts) { c.TokensFile = path })
	try := func(secret string) int { return b.do("GET", "/api/v1/status", "", bearer(secret)...).Code }
	require.Equal(t, 200, try(opsSecret))
	require.Equal(t, 401, try(lookSecret))

	write("grafana:viewer:" + lookSecret)
	b.gate.renew()
	require.Equal(t, 401, try(opsSecret), "it was taken away")
	require.Equal(t, 200, try(lookSecret))
	for _, text := range []string{"", "# nobody\n", "grafana:viewer:short"} {
		write(text)
		b.gate.renew()
		require.Equal(t, 200, try(lookSecret), "a mistake changes nothing: %q", text)
	}
	require.NoError(t, os.Remove(path))
	b.gate.renew()
	require.Equal(t, 200, try(lookSecret), "and opens nothing")
	require.Equal(t, 401, b.get("/api/v1/status").Code)
}

func TestAnAddressOthersCanReachIsServedWithTokens(t *testing.T) {
	c := DefaultConfig()
	c.Addr = "0.0.0.0:8090"
	require.ErrorIs(t, c.Validate(), ErrNotLoopback)
	c.Tokens = " , "
	require.ErrorContains(t, c.Validate(), "there is none")
	c.Tokens = "ops:operator:" + opsSecret
	require.NoError(t, c.Validate())
	c.Tokens, c.TokensFile = "", filepath.Join(t.TempDir(), "none")
	require.ErrorContains(t, c.Validate(), "tokens file")
}

func TestHealthAndReadinessTellStrangersNoNames(t *testing.T) {
	b := guarded(t, withTokens)
	b.store.set(func(f *fakeStore) { f.err = unreadable() })
	b.temporal.err = unreachable()
	b.renew(t)
	ready := b.get("/readyz").Body.String()
	require.Contains(t, ready, "snapshot: not available")
	require.NotContains(t, ready, "bucket")
	require.Contains(t, b.do("GET", "/readyz", "", bearer(lookSecret)...).Body.String(), "s3://bucket")
	require.NotContains(t, b.do("GET", "/static/none.css", "", "Accept", "text/html").Body.String(), "bucket", "nor do error pages")
}

func TestMetricsMayBeOpened(t *testing.T) {
	require.Equal(t, 401, guarded(t, withTokens).get("/metrics").Code)
	b := guarded(t, withTokens, func(c *Config, _ *parts) { c.OpenMetrics = true })
	require.Equal(t, 200, b.get("/metrics").Code)
	require.Equal(t, 401, b.get("/api/v1/status").Code)
}

func TestOnlyTrustedProxiesSayWhomTheySpeakFor(t *testing.T) {
	ask := func(proxies ...string) string {
		b := guarded(t, func(c *Config, _ *parts) { c.TrustedProxies = proxies })
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = "10.1.2.3:999"
		r.Header.Set("X-Forwarded-For", "6.6.6.6, 203.0.113.9")
		return b.clientOf(r)
	}
	require.Equal(t, "10.1.2.3", ask())
	require.Equal(t, "203.0.113.9", ask("10.0.0.0/8"))
	require.Equal(t, "203.0.113.9", ask("10.1.2.3"))
	require.Equal(t, "10.1.2.3", ask("192.168.0.1"))
	require.Equal(t, "2001:db8:1:2::/64", neighbourhood("2001:db8:1:2:3:4:5:6"))
	c := DefaultConfig()
	c.TrustedProxies = []string{"proxy.example"}
	require.ErrorContains(t, c.Validate(), "trusted proxies")
}

func TestWhoMayOnlyLookIsToldThatThereIsNothing(t *testing.T) {
	b := guarded(t, withTokens)
	for _, path := range []string{"/nothing", "/api/v1/nothing", "/experiments"} {
		require.Equal(t, 404, b.do("GET", path, "", bearer(lookSecret)...).Code, path)
		require.Equal(t, 401, b.do("GET", path, "").Code, path)
	}
	require.Equal(t, 403, b.do("POST", "/api/v1/rescan", "", bearer(lookSecret)...).Code)
	require.Equal(t, 404, b.do("POST", "/api/v1/nothing", "{}", bearer(lookSecret)...).Code)
}
