package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/control"
	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/store"
	"lancefleet/workflows"
)

var testNow = time.Date(2026, 11, 30, 9, 30, 0, 0, time.UTC)

func minutesAgo(n int64) int64 { return testNow.UnixMilli() - n*60_000 }

// fakeStore is everything that is read, in memory.
type fakeStore struct {
	mu       sync.Mutex
	snapshot Snapshot
	err      error
	rounds   []fleet.RoundRecord
	named    []fleet.Experiment // by sources, without a row
	lookErr  error
	unread   []store.Unread // sources that can't be read
	listed   int            // times that the sources were asked
	observe  func(fleet.Experiment) (fleet.Observation, error)
	observed []fleet.ID
	retired  []fleet.LedgerEntry
	actions  []fleet.Action // newest first
	shared   []fleet.Action // the same, as they were last read
	samples  []fleet.Sample // newest first

	preview   func(lance.PreviewSpec) (lance.Preview, error)
	tails     []lance.Tail
	sealing   func(lance.SealSpec) (lance.Sealed, error)
	accepting func(lance.AcceptSpec) (lance.Accepted, error)
	evidence  func(uri string, deep bool) (fleet.Evidence, error)
}

func (f *fakeStore) set(change func(*fakeStore)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *fakeStore) Latest(context.Context) (Snapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.snapshot, f.err
}

func (f *fakeStore) Lookup(_ context.Context, ref fleet.Ref) ([]fleet.Experiment, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []fleet.Experiment
	for _, e := range f.named {
		if ref.Matches(e.ID) {
			out = append(out, e)
		}
	}
	return out, f.lookErr
}

func (f *fakeStore) Names(context.Context) (store.Named, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.listed++
	named := slices.Clone(f.named)
	slices.SortFunc(named, func(a, b fleet.Experiment) int { return a.Compare(b.ID) })
	return store.Named{Listing: store.Listing{Experiments: named}, Unread: f.unread}, f.lookErr
}

func (f *fakeStore) Observe(_ context.Context, exp fleet.Experiment, _ *fleet.Row) (fleet.Observation, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.observed = append(f.observed, exp.ID)
	if f.observe == nil {
		return fleet.Observation{}, errors.New("not expected to observe")
	}
	return f.observe(exp)
}

func (f *fakeStore) Preview(_ context.Context, spec lance.PreviewSpec) (lance.Preview, error) {
	if f.preview == nil {
		return lance.Preview{}, errors.New("not expected to look closely")
	}
	return f.preview(spec)
}

func (f *fakeStore) PreviewAccept(_ context.Context, spec lance.AcceptSpec) (lance.Accepted, error) {
	if f.accepting == nil {
		return lance.Accepted{}, errors.New("not expected to look at what merges refuse")
	}
	return f.accepting(spec)
}

func (f *fakeStore) PreviewSeal(_ context.Context, spec lance.SealSpec) (lance.Sealed, error) {
	if f.sealing == nil {
		return lance.Sealed{}, errors.New("not expected to look at a shard")
	}
	return f.sealing(spec)
}

func (f *fakeStore) ClassifyTail(context.Context, string) ([]lance.Tail, error) {
	return f.tails, nil
}

func (f *fakeStore) Verify(_ context.Context, uri string, o lance.VerifyOptions) (fleet.Evidence, error) {
	if f.evidence == nil {
		return fleet.Evidence{}, errors.New("not expected to verify")
	}
	return f.evidence(uri, o.Deep)
}

type fakeLedger struct{ store *fakeStore }

func (f fakeLedger) Latest(context.Context) (*store.LedgerView, error) {
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	return &store.LedgerView{Version: uint64(len(f.store.retired)), Entries: fleet.Newest(f.store.retired)}, f.store.err
}

type fakeJournal struct{ store *fakeStore }

func (f fakeJournal) Latest(_ context.Context, n int) ([]fleet.Action, error) {
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	if n <= 0 || n > len(f.store.actions) {
		n = len(f.store.actions)
	}
	return f.store.actions[:n], f.store.err
}

func (f fakeJournal) Of(ctx context.Context, id fleet.ID, n int) ([]fleet.Action, error) {
	all, err := f.Latest(ctx, 0)
	var found []fleet.Action
	for _, a := range all {
		if a.Target == id.String() && (n <= 0 || len(found) < n) {
			found = append(found, a)
		}
	}
	return found, err
}

func (f fakeJournal) History(ctx context.Context) (map[fleet.ID]fleet.History, error) {
	all, err := f.Latest(ctx, 0)
	return fleet.Histories(all), err
}

func (f fakeJournal) All(context.Context) ([]fleet.Action, error) {
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	if !slices.Equal(f.store.shared, f.store.actions) {
		f.store.shared = slices.Clone(f.store.actions)
	}
	return f.store.shared, f.store.err
}

type fakeSamples struct{ store *fakeStore }

func (f fakeSamples) All(context.Context) ([]fleet.Sample, error) {
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	return f.store.samples, f.store.err
}

func (f fakeSamples) Of(ctx context.Context, id fleet.ID, n int) ([]fleet.Sample, error) {
	all, err := f.All(ctx)
	var found []fleet.Sample
	for _, s := range all {
		if s.ID == id && (n <= 0 || len(found) < n) {
			found = append(found, s)
		}
	}
	return found, err
}

type fakeRounds struct{ store *fakeStore }

func (f fakeRounds) Latest(_ context.Context, n int) ([]fleet.RoundRecord, error) {
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	return f.store.rounds[:min(n, len(f.store.rounds))], nil
}

// fakeTemporal remembers what it was told.
type fakeTemporal struct {
	mu       sync.Mutex
	asked    control.MaintenanceRequest
	schedule Schedule
	err      error
	calls    []string
	running  bool
	record   *fleet.RoundRecord
	ended    chan struct{} // closed when the round ends; nil = has ended
	refresh  func(fleet.ID) (workflows.RefreshResult, error)

	maintaining []control.Running
	scanning    []control.RunningRound
	result      *workflows.MaintenanceResult
	progress    *workflows.MaintenanceProgress

	unread  error                // what asking for the schedule fails with
	lost    error                // what a pause or resume that took effect fails with
	failing func(fleet.ID) error // what starting maintenance of one fails with; nil = none does
}

func (f *fakeTemporal) call(format string, args ...any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, fmt.Sprintf(format, args...))
	return f.err
}

func (f *fakeTemporal) said() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string{}, f.calls...)
}

func (f *fakeTemporal) Schedule(context.Context) (Schedule, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.schedule, errors.Join(f.err, f.unread)
}

func (f *fakeTemporal) setPaused(paused bool, by, reason string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	since := testNow.UnixMilli()
	f.schedule.Paused, f.schedule.By, f.schedule.Reason, f.schedule.Since = paused, by, reason, &since
}

func (f *fakeTemporal) Pause(_ context.Context, by, reason string) error {
	err := f.call("pause %s: %s", by, reason)
	if err == nil {
		f.setPaused(true, by, reason)
		err = f.lost
	}
	return err
}

func (f *fakeTemporal) Resume(_ context.Context, by, reason string) error {
	err := f.call("resume %s: %s", by, reason)
	if err == nil {
		f.setPaused(false, by, reason)
		err = f.lost
	}
	return err
}

func (f *fakeTemporal) Scan(_ context.Context, full, next bool, by string) (Started, error) {
	err := f.call("scan full=%t next=%t %s", full, next, by)
	return Started{WorkflowID: "lancefleet-scan-now", RunID: "run-1", AlreadyRunning: f.running}, err
}

func (f *fakeTemporal) Round(ctx context.Context, workflowID, runID string, wait time.Duration) (*fleet.RoundRecord, error) {
	if err := f.call("round %s %s wait=%s", workflowID, runID, wait); err != nil {
		return nil, err
	}
	if f.ended == nil {
		return f.record, nil
	}
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	select {
	case <-f.ended:
		return f.record, nil
	case <-timeout.C:
		return nil, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (f *fakeTemporal) Refresh(_ context.Context, id fleet.ID, by string) (workflows.RefreshResult, error) {
	if err := f.call("refresh %s %s", id, by); err != nil {
		return workflows.RefreshResult{}, err
	}
	if f.refresh == nil {
		return workflows.RefreshResult{}, nil
	}
	return f.refresh(id)
}

func (f *fakeTemporal) Maintain(_ context.Context, action string, r control.MaintenanceRequest) (control.Started, error) {
	f.mu.Lock()
	f.asked = r
	f.mu.Unlock()
	err := f.call("%s %s by %s: %s force=%t shard=%s unknown=%t", action, r.ID, r.By, r.Why, r.Force, r.Shard, r.AllowUnknown)
	if f.failing != nil && err == nil {
		err = f.failing(r.ID)
	}
	return control.Started{WorkflowID: "experiment/" + r.ID.String(), RunID: "run-7", AlreadyRunning: f.running}, err
}

func (f *fakeTemporal) Maintenance(_ context.Context, workflowID, runID string, wait time.Duration) (*workflows.MaintenanceResult, error) {
	if err := f.call("maintenance %s %s wait=%s", workflowID, runID, wait); err != nil {
		return nil, err
	}
	return f.result, nil
}

func (f *fakeTemporal) Hint(_ context.Context, ids []fleet.ID) (bool, error) {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = id.String()
	}
	err := f.call("hint %s", strings.Join(names, " "))
	return err == nil && !f.running, err
}

func (f *fakeTemporal) Progress(context.Context, string, string) (workflows.MaintenanceProgress, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.progress == nil {
		return workflows.MaintenanceProgress{}, unreachable()
	}
	return *f.progress, nil
}

func (f *fakeTemporal) Running(context.Context) ([]control.Running, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.maintaining, f.err
}

func (f *fakeTemporal) RunningRounds(context.Context) ([]control.RunningRound, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.scanning, f.err
}

func unreachable() error {
	return &control.Error{Class: control.ClassUnreachable, Op: "describe schedule", ID: "lancefleet-scan", Err: errors.New("connection refused")}
}

func unreadable() error {
	return &lance.Error{Class: lance.Unreachable, Op: "head", URI: "s3://bucket/_stats.rollout.lance", Message: "connection refused"}
}

// bench is a Server over fakes.
type bench struct {
	*Server
	store      *fakeStore
	temporal   *fakeTemporal
	lookNoMore func() // what Run does takes its place
}

type option func(*Config, *parts)

func newBench(t testing.TB, store *fakeStore, options ...option) *bench {
	t.Helper()
	config := DefaultConfig()
	config.TemporalUI = "http://127.0.0.1:8233"
	next, last := testNow.UnixMilli()+200_000, minutesAgo(1)
	tempo := &fakeTemporal{schedule: Schedule{Exists: true, IntervalSecs: 300, NextAt: &next, LastAt: &last}}
	p := parts{
		snapshots: store, lookup: store, names: store, rounds: fakeRounds{store}, ledger: fakeLedger{store}, journal: fakeJournal{store}, samples: fakeSamples{store},
		observer: store, inspect: store, steer: tempo,
		policies: fleet.Policies{Default: fleet.DefaultPolicy()}, budgets: fleet.DefaultBudgets(), fleet: "demo", dataDir: "/srv/fleet", build: "v0.1.0-test",
		now: func() time.Time { return testNow }, log: slog.New(slog.DiscardHandler),
	}
	for _, o := range options {
		o(&config, &p)
	}
	s, err := newServer(config, p)
	require.NoError(t, err)
	b := &bench{Server: s, store: store, temporal: tempo}
	b.renew(t)
	b.lookWhenAsked(t)
	return b
}

// lookWhenAsked looks at storage for whoever waits for it, and never by itself.
func (b *bench) lookWhenAsked(t testing.TB) {
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-b.feed.reload:
				b.feed.readStorage(ctx)
			}
		}
	})
	b.lookNoMore = func() { cancel(); done.Wait() }
	t.Cleanup(b.lookNoMore)
}

// renew does once what Run does all the time.
func (b *bench) renew(t testing.TB) {
	t.Helper()
	b.feed.readNames(t.Context())
	b.feed.readStorage(t.Context())
	select {
	case <-b.feed.reload: // new names ask for what has just been done
	default:
	}
	b.feed.askTemporal(t.Context())
}

func (b *bench) do(method, target, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Host = "127.0.0.1:8090"
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	b.Handler().ServeHTTP(w, r)
	return w
}

func (b *bench) get(target string) *httptest.ResponseRecorder {
	return b.do(http.MethodGet, target, "")
}

func (b *bench) postForm(target, body string) *httptest.ResponseRecorder {
	return b.do(http.MethodPost, target, body, "Content-Type", "application/x-www-form-urlencoded")
}

func experiment(kind fleet.Kind, name string) fleet.Experiment {
	return fleet.Experiment{ID: fleet.ID{Kind: kind, Name: name}, URI: "/srv/fleet/" + name + "." + string(kind) + ".lance",
		Source: fleet.FromRegistry, CreatedAt: minutesAgo(60 * 24 * 9)}
}

// healthy is the row of an experiment with nothing special about it.
func healthy(kind fleet.Kind, name string, written int64) fleet.Row {
	r := fleet.UnknownRow(experiment(kind, name))
	r.Known, r.RowsExact = true, true
	r.RowCount, r.FragmentCount, r.PendingWAL, r.Version, r.Bytes = 12_000, 4, 0, 37, 48<<20
	r.PendingRows, r.SmallFragments, r.DeletedRows, r.TailEntries, r.StrandedEntries = 0, 2, 0, 0, 0
	r.LastWrite, r.LastBaseWrite = written, written
	r.ScannedAt, r.ObservedAt = minutesAgo(1), minutesAgo(40)
	r.Fingerprint = fleet.Fingerprint{Version: 37, ETag: "9f3a-1c", Naming: "v2"}
	return r
}

// demoRows is a fleet as people have it: names of the field, a few in trouble.
func demoRows(n int) []fleet.Row {
	rnd := rand.New(rand.NewPCG(7, 11))
	models := []string{"qwen3-8b", "llama-4-scout", "mistral-small", "gemma-3n", "olmo-2-13b"}
	tasks := []string{"gsm8k-grpo", "swe-gym", "webshop", "alfworld", "math-ppo", "toolbench", "codeforces"}
	kinds := []fleet.Kind{fleet.Rollout, fleet.Rollout, fleet.Rollout, fleet.Generic, fleet.Datagen, fleet.Table}
	rows := make([]fleet.Row, n)
	for i := range rows {
		age := int64(float64(60*24*6) * rnd.Float64() * rnd.Float64() * rnd.Float64())
		name := fmt.Sprintf("%s-%s-%04d", models[rnd.IntN(len(models))], tasks[rnd.IntN(len(tasks))], i)
		r := healthy(kinds[rnd.IntN(len(kinds))], name, minutesAgo(age)-rnd.Int64N(60_000))
		r.FragmentCount = 1 + rnd.Int64N(28)
		r.SmallFragments = rnd.Int64N(r.FragmentCount)
		r.RowCount = 500 + rnd.Int64N(900_000)
		r.Bytes = r.RowCount * (800 + rnd.Int64N(4000))
		if r.Kind != fleet.Table {
			addShards(&r, rnd, age)
		}
		rows[i] = r
	}
	trouble(rows)
	return rows
}

func addShards(r *fleet.Row, rnd *rand.Rand, age int64) {
	for s := range 1 + rnd.IntN(3) {
		pending := rnd.Int64N(7)
		r.Shards = append(r.Shards, fleet.Shard{
			ShardMark: fleet.ShardMark{ID: fmt.Sprintf("%08x-4c1d-4e7a-9b53-%012x", rnd.Uint32(), s), Manifest: 40, WALNext: 412},
			Epoch:     3, CurrentGeneration: uint64(22 + pending), CompactedMark: 21, Status: "active",
			Pending: pending, PendingRows: pending * 1800, PendingBytes: pending * 6 << 20, FlushCursor: 405,
			TailEntries: rnd.Int64N(4), TailRows: -1, NewestEntryTime: minutesAgo(age), NewestGenTime: minutesAgo(age + 3),
		})
		r.PendingWAL += pending
		r.PendingRows += pending * 1800
		r.TailEntries += r.Shards[s].TailEntries
	}
	r.RowsExact = r.PendingWAL == 0
}

// withShards is a rollout written so many minutes ago.
func withShards(name string, age int64) fleet.Row {
	r := healthy(fleet.Rollout, name, minutesAgo(age))
	r.RowCount, r.Bytes = 384_210, 1_230_000_000
	addShards(&r, rand.New(rand.NewPCG(3, 5)), age)
	return r
}

func trouble(rows []fleet.Row) {
	if len(rows) < 12 {
		return
	}
	for i, change := range []func(*fleet.Row){
		func(r *fleet.Row) {
			*r = withShards(r.Name, 0)
			r.PendingWAL, r.LastWrite, r.Shards = 17_204, minutesAgo(0)-4000, r.Shards[:1]
			r.Shards[0].Pending, r.Shards[0].CurrentGeneration = 17_204, 17_226
		},
		func(r *fleet.Row) {
			r.Failures, r.FailingSince, r.NextAttemptAt = 4, minutesAgo(95), testNow.UnixMilli()+11*60_000
			r.ErrorClass, r.Error, r.LastWrite = "unreachable", "observe s3://bucket/exp: connection reset by peer", minutesAgo(2)
		},
		func(r *fleet.Row) { *r = fleet.UnknownRow(r.Experiment) },
		func(r *fleet.Row) { r.MissingRounds, r.LastWrite = 1, minutesAgo(3) },
		func(r *fleet.Row) { r.PendingWAL, r.LastWrite = 1830, minutesAgo(1) },
		func(r *fleet.Row) {
			*r = withShards(r.Name, 4)
			r.Tags, r.Indexes, r.LastMaintenance = []string{"v1", "paper"}, []string{"id_idx"}, minutesAgo(190)
			r.LastCompaction, r.TotalCompactions = minutesAgo(190), 6
		},
	} {
		change(&rows[2*i])
	}
}

func demoStore(n int) *fakeStore {
	f := &fakeStore{snapshot: Snapshot{Version: 812, ETag: "e", CommittedAt: minutesAgo(1), Rows: demoRows(n)}}
	for i := range int64(60) {
		v := uint64(812 - i)
		r := fleet.RoundRecord{
			RoundID: fmt.Sprintf("6f0c6c1e-%04d", i), WorkflowID: "lancefleet-scan", Number: 4211 - i,
			Observed: 40 + i*7%31, Skipped: int64(n) - 40, Failed: i * 5 % 3 / 2, BackingOff: i % 2, Hot: int64(n),
			StorageRequests: fleet.Requests{List: int64(n) / 4, Head: int64(n) * 2, Get: 420, Put: 3},
			FinishedAt:      minutesAgo(1 + 5*i), StartedAt: minutesAgo(1+5*i) - 4200, DurationSeconds: 4.2 + float64(i%7)/3,
		}
		if i%4 != 3 {
			r.CommittedVersion = &v
		}
		if i == 5 {
			r.By, r.WorkflowID = "ada", "lancefleet-scan-now"
		}
		f.rounds = append(f.rounds, r)
	}
	return f
}
