package web

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"lancefleet/control"
	"lancefleet/fleet"
	"lancefleet/store"
	"lancefleet/workflows"
)

const (
	readTimeout     = 30 * time.Second // one look at storage
	temporalTimeout = 5 * time.Second  // one question to Temporal
	rebuildEvery    = time.Minute      // decisions age with the clock
	rebuildSoon     = 5 * time.Second  // after something was journalled
	keptRounds      = 200              // newest rounds kept in memory
	graceUnknown    = 15 * time.Minute // data older than this is stale when no interval is known
)

// feed keeps the newest state of the fleet in memory. Three goroutines renew it, one
// asking for the tables, one for the names in the sources and one asking Temporal, so
// that none waits for another and no request waits for any.
type feed struct {
	snapshots snapshots
	names     names // nil = there are no sources
	rounds    rounds
	ledger    ledger
	journal   journal
	steer     steering
	policies  fleet.Policies
	now       func() time.Time
	every     time.Duration
	log       *slog.Logger
	warm      func(context.Context, moment) // reads what only pages need, once there is something to show
	prepare   func(context.Context, moment) // works out what takes long, before a view is shown

	reload     chan struct{} // asks for a look at storage now
	reschedule chan struct{} // asks for a look at Temporal now
	rename     chan struct{} // asks for a look at the sources now
	naming     atomic.Bool   // the sources are being read
	looking    atomic.Int64  // since when storage is being looked at, unix ms; 0 = it is not

	mu      sync.Mutex
	begun   uint64 // looks at storage
	at      moment
	changed chan struct{}    // closed and replaced at every renewal
	over    map[string]int64 // runs that were seen to end, and when; Temporal's list lags behind that
}

// moment is all that serving one request needs to know; it never changes.
type moment struct {
	view            *view   // nil until the table was read once
	named           *naming // what the sources name; nil until they were asked once
	rounds          []fleet.RoundRecord
	roundsBefore    []fleet.RoundRecord // as the look before this one saw them
	running         []control.Running   // maintenance, as Temporal lists it; by id
	retiring        map[fleet.ID]bool   // of these
	scanning        []control.RunningRound
	checkedAt       int64  // last successful look at storage, unix ms
	look            uint64 // the number of the newest look at storage that ended, well or not
	storageProblem  string
	schedule        *Schedule // nil until Temporal answered once
	temporalProblem string
	temporalAsked   bool
}

func (f *feed) moment() moment {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at
}

func (f *feed) update(change func(*moment)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.at)
	close(f.changed)
	f.changed = make(chan struct{})
}

// run renews until the context ends.
func (f *feed) run(ctx context.Context) {
	var all sync.WaitGroup
	all.Go(func() { f.loop(ctx, f.reload, f.readStorage) })
	all.Go(func() { f.loop(ctx, f.reschedule, f.askTemporal) })
	all.Go(func() { f.nameLoop(ctx) })
	all.Go(func() {
		if m := f.await(ctx, nil, func(m moment) bool { return m.view != nil }); m.view != nil {
			f.warm(ctx, m)
		}
	})
	all.Wait()
}

func (f *feed) loop(ctx context.Context, now <-chan struct{}, step func(context.Context)) {
	tick := time.NewTicker(f.every)
	defer tick.Stop()
	for ctx.Err() == nil {
		step(ctx)
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-now:
		}
	}
}

// poke asks for a renewal without waiting for it.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// look is one look at storage. What can't be read stays as it was.
type look struct {
	known
	rounds   []fleet.RoundRecord
	doneLast string // id of the journal's newest entry
}

func (f *feed) readStorage(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	number := f.begin()
	f.looking.Store(f.now().UnixMilli())
	defer f.looking.Store(0)
	snap, err := f.snapshots.Latest(ctx)
	if err != nil {
		f.storageFailed(number, "reading the fleet's table", err)
		return
	}
	before := f.moment()
	seen := look{known: known{Snapshot: snap, policies: f.policies, names: before.named}, rounds: before.rounds}
	if before.view != nil {
		seen.ledger, seen.histories, seen.doneLast = before.view.ledger, before.view.histories, before.view.doneLast
	}
	doing, err := f.lookAround(ctx, &seen)
	f.looking.Store(0)
	if err != nil {
		f.storageFailed(number, doing, err)
	}
	now := f.now().UnixMilli()
	v := before.view
	if seen.differs(v, now) {
		v = newView(seen.known, before.view, now)
		v.doneLast = seen.doneLast
		before.view = v
		f.prepare(ctx, before)
	}
	f.update(func(m *moment) {
		m.view, m.rounds, m.roundsBefore, m.look = v, seen.rounds, before.rounds, number
		if err == nil {
			m.checkedAt, m.storageProblem = now, ""
		}
	})
}

// lookAround reads what belongs to the fleet's table, side by side. What could not be
// read stays as it was.
func (f *feed) lookAround(ctx context.Context, seen *look) (doing string, err error) {
	parts := []struct {
		doing string
		read  func() error
	}{
		{"reading the rounds", func() error { return keep(&seen.rounds)(f.rounds.Latest(ctx, keptRounds)) }},
		{"reading the ledger", func() error { return keep(&seen.ledger)(f.ledger.Latest(ctx)) }},
		{"reading the journal", func() error { return f.readJournal(ctx, seen) }},
	}
	errs := make([]error, len(parts))
	var all sync.WaitGroup
	for i := range parts {
		all.Go(func() { errs[i] = parts[i].read() })
	}
	all.Wait()
	for i, err := range errs {
		if err != nil {
			return parts[i].doing, err
		}
	}
	return "", nil
}

func (f *feed) readJournal(ctx context.Context, seen *look) error {
	last, err := f.journal.Latest(ctx, 1)
	if err != nil {
		return err
	}
	histories, err := f.journal.History(ctx)
	if err != nil {
		return err
	}
	seen.histories, seen.doneLast = histories, ""
	if len(last) > 0 {
		seen.doneLast = last[0].ID
	}
	return nil
}

// keep stores what was read, unless it could not be.
func keep[T any](into *T) func(T, error) error {
	return func(read T, err error) error {
		if err == nil {
			*into = read
		}
		return err
	}
}

// differs says whether a view shows something else than was seen now. Decisions
// age with the clock, and with every piece of maintenance that ends.
func (l look) differs(v *view, now int64) bool {
	if v == nil {
		return true
	}
	age := time.Duration(now-v.builtAt) * time.Millisecond
	return v.Version != l.Version || v.ETag != l.ETag || ledgerVersion(v.ledger) != ledgerVersion(l.ledger) || v.names.differs(l.names) ||
		v.doneLast != l.doneLast && age >= rebuildSoon || age >= rebuildEvery
}

func ledgerVersion(l *store.LedgerView) uint64 {
	if l == nil {
		return 0
	}
	return l.Version
}

func (f *feed) storageFailed(look uint64, doing string, err error) {
	f.log.Warn("storage does not answer", "doing", doing, "error", err)
	f.update(func(m *moment) { m.look, m.storageProblem = look, doing+": "+sentence(err) })
}

func (f *feed) begin() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begun++
	return f.begun
}

func (f *feed) askTemporal(ctx context.Context) {
	if f.steer == nil {
		f.update(func(m *moment) {
			m.temporalAsked, m.temporalProblem = true, "this server has no connection to Temporal"
		})
		return
	}
	ctx, cancel := context.WithTimeout(ctx, temporalTimeout)
	defer cancel()
	schedule, err := f.steer.Schedule(ctx)
	var running []control.Running
	var scanning []control.RunningRound
	if err == nil {
		running, err = f.steer.Running(ctx)
	}
	if err == nil {
		scanning, err = f.steer.RunningRounds(ctx)
	}
	if err != nil && ctx.Err() != nil && ctx.Err() == context.Canceled {
		return
	}
	f.update(func(m *moment) {
		m.temporalAsked = true
		if err != nil {
			m.temporalProblem = sentence(err)
			return
		}
		m.schedule, m.temporalProblem, m.scanning = &schedule, "", scanning
		m.runs(f.stillRunning(running))
	})
}

// listLags is how long Temporal's list may show a run that is over.
const listLags = 10 * time.Minute

// ended takes a run out of what is shown as running, now and in lists to come.
func (f *feed) ended(runID string) {
	now := f.now().UnixMilli()
	f.update(func(m *moment) {
		if f.over == nil {
			f.over = map[string]int64{}
		}
		maps.DeleteFunc(f.over, func(_ string, at int64) bool { return now-at > listLags.Milliseconds() })
		f.over[runID] = now
		m.runs(f.stillRunning(m.running))
	})
}

// stillRunning leaves out what was seen to end. The feed is locked.
func (f *feed) stillRunning(running []control.Running) []control.Running {
	if len(f.over) == 0 {
		return running
	}
	return slices.DeleteFunc(slices.Clone(running), func(r control.Running) bool { return f.over[r.RunID] > 0 })
}

// runs takes in what Temporal lists, by id.
func (m *moment) runs(running []control.Running) {
	byID := func(a, b control.Running) int { return a.ID.Compare(b.ID) }
	if !slices.IsSortedFunc(running, byID) {
		running = slices.SortedStableFunc(slices.Values(running), byID)
	}
	m.running, m.retiring = running, map[fleet.ID]bool{}
	for _, r := range running {
		if r.Action == workflows.ActionRetire {
			m.retiring[r.ID] = true
		}
	}
}

// runningOf is the maintenance that runs for one experiment, nil if none does.
func (m moment) runningOf(id fleet.ID) *control.Running {
	at, found := slices.BinarySearchFunc(m.running, id, func(r control.Running, id fleet.ID) int { return r.ID.Compare(id) })
	if !found {
		return nil
	}
	return &m.running[at]
}

// await renews until the condition holds or the context ends.
func (f *feed) await(ctx context.Context, ask chan struct{}, holds func(moment) bool) moment {
	for {
		f.mu.Lock()
		at, changed := f.at, f.changed
		f.mu.Unlock()
		if holds(at) || ctx.Err() != nil {
			return at
		}
		poke(ask)
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
}

// lookAgain waits for a look at storage that begins after this call, so it sees
// whatever was stored before. One that fails ends the waiting too.
func (f *feed) lookAgain(ctx context.Context) moment {
	f.mu.Lock()
	before := f.begun
	f.mu.Unlock()
	return f.await(ctx, f.reload, func(m moment) bool { return m.look > before })
}

// asOf is when what is shown was true: the newest commit, or the end of the
// newest round, as a round that found nothing new commits nothing.
func (m moment) asOf() int64 {
	var at int64
	if m.view != nil {
		at = m.view.CommittedAt
	}
	if len(m.rounds) > 0 {
		at = max(at, m.rounds[0].FinishedAt)
	}
	return at
}

// overdue is how old the data may be before it is called stale.
func (m moment) overdue() time.Duration {
	if m.schedule == nil || m.schedule.IntervalSecs <= 0 {
		return graceUnknown
	}
	return 3*time.Duration(m.schedule.IntervalSecs)*time.Second + 30*time.Second
}

// stale says whether the data is older than it should be, and why.
func (m moment) stale(now int64) (bool, string) {
	if m.view == nil {
		return true, "the fleet's table has not been read yet"
	}
	if m.storageProblem != "" && now-m.checkedAt > (30*time.Second).Milliseconds() {
		return true, m.storageProblem
	}
	age := time.Duration(now-m.asOf()) * time.Millisecond
	if age <= m.overdue() {
		return false, ""
	}
	switch {
	case m.asOf() == 0 && len(m.view.Rows) == 0:
		return false, "" // a new fleet: empty, not old
	case m.asOf() == 0:
		return true, "no round has finished yet"
	case m.schedule != nil && m.schedule.Paused:
		return true, "rounds are paused"
	case len(m.scanning) > 0 && now-m.scanning[0].StartedAt > m.overdue().Milliseconds():
		return true, "no round has finished for " + span(age) + ": the one that runs began " + relative(m.scanning[0].StartedAt, now)
	default:
		return true, "no round has finished for " + span(age)
	}
}

// interval between rounds in seconds, 0 if it is not known or there is none.
func (m moment) interval() int64 {
	if m.schedule == nil {
		return 0
	}
	return m.schedule.IntervalSecs
}
