package workflows

import (
	"fmt"
	"maps"

	"go.temporal.io/sdk/workflow"

	"lancefleet/fleet"
)

// AcceptWorkflow carries out what an operator decided about shards that every merge
// refuses: their table was restored or overwritten, or they were removed and made
// anew. The decision is one commit to the table, made only if everything is as the
// operator saw it; then the shards are merged like any other.
func AcceptWorkflow(ctx workflow.Context, args MaintenanceArgs) (MaintenanceResult, error) {
	m := newMaintenance(ctx, ActionAccept, args)
	m.strict = true
	return m.run(ctx,
		stepOf{ActionAccept, m.accept},
		stepOf{StepMergeWAL, m.mergeWAL},
		stepOf{stepRefresh, m.refresh},
		stepOf{StepSweep, m.sweep},
	)
}

func (m *maintenance) accept(ctx workflow.Context) (told, error) {
	m.describe(ctx, "Making the decision count, if all is as it was looked at.")
	in := AcceptInput{Target: m.prepared.Target, Marks: m.prepared.Marks, Seen: m.args.Seen, LeaveOut: m.args.LeaveOut}
	var r AcceptResult
	actx := heavy(ctx, m.names.MergeQueue(), "commit the marks that an operator decided on")
	if err := workflow.ExecuteActivity(actx, AcceptShardsName, in).Get(ctx, &r); err != nil {
		return told{}, err
	}
	if r.Refused != "" {
		return told{OutcomeRefused, "nothing was decided: " + r.Refused}, nil
	}
	m.accepted(r)
	next := "merged next"
	if m.args.LeaveOut {
		next = "taken out of the log, not merged"
	}
	return told{OutcomeDone, fmt.Sprintf("accepted what is listed in %s: %s to be %s",
		fleet.Count(int64(len(r.Marks)), "shard"), fleet.Count(r.Generations, "generation"), next)}, nil
}

// accepted has the decision's marks hold from now on, in this run and in what is
// remembered of it.
func (m *maintenance) accepted(r AcceptResult) {
	facts := &m.result.After
	facts.Accepted, facts.Version = maps.Clone(r.Marks), max(facts.Version, int64(r.Version))
	facts.Marks = withMarks(facts.Marks, r.Marks)
	m.prepared.Marks = withMarks(m.prepared.Marks, r.Marks)
}

func withMarks(known, decided map[string]uint64) map[string]uint64 {
	marks := maps.Clone(known)
	if marks == nil {
		marks = map[string]uint64{}
	}
	//workflowcheck:ignore (the copy is the same in whatever order it is made)
	maps.Copy(marks, decided)
	return marks
}
