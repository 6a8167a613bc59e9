package web

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"lancefleet/control"
	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/store"
)

// preview is one state of one page, reachable without any backend.
type preview struct {
	name   string
	target string
	status int
	want   string // that the page must say
	bench  func(t testing.TB) *bench
}

func previews() []preview {
	demo := func(options ...option) func(testing.TB) *bench {
		return func(t testing.TB) *bench { return newBench(t, demoStore(3000), options...) }
	}
	s3 := func(_ *Config, p *parts) { p.dataDir = "s3://training-runs/fleet" }
	rest := func(change func(*bench)) func(testing.TB) *bench {
		return func(t testing.TB) *bench {
			store := demoStore(3000)
			store.retired = []fleet.LedgerEntry{retiredOne(fleet.Table, "at-rest")}
			store.actions = journalOf("table:at-rest")
			b := newBench(t, store)
			if change != nil {
				change(b)
				b.renew(t)
			}
			return b
		}
	}
	return append(operationPreviews(), []preview{
		{"list-retired", "/?state=retired", 200, "at-rest", rest(nil)},
		{"list-search-retired", "/?search=at-rest", 200, "badge retired", rest(nil)},
		{"experiment-retired", "/experiments/table:at-rest", 200, "Retirement", rest(nil)},
		{"experiment-retiring", "/experiments/" + pathOf(5), 200, "follow it in Temporal", rest(func(b *bench) {
			b.temporal.maintaining = []control.Running{{ID: demoRows(3000)[10].ID, Action: "retire", WorkflowID: "experiment/x", RunID: "r", StartedAt: minutesAgo(2)}}
		})},
		{"act-retire", "/experiments/" + pathOf(5) + "/do/retire", 200, "Would not start", rest(func(b *bench) {
			b.store.preview = func(lance.PreviewSpec) (lance.Preview, error) {
				return lance.Preview{Merge: []lance.MergePreview{{Shard: "a", Generations: 3, Rows: 5400, Bytes: 18 << 20}}, Blocking: []string{"2 stranded entries in shard a"},
					Compact: lance.Compacted{FragmentsRemoved: 18, FragmentsAdded: 2, Bytes: 900 << 20}, Versions: lance.CleanedVersions{Held: []lance.HeldVersion{{By: "tag v1", Version: 4}}}}, nil
			}
		})},
		{"act-unseen", "/experiments/" + pathOf(5) + "/do/optimize", 200, "could not be looked at", rest(nil)},
		{"act-wake", "/experiments/table:at-rest/do/wake", 200, "Would start", rest(nil)},
		{"act-none", "/experiments/table:at-rest/do/burn", 404, "nothing at this address", rest(nil)},
		{"batch-preview", "/batch?action=optimize&all=1&q=gsm8k", 200, "to confirm", demo()},
		{"batch-none", "/batch?action=retire&all=1&q=failing", 200, "Nothing would be started", demo()},
		{"batch", "/batches/b0123456789ab", 200, "running or waiting", rest(func(b *bench) {
			b.store.actions[1].Why = "batch b0123456789ab: tidy up"
			b.temporal.maintaining = []control.Running{{ID: demoRows(3000)[10].ID, Action: "optimize", WorkflowID: "experiment/x", RunID: "r", StartedAt: minutesAgo(2), Batch: "b0123456789ab"}}
		})},
		{"list-cold", "/?q=run-cold", 200, "no row yet", func(t testing.TB) *bench {
			s := coldStore(8)
			s.observe = func(e fleet.Experiment) (fleet.Observation, error) {
				if strings.HasSuffix(e.Name, "3") {
					return fleet.Observation{}, unreadable()
				}
				return observes(e)
			}
			return newBench(t, s)
		}},
		{"list-partial", "/?q=run", 200, "Partial.", func(t testing.TB) *bench {
			s := coldStore(8)
			s.unread = []store.Unread{{From: "s3://b", Err: unreadable(), Kept: true}}
			return newBench(t, s)
		}},
		{"list", "/", 200, "of 3,000", demo()},
		{"list-filtered", "/?search=GSM8K&kind=rollout&failing=false", 200, "Matching", demo()},
		{"list-failing", "/?failing=true", 200, "unreachable", demo()},
		{"list-backlog", "/?sort=pending&order=desc", 200, "17,204", demo()},
		{"list-no-match", "/?search=%3Cscript%3Ealert(1)%3C/script%3E", 200, "Nothing matches", demo()},
		{"list-mistake", "/?sort=colour&kind=blue", 200, "&#34;colour&#34; is not a column", demo()},
		{"list-past-the-end", "/?offset=9000", 200, "Past the end", demo()},
		{"list-empty", "/", 200, "No experiments yet", func(t testing.TB) *bench { return newBench(t, &fakeStore{}) }},
		{"list-not-read", "/", 503, "has not been read yet", func(t testing.TB) *bench { return newBench(t, &fakeStore{err: unreadable()}) }},
		{"list-paused", "/", 200, "Rounds are paused", func(t testing.TB) *bench {
			b := demo()(t)
			b.temporal.setPaused(true, "ada", "moving the bucket <b>now</b>")
			b.renew(t)
			return b
		}},
		{"list-stale", "/", 200, "Old data", func(t testing.TB) *bench {
			store := demoStore(3000)
			store.snapshot.CommittedAt, store.rounds = minutesAgo(100), nil
			return newBench(t, store)
		}},
		{"list-storage-down", "/", 200, "Storage does not answer", func(t testing.TB) *bench {
			b := demo()(t)
			b.store.set(func(f *fakeStore) { f.err = unreadable() })
			b.renew(t)
			return b
		}},
		{"list-temporal-down", "/", 200, "Temporal does not answer", func(t testing.TB) *bench {
			b := demo()(t)
			b.temporal.err = unreachable()
			b.renew(t)
			return b
		}},
		{"experiment", "/experiments/" + pathOf(5), 200, "paper", demo()},
		{"experiment-backlog", "/experiments/" + pathOf(0), 200, "refuse to read", demo()},
		{"experiment-failing", "/experiments/" + pathOf(1), 200, "Observations fail", demo()},
		{"experiment-unseen", "/experiments/" + pathOf(2), 200, "Never observed", demo()},
		{"experiment-fresh", "/experiments/" + pathOf(3) + "?fresh=true", 200, "not stored", func(t testing.TB) *bench {
			b := demo()(t)
			b.store.observe = observes
			return b
		}},
		{"experiment-none", "/experiments/rollout:nothing-here", 404, "no source names", demo()},
		{"experiment-ambiguous", "/experiments/both", 409, "generic:both", func(t testing.TB) *bench {
			return newBench(t, &fakeStore{snapshot: Snapshot{Rows: []fleet.Row{healthy(fleet.Generic, "both", 1), healthy(fleet.Table, "both", 1)}}})
		}},
		{"rounds", "/rounds", 200, "4,211", demo()},
		{"rounds-on-s3", "/rounds", 200, "$", demo(s3)},
		{"rounds-paused", "/rounds", 200, "Resume rounds", func(t testing.TB) *bench {
			b := demo()(t)
			b.temporal.setPaused(true, "ada", "moving the bucket")
			b.renew(t)
			return b
		}},
		{"rounds-none", "/rounds", 200, "No round has finished yet", func(t testing.TB) *bench { return newBench(t, &fakeStore{}) }},
		{"rounds-no-schedule", "/rounds", 200, "not created yet", func(t testing.TB) *bench {
			b := demo()(t)
			b.temporal.schedule = Schedule{}
			b.renew(t)
			return b
		}},
		{"nowhere", "/no/such/page", 404, "nothing at this address", demo()},
	}...)
}

// journalOf is what a retirement leaves in the journal.
func journalOf(id string) []fleet.Action {
	before, after := fleet.UnknownFacts(), fleet.UnknownFacts()
	before.Fragments, after.Fragments, before.Pending, after.Pending = 18, 2, 7, 0
	return []fleet.Action{
		{ID: "4", At: minutesAgo(3), Kind: fleet.ActRetire, Target: id, Outcome: "done", Before: before.Text(), After: after.Text(), By: "ada", Why: "finished", DurationMS: 61_000, WorkflowID: "experiment/" + id, RunID: "r4"},
		{ID: "3", At: minutesAgo(70), Kind: fleet.ActRetire, Target: id, Outcome: "refused", Error: "2 stranded entries in shard a", WorkflowID: "experiment/" + id, RunID: "r3"},
		{ID: "2", At: minutesAgo(90), Kind: fleet.ActMergeWAL, Target: id, Outcome: "failed", ErrorClass: "conflict", Error: "commit conflict <b>", WorkflowID: "experiment/" + id, RunID: "r2"},
	}
}

// pathOf names one of the experiments that trouble gave something to tell.
func pathOf(i int) string { return demoRows(3000)[2*i].String() }

func observes(exp fleet.Experiment) (fleet.Observation, error) {
	return fleet.Observation{
		Fingerprint: fleet.Fingerprint{Version: 41, ETag: "aa", Naming: "v2"}, ManifestTime: minutesAgo(2),
		Fragments: 5, SmallFragments: 3, BaseRows: 1200, Bytes: 9 << 20, Keyed: true, ObservedAt: testNow.UnixMilli(),
		Commits: []fleet.Commit{{Version: 41, Time: minutesAgo(2), Operation: "Append"}},
	}, nil
}

// Set PREVIEW_DIR to keep the pages, e.g. to look at them in a browser.
func TestEveryStateOfEveryPageRendersWithoutABackend(t *testing.T) {
	dir := os.Getenv("PREVIEW_DIR")
	if dir == "" {
		dir = t.TempDir()
	}
	for _, p := range previews() {
		t.Run(p.name, func(t *testing.T) {
			w := p.bench(t).get(p.target)
			body := w.Body.String()
			require.Equal(t, p.status, w.Code, body)
			require.Contains(t, body, p.want)
			require.Contains(t, body, "</html>", "the page is whole")
			require.NotContains(t, body, "ZgotmplZ", "a value stood where it may not")
			require.Equal(t, "text/html; charset=UTF-8", w.Header().Get("Content-Type"))
			requireQuiet(t, body)
			require.NoError(t, os.WriteFile(filepath.Join(dir, p.name+".html"), w.Body.Bytes(), 0o600))
		})
	}
}

// requireQuiet: nothing inline that could run, and nothing from elsewhere but
// links to Temporal's UI. It reads the page as a browser does.
func requireQuiet(t *testing.T, body string) {
	t.Helper()
	tokens := html.NewTokenizer(strings.NewReader(body))
	script := false
	for {
		kind := tokens.Next()
		if kind == html.ErrorToken {
			return
		}
		token := tokens.Token()
		if kind == html.TextToken {
			require.False(t, script && strings.TrimSpace(token.Data) != "", "an inline script: %s", token.Data)
			continue
		}
		script = kind == html.StartTagToken && token.Data == "script"
		require.NotContains(t, []string{"style", "iframe", "object", "base"}, token.Data)
		for _, a := range token.Attr {
			require.NotEqual(t, "style", a.Key)
			require.False(t, strings.HasPrefix(a.Key, "on"), "a handler: %s=%s", a.Key, a.Val)
			if slices.Contains([]string{"href", "src", "action"}, a.Key) {
				local := strings.HasPrefix(a.Val, "/") && !strings.HasPrefix(a.Val, "//") || strings.HasPrefix(a.Val, "#")
				require.True(t, local || strings.HasPrefix(a.Val, "http://127.0.0.1:8233"), "%s=%s", a.Key, a.Val)
			}
		}
	}
}
