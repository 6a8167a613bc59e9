package lance

import (
	"context"
	"time"

	"lancefleet/fleet"
)

// DatasetSpec says what dataset to make, for demonstrations and tests. The same
// spec makes the same rows.
type DatasetSpec struct {
	URI         string        // must not exist; not used in a template
	Kind        fleet.Kind    // Rollout, Generic or Table; "" = Rollout
	Keyless     bool          // without a primary key: what would update a row adds one
	Shards      int           // MemWAL shards; a Table has none
	Generations int           // pending in each shard
	Rows        int           // in each generation and in each fragment; at least 1
	Fragments   int           // of the base table; 0 = an empty base
	Tombstones  bool          // the last generation of each shard deletes some keys
	Stranded    bool          // each shard has some rows in its write-ahead log alone
	Age         time.Duration // everything looks this old
	Seed        int64
}

// wireSpec is a DatasetSpec as the library reads it. Nothing but the kind may be
// left out: what is absent gets the library's default, not zero.
type wireSpec struct {
	URI         string     `json:"uri,omitempty"`
	Kind        fleet.Kind `json:"kind,omitempty"`
	Keyless     bool       `json:"keyless"`
	Shards      int        `json:"shards"`
	Generations int        `json:"generations"`
	Rows        int        `json:"rows"`
	Fragments   int        `json:"fragments"`
	Tombstones  bool       `json:"tombstones"`
	Stranded    bool       `json:"stranded"`
	AgeMS       int64      `json:"age_ms"`
	Seed        uint64     `json:"seed"`
}

func (s DatasetSpec) wire() wireSpec {
	return wireSpec{
		s.URI, s.Kind, s.Keyless, s.Shards, s.Generations, s.Rows, s.Fragments, s.Tombstones, s.Stranded,
		milliseconds(s.Age), uint64(s.Seed),
	}
}

// DatasetFacts is what a made dataset holds.
type DatasetFacts struct {
	Version      uint64   `json:"version"`
	Fragments    int64    `json:"fragments"`
	BaseRows     int64    `json:"base_rows"`
	Generations  int64    `json:"generations"`   // pending, of all shards
	PendingRows  int64    `json:"pending_rows"`  // in them, tombstones included
	Tombstones   int64    `json:"tombstones"`    // rows of them that delete a key
	StrandedRows int64    `json:"stranded_rows"` // in no generation
	Keys         int64    `json:"keys"`          // alive in base and generations together
	Shards       []string `json:"shards"`        // their ids
}

// MakeDataset makes one dataset as a real writer would leave it.
func (e *Engine) MakeDataset(ctx context.Context, spec DatasetSpec) (DatasetFacts, error) {
	const op = "make_dataset"
	if err := checkURI(op, spec.URI); err != nil {
		return DatasetFacts{}, err
	}
	return ask[DatasetFacts](ctx, e.Reader, op, spec.URI, spec.wire(), nil)
}

// FleetSpec says which datasets to make, each from one of a few templates.
type FleetSpec struct {
	Items       []FleetItem
	Templates   []DatasetSpec // their URIs are not used
	Dir         string        // where templates are made before they are copied, on local disk; "" = the system's temporary folder
	Concurrency int           // datasets under way at once; 0 = the library's default
}

// FleetItem is one dataset of a fleet.
type FleetItem struct {
	URI      string `json:"uri"`
	Template int    `json:"template"` // index into FleetSpec.Templates
}

// FleetFacts is what was made of a [FleetSpec].
type FleetFacts struct {
	Made      int64          `json:"made"`
	Templates []DatasetFacts `json:"templates"`
}

// MakeFleet makes many datasets fast: on local disk by copying templates. It stops
// at the first that cannot be made.
func (e *Engine) MakeFleet(ctx context.Context, spec FleetSpec) (FleetFacts, error) {
	const op = "make_fleet"
	for _, item := range spec.Items {
		if err := checkURI(op, item.URI); err != nil {
			return FleetFacts{}, err
		}
	}
	if err := checkText(op, spec.Dir, "the folder for templates", spec.Dir); err != nil {
		return FleetFacts{}, err
	}
	args := struct {
		Items       []FleetItem `json:"items"`
		Templates   []wireSpec  `json:"templates"`
		Dir         string      `json:"dir,omitempty"`
		Concurrency int         `json:"concurrency"`
	}{append([]FleetItem{}, spec.Items...), []wireSpec{}, spec.Dir, spec.Concurrency}
	for _, t := range spec.Templates {
		t.URI = ""
		args.Templates = append(args.Templates, t.wire())
	}
	return ask[FleetFacts](ctx, e.Reader, op, "", args, nil)
}

// WritesSpec is what a worker does to a dataset in one go.
type WritesSpec struct {
	URI    string `json:"uri"`
	Shard  string `json:"shard,omitempty"` // uuid, or the name of a worker; "" = the default shard
	Rows   int    `json:"rows"`            // new ones; the same seed again updates them
	Delete int    `json:"delete"`          // keys of the base
	Flush  bool   `json:"flush"`           // into a generation; else they stay in the write-ahead log
	Append bool   `json:"append"`          // into the base, past MemWAL
	Seed   int64  `json:"-"`
}

// Written is what was written.
type Written struct {
	Version uint64   `json:"version"` // of the base; moved by appends only
	Shard   string   `json:"shard"`   // uuid; "" = written to the base
	Epoch   uint64   `json:"epoch"`
	Keys    []string `json:"keys"`
	Deleted []string `json:"deleted"`
}

// MakeWrites writes to a dataset as a real worker does.
func (e *Engine) MakeWrites(ctx context.Context, spec WritesSpec) (Written, error) {
	const op = "make_writes"
	if err := checkURI(op, spec.URI); err != nil {
		return Written{}, err
	}
	if err := checkText(op, spec.URI, "the shard", spec.Shard); err != nil {
		return Written{}, err
	}
	args := struct {
		WritesSpec
		Seed uint64 `json:"seed"`
	}{spec, uint64(spec.Seed)}
	return ask[Written](ctx, e.Reader, op, spec.URI, args, nil)
}
