package fleet

// Sample is one row of `_samples`: an experiment's numbers at a time, for charts.
type Sample struct {
	ID
	At        int64 `json:"at"` // start of the hour, unix ms
	Rows      int64 `json:"rows"`
	Fragments int64 `json:"fragments"`
	Pending   int64 `json:"pending"`
	Bytes     int64 `json:"bytes"`
	LastWrite int64 `json:"last_write"` // unix ms; 0 unknown
}

// Samples are those of experiments that were observed since (unix ms): a row is
// observed when it changed, and once a day. They stand for the hour of now.
func Samples(rows []Row, since, now int64) []Sample {
	const hour = 60 * 60 * 1000
	var samples []Sample
	for i := range rows {
		if r := &rows[i]; r.Known && r.ObservedAt > since {
			samples = append(samples, Sample{
				ID: r.ID, At: now - now%hour, Rows: r.RowCount, Fragments: r.FragmentCount,
				Pending: r.PendingWAL, Bytes: r.Bytes, LastWrite: r.LastWrite,
			})
		}
	}
	return samples
}
