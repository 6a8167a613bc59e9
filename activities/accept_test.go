package activities

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/workflows"
)

func TestADecisionIsMadeForWhatWasSeenAndByItsRun(t *testing.T) {
	w := newWorld("a")
	var asked []lance.AcceptSpec
	h := &fakeHeavy{fakeWorld: w, accept: func(s lance.AcceptSpec) (lance.Accepted, error) {
		asked = append(asked, s)
		return lance.Accepted{Version: 9, Shards: []lance.AcceptedShard{{Shard: "s1", Mark: 2, Generations: 3}, {Shard: "s2", Generations: 1}}}, nil
	}}
	in := workflows.AcceptInput{Target: target("a"), Marks: map[string]uint64{"s1": 5}, Seen: "as it was", LeaveOut: true}
	r, err := do[workflows.AcceptResult](t, w.maintenance(h).AcceptShards, in)
	require.NoError(t, err)
	require.Equal(t, workflows.AcceptResult{Version: 9, Generations: 4, Marks: map[string]uint64{"s1": 2, "s2": 0}}, r)
	require.NotEmpty(t, asked[0].Decision, "the run's id: a second attempt finds the first one's commit")
	asked[0].Decision = ""
	require.Equal(t, lance.AcceptSpec{URI: target("a").URI, RememberedMarks: map[string]uint64{"s1": 5}, Seen: "as it was", LeaveOut: true}, asked[0])
	require.Equal(t, 1, h.closed)

	h.accept = func(lance.AcceptSpec) (lance.Accepted, error) {
		return lance.Accepted{Refused: &lance.Refusal{Code: "moved", Sentence: "look again"}, Shards: []lance.AcceptedShard{{Shard: "s1", Mark: 2}}}, nil
	}
	r, err = do[workflows.AcceptResult](t, w.maintenance(h).AcceptShards, in)
	require.NoError(t, err)
	require.Equal(t, workflows.AcceptResult{Refused: "look again", Marks: map[string]uint64{}}, r)

	h.accept = func(lance.AcceptSpec) (lance.Accepted, error) { return lance.Accepted{Version: 9}, lance.ErrConflict }
	_, err = do[workflows.AcceptResult](t, w.maintenance(h).AcceptShards, in)
	require.Equal(t, "conflict", classOf(err))
}

// What a row counts as pending says nothing about what stands refused.
func TestADecisionIsDueWhateverTheRowSaysButNotWhilePaused(t *testing.T) {
	w := cold(2*time.Hour, "a")
	by := func(a *workflows.MaintenanceArgs) { a.By = "ada" }
	p := prepare(t, w.maintenance(nil), workflows.ActionAccept, by)
	require.True(t, p.Due, p.Reason)
	require.False(t, p.NoMerge, "the merge after it looks for itself")
	for why, change := range map[string]func(m *Maintenance){
		"maintenance is off": func(m *Maintenance) { m.Policies.Default = fleet.ObserveOnly() },
		"on holiday":         func(m *Maintenance) { m.Policies.Default.Paused = "on holiday" },
	} {
		m := w.maintenance(nil)
		change(m)
		p = prepare(t, m, workflows.ActionAccept, by)
		require.True(t, p.Refused, why)
		require.Contains(t, p.Reason, why)
	}
}
