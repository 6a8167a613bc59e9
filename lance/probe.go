package lance

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"lancefleet/fleet"
)

// ProbeTarget asks whether a dataset's fingerprint is still the same.
type ProbeTarget struct {
	URI         string            `json:"uri"`
	Fingerprint fleet.Fingerprint `json:"fingerprint"`
	// Deep also notices what a light probe cannot see on object storage: drop and
	// recreate, unflushed writes, new shards. On local disk every probe is deep.
	Deep bool `json:"deep"`
	// ListVersions lists manifests instead of asking for the next one: needed
	// where version numbers have gaps, tags or branches hold old versions, or long
	// time has passed.
	ListVersions bool `json:"list_versions"`
	// Manifests says which of a shard's manifests a deep probe asks for.
	Manifests Manifests `json:"manifests,omitempty"`
}

// Manifests are those of a shard that a deep probe on object storage asks for.
type Manifests string

// Which manifests.
const (
	BothManifests Manifests = ""      // the next one and the known one
	NextManifest  Manifests = "next"  // was it flushed, claimed or drained?
	KnownManifest Manifests = "known" // is it still the same shard?
)

// ProbeState is the answer to a probe.
type ProbeState string

// The answers.
const (
	Unchanged ProbeState = "unchanged" // nothing that was asked about moved
	Changed   ProbeState = "changed"   // Detail says what
	Unknown   ProbeState = "unknown"   // Err says why
)

// ProbeResult answers one target.
type ProbeResult struct {
	State    ProbeState
	Detail   string         // what moved, for people: "base version", "wal tail", ...
	Err      *Error         // with Unknown only
	Requests fleet.Requests // storage requests it took
}

// Probe asks the cheap question of every target and answers in their order.
func (r *Reader) Probe(ctx context.Context, targets []ProbeTarget, o BatchOptions) ([]ProbeResult, error) {
	const op = "probe"
	if err := o.check(op); err != nil {
		return nil, err
	}
	type wire struct {
		State    ProbeState     `json:"state"`
		Detail   string         `json:"detail"`
		Error    *wireError     `json:"error"`
		Requests fleet.Requests `json:"requests"`
	}
	results := make([]ProbeResult, len(targets))
	args := func(sent []ProbeTarget) any {
		return struct {
			Targets     []ProbeTarget `json:"targets"`
			Concurrency int           `json:"concurrency"`
			TimeoutMS   int64         `json:"timeout_ms,omitempty"`
		}{sent, o.Concurrency, milliseconds(o.Timeout)}
	}
	err := runBatch(ctx, r, op, targets, ProbeTarget.check, args,
		func(i int, w *wire, refused *Error) {
			if w == nil {
				results[i] = ProbeResult{State: Unknown, Err: refused}
				return
			}
			results[i] = ProbeResult{w.State, w.Detail, w.Error.targetError(op, targets[i].URI), w.Requests}
		})
	if err != nil {
		return nil, err
	}
	return results, nil
}

// check refuses what the library could not decode: it would refuse the batch.
func (t ProbeTarget) check() error {
	const op = "probe"
	if err := checkURI(op, t.URI); err != nil {
		return err
	}
	invalid := func(message string) error {
		return &Error{Class: Invalid, Op: op, URI: t.URI, Message: message}
	}
	switch t.Fingerprint.Naming {
	case "", "v1", "v2":
	default:
		return invalid(fmt.Sprintf("fingerprint: unknown naming of manifests %q", t.Fingerprint.Naming))
	}
	for _, shard := range t.Fingerprint.Shards {
		if uuid.Validate(shard.ID) != nil {
			return invalid(fmt.Sprintf("fingerprint: shard %q is no uuid", shard.ID))
		}
	}
	return nil
}
