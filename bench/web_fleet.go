package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"golang.org/x/sync/errgroup"

	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/store"
)

// tell makes the large fleet: a few real datasets that nobody has looked at, and the
// tables of many more.
func (b *bench) tell(ctx context.Context, s webSettings) (*ground, error) {
	g := &ground{bench: b, name: "large", engine: b.engine}
	g.dataDir = filepath.Join(b.dir, g.name)
	if err := g.fill(ctx, max(s.Cold, 1), "--generations", "2"); err != nil {
		return nil, err
	}
	t := &teller{rnd: rand.New(rand.NewPCG(7, 11)), dataDir: g.dataDir, now: time.Now().UnixMilli(), engine: b.engine}
	for i := range s.Hot {
		t.rows = append(t.rows, t.row(i))
	}
	for i := range s.Retired {
		t.retired = append(t.retired, t.retirement(s.Hot+i))
	}
	if err := t.write(ctx, s); err != nil {
		return nil, err
	}
	b.say("told of %d hot and %d retired ones", s.Hot, s.Retired)
	if err := g.serve(ctx); err != nil {
		g.end()
		return nil, err
	}
	if err := g.untilRead(ctx, s); err != nil {
		g.end()
		return nil, err
	}
	return g, nil
}

// teller invents what a fleet's tables hold.
type teller struct {
	rnd     *rand.Rand
	dataDir string
	now     int64 // unix ms
	engine  *lance.Engine
	rows    []fleet.Row
	retired []fleet.LedgerEntry
}

var (
	toldModels = []string{"qwen3-8b", "llama-4-scout", "mistral-small", "gemma-3n", "olmo-2-13b"}
	toldTasks  = []string{"gsm8k-grpo", "swe-gym", "webshop", "alfworld", "math-ppo", "toolbench", "codeforces"}
	toldKinds  = []fleet.Kind{fleet.Rollout, fleet.Rollout, fleet.Rollout, fleet.Generic}
)

const (
	minuteMS = int64(60_000)
	dayMS    = 24 * 60 * minuteMS
)

func (t *teller) experiment(i int) fleet.Experiment {
	kind := toldKinds[i%len(toldKinds)]
	name := fmt.Sprintf("%s-%s-%06d", toldModels[t.rnd.IntN(len(toldModels))], toldTasks[t.rnd.IntN(len(toldTasks))], i)
	return fleet.Experiment{
		ID: fleet.ID{Kind: kind, Name: name}, URI: fmt.Sprintf("%s/%s.%s.lance", t.dataDir, name, kind),
		Source: fleet.FromRegistry, CreatedAt: t.now - 30*dayMS,
	}
}

// row is a hot one as an observation leaves it; one in 200 does not answer any more.
func (t *teller) row(i int) fleet.Row {
	r := fleet.UnknownRow(t.experiment(i))
	age := int64(float64(6*dayMS) * t.rnd.Float64() * t.rnd.Float64() * t.rnd.Float64())
	r.Known, r.ScannedAt, r.ObservedAt = true, t.now-minuteMS, t.now-40*minuteMS
	r.LastWrite, r.LastBaseWrite, r.LastMaintenance = t.now-age, t.now-age-dayMS, t.now-t.rnd.Int64N(3*dayMS)
	r.FragmentCount, r.Version = 1+t.rnd.Int64N(28), 10+t.rnd.Int64N(500)
	r.SmallFragments, r.RowCount = t.rnd.Int64N(r.FragmentCount), 500+t.rnd.Int64N(900_000)
	r.Bytes, r.DeletedRows, r.StrandedEntries = r.RowCount*(800+t.rnd.Int64N(4000)), 0, 0
	r.PendingWAL, r.PendingRows, r.TailEntries = 0, 0, 0
	r.Fingerprint = fleet.Fingerprint{Version: uint64(r.Version), ETag: fmt.Sprintf("%x-%x", t.rnd.Uint64(), i), Naming: "v2"}
	for s := range 1 + t.rnd.IntN(3) {
		pending := t.rnd.Int64N(6)
		shard := fleet.Shard{
			ShardMark: fleet.ShardMark{ID: fmt.Sprintf("%08x-4c1d-4e7a-9b53-%012x", t.rnd.Uint32(), s), Manifest: 40, WALNext: 412},
			Epoch:     3, CurrentGeneration: uint64(22 + pending), CompactedMark: 21, Status: "active",
			Pending: pending, PendingRows: pending * 1800, PendingBytes: pending * 6 << 20, FlushCursor: 405, TailEntries: t.rnd.Int64N(4),
			TailRows: -1, NewestEntryTime: r.LastWrite, NewestGenTime: r.LastWrite - minuteMS,
		}
		r.Shards, r.Fingerprint.Shards = append(r.Shards, shard), append(r.Fingerprint.Shards, shard.ShardMark)
		r.PendingWAL, r.PendingRows, r.TailEntries = r.PendingWAL+pending, r.PendingRows+shard.PendingRows, r.TailEntries+shard.TailEntries
	}
	r.RowsExact = r.PendingWAL == 0
	if i%200 == 0 {
		r.Failures, r.FailingSince, r.FailedAt, r.FailedURI = 3, t.now-90*minuteMS, t.now-minuteMS, r.URI
		r.ErrorClass, r.Error = "unreachable", "the storage did not answer within 30 s"
	}
	return r
}

func (t *teller) retirement(i int) fleet.LedgerEntry {
	row := fleet.UnknownRow(t.experiment(i))
	at := t.now - t.rnd.Int64N(60*dayMS)
	row.LastWrite = at - 8*dayMS
	rows := 500 + t.rnd.Int64N(900_000)
	evidence := fleet.Evidence{
		Fingerprint: fleet.Fingerprint{Version: uint64(10 + i%90), ETag: fmt.Sprintf("%x-%x", t.rnd.Uint64(), i), Naming: "v2"},
		Rows:        rows, Fragments: 1 + t.rnd.Int64N(4), Bytes: rows * 2000, DistinctKeys: -1, VerifiedAt: at,
		Shards: []fleet.ShardEvidence{{ID: fmt.Sprintf("%08x-4c1d-4e7a-9b53-000000000000", t.rnd.Uint32()), Epoch: 3, Mark: 21}},
	}
	e := fleet.NewRetirement(row, evidence, nil, at)
	e.RunID, e.WorkflowID, e.Why = "bench", "experiment/"+row.ID.String(), "not written for 8 d, retired after 7 d"
	return e
}

func (t *teller) write(ctx context.Context, s webSettings) error {
	if err := t.register(ctx); err != nil {
		return err
	}
	stats := store.NewStats(t.engine.Reader, t.dataDir)
	if _, err := store.NewStatsWriter(t.engine, stats).Commit(ctx, &store.Snapshot{}, t.rows, nil); err != nil {
		return err
	}
	ledger := store.NewLedgerWriter(t.engine, store.NewLedger(t.engine.Reader, t.dataDir))
	if len(t.retired) > 0 {
		if err := ledger.Append(ctx, t.retired...); err != nil {
			return err
		}
	}
	if err := store.NewJournalWriter(t.engine, store.NewJournal(t.engine.Reader, t.dataDir)).Append(ctx, t.actions(s.Actions)...); err != nil {
		return err
	}
	if err := store.NewSamplesWriter(t.engine, store.NewSamples(t.engine.Reader, t.dataDir)).Append(ctx, t.samples(s.Actions)...); err != nil {
		return err
	}
	return t.rounds(ctx, min(s.Actions, toldRounds))
}

// toldRounds are those of a week, one every five minutes.
const toldRounds = 7 * 24 * 12

// rounds are stored at once, so that they share commits as rounds of one moment do.
func (t *teller) rounds(ctx context.Context, n int) error {
	w := store.NewRoundsWriter(t.engine, store.NewRounds(t.engine.Reader, t.dataDir))
	group, ctx := errgroup.WithContext(ctx)
	for i := range n {
		at, seconds := t.now-int64(n-i)*5*minuteMS, 4+2*t.rnd.Float64()
		r := fleet.RoundRecord{
			RoundID: fmt.Sprintf("told-%06d", i), Number: int64(i + 1), Observed: 400, Skipped: int64(len(t.rows)) - 400, Hot: int64(len(t.rows)),
			StorageRequests: fleet.Requests{List: 40_000, Head: 110_000, Get: 9000, Put: 40}, StartedAt: at, FinishedAt: at + int64(seconds*1000),
			DurationSeconds: seconds, WorkflowID: "lancefleet-scan-" + strconv.Itoa(i),
		}
		group.Go(func() error { return w.Append(ctx, r) })
	}
	return group.Wait()
}

// actions are maintenance of a week; one in 50 failed, for one of a few causes.
func (t *teller) actions(n int) []fleet.Action {
	causes := []struct{ class, words string }{
		{"conflict", "commit conflict: somebody wrote while it was compacted"},
		{"unreachable", "the storage did not answer within 30 s"},
		{"invalid", "the base table's schema can't take the rows of generation 7"},
	}
	actions := make([]fleet.Action, n)
	for i := range actions {
		r := &t.rows[t.rnd.IntN(len(t.rows))]
		before := fleet.FactsOf(r)
		after := before
		after.Pending = 0
		a := fleet.Action{
			ID: fmt.Sprintf("told-%08d", i), At: t.now - t.rnd.Int64N(7*dayMS), Kind: fleet.ActOptimize, Target: r.ID.String(), Outcome: fleet.OutcomeDone,
			Before: before.Text(), After: after.Text(), DurationMS: 2000 + t.rnd.Int64N(60_000), Why: "8 pending generations, merged from 8 on",
			WorkflowID: "experiment/" + r.ID.String(), RunID: fmt.Sprintf("told-run-%08d", i),
		}
		if i%50 == 0 {
			cause := causes[i/50%len(causes)]
			a.Outcome, a.ErrorClass, a.Error, a.After = fleet.OutcomeFailed, cause.class, cause.words, ""
		}
		actions[i] = a
	}
	return actions
}

func (t *teller) samples(n int) []fleet.Sample {
	const hour = 60 * minuteMS
	samples := make([]fleet.Sample, n)
	for i := range samples {
		r := &t.rows[i%len(t.rows)]
		at := t.now - t.rnd.Int64N(7*dayMS)
		samples[i] = fleet.Sample{ID: r.ID, At: at - at%hour, Rows: r.RowCount, Fragments: r.FragmentCount, Pending: t.rnd.Int64N(9), Bytes: r.Bytes, LastWrite: at}
	}
	return samples
}

// register names all of them in lance-context's registries.
func (t *teller) register(ctx context.Context) error {
	byKind := map[fleet.Kind][]fleet.Experiment{}
	for i := range t.rows {
		byKind[t.rows[i].Kind] = append(byKind[t.rows[i].Kind], t.rows[i].Experiment)
	}
	for i := range t.retired {
		byKind[t.retired[i].Kind] = append(byKind[t.retired[i].Kind], t.retired[i].Experiment)
	}
	var err error
	for kind, exps := range byKind {
		err = errors.Join(err, t.registerKind(ctx, kind, exps))
	}
	return err
}

func (t *teller) registerKind(ctx context.Context, kind fleet.Kind, exps []fleet.Experiment) error {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "name", Type: arrow.BinaryTypes.String}, {Name: "uri", Type: arrow.BinaryTypes.String}, {Name: "created_at", Type: arrow.PrimitiveTypes.Int64},
	}, nil)
	rows := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer rows.Release()
	for _, exp := range exps {
		rows.Field(0).(*array.StringBuilder).Append(exp.Name)
		rows.Field(1).(*array.StringBuilder).Append(exp.URI)
		rows.Field(2).(*array.Int64Builder).Append(exp.CreatedAt)
	}
	record := rows.NewRecordBatch()
	defer record.Release()
	uri := fmt.Sprintf("%s/_registry.%s.lance", t.dataDir, kind)
	_, err := t.engine.Append(ctx, uri, []arrow.RecordBatch{record}, schema, lance.AppendOptions{Create: true})
	return err
}
