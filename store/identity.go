package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"lancefleet/lance"
)

const identityFile = ownFolder + "/fleet.json"

// Identity says whose data directory it is. It is written once and never changed.
type Identity struct {
	FleetID   string `json:"fleet_id"`   // uuid
	Name      string `json:"name"`       // as FLEET gives it
	CreatedAt int64  `json:"created_at"` // unix ms
}

// ForeignFleetError says that a data directory belongs to another fleet. Two
// fleets on one directory would undo each other's rows.
type ForeignFleetError struct {
	DataDir      string
	There, Asked Identity
}

// Error says what differs and what to do.
func (e *ForeignFleetError) Error() string {
	if e.Asked.Name != "" && e.There.Name != e.Asked.Name {
		return fmt.Sprintf("data directory %s belongs to the fleet %q, not %q: set FLEET=%s, or use another directory",
			e.DataDir, e.There.Name, e.Asked.Name, e.There.Name)
	}
	return fmt.Sprintf("data directory %s belongs to the fleet with id %s, but this one has id %s: "+
		"it is another directory, or another Temporal namespace, than before", e.DataDir, e.There.FleetID, e.Asked.FleetID)
}

// ReadIdentity reads whose a data directory is; nil when nobody has claimed it.
func ReadIdentity(ctx context.Context, r Reader, dataDir string) (*Identity, error) {
	uri := join(dataDir, identityFile)
	object, err := r.Get(ctx, uri)
	if errors.Is(err, lance.ErrGone) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the fleet's identity: %w", err)
	}
	var there Identity
	if err := json.Unmarshal(object.Body, &there); err != nil || there.FleetID == "" {
		return nil, &lance.Error{Class: lance.Corrupt, Op: "read identity", URI: uri, Message: "it is not the JSON of a fleet's identity"}
	}
	return &there, nil
}

// ClaimIdentity makes a data directory ours unless somebody has been there before,
// and returns whose it is now. An empty FleetID or Name of want means any: a new id
// is made. When it belongs to another fleet the error is a [ForeignFleetError].
func ClaimIdentity(ctx context.Context, w Writer, dataDir string, want Identity) (Identity, error) {
	there, err := ReadIdentity(ctx, w, dataDir)
	if err != nil {
		return Identity{}, err
	}
	if there == nil {
		there, err = putIdentity(ctx, w, dataDir, want)
	}
	if err != nil {
		return Identity{}, err
	}
	if differ(want.FleetID, there.FleetID) || differ(want.Name, there.Name) {
		return *there, &ForeignFleetError{DataDir: dataDir, There: *there, Asked: want}
	}
	return *there, nil
}

func differ(want, there string) bool { return want != "" && want != there }

// putIdentity returns the identity of whoever came first.
func putIdentity(ctx context.Context, w Writer, dataDir string, want Identity) (*Identity, error) {
	if want.FleetID == "" {
		want.FleetID = uuid.NewString()
	}
	if want.CreatedAt == 0 {
		want.CreatedAt = time.Now().UnixMilli()
	}
	body, err := json.MarshalIndent(want, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the fleet's identity: %w", err)
	}
	_, err = w.Put(ctx, join(dataDir, identityFile), append(body, '\n'), lance.PutOptions{IfAbsent: true})
	if err != nil && !errors.Is(err, lance.ErrExists) {
		return nil, fmt.Errorf("claim the data directory %s: %w", dataDir, err)
	}
	there, err := ReadIdentity(ctx, w, dataDir)
	if err == nil && there == nil {
		err = &lance.Error{Class: lance.Gone, Op: "claim", URI: dataDir, Message: "the identity just written is not there"}
	}
	return there, err
}
