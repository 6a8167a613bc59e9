package activities

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/testsuite"

	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/store"
	"lancefleet/workflows"
)

// fakeWorld stands for data directory, library and Temporal. Its `_stats` is
// committed by compare-and-swap as the real one is.
type fakeWorld struct {
	mu        sync.Mutex
	listing   store.Listing
	listErr   error
	snapshots []*store.Snapshot // by version
	actions   []string          // of the commit of each version, from 1
	staged    map[string][]fleet.Row
	rounds    []fleet.RoundRecord
	journal   []fleet.Action
	probes    []lance.ProbeTarget
	observes  []lance.ObserveTarget
	batches   int // of full observations
	requests  fleet.Requests
	now       time.Time
	ahead     time.Duration // now is, of the storage's time
	clockErr  error
	swept     int
	listed    int // times that the sources were
	samples   []fleet.Sample
	ledger    []fleet.LedgerEntry // every one that was ever added
	verified  fleet.Evidence      // what Verify in this process sees
	metrics   fakeMetrics
	hints     map[string][]fleet.ID // staged, by key
	hintErr   error

	cleanedBelow uint64 // versions of `_stats` below are gone

	probe        func(t lance.ProbeTarget) lance.ProbeResult
	observe      func(t lance.ObserveTarget) lance.ObserveResult
	beforeCommit func(base *store.Snapshot) error // may commit something itself
	afterCommit  func() error                     // the commit has landed
	batchErr     error
	appendErr    error        // of the journal
	refreshErr   error        // of rows that are stored outside a round
	beforeStats  func()       // a commit of `_stats` is decided, and not yet made
	afterLedger  func() error // the entries have landed
	paused       string
	block        bool   // batches wait until their context ends
	unreadable   string // a table whose reader fails; also sources, paused
}

func newWorld(names ...string) *fakeWorld {
	w := &fakeWorld{staged: map[string][]fleet.Row{}, now: time.UnixMilli(10_000_000)}
	for _, name := range names {
		w.listing.Experiments = append(w.listing.Experiments, exp(name))
	}
	w.snapshots = []*store.Snapshot{{}}
	w.probe = func(lance.ProbeTarget) lance.ProbeResult {
		return lance.ProbeResult{State: lance.Unchanged, Requests: fleet.Requests{Head: 3}}
	}
	w.observe = func(lance.ObserveTarget) lance.ObserveResult {
		return lance.ObserveResult{Observation: w.observation(2), Requests: fleet.Requests{List: 1, Get: 2}}
	}
	return w
}

func exp(name string) fleet.Experiment {
	return fleet.Experiment{ID: fleet.ID{Kind: fleet.Rollout, Name: name}, URI: "/data/" + name + ".rollout.lance", Source: fleet.FromRegistry}
}

func (w *fakeWorld) observation(version uint64) *fleet.Observation {
	return &fleet.Observation{
		Fingerprint: fleet.Fingerprint{Version: version, ETag: "e", Naming: "v2"}, Fragments: 1, BaseRows: 10,
		Bytes: -1, ManifestTime: 1, ObservedAt: w.now.UnixMilli(),
	}
}

// seen puts rows of all listed experiments into `_stats`.
func (w *fakeWorld) seen() *fakeWorld {
	rows := make([]fleet.Row, 0, len(w.listing.Experiments))
	for _, e := range w.listing.Experiments {
		rows = append(rows, fleet.Observed(e, nil, *w.observation(1), w.now.UnixMilli()))
	}
	w.put(rows, "")
	return w
}

func (w *fakeWorld) put(rows []fleet.Row, action string) uint64 {
	slices.SortFunc(rows, func(a, b fleet.Row) int { return a.ID.Compare(b.ID) })
	version := uint64(len(w.snapshots))
	w.snapshots = append(w.snapshots, &store.Snapshot{Version: version, CommittedAt: w.now.UnixMilli(), Rows: rows})
	w.actions = append(w.actions, action)
	return version
}

func (w *fakeWorld) head() *store.Snapshot { return w.snapshots[len(w.snapshots)-1] }

// fail makes the row of an experiment one that keeps failing.
func (w *fakeWorld) fail(name string, since time.Duration) {
	rows := slices.Clone(w.head().Rows)
	for i := range rows {
		if rows[i].Name == name {
			rows[i] = fleet.Failed(rows[i].Experiment, &rows[i], "corrupt", "bad", w.now.Add(-since).UnixMilli(), fleet.BackoffPolicy{Interval: time.Minute})
		}
	}
	w.put(rows, "")
}

func (w *fakeWorld) Probe(ctx context.Context, targets []lance.ProbeTarget, _ lance.BatchOptions) ([]lance.ProbeResult, error) {
	if err := w.batch(ctx); err != nil {
		return nil, err
	}
	w.probes = append(w.probes, targets...)
	out := make([]lance.ProbeResult, len(targets))
	for i, t := range targets {
		out[i] = w.probe(t)
	}
	return out, nil
}

func (w *fakeWorld) Observe(ctx context.Context, targets []lance.ObserveTarget, _ lance.ObserveOptions) ([]lance.ObserveResult, error) {
	if err := w.batch(ctx); err != nil {
		return nil, err
	}
	w.batches++
	w.observes = append(w.observes, targets...)
	out := make([]lance.ObserveResult, len(targets))
	for i, t := range targets {
		out[i] = w.observe(t)
	}
	return out, nil
}

func (w *fakeWorld) batch(ctx context.Context) error {
	if w.block {
		<-ctx.Done()
		return &lance.Error{Class: lance.Cancelled, Op: "probe", Message: "cancelled"}
	}
	return w.batchErr
}

func (w *fakeWorld) Stats(context.Context) (lance.Stats, error) {
	return lance.Stats{Requests: w.requests}, nil
}

func (w *fakeWorld) Since(_ context.Context, version uint64) ([]fleet.Commit, error) {
	var commits []fleet.Commit
	for v := len(w.snapshots) - 1; v > int(version); v-- {
		commits = append(commits, fleet.Commit{Version: uint64(v), Action: w.actions[v-1]})
	}
	return commits, nil
}

func (w *fakeWorld) ListKnowing(context.Context, []fleet.Row) (store.Listing, error) {
	w.listed++
	return w.listing, w.listErr
}

func (w *fakeWorld) Lookup(_ context.Context, ref fleet.Ref) ([]fleet.Experiment, error) {
	for _, e := range w.listing.Experiments {
		if ref.Matches(e.ID) {
			return []fleet.Experiment{e}, w.read("sources")
		}
	}
	return nil, w.read("sources")
}

func (w *fakeWorld) PutListing(context.Context, store.Listing) (string, error) { return "hash", nil }

func (w *fakeWorld) Listing(context.Context, string) (*store.Listing, error) { return &w.listing, nil }

func (w *fakeWorld) PutPage(_ context.Context, round string, page, attempt int, rows []fleet.Row) (string, error) {
	key := fmt.Sprintf("%s/%d/%d", round, page, attempt)
	w.staged[key] = rows
	return key, nil
}

func (w *fakeWorld) Page(_ context.Context, key string) ([]fleet.Row, error) {
	return w.staged[key], nil
}

func (w *fakeWorld) PutHints(_ context.Context, runID string, ids []fleet.ID) error {
	if w.hintErr != nil {
		return w.hintErr
	}
	if w.hints == nil {
		w.hints = map[string][]fleet.ID{}
	}
	w.hints[runID] = ids
	return nil
}

func (w *fakeWorld) TakeHints(_ context.Context, roundID string) (string, []fleet.ID, error) {
	var all []fleet.ID
	for key, ids := range w.hints {
		all = append(all, ids...)
		delete(w.hints, key)
	}
	if len(all) == 0 || w.hintErr != nil {
		return "", nil, w.hintErr
	}
	w.hints["taken by "+roundID] = all
	return "taken by " + roundID, all, nil
}

func (w *fakeWorld) Hints(_ context.Context, key string) (map[fleet.ID]bool, error) {
	named := map[fleet.ID]bool{}
	for _, id := range w.hints[key] {
		named[id] = true
	}
	return named, w.hintErr
}

func (w *fakeWorld) RemovePages(context.Context, string) (int, error) {
	n := len(w.staged)
	clear(w.staged)
	return n, nil
}

func (w *fakeWorld) Sweep(context.Context, string, int64) (int, error) {
	w.swept++
	return 0, nil
}

func (w *fakeWorld) StorageNow(context.Context) (int64, error) {
	return w.now.Add(-w.ahead).UnixMilli(), w.clockErr
}

// The roles whose methods share a name with another one's.
type (
	fakeStats   struct{ *fakeWorld }
	fakeRounds  struct{ *fakeWorld }
	fakeJournal struct{ *fakeWorld }
)

func (w *fakeWorld) read(table string) error {
	if w.unreadable == table {
		return &lance.Error{Class: lance.Corrupt, Op: "read_table", URI: table, Message: "it lacks a file"}
	}
	return nil
}

func (s fakeStats) Latest(context.Context) (*store.Snapshot, error) {
	return s.head(), s.read("_stats")
}

func (s fakeStats) At(_ context.Context, version uint64) (*store.Snapshot, error) {
	if version < s.cleanedBelow {
		return nil, &lance.Error{Class: lance.Gone, Op: "read_table", Message: "cleaned up"}
	}
	return s.snapshots[version], nil
}

func (s fakeStats) Commit(_ context.Context, base *store.Snapshot, rows []fleet.Row, props map[string]string) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.beforeCommit != nil {
		if err := s.beforeCommit(base); err != nil {
			return 0, err
		}
	}
	if s.beforeStats != nil {
		s.beforeStats()
	}
	if base.Version != s.head().Version {
		return 0, &lance.Error{Class: lance.Conflict, Op: "commit", Message: "somebody was faster"}
	}
	version := s.put(rows, props[fleet.ActionProperty])
	if s.afterCommit != nil {
		if err := s.afterCommit(); err != nil {
			return 0, err
		}
	}
	return version, nil
}

func (s fakeStats) RefreshRows(_ context.Context, rows []fleet.Row, addMissing bool) (uint64, error) {
	if s.refreshErr != nil {
		return 0, s.refreshErr
	}
	return s.put(fleet.MergeRefresh(s.head().Rows, rows, addMissing), ""), nil
}

func (r fakeRounds) Latest(context.Context, int) ([]fleet.RoundRecord, error) { return r.rounds, nil }

func (r fakeRounds) Append(_ context.Context, rec fleet.RoundRecord) error {
	r.fakeWorld.rounds = slices.Insert(r.rounds, 0, rec)
	return nil
}

func (j fakeJournal) Append(_ context.Context, entries ...fleet.Action) error {
	if err := j.fakeWorld.appendErr; err != nil {
		return err
	}
	for _, e := range entries {
		if !slices.ContainsFunc(j.journal, func(there fleet.Action) bool { return there.ID == e.ID }) {
			j.fakeWorld.journal = append(j.journal, e)
		}
	}
	return nil
}

func (w *fakeWorld) Verify(context.Context, string, lance.VerifyOptions) (fleet.Evidence, error) {
	return w.verified, w.batchErr
}

func (w *fakeWorld) scan() *Scan {
	return &Scan{
		FleetID: "fleet", Engine: w, Stats: fakeStats{w}, Writer: fakeStats{w}, Commits: w, Sources: w, Staging: w,
		Rounds: fakeRounds{w}, Journal: fakeJournal{w}, Ledger: fakeLedger{w}, Samples: fakeSamples{w}, Metrics: &w.metrics,
		Config: Config{
			Concurrency: 256, PagesAtOnce: 4, ProbeTimeout: time.Second, ObserveTimeout: time.Second, ObserveChunk: 2,
			TargetRows: 1 << 20, Freshness: fleet.DefaultFreshness, SweepEvery: 2, Probe: fleet.DefaultProbePolicy(time.Minute),
		},
		Now: func() time.Time { return w.now },
		Log: slog.New(slog.DiscardHandler),
	}
}

// page is the only page of a round that pinned the newest `_stats`.
func (w *fakeWorld) page() workflows.Page {
	return workflows.Page{Round: w.round(), Count: len(w.listing.Experiments)}
}

func (w *fakeWorld) round() workflows.Round {
	return workflows.Round{
		ID: "run", Number: 3, StartedAt: w.now.UnixMilli(), Listing: "hash",
		Experiments: len(w.listing.Experiments), StatsVersion: w.head().Version,
	}
}

// do runs one activity as a worker would.
func do[T any](t *testing.T, a any, in any) (T, error) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivityWithOptions(a, activity.RegisterOptions{Name: "activity"})
	var out T
	value, err := env.ExecuteActivity("activity", in)
	if err != nil {
		return out, err
	}
	if value.HasValue() {
		err = value.Get(&out)
	}
	return out, err
}
