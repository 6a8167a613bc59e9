package web

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"lancefleet/control"
	"lancefleet/fleet"
	"lancefleet/lance"
)

// busyStore is a fleet in which much has been done: journal, samples, retirements.
func busyStore() *fakeStore {
	f := demoStore(400)
	coldOnes(f.snapshot.Rows)
	for i, name := range []string{"olmo-2-13b-webshop-0901", "qwen3-8b-alfworld-0417", "gemma-3n-math-ppo-0033"} {
		e := retiredOne(fleet.Rollout, name)
		e.RetiredAt, e.CheckedAt = minutesAgo(int64(90+700*i)), minutesAgo(int64(20+i))
		f.retired = append(f.retired, e)
	}
	back := retiredOne(fleet.Rollout, "mistral-small-toolbench-0112").Return(minutesAgo(44), minutesAgo(41))
	back.Why = "written again: a new generation in shard 02e81b29"
	f.retired = append(f.retired, back)
	f.actions = busyJournal(f.snapshot.Rows)
	for i := range 24 {
		f.samples = append(f.samples, samplesOf(f.snapshot.Rows[2*5+i*7].ID, uint64(i), i == 0)...)
	}
	return f
}

// coldOnes were not written for long; something stands in the way of two of them.
func coldOnes(rows []fleet.Row) {
	for i, at := range []int{40, 41, 42} {
		r := &rows[at]
		r.LastWrite, r.LastBaseWrite = minutesAgo(int64(9+i)*daysOfMinutes), minutesAgo(int64(9+i)*daysOfMinutes)
		if i < 2 {
			*r = withShards(r.Name, int64(9+i)*daysOfMinutes)
			r.Shards[0].Status, r.Shards[0].Pending, r.Shards[0].TailEntries = "sealed", 3, 2
			r.PendingWAL, r.LastWrite = 3, minutesAgo(int64(9+i)*daysOfMinutes)
		}
	}
}

func facts(fragments, pending, bytes int64) string {
	f := fleet.UnknownFacts()
	f.Version, f.Fragments, f.Pending, f.Bytes, f.Rows = 40, fragments, pending, bytes, 384_210
	return f.Text()
}

// busyJournal is newest first.
func busyJournal(rows []fleet.Row) []fleet.Action {
	var out []fleet.Action
	n := 0
	add := func(a fleet.Action) {
		n++
		a.ID = fmt.Sprintf("j%d", n)
		if a.RunID != "" {
			a.WorkflowID = "experiment/" + a.Target
		}
		out = append(out, a)
	}
	one := rows[10].String() // the one with the paper tag
	add(fleet.Action{At: minutesAgo(2), Kind: fleet.ActOptimize, Target: one, Outcome: "done", DurationMS: 41_000, RunID: "r-opt", By: "ada", Why: "before the demo: merged 5 generations, 18 fragments became 2", Before: facts(18, 5, 3<<30), After: facts(2, 0, 2<<30)})
	add(fleet.Action{At: minutesAgo(2) - 900, Kind: fleet.ActCompact, Target: one, Outcome: "done", DurationMS: 22_000, RunID: "r-opt", Why: "18 fragments became 2", Before: facts(18, 0, 3<<30), After: facts(2, 0, 2<<30)})
	add(fleet.Action{At: minutesAgo(2) - 23_000, Kind: fleet.ActMergeWAL, Target: one, Outcome: "done", DurationMS: 12_000, RunID: "r-opt", Why: "merged 5 generations of 2 shards", Before: facts(18, 5, 3<<30), After: facts(18, 0, 3<<30)})
	add(fleet.Action{At: minutesAgo(12), Kind: fleet.ActTables, Outcome: "failed", DurationMS: 900, ErrorClass: "denied", Error: "delete s3://training-runs/fleet/_stats.rollout.lance/_versions/7: denied: AccessDenied", After: fleet.UpkeepFacts{Head: 812, OnDisk: 140}.Text(), RunID: "t2"})
	add(fleet.Action{At: minutesAgo(19), Kind: fleet.ActPause, Outcome: "done", By: "ada", Why: "moving the bucket"})
	add(fleet.Action{At: minutesAgo(16), Kind: fleet.ActResume, Outcome: "done", By: "ada"})
	for i := range 4 { // conflicts: normal life
		target := rows[20+i%2].String()
		add(fleet.Action{At: minutesAgo(int64(25 + 30*i)), Kind: fleet.ActOptimize, Target: target, Outcome: "failed", ErrorClass: "conflict", Error: "merge " + target + ": commit conflict: somebody committed version " + strconv.Itoa(40+i) + " first", RunID: fmt.Sprintf("c%d", i)})
	}
	for i := range 3 {
		target := rows[40+i%2].String()
		add(fleet.Action{At: minutesAgo(int64(50 + 400*i)), Kind: fleet.ActRetire, Target: target, Outcome: "refused", Error: "shard 02e81b29-f150-54b9-9a08-ce75944f6889 is sealed: 3 generations stay in it", RunID: fmt.Sprintf("f%d", i)})
	}
	add(fleet.Action{At: minutesAgo(70), Kind: fleet.ActTables, Outcome: "failed", ErrorClass: "denied", Error: "delete s3://training-runs/fleet/_stats.rollout.lance/_versions/6: denied: AccessDenied", RunID: "t1"})
	for i := range 30 {
		add(fleet.Action{At: minutesAgo(int64(180 + 45*i)), Kind: fleet.ActOptimize, Target: rows[60+i].String(), Outcome: "done", DurationMS: int64(9000 + 700*i), RunID: fmt.Sprintf("o%d", i), Why: "merged 9 generations", Before: facts(20, 9, 1<<30), After: facts(6, 0, 1<<30)})
	}
	add(fleet.Action{At: minutesAgo(60 * 50), Kind: fleet.ActOptimize, Target: one, Outcome: "failed", ErrorClass: "conflict", Error: "commit conflict", RunID: "old2", Before: facts(16, 4, 2<<30), After: facts(16, 4, 2<<30)})
	add(fleet.Action{At: minutesAgo(60 * 100), Kind: fleet.ActOptimize, Target: one, Outcome: "done", DurationMS: 30_000, RunID: "old1", Before: facts(20, 31, 2<<30), After: facts(3, 0, 1<<30)})
	return out
}

// samplesOf are the numbers of one experiment over six days, newest first.
func samplesOf(id fleet.ID, seed uint64, deep bool) []fleet.Sample {
	rnd := rand.New(rand.NewPCG(seed, 17))
	hours, out := 24, []fleet.Sample{}
	if deep {
		hours = 150
	}
	pending, fragments, rows := int64(2), int64(3), int64(120_000)
	for h := hours; h > 0; h-- {
		at := testNow.UnixMilli() - int64(h)*hourMS
		pending, fragments, rows = pending+rnd.Int64N(3), fragments+rnd.Int64N(2), rows+rnd.Int64N(4000)
		if h%48 == 3 {
			pending, fragments = 0, 2
		}
		out = append([]fleet.Sample{{ID: id, At: at - at%hourMS, Rows: rows, Fragments: fragments, Pending: pending, Bytes: rows * 3300, LastWrite: at}}, out...)
	}
	return out
}

// restored has one experiment stand as after its user restored it: the journal
// remembers a merge that the table does not.
func restored(b *bench) {
	row := &b.store.snapshot.Rows[10]
	exp := row.Experiment
	*row = withShards(row.Name, 30)
	row.Experiment = exp
	row.Shards[0].CompactedMark, row.Shards[0].CurrentGeneration, row.Shards[0].Pending = 0, 6, 2
	row.PendingWAL = 2
	after := fleet.UnknownFacts()
	after.Version, after.Marks = 0, map[string]uint64{row.Shards[0].ID: 4}
	merged := fleet.Action{ID: "before", At: minutesAgo(9000), Kind: fleet.ActMergeWAL, Target: row.String(), Outcome: "done", After: after.Text()}
	b.store.actions = slices.Insert(b.store.actions, 0, merged) // where a reader sees that there is more
	b.store.snapshot.Version++
	b.store.accepting = func(spec lance.AcceptSpec) (lance.Accepted, error) {
		done := "2 generations (4 to 5) with at most 10 rows are merged: new rows come in, rows of a key that the table has are replaced, deletes are applied"
		if spec.LeaveOut {
			done = "2 generations (4 to 5) with at most 10 rows are not merged: they are taken out of the log, and what is only in them is lost to readers at once"
		}
		return lance.Accepted{Seen: "as it is", Shards: []lance.AcceptedShard{{
			Shard: row.Shards[0].ID, Code: "mark_erased", Mark: 3, Remembered: 4, Generations: 2, Rows: 10, Bytes: -1,
			Sentences: []string{"the table records no merge of the shard, and we merged up to generation 4", done, "everything up to generation 3 counts as merged from then on"},
		}}}, nil
	}
}

// operationPreviews are the states of the pages about work.
func operationPreviews() []preview {
	busy := func(change func(*bench)) func(testing.TB) *bench {
		return func(t testing.TB) *bench {
			b := newBench(t, busyStore(), func(_ *Config, p *parts) {
				p.budgets = fleet.Budgets{Merge: 12, Compact: 12, Retire: 12}
				p.dataDir = "s3://training-runs/fleet"
				p.policies.Overrides = []fleet.Override{{Pattern: "*-swe-gym-*", RetireAfter: ptr(30 * 24 * time.Hour)}}
			})
			b.temporal.scanning = []control.RunningRound{{WorkflowID: "lancefleet-scan-2026-11-30T09:29:00Z", RunID: "6f0c", StartedAt: minutesAgo(0) - 9000}}
			b.temporal.maintaining = []control.Running{
				{ID: b.store.snapshot.Rows[50].ID, Action: "optimize", Wanted: "merge", WorkflowID: "experiment/a", RunID: "ra", StartedAt: minutesAgo(1)},
				{ID: b.store.snapshot.Rows[51].ID, Action: "retire", Wanted: "retire", WorkflowID: "experiment/b", RunID: "rb", StartedAt: minutesAgo(4)},
			}
			if change != nil {
				change(b)
			}
			b.renew(t)
			return b
		}
	}
	one := "/experiments/" + demoRows(400)[10].String()
	return []preview{
		{"operations", "/operations", 200, "commit conflict", busy(nil)},
		{"operations-30-days", "/operations?days=30", 200, "days=30&amp;theme=dark", busy(nil)},
		{"operations-filtered", "/operations?kind=tables&outcome=failed", 200, "own tables", busy(nil)},
		{"operations-no-match", "/operations?kind=burn", 200, "No work matches", busy(nil)},
		{"operations-mistake", "/operations?outcome=lucky", 200, "&#34;lucky&#34; is none; allowed: running", busy(nil)},
		{"operations-paused", "/operations", 200, "Resume rounds", busy(func(b *bench) { b.temporal.setPaused(true, "ada", "moving the bucket") })},
		{"operations-temporal-down", "/operations", 200, "As Temporal last told it", func(t testing.TB) *bench {
			b := busy(nil)(t)
			b.temporal.err = unreachable()
			b.renew(t)
			return b
		}},
		{"operations-never-temporal", "/operations", 200, "What runs is not known", func(t testing.TB) *bench {
			return newBench(t, busyStore(), func(_ *Config, p *parts) { p.steer = nil })
		}},
		{"operations-storage-down", "/operations", 200, "Storage does not answer", func(t testing.TB) *bench {
			b := busy(nil)(t)
			b.get("/operations")
			b.store.set(func(f *fakeStore) { f.err = unreadable() })
			b.renew(t)
			return b
		}},
		{"operations-not-read", "/operations", 200, "The fleet's table has not been read yet", func(t testing.TB) *bench { return newBench(t, &fakeStore{err: unreadable()}) }},
		{"operations-first-start", "/operations", 200, "No work yet", func(t testing.TB) *bench {
			b := newBench(t, &fakeStore{})
			b.temporal.schedule = Schedule{}
			b.renew(t)
			return b
		}},
		{"operations-hanging", "/operations", 200, "the one that runs began 1 h ago", busy(func(b *bench) {
			b.temporal.scanning[0].StartedAt = minutesAgo(70)
			b.store.rounds, b.store.snapshot.CommittedAt = b.store.rounds[20:], minutesAgo(110)
			b.store.snapshot.Version++
		})},
		{"operations-observe-only", "/operations", 200, "only observed", func(t testing.TB) *bench {
			return newBench(t, busyStore(), func(_ *Config, p *parts) { p.policies.Default = fleet.ObserveOnly() })
		}},
		{"rounds-not-read", "/rounds", 200, "Pause rounds", func(t testing.TB) *bench { return newBench(t, &fakeStore{err: unreadable()}) }},
		{"runbook", "/runbook", 200, "By itself", busy(nil)},
		{"experiment-busy", one, 200, "Pending generations", busy(nil)},
		{"experiment-30-days", one + "?days=30", 200, "last 30 days", busy(nil)},
		{"experiment-came", one + "?run=r-opt&done=asked", 200, "What was asked for: done", busy(nil)},
		{"experiment-came-not-yet", one + "?run=r-new", 200, "Asked for, and not listed yet", busy(nil)},
		{"experiment-came-runs", "/experiments/" + busyStore().snapshot.Rows[50].String() + "?run=ra", 200, "What was asked for runs", busy(nil)},
		{"experiment-journal-lost", one, 200, "The journal could not be read", func(t testing.TB) *bench {
			b := busy(nil)(t)
			b.store.set(func(f *fakeStore) { f.err = unreadable() })
			return b
		}},
		{"experiment-cold-unreachable", "/experiments/table:cold", 200, "What is shown is what its source says", func(t testing.TB) *bench {
			store := busyStore()
			store.named = []fleet.Experiment{experiment(fleet.Table, "cold")}
			store.observe = func(fleet.Experiment) (fleet.Observation, error) { return fleet.Observation{}, unreadable() }
			return newBench(t, store)
		}},
		{"act-verify", one + "/do/verify", 200, "Not clean: 2 generations pending", busy(func(b *bench) {
			b.store.evidence = func(string, bool) (fleet.Evidence, error) {
				return fleet.Evidence{Fingerprint: fleet.Fingerprint{Version: 41}, Rows: 384_210, Fragments: 2, Bytes: 1 << 30, Pending: 2, DistinctKeys: -1,
					Blocking: []string{"2 pending generations in shard a"}, Shards: []fleet.ShardEvidence{{ID: "02e81b29-f150-54b9-9a08-ce75944f6889", Pending: 2, InBase: 4}}}, nil
			}
		})},
		{"act-verify-unseen", one + "/do/verify", 200, "It could not be looked at", busy(nil)},
		{"act-seal-which", one + "/do/seal", 200, "Which shard?", busy(nil)},
		{"act-seal", one + "/do/seal?shard=02e81b29-f150-54b9-9a08-ce75944f6889", 200, "What it would replay", busy(func(b *bench) {
			b.store.sealing = func(s lance.SealSpec) (lance.Sealed, error) {
				return lance.Sealed{Shard: s.Shard, Rows: 9, Entries: []lance.TailEntry{{Position: 4, Rows: 9, State: "stranded", Time: minutesAgo(300)}}}, nil
			}
		})},
		{"act-accept", one + "/do/accept", 200, "are merged: new rows come in", busy(restored)},
		{"act-accept-leave-out", one + "/do/accept?leave_out=true", 200, "rows that are only in it are lost", busy(restored)},
		{"act-accept-nothing", one + "/do/accept", 200, "no shard stands refused", busy(func(b *bench) {
			b.store.accepting = func(lance.AcceptSpec) (lance.Accepted, error) {
				return lance.Accepted{Refused: &lance.Refusal{Code: "nothing_refused", Sentence: "no shard stands refused"}}, nil
			}
		})},
		{"experiment-awaits-decision", one, 200, "accept…", busy(restored)},
		{"act-temporal-down", one + "/do/optimize", 200, "nothing can be started", func(t testing.TB) *bench {
			b := busy(nil)(t)
			b.temporal.err = errors.Join(unreachable())
			b.renew(t)
			return b
		}},
	}
}

func ptr[T any](v T) *T { return &v }
