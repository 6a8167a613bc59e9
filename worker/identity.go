package worker

import (
	"context"
	"fmt"

	"lancefleet/store"
)

// ForeignScheduleError says that the schedule under this fleet's name belongs to
// another data directory. Two directories under one name would take turns.
type ForeignScheduleError struct {
	Schedule, Namespace string
	FleetID, DataDir    string // that the schedule was made for
	Asked               string // data directory of this worker
}

// Error says what differs and what to do.
func (e *ForeignScheduleError) Error() string {
	return fmt.Sprintf("schedule %s in namespace %s belongs to the data directory %s (fleet id %s), not to %s: "+
		"use that directory, another FLEET, or another namespace", e.Schedule, e.Namespace, e.DataDir, e.FleetID, e.Asked)
}

// identify makes sure that data directory and schedule belong together, and claims
// what nobody has claimed yet. A directory that lost its fleet.json gets its id
// back from the schedule.
func (w *Worker) identify(ctx context.Context) (store.Identity, error) {
	schedule, err := w.control.Schedule(ctx)
	if err != nil {
		return store.Identity{}, err
	}
	there, err := store.ReadIdentity(ctx, w.deps.Engine, w.config.DataDir)
	if err != nil {
		return store.Identity{}, err
	}
	foreign := schedule.Exists && schedule.FleetID != "" &&
		(there == nil && schedule.DataDir != w.config.DataDir || there != nil && there.FleetID != schedule.FleetID)
	if foreign {
		return store.Identity{}, &ForeignScheduleError{
			Schedule: w.config.names().ScanSchedule(), Namespace: w.deps.Namespace,
			FleetID: schedule.FleetID, DataDir: schedule.DataDir, Asked: w.config.DataDir,
		}
	}
	return store.ClaimIdentity(ctx, w.deps.Engine, w.config.DataDir, store.Identity{FleetID: schedule.FleetID, Name: w.config.Fleet})
}
