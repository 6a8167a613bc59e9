package web

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAParameterThatARouteDoesNotTakeIsRefusedByName(t *testing.T) {
	b := guarded(t)
	for target, says := range map[string]string{
		"/api/v1/experiments?serach=x":                 `"serach": there is no such parameter; allowed: q, search, limit, offset`,
		"/export.csv?colour=blue":                      `"colour"`,
		"/export.json?colour=blue":                     `"colour"`,
		"/api/v1/experiments/run-1?fresch=true":        `"fresch": there is no such parameter; allowed: fresh`,
		"/api/v1/rounds?page=2":                        "allowed: limit, offset",
		"/api/v1/rounds/a/b?wait=5":                    "allowed: wait_secs",
		"/api/v1/status?x":                             `"x": there is no such parameter; none is allowed here`,
		"/api/v1/schedule?%3Cscript%3E=1":              `<script>`,
		"/api/v1/experiments?search=%zz":               `"search=%zz" in the query is not percent-encoded`,
		"/api/v1/experiments?%=1":                      "not percent-encoded",
		"/api/v1/experiments?search=a;limit=3":         "%3B",
		"/api/v1/experiments?limit=3&limit=4":          "limit: given more than once",
		"/api/v1/experiments?limit=3&offset=x&colour=": `"colour"`,
	} {
		w := b.get(target)
		if strings.HasPrefix(target, "/export") {
			require.Equal(t, 422, w.Code, target)
			require.Contains(t, w.Body.String(), "colour")
			continue
		}
		require.Equal(t, 422, w.Code, target+w.Body.String())
		require.Contains(t, decode[ErrorBody](t, w, 422).Message, says, target)
	}
	requireError(t, b.do("POST", "/api/v1/experiments/run-1/rescan?who=ada", ""), 422, "allowed: by")
	requireError(t, b.do("POST", "/api/v1/rescan?full=true", ""), 422, "none is allowed here")
	require.Empty(t, b.temporal.said())
	for _, target := range []string{"/api/v1/experiments?kind=rollout&kind=table&search=a%26b+c&", "/metrics?name[]=x", "/healthz?t=1", "/experiments/rollout:run-1?utm=1"} {
		require.Equal(t, 200, b.get(target).Code, target)
	}
	page := b.get("/?serach=x")
	require.Equal(t, 200, page.Code)
	require.Contains(t, page.Body.String(), "there is no such parameter", "a page shows what it can, and the mistake")
}

func TestEveryRouteOfTheAPISaysWhatItTakes(t *testing.T) {
	b := guarded(t)
	for _, r := range everyRoute {
		if !strings.HasPrefix(r.path, "/api/v1/") || strings.HasSuffix(r.path, "/metrics") || strings.HasSuffix(r.path, ".json") {
			continue
		}
		requireError(t, b.do(r.method, r.example+"?no-such-parameter=1", r.body, "Content-Type", contentType(r.path)), 422, "no-such-parameter")
	}
}

func TestABodyThatIsNotCalledJSONIsRefusedHelpfully(t *testing.T) {
	b := guarded(t)
	for _, path := range []string{"/rescan", "/schedule/pause", "/schedule/resume"} {
		for _, called := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"} {
			requireError(t, b.do("POST", "/api/v1"+path, `{"reason":"x"}`, "Content-Type", called), http.StatusUnsupportedMediaType, "say Content-Type: application/json")
		}
	}
	require.Empty(t, b.temporal.said())
	for _, called := range []string{"application/json", "application/json; charset=utf-8", ""} {
		require.Equal(t, 200, b.do("POST", "/api/v1/schedule/pause", `{"reason":"x"}`, "Content-Type", called).Code, called)
	}
	doc := decode[map[string]any](t, b.get("/api/v1/openapi.json"), 200)
	for _, path := range []string{"/rescan", "/schedule/pause", "/schedule/resume"} {
		operation := doc["paths"].(map[string]any)["/api/v1"+path].(map[string]any)["post"].(map[string]any)
		require.Contains(t, operation["responses"], "415", path)
		require.Contains(t, operation["responses"], "413", path)
	}
}

func TestMistakesInABodyAreNamedInOurWords(t *testing.T) {
	b := guarded(t)
	pause, resume, rescan := "/schedule/pause", "/schedule/resume", "/rescan"
	for _, c := range []struct{ path, body, says string }{
		{pause, `{}`, "reason: must be given"},
		{pause, `{"reason":null}`, "reason: must be given, and not as null"},
		{pause, `{"reason":7}`, "reason: 7 is not text"},
		{pause, `{"reason":"x","colour":"blue"}`, "colour: there is no such field; allowed: reason, by"},
		{pause, `[]`, "the body is [], not an object; allowed: reason, by"},
		{pause, `"x"`, `the body is "x", not an object`},
		{pause, `{"reason":"` + strings.Repeat("x", 501) + `"}`, "reason: longer than 500 characters"},
		{pause, `{"reason":"x","by":"` + strings.Repeat("x", 101) + `"}`, "by: longer than 100 characters"},
		{pause, `{"reason":{}}`, "reason: "},
		{resume, `{"by":7}`, "by: 7 is not text"},
		{resume, `{"by":null,"reason":9}`, "reason: 9 is not text"},
		{rescan, `{"full":"yes"}`, `full: "yes" is neither true nor false`},
		{rescan, `{"next":1}`, "next: 1 is neither true nor false"},
	} {
		w := b.do("POST", "/api/v1"+c.path, c.body)
		requireError(t, w, 422, c.says)
		require.NotRegexp(t, "expected|property|validation", w.Body.String(), c.body)
	}
	requireError(t, b.do("POST", "/api/v1"+pause, `{"reason"`), 400, "the body is not JSON")
	requireError(t, b.do("POST", "/api/v1"+pause, ``), 400, "a body of JSON is needed; allowed: reason, by")
	require.Empty(t, b.temporal.said())
	for query, says := range map[string]string{
		"/experiments/run-1?fresh=perhaps": `fresh: "perhaps" is neither true nor false`, "/rounds?limit=many": `limit: "many" is not a whole number`,
		"/rounds/a/b?wait_secs=1.5": `wait_secs: "1.5" is not a whole number`, "/experiments?limit=99999999999999999999": `limit`,
		"/experiments?offset=9223372036854775808": `offset: "9223372036854775808" has more than 64 bits`,
	} {
		requireError(t, b.get("/api/v1"+query), 422, says)
	}
}

func TestResumingNeedsNoReason(t *testing.T) {
	b := guarded(t)
	for _, body := range []string{"", "{}", `{"by":null}`, `{"by":null,"reason":null}`} {
		require.Equal(t, 200, b.do("POST", "/api/v1/schedule/resume", body).Code, body)
	}
}
