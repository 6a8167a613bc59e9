package metrics

import (
	"context"

	"lancefleet/fleet"
)

// Maintenance is what ledger and journal say. The maps are shared: read only.
type Maintenance struct {
	Retired   map[fleet.ID]int64 // with the last write by their evidence
	Histories map[fleet.ID]fleet.History
	Upkeep    fleet.UpkeepState
	Policy    fleet.Policy // for how long failures are cooled down
}

// tellMaintenance tells about experiments that have rows: of others the journal may
// still remember what nobody needs any more.
func (c *sharedCollector) tellMaintenance(ctx context.Context, t *telling, snapshot Snapshot, read bool) {
	m, err := c.shared.Maintenance(ctx)
	if !c.readable(t, "maintenance", err) || m == nil {
		if read {
			t.gauge(hotExperiments, float64(len(snapshot.Rows)))
		}
		return
	}
	t.gauge(retiredExperiments, float64(len(m.Retired)))
	t.gauge(upkeepFailures, float64(m.Upkeep.Failures))
	if !read {
		return
	}
	t.gauge(unreclaimed, float64(m.Upkeep.Unreclaimed(snapshot.Version)))
	var hot, stranded, unknown, cooling int64
	for i := range snapshot.Rows {
		row := &snapshot.Rows[i]
		if lastWrite, retired := m.Retired[row.ID]; retired && row.LastWrite <= lastWrite {
			continue
		}
		hot++
		h := m.Histories[row.ID]
		if cools(h, m.Policy, t.now) {
			cooling++
		}
		if row.TailEntries != 0 {
			stranded += max(h.Stranded, 0)
			unknown += max(h.Unknown, 0)
		}
	}
	t.gauge(hotExperiments, float64(hot))
	t.gauge(strandedEntries, float64(stranded))
	t.gauge(unknownEntries, float64(unknown))
	t.gauge(coolingDown, float64(cooling))
}

func cools(h fleet.History, p fleet.Policy, now int64) bool {
	for _, tries := range []fleet.Tries{h.Merge, h.Compact, h.Retire} {
		if tries.LastAt+p.Cooldown(tries.Failures).Milliseconds() > now {
			return true
		}
	}
	return false
}
