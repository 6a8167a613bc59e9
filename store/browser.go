package store

import "lancefleet/lance"

// Browser is what the browsing side gets: everything there is to read, and no way
// to write. A test keeps it so.
type Browser struct {
	Stats   *Stats
	Sources *Sources
	Rounds  *Rounds
	Journal *Journal
	Ledger  *Ledger
	Samples *Samples
}

// NewBrowser reads a data directory as [CleanDataDir] returns it. It takes a
// reader and nothing wider: an engine does not fit.
func NewBrowser(r *lance.Reader, dataDir string, mode SourceMode) *Browser {
	return &Browser{
		Stats:   NewStats(r, dataDir),
		Sources: NewSources(r, dataDir, mode),
		Rounds:  NewRounds(r, dataDir),
		Journal: NewJournal(r, dataDir),
		Ledger:  NewLedger(r, dataDir),
		Samples: NewSamples(r, dataDir),
	}
}
