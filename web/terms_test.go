package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"lancefleet/control"
	"lancefleet/fleet"
)

// termFleet has one experiment for each thing that a term can ask.
func termFleet() *fakeStore {
	row := func(kind fleet.Kind, name string, change func(*fleet.Row)) fleet.Row {
		r := healthy(kind, name, minutesAgo(60*24*3))
		if change != nil {
			change(&r)
		}
		return r
	}
	return &fakeStore{
		snapshot: Snapshot{Version: 1, CommittedAt: minutesAgo(1), Rows: []fleet.Row{
			row(fleet.Rollout, "gsm8k-grpo", func(r *fleet.Row) { r.PendingWAL, r.LastWrite = 120, minutesAgo(5) }),
			row(fleet.Rollout, "gsm8k-ppo", func(r *fleet.Row) { r.FragmentCount, r.Bytes = 40, 3<<30 }),
			row(fleet.Generic, "lost", func(r *fleet.Row) { r.StrandedEntries, r.LastMaintenance = 7, minutesAgo(30) }),
			row(fleet.Generic, "sick", func(r *fleet.Row) { r.Failures, r.ErrorClass = 2, "unreachable" }),
			row(fleet.Table, "failing-by-name", func(r *fleet.Row) { r.LastWrite = 0; r.Tags = []string{"paper"} }),
			fleet.UnknownRow(experiment(fleet.Table, "new")),
		}},
		retired: []fleet.LedgerEntry{retiredOne(fleet.Rollout, "gsm8k-old")},
		named:   []fleet.Experiment{experiment(fleet.Datagen, "gsm8k-cold")},
		observe: observes,
	}
}

func foundBy(t *testing.T, b *bench, text string) []string {
	t.Helper()
	list := decode[ExperimentList](t, b.get("/api/v1/experiments?sort=name&q="+url.QueryEscape(text)), 200)
	got := []string{}
	for _, e := range list.Experiments {
		got = append(got, e.ID)
	}
	require.Len(t, got, list.Total, text)
	return got
}

func TestTermsFindWhatTheySay(t *testing.T) {
	b := newBench(t, termFleet())
	hot := []string{"rollout:gsm8k-grpo", "rollout:gsm8k-ppo", "generic:lost", "generic:sick", "table:failing-by-name", "table:new"}
	for text, want := range map[string][]string{
		"":                           hot,
		"gsm8k":                      {"rollout:gsm8k-grpo", "rollout:gsm8k-ppo", "rollout:gsm8k-old", "datagen:gsm8k-cold"},
		"gsm8k state:retired":        {"rollout:gsm8k-old"},
		"GSM8K PPO":                  {"rollout:gsm8k-ppo"},
		"gsm8k -state:retired":       {"rollout:gsm8k-grpo", "rollout:gsm8k-ppo", "datagen:gsm8k-cold"},
		"gsm8k -ppo":                 {"rollout:gsm8k-grpo", "rollout:gsm8k-old", "datagen:gsm8k-cold"},
		"is:retired":                 {"rollout:gsm8k-old"},
		"state:any kind:rollout":     {"rollout:gsm8k-grpo", "rollout:gsm8k-ppo", "rollout:gsm8k-old"},
		"kind:generic kind:table":    {"generic:lost", "generic:sick", "table:failing-by-name", "table:new"},
		"kind:generic,table sick":    {"generic:sick"},
		"-kind:rollout":              {"generic:lost", "generic:sick", "table:failing-by-name", "table:new"},
		"failing":                    {"generic:sick"},
		`"failing"`:                  {"table:failing-by-name"},
		"name:failing":               {"table:failing-by-name"},
		"is:failing error:unreach":   {"generic:sick"},
		"unseen":                     {"table:new", "datagen:gsm8k-cold"},
		"backlog":                    {"rollout:gsm8k-grpo"},
		"pending:>=100":              {"rollout:gsm8k-grpo"},
		"pending:120":                {"rollout:gsm8k-grpo"},
		"pending:>120":               {},
		"pending:100..200":           {"rollout:gsm8k-grpo"},
		"pending:unknown":            {"table:new"},
		"pending_wal_generations:>0": {"rollout:gsm8k-grpo"},
		"fragments:>16":              {"rollout:gsm8k-ppo"},
		"stranded:>0":                {"generic:lost"},
		"stranded":                   {"generic:lost"},
		"size:>1GiB":                 {"rollout:gsm8k-ppo"},
		"size:>3.3GB":                {},
		"size:48MiB..48MiB sick":     {"generic:sick"},
		"rows:12k lost":              {"generic:lost"},
		"last-write:<1h":             {"rollout:gsm8k-grpo"},
		"newer_than:1h":              {"rollout:gsm8k-grpo"},
		"newer-than:2026-11-29":      {"rollout:gsm8k-grpo"},
		"older-than:2026-11-29":      {"rollout:gsm8k-ppo", "generic:lost", "generic:sick"},
		"older-than:1d":              {"rollout:gsm8k-ppo", "generic:lost", "generic:sick"},
		"last-write:>7d":             {},
		"last-write:1d..4d sick":     {"generic:sick"},
		"last-write:never":           {"table:failing-by-name", "table:new"},
		"last-write:>=2026-11-30":    {"rollout:gsm8k-grpo"},
		"last-write:2026-11-27 ppo":  {"rollout:gsm8k-ppo"},
		"maintained:<1h":             {"generic:lost"},
		"tag:paper":                  {"table:failing-by-name"},
		"rollout:gsm8k-g":            {"rollout:gsm8k-grpo"},
		"retired-at:>1min":           {"rollout:gsm8k-old"},
		"next:none uri:sick":         {"generic:sick"},
		`why:"below 16" by-name`:     {"table:failing-by-name"},
		"running":                    {},
		"%":                          {},
	} {
		require.ElementsMatch(t, want, foundBy(t, b, text), "%q", text)
	}
	b.temporal.maintaining = []control.Running{{ID: fleet.ID{Kind: fleet.Generic, Name: "lost"}, Action: "retire"}}
	b.renew(t)
	require.Equal(t, []string{"generic:lost"}, foundBy(t, b, "running"))
	require.Equal(t, []string{"generic:lost"}, foundBy(t, b, "state:retiring"))
}

func TestAMistakeIsPointedAtWhereItStands(t *testing.T) {
	b := newBench(t, termFleet())
	for text, want := range map[string]Mistake{
		"gsm8k colour:blue": {At: 6, Length: 11, Word: "colour:blue", Message: "there is no such term"},
		"übung fragmens:>1": {At: 6, Length: 11, Word: "fragmens:>1", Message: "did you mean fragments?"},
		"pending:>=many x":  {At: 0, Length: 14, Word: "pending:>=many", Message: `"many" is not an amount`},
		"a state:gone":      {At: 2, Length: 10, Word: "state:gone", Message: "allowed: hot, retiring, retired"},
		"  last-write:7d":   {At: 0, Length: 13, Word: "last-write:7d", Message: "younger is <7d"},
		"last-write:<2026":  {At: 0, Length: 16, Word: "last-write:<2026", Message: "neither an age nor a date"},
		"last-write:<Ⱥ":     {At: 0, Length: 13, Word: "last-write:<Ⱥ", Message: "neither an age nor a date"}, // longer in lower case
		"older-than:never":  {At: 0, Length: 16, Word: "older-than:never", Message: "neither an age nor a date"},
		`"open`:             {At: 0, Length: 5, Word: `"open`, Message: "a quote is not closed"},
		"x failing:yes":     {At: 2, Length: 11, Word: "failing:yes", Message: "stands alone"},
		"x pending:":        {At: 2, Length: 8, Word: "pending:", Message: "nothing stands behind the colon"},
		"is:blue":           {At: 0, Length: 7, Word: "is:blue", Message: "takes a state"},
	} {
		w := b.get("/api/v1/experiments?q=" + url.QueryEscape(text))
		body := decode[ErrorBody](t, w, http.StatusUnprocessableEntity)
		require.Len(t, body.Mistakes, 1, text)
		m := body.Mistakes[0]
		require.Contains(t, m.Message, want.Message, text)
		require.Contains(t, body.Message, "q: ", text)
		want.Parameter, want.Message = "q", m.Message
		require.Equal(t, want, m, text)
	}
	body := decode[ErrorBody](t, b.get("/api/v1/experiments?q=a:b+c:d&kind=blue"), 422)
	require.Len(t, body.Mistakes, 3, "all at once")

	page := b.get("/?q=" + url.QueryEscape("gsm8k colour:<b> failing")).Body.String()
	require.Contains(t, page, "gsm8k <mark>colour:&lt;b&gt;</mark> failing")
	require.Contains(t, page, `value="gsm8k colour:&lt;b&gt; failing"`, "what was typed stays to be mended")
	require.Contains(t, page, `aria-invalid="true"`)
}

func TestAChipEditsTheText(t *testing.T) {
	for _, c := range []struct{ text, name, value, want string }{
		{"gsm8k", "kind", "table", "gsm8k kind:table"},
		{"gsm8k kind:table pending:>3", "kind", "table", "gsm8k pending:>3"},
		{"kind:table,generic x", "kind", "table", "kind:generic x"},
		{"", "failing", "", "failing"},
		{"a is:failing b", "failing", "", "a b"},
		{"is:retired", "state", "retired", ""},
		{"stranded:>3", "stranded", "", "stranded:>3 stranded"},
		{"-kind:table", "kind", "table", "-kind:table kind:table"},
		{`"failing"`, "failing", "", `"failing" failing`},
		{"wrong:word", "failing", "", "wrong:word failing"},
	} {
		q, _ := parseQuery(url.Values{"q": {c.text}, "offset": {"50"}})
		next := q.toggled(c.name, c.value)
		require.Equal(t, c.want, next.Text, c.text)
		require.Zero(t, next.Offset, "it begins with the first page")
	}
}

func TestParametersAreFoldedIntoTheText(t *testing.T) {
	q, mistakes := parseQuery(url.Values{"q": {"ppo"}, "search": {"-a:b"}, "kind": {"table,rollout"}, "state": {"hot", "retired"}, "failing": {"true"}})
	require.Empty(t, mistakes)
	require.Equal(t, `ppo "-a:b" kind:table,rollout state:hot,retired failing`, q.Text)
}

func TestAnyWordIsALiteralPartOfTheNameAsAParameter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := strings.TrimSpace(rapid.StringN(1, 20, 60).Draw(t, "word"))
		if word == "" {
			return
		}
		q, mistakes := parseQuery(url.Values{"search": {word}})
		if len(mistakes) > 0 || len(q.terms) != 1 || !q.terms[0].isWord() || q.terms[0].not || q.terms[0].value != word {
			t.Fatalf("%q became %q: %v", word, q.Text, mistakes)
		}
	})
}

func TestNoTextMakesTheParserFail(t *testing.T) {
	b := newBench(t, termFleet())
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{"pending", ":", ">=", "..", "-", `"`, `\`, "1", "GiB", "7d", "state", "é", "Ⱥ", "newer-than", " ", "*", "<", "last-write", "2026-11-01", ","}), 0, 12).Draw(t, "parts")
		text := strings.Join(parts, "")
		if code := b.get("/api/v1/experiments?q=" + url.QueryEscape(text)).Code; code != 200 && code != 422 {
			t.Fatalf("%q is answered with %d", text, code)
		}
		if code := b.get("/?q=" + url.QueryEscape(text)).Code; code != 200 {
			t.Fatalf("the page of %q is answered with %d", text, code)
		}
	})
}
