package fleet

const (
	// BacklogWarning is the number of pending generations from which reads suffer.
	BacklogWarning = 1000
	// ReadCap is the number of pending generations above which lance-context's
	// workers refuse to read.
	ReadCap = 4096
)

// Totals sums up a fleet. Unknown numbers are left out of sums and counted, so a
// reader can say "at least".
type Totals struct {
	Experiments        int64 `json:"experiments"`
	Unknown            int64 `json:"unknown"`           // never observed: in no other number but Failing
	Rows               int64 `json:"rows"`              // of those known
	RowsExact          bool  `json:"rows_exact"`        // every row count is known and exact
	Fragments          int64 `json:"fragments"`         //
	Pending            int64 `json:"pending"`           // generations
	PendingMax         int64 `json:"pending_max"`       // of one experiment
	PendingOver1k      int64 `json:"pending_over_1k"`   // experiments above BacklogWarning
	PendingOverReadCap int64 `json:"pending_over_cap"`  // experiments above ReadCap
	Stranded           int64 `json:"stranded"`          // WAL entries proven to be in no generation
	Failing            int64 `json:"failing"`           // experiments whose last attempt gave no answer
	Missing            int64 `json:"missing"`           // experiments that the last round's sources did not name
	Bytes              int64 `json:"bytes"`             // of those known
	WrittenLastHour    int64 `json:"written_last_hour"` // experiments
	WrittenLastDay     int64 `json:"written_last_day"`  // experiments
	NewestWrite        int64 `json:"newest_write"`      // unix ms; 0 none
	OldestScan         int64 `json:"oldest_scan"`       // oldest ScannedAt of those that don't fail, unix ms; 0 none
}

// Total sums rows up as of now (unix ms).
func Total(rows []Row, now int64) Totals {
	t := Totals{RowsExact: true}
	for i := range rows {
		t.add(&rows[i], now)
	}
	return t
}

func (t *Totals) add(r *Row, now int64) {
	t.Experiments++
	t.Failing += count(r.Failing())
	t.Missing += count(r.MissingRounds > 0)
	if !r.Failing() && (t.OldestScan == 0 || r.ScannedAt < t.OldestScan) {
		t.OldestScan = r.ScannedAt
	}
	if !r.Known {
		t.Unknown++
		t.RowsExact = false
		return
	}
	t.RowsExact = t.RowsExact && r.RowsExact && r.RowCount >= 0
	t.Rows += max(r.RowCount, 0)
	t.Fragments += max(r.FragmentCount, 0)
	t.Bytes += max(r.Bytes, 0)
	t.Stranded += max(r.StrandedEntries, 0)
	t.addPending(max(r.PendingWAL, 0))
	t.addWrite(r.LastWrite, now)
}

func (t *Totals) addPending(pending int64) {
	t.Pending += pending
	t.PendingMax = max(t.PendingMax, pending)
	t.PendingOver1k += count(pending > BacklogWarning)
	t.PendingOverReadCap += count(pending > ReadCap)
}

func (t *Totals) addWrite(lastWrite, now int64) {
	const hour = 60 * 60 * 1000
	t.NewestWrite = max(t.NewestWrite, lastWrite)
	t.WrittenLastHour += count(lastWrite > 0 && now-lastWrite < hour)
	t.WrittenLastDay += count(lastWrite > 0 && now-lastWrite < 24*hour)
}

func count(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}
