package activities

import (
	"context"
	"slices"
	"time"

	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/store"
	"lancefleet/workflows"
)

// fakeLedger adds entries as the real one does: each key once.
type fakeLedger struct{ *fakeWorld }

func (l fakeLedger) Latest(context.Context) (*store.LedgerView, error) {
	return &store.LedgerView{Version: uint64(len(l.ledger)), Entries: fleet.Newest(l.ledger)}, l.read("_retired")
}

func (l fakeLedger) Append(_ context.Context, entries ...fleet.LedgerEntry) error {
	for _, e := range entries {
		if !slices.ContainsFunc(l.ledger, func(there fleet.LedgerEntry) bool { return there.Key() == e.Key() }) {
			l.fakeWorld.ledger = append(l.ledger, e)
		}
	}
	if l.afterLedger != nil {
		return l.afterLedger()
	}
	return nil
}

type fakeSamples struct{ *fakeWorld }

func (s fakeSamples) Append(_ context.Context, samples ...fleet.Sample) error {
	s.fakeWorld.samples = append(s.samples, samples...)
	return s.appendErr
}

func (w *fakeWorld) entry(name string) *fleet.LedgerEntry {
	view, _ := fakeLedger{w}.Latest(context.Background())
	return view.Get(exp(name).ID)
}

// History reads the journal as the real one does.
func (j fakeJournal) History(context.Context) (map[fleet.ID]fleet.History, error) {
	return fleet.Histories(j.journal), j.read("_journal")
}

func (j fakeJournal) Upkeep(context.Context) (fleet.UpkeepState, error) {
	newest := slices.Clone(j.journal)
	slices.SortStableFunc(newest, func(a, b fleet.Action) int { return int(b.At - a.At) })
	return fleet.UpkeepOf(newest), j.read("_journal")
}

// fakeMetrics counts.
type fakeMetrics struct {
	retired, retireFailed, dropsRefused, returned, checked, recounted int
	hinted, unanswered                                                int
	retireTook                                                        []time.Duration
	upkeepFailed                                                      int
	removed                                                           int64
	outcomes                                                          []string
}

func (m *fakeMetrics) ObservationFailed(string)        { m.unanswered++ }
func (m *fakeMetrics) PageDone(int, int)               {}
func (m *fakeMetrics) SourceProblems(int)              {}
func (m *fakeMetrics) Committed(bool)                  {}
func (m *fakeMetrics) CommitConflict()                 {}
func (m *fakeMetrics) RoundFinished(fleet.RoundRecord) {}
func (m *fakeMetrics) StepFailed(string, string)       {}
func (m *fakeMetrics) PendingRecounted(n int)          { m.recounted += n }
func (m *fakeMetrics) RetiredChecked(n int)            { m.checked += n }
func (m *fakeMetrics) Returned(n int)                  { m.returned += n }
func (m *fakeMetrics) Hinted(n int)                    { m.hinted += n }
func (m *fakeMetrics) Retired()                        { m.retired++ }
func (m *fakeMetrics) RetireFailed()                   { m.retireFailed++ }
func (m *fakeMetrics) RetireTook(d time.Duration)      { m.retireTook = append(m.retireTook, d) }
func (m *fakeMetrics) DropRefused()                    { m.dropsRefused++ }
func (m *fakeMetrics) Journalled(action, outcome, class string) {
	m.outcomes = append(m.outcomes, action+" "+outcome+" "+class)
}

func (m *fakeMetrics) UpkeepDone(_ time.Duration, removed int64, failed bool) {
	m.removed += removed
	if failed {
		m.upkeepFailed++
	}
}

// fakeHeavy is a process that plays the native library over one experiment.
type fakeHeavy struct {
	*fakeWorld
	calls  []string
	merge  func(s lance.MergeSpec) (lance.Merged, error)
	comp   func(s lance.CompactSpec) (lance.Compacted, error)
	seal   func(s lance.SealSpec) (lance.Sealed, error)
	accept func(s lance.AcceptSpec) (lance.Accepted, error)
	clean  func(olderThan time.Duration) (lance.CleanedVersions, error)
	sweep  func(s lance.SweepSpec) (lance.Swept, error)
	tails  func() ([]lance.Tail, error)
	verify func() (fleet.Evidence, error)
	closed int
}

func (h *fakeHeavy) MergeWAL(_ context.Context, s lance.MergeSpec) (lance.Merged, error) {
	h.calls = append(h.calls, "merge "+s.Shard)
	return h.merge(s)
}

func (h *fakeHeavy) Compact(_ context.Context, s lance.CompactSpec) (lance.Compacted, error) {
	h.calls = append(h.calls, "compact")
	return h.comp(s)
}

func (h *fakeHeavy) SealShard(_ context.Context, s lance.SealSpec) (lance.Sealed, error) {
	h.calls = append(h.calls, "seal "+s.Shard)
	return h.seal(s)
}

func (h *fakeHeavy) AcceptShards(_ context.Context, s lance.AcceptSpec) (lance.Accepted, error) {
	h.calls = append(h.calls, "accept")
	return h.accept(s)
}

func (h *fakeHeavy) CleanExperiment(_ context.Context, _ string, olderThan time.Duration) (lance.CleanedVersions, error) {
	h.calls = append(h.calls, "clean")
	return h.clean(olderThan)
}

func (h *fakeHeavy) SweepGenerations(_ context.Context, s lance.SweepSpec) (lance.Swept, error) {
	h.calls = append(h.calls, "sweep")
	return h.sweep(s)
}

func (h *fakeHeavy) ClassifyTail(context.Context, string) ([]lance.Tail, error) {
	h.calls = append(h.calls, "classify")
	return h.tails()
}

func (h *fakeHeavy) Verify(context.Context, string, lance.VerifyOptions) (fleet.Evidence, error) {
	h.calls = append(h.calls, "verify")
	return h.verify()
}

func (h *fakeHeavy) Close() error {
	h.closed++
	return nil
}

// maintenance makes the group of activities over a world, with everything allowed.
func (w *fakeWorld) maintenance(h *fakeHeavy) *Maintenance {
	return &Maintenance{
		Scan: w.scan(), Ledger: fakeLedger{w}, Journal: fakeJournal{w},
		StartHeavy: func(context.Context) (Heavy, error) { return h, nil },
		Policies:   fleet.Policies{Default: fleet.DefaultPolicy()},
		Paused:     func(context.Context) (string, error) { return w.paused, w.read("paused") },
		Metrics:    &w.metrics,
		Config: MaintenanceConfig{
			MergeGenerations: 8, MergeBytes: 1 << 30, CompactSources: 32, CompactBytes: 1 << 30,
			Grace: 5 * time.Minute, UnknownGrace: time.Hour, AttemptFor: 15 * time.Minute,
		},
	}
}

func maintenanceArgs(name string) workflows.MaintenanceArgs {
	return workflows.MaintenanceArgs{Fleet: "default", FleetID: "fleet", ID: exp(name).ID}
}

func target(name string) workflows.Target {
	return workflows.Target{FleetID: "fleet", ID: exp(name).ID, URI: exp(name).URI}
}

// evidence is a clean one about what an observation of that version sees.
func (w *fakeWorld) evidence(version uint64) fleet.Evidence {
	return fleet.Evidence{
		Fingerprint: w.observation(version).Fingerprint, Rows: 10, Fragments: 1, Bytes: -1, DistinctKeys: -1, VerifiedAt: w.now.UnixMilli(),
	}
}

// retire puts an experiment into the ledger as it is at a version.
func (w *fakeWorld) retire(name string, version uint64) *fakeWorld {
	row := fleet.Observed(exp(name), nil, *w.observation(version), w.now.UnixMilli())
	entry := fleet.NewRetirement(row, w.evidence(version), w.entry(name), w.now.UnixMilli())
	entry.RunID = "retired-" + name
	w.ledger = append(w.ledger, entry)
	return w
}
