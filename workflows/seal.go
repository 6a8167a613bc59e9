package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"lancefleet/fleet"
)

// SealWorkflow replays one shard's stranded WAL entries into a generation, which the
// next merge takes. With AllowUnknown an operator has decided about entries of which
// nobody can prove whether they are in the base already.
func SealWorkflow(ctx workflow.Context, args MaintenanceArgs) (MaintenanceResult, error) {
	m := newMaintenance(ctx, ActionSeal, args)
	m.strict = true
	return m.run(ctx, stepOf{ActionSeal, m.seal}, stepOf{stepRefresh, m.refresh})
}

func (m *maintenance) seal(ctx workflow.Context) (told, error) {
	m.describe(ctx, "Sealing shard "+m.args.Shard+".")
	in := SealInput{Target: m.prepared.Target, Limits: m.prepared.Limits, Shard: m.args.Shard, AllowUnknown: m.args.AllowUnknown}
	var r SealResult
	actx := heavy(ctx, m.names.MergeQueue(), "replay stranded WAL entries of shard "+m.args.Shard)
	if err := workflow.ExecuteActivity(actx, SealShardName, in).Get(ctx, &r); err != nil {
		return told{}, err
	}
	switch {
	case r.Refused != "":
		return told{OutcomeRefused, "not sealed: " + r.Refused}, nil
	case r.Entries == 0:
		return told{OutcomeNoop, "no stranded WAL entry in shard " + m.args.Shard}, nil
	}
	return told{OutcomeDone, fmt.Sprintf("sealed shard %s: %s with %s are generation %d now",
		m.args.Shard, fleet.Count(int64(r.Entries), "WAL entry"), fleet.Count(r.Rows, "row"), r.Generation)}, nil
}
