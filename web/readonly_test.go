package web

import (
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/store"
)

// restedFleet is realFleet with a third dataset that has retired, by evidence that
// was really gathered, and with rows in every table of ours.
func restedFleet(t *testing.T) (*lance.Engine, string, fleet.LedgerEntry) {
	t.Helper()
	engine, dir := realFleet(t)
	exp := fleet.Experiment{ID: fleet.ID{Kind: fleet.Rollout, Name: "rested"}, URI: dir + "/rested.rollout.lance", Source: fleet.FromFolder}
	_, err := engine.MakeDataset(t.Context(), lance.DatasetSpec{URI: exp.URI, Kind: fleet.Rollout, Rows: 10, Fragments: 2, Seed: 2, Age: 30 * 24 * time.Hour})
	require.NoError(t, err)
	evidence, err := engine.Verify(t.Context(), exp.URI, lance.VerifyOptions{})
	require.NoError(t, err)
	require.True(t, evidence.Clean(), evidence.Blocking)
	row, now := fleet.UnknownRow(exp), time.Now().UnixMilli()
	row.Known, row.LastWrite = true, now-30*dayMS
	entry := fleet.NewRetirement(row, evidence, nil, now-dayMS)
	entry.By, entry.RunID = "ada", "run-3"
	require.NoError(t, store.NewLedgerWriter(engine, store.NewLedger(engine.Reader, dir)).Append(t.Context(), entry))
	require.NoError(t, store.NewJournalWriter(engine, store.NewJournal(engine.Reader, dir)).Append(t.Context(),
		fleet.Action{ID: "j", At: now - dayMS, Kind: fleet.ActRetire, Target: exp.String(), Outcome: "done", RunID: "run-3", After: fleet.FactsOfEvidence(evidence).Text()}))
	require.NoError(t, store.NewRoundsWriter(engine, store.NewRounds(engine.Reader, dir)).Append(t.Context(), fleet.RoundRecord{RoundID: "r", FinishedAt: now, Hot: 1}))
	require.NoError(t, store.NewSamplesWriter(engine, store.NewSamples(engine.Reader, dir)).Append(t.Context(),
		fleet.Sample{ID: exp.ID, At: now - 2*dayMS, Rows: 20, Fragments: 2, Bytes: 1000}))
	return engine, dir, entry
}

// versions are the heads of every table below dir, ours and the experiments'.
func versions(t *testing.T, r *lance.Reader, dir string) map[string]uint64 {
	t.Helper()
	tables, err := filepath.Glob(dir + "/*.lance")
	require.NoError(t, err)
	out := map[string]uint64{}
	for _, uri := range tables {
		head, err := r.Head(t.Context(), uri)
		require.NoError(t, err, uri)
		out[filepath.Base(uri)] = head.Version
	}
	return out
}

func TestBrowsingARetiredFleetLeavesEveryTableAsItWas(t *testing.T) {
	engine, dir, entry := restedFleet(t)
	reader := engine.ReadOnly()
	server, err := New(Deps{
		Config: DefaultConfig(), Browser: store.NewBrowser(reader, dir, store.SourcesAuto), Reader: reader,
		DataDir: dir, Fleet: "default", Policies: fleet.Policies{Default: fleet.DefaultPolicy()}, Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	b := &bench{Server: server}
	b.renew(t)
	before, files := versions(t, reader, dir), everything(t, dir)
	for _, table := range []string{"_stats.rollout.lance", "_retired.lance", "_journal.lance", "_rounds.lance", "_samples.lance", "rested.rollout.lance", "seen.rollout.lance", "unseen.rollout.lance"} {
		require.Contains(t, before, table)
	}
	one := "/experiments/" + entry.String()
	pages := []string{
		"/?state=retired", "/?search=rested", "/export.csv?state=retired", "/export.json?search=rested", one, one + "?fresh=true", one + "?days=30&run=run-3",
		one + "/do/wake", one + "/do/retire", one + "/do/verify", one + "/do/verify?deep=true", one + "/do/seal", one + "/do/accept", one + "/charts/size", "/operations", "/operations?kind=retire&outcome=done&days=30",
		"/operations/charts/duration", "/rounds", "/runbook", "/experiments/unseen", "/experiments/rollout:unseen/do/optimize", "/experiments/rollout:seen/do/accept", "/experiments/rollout:seen/do/accept?leave_out=true",
	}
	for _, path := range []string{"/experiments?state=retired", "/experiments?search=rested", one, one + "?fresh=true", one + "/plan", one + "/history", one + "/verify", one + "/verify?deep=true",
		one + "/series", "/plan", "/operations", "/series", "/rounds", "/tasks", "/status", "/experiments/unseen", "/experiments/seen/plan?action=optimize"} {
		pages = append(pages, "/api/v1"+path)
	}
	for range 2 {
		for _, page := range pages {
			w := b.get(page)
			require.Less(t, w.Code, 400, "%s: %s", page, w.Body.String())
			b.renew(t)
		}
	}
	d := decode[Detail](t, b.get("/api/v1"+one), 200)
	require.Equal(t, Retired, d.State, "looking at it makes nothing hot")
	require.Equal(t, "same as when it retired", decode[Verification](t, b.get("/api/v1"+one+"/verify"), 200).AgainstLedger)
	require.Equal(t, 1, decode[Operations](t, b.get("/api/v1/operations"), 200).Retirement.RetiredAll)
	require.Equal(t, before, versions(t, reader, dir))
	require.Equal(t, files, everything(t, dir), "looking wrote something")

	// What the test rests on: a write is seen.
	require.NoError(t, os.WriteFile(filepath.Join(dir, "seen.rollout.lance", "stray"), []byte("x"), 0o600))
	require.NotEqual(t, files, everything(t, dir))
}

// Whatever a server holds was made by New from handles that can't write. This keeps
// it so: nothing that can be reached from one is an engine, or a writer of a table.
func TestNothingThatAServerHoldsCanWrite(t *testing.T) {
	server, err := New(Deps{Config: DefaultConfig(), Browser: store.NewBrowser(&lance.Reader{}, "/data", store.SourcesBoth), Reader: &lance.Reader{}, DataDir: "/data"})
	require.NoError(t, err)
	seen := map[uintptr]reflect.Type{}
	require.Empty(t, writers(reflect.ValueOf(server), "server", seen))
	types := slices.Collect(maps.Values(seen))
	require.Contains(t, types, reflect.TypeFor[*lance.Reader](), "the walk gets as far as the handles")
	require.Contains(t, types, reflect.TypeFor[*store.Journal]())

	server.journal = store.NewJournal(&lance.Engine{Reader: &lance.Reader{}}, "/data")
	require.NotEmpty(t, writers(reflect.ValueOf(server), "server", map[uintptr]reflect.Type{}), "an engine would be found")
}

// writers lists what can write and can be reached through fields, pointers and
// interfaces, unexported ones included.
func writers(v reflect.Value, path string, seen map[uintptr]reflect.Type) []string {
	if !v.IsValid() || v.Kind() == reflect.Pointer && (v.IsNil() || seen[v.Pointer()] == v.Type()) {
		return nil
	}
	var found []string
	name := v.Type().String()
	if v.Type().Implements(reflect.TypeFor[store.Writer]()) || strings.HasPrefix(strings.TrimPrefix(name, "*"), "store.") && strings.Contains(name, "Writer") || strings.HasSuffix(name, "lance.Engine") {
		found = append(found, path+" is a "+name)
	}
	ours := strings.Contains(name, "web.") || strings.Contains(name, "store.") || strings.Contains(name, "lance.")
	switch v.Kind() {
	case reflect.Interface:
		return append(found, writers(v.Elem(), path, seen)...)
	case reflect.Pointer:
		seen[v.Pointer()] = v.Type()
		if ours && v.Type() != reflect.TypeFor[*lance.Reader]() { // what that holds is its own package's matter
			found = append(found, writers(v.Elem(), path, seen)...)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if ours {
				found = append(found, writers(v.Field(i), path+"."+v.Type().Field(i).Name, seen)...)
			}
		}
	}
	return found
}
