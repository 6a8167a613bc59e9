package lance

import (
	"context"

	"lancefleet/fleet"
)

// ObserveTarget names a dataset to measure.
type ObserveTarget struct {
	URI          string `json:"uri"`
	KnownVersion uint64 `json:"known_version,omitempty"` // commits down to here are known already; 0 = none are
	TargetRows   int64  `json:"target_rows"`             // a fragment with fewer live rows counts as small
}

// ObserveOptions bound a batch of observations.
type ObserveOptions struct {
	BatchOptions
	// WalkPast says which commits to look behind in search of the last write.
	WalkPast fleet.WalkPast
	// MaxCommits to walk back through; 0 = the library's own limit.
	MaxCommits int
}

// ObserveResult is one target's measurement, or why there is none.
type ObserveResult struct {
	Observation *fleet.Observation // nil exactly when Err is set
	Err         *Error
	Requests    fleet.Requests // storage requests it took
}

// Observe measures every target in full, without reading data, and answers in
// their order.
func (r *Reader) Observe(ctx context.Context, targets []ObserveTarget, o ObserveOptions) ([]ObserveResult, error) {
	const op = "observe"
	if err := o.check(op); err != nil {
		return nil, err
	}
	if o.MaxCommits < 0 {
		return nil, &Error{Class: Invalid, Op: op, Message: "the number of commits must not be negative"}
	}
	if o.WalkPast.Operations == nil {
		o.WalkPast.Operations = []string{} // not null: the library wants a list
	}
	type wire struct {
		Observation *fleet.Observation `json:"observation"`
		Error       *wireError         `json:"error"`
		Requests    fleet.Requests     `json:"requests"`
	}
	results := make([]ObserveResult, len(targets))
	args := func(sent []ObserveTarget) any {
		return struct {
			Targets     []ObserveTarget `json:"targets"`
			WalkPast    fleet.WalkPast  `json:"walk_past"`
			MaxCommits  int             `json:"max_commits,omitempty"`
			Concurrency int             `json:"concurrency"`
			TimeoutMS   int64           `json:"timeout_ms,omitempty"`
		}{sent, o.WalkPast, o.MaxCommits, o.Concurrency, milliseconds(o.Timeout)}
	}
	err := runBatch(ctx, r, op, targets, func(t ObserveTarget) error { return checkURI(op, t.URI) }, args,
		func(i int, w *wire, refused *Error) {
			if w == nil {
				results[i] = ObserveResult{Err: refused}
				return
			}
			results[i] = ObserveResult{w.Observation, w.Error.targetError(op, targets[i].URI), w.Requests}
			if w.Observation == nil && w.Error == nil {
				results[i].Err = &Error{Class: Internal, Op: op, URI: targets[i].URI, Message: "neither an observation nor an error"}
			}
		})
	if err != nil {
		return nil, err
	}
	return results, nil
}
