package activities

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/store"
	"lancefleet/workflows"
)

type fakeKeeper struct {
	results  []store.UpkeepResult
	versions int64
	err      error
	options  store.UpkeepOptions
	asked    int
}

func (k *fakeKeeper) Upkeep(_ context.Context, o store.UpkeepOptions) []store.UpkeepResult {
	k.options = o
	k.asked++
	return k.results
}

func (k *fakeKeeper) Versions(context.Context, string) (int64, error) { return k.versions, k.err }

func (w *fakeWorld) tables(k *fakeKeeper, log *bytes.Buffer) *Tables {
	if log == nil {
		log = &bytes.Buffer{}
	}
	return &Tables{
		Scan: w.scan(), Keeper: k, Journal: fakeJournal{w}, Options: store.UpkeepOptions{KeepVersions: 2}, Metrics: &w.metrics,
		Log: slog.New(slog.NewTextHandler(log, nil)),
	}
}

// pass makes one pass and records it.
func (w *fakeWorld) pass(t *testing.T, k *fakeKeeper, log *bytes.Buffer) workflows.TablesResult {
	t.Helper()
	a := w.tables(k, log)
	args := workflows.TablesArgs{FleetID: "fleet"}
	in := workflows.UpkeepRecord{Args: args, StartedAt: w.now.UnixMilli()}
	upkeep, err := do[workflows.Upkeep](t, a.UpkeepTables, args)
	in.Upkeep = upkeep
	if err != nil {
		in.Error, in.ErrorClass = workflows.Sentence(err), workflows.ErrorClass(errors.Unwrap(err))
	}
	w.now = w.now.Add(1)
	in.FinishedAt = w.now.UnixMilli() + int64(len(w.journal)) + 1
	r, err := do[workflows.TablesResult](t, a.RecordUpkeep, in)
	require.NoError(t, err)
	return r
}

var (
	wellKept = []store.UpkeepResult{{Table: statsTable, Before: 40, After: 2, Removed: 38}, {Table: "_journal.lance", Before: 3, After: 2, Removed: 1}}
	unkept   = []store.UpkeepResult{
		{Table: statsTable, Before: -1, After: -1, Err: &lance.Error{Class: lance.Denied, Op: "cleanup_versions", Message: "403"}},
		{Table: "_journal.lance", Before: 3, After: 2, Removed: 1},
	}
)

// passAgain makes a pass under a run of its own: a test environment knows one run id.
func (w *fakeWorld) passAgain(t *testing.T, k *fakeKeeper, log *bytes.Buffer) workflows.TablesResult {
	t.Helper()
	for i := range w.journal {
		w.journal[i].ID += "'"
	}
	return w.pass(t, k, log)
}

func TestFailuresOfUpkeepAddUpOverRestartsAndASuccessForgetsThem(t *testing.T) {
	w, log := newWorld("a").seen(), &bytes.Buffer{} // each pass is made by a process that remembers nothing
	for range 9 {
		w.put(nil, "")
	} // version 10

	r := w.passAgain(t, &fakeKeeper{results: unkept, versions: 77}, log)
	require.Equal(t, workflows.OutcomeFailed, r.Outcome)
	require.Equal(t, "denied", r.ErrorClass)
	require.Equal(t, int64(1), r.Failures)
	require.Equal(t, int64(77), r.Unreclaimed, "before any success: the whole backlog")
	require.Contains(t, log.String(), "failures_in_a_row=1 unreclaimed_versions=77")
	require.Equal(t, int64(1), r.Removed, "the other table had its turn")

	w.put(nil, "")
	r = w.passAgain(t, &fakeKeeper{results: unkept, versions: -1, err: errors.New("503")}, log)
	require.Equal(t, int64(2), r.Failures)
	require.Equal(t, int64(78), r.Unreclaimed, "what was counted, and what came since")
	require.Equal(t, 2, w.metrics.upkeepFailed)

	log.Reset()
	r = w.passAgain(t, &fakeKeeper{results: wellKept}, log)
	require.Equal(t, workflows.OutcomeDone, r.Outcome)
	require.Zero(t, r.Failures)
	require.Zero(t, r.Unreclaimed)
	require.Empty(t, log.String())
	require.Equal(t, "removed 39 versions of 2 tables", r.Sentence)

	for range 5 {
		w.put(nil, "")
	}
	r = w.passAgain(t, &fakeKeeper{results: unkept, versions: 7}, log)
	require.Equal(t, int64(1), r.Failures)
	require.Equal(t, int64(5), r.Unreclaimed, "since the last success")
	require.Contains(t, log.String(), "failures_in_a_row=1 unreclaimed_versions=5")
	require.Equal(t, int64(1+1+39+1), w.metrics.removed)
}

func TestAPassThatEndsWithoutAResultIsAFailureTooAndCountsTheBacklog(t *testing.T) {
	w := newWorld("a").seen()
	a := w.tables(&fakeKeeper{versions: 12}, nil)
	r, err := do[workflows.TablesResult](t, a.RecordUpkeep, workflows.UpkeepRecord{
		Args: workflows.TablesArgs{FleetID: "fleet"}, Error: "no worker finished it in time", ErrorClass: "timeout", FinishedAt: 9,
	})
	require.NoError(t, err)
	require.Equal(t, workflows.OutcomeFailed, r.Outcome)
	require.Equal(t, int64(1), r.Failures)
	require.Equal(t, int64(12), r.Unreclaimed)
	require.Equal(t, fleet.ActTables, w.journal[0].Kind)
	require.Equal(t, "timeout", w.journal[0].ErrorClass)
}
