package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lancefleet/lance"
	"lancefleet/web"
)

func TestAcceptShowsAsksAndDecidesAboutWhatItShowed(t *testing.T) {
	s := newMaintenanceServer(t)
	s.plan = web.MaintenancePlan{ID: "rollout:x", Action: "accept", Start: true, Reason: "decided by an operator", Accept: &lance.Accepted{
		Seen: "as it is", Shards: []lance.AcceptedShard{{Shard: "s", Sentences: []string{"it was restored", "2 generations are merged"}}},
	}}
	accept := func(answer io.Reader, change func(*acceptCommand)) (string, string, error) {
		var out, errs bytes.Buffer
		c := &acceptCommand{Name: "x"}
		c.Server, c.By, c.Why = s.URL, "ada", "restored on purpose"
		if change != nil {
			change(c)
		}
		s.asked, s.bodies = nil, nil
		err := c.Run(t.Context(), streams{in: answer, out: &out, err: &errs})
		return out.String(), errs.String(), err
	}
	out, errs, err := accept(strings.NewReader("no\n"), nil)
	require.ErrorContains(t, err, "nothing was done")
	require.Contains(t, out, "it was restored")
	require.Contains(t, out, "2 generations are merged")
	require.Contains(t, errs, "Accept rollout:x as it is?")
	require.Equal(t, []string{"GET /api/v1/experiments/x/plan?action=accept"}, s.asked)

	_, _, err = accept(strings.NewReader("yes\n"), nil)
	require.NoError(t, err)
	require.Equal(t, "POST /api/v1/experiments/x/accept", s.asked[1])
	require.JSONEq(t, `{"by":"ada","why":"restored on purpose","seen":"as it is"}`, s.bodies[1])
	_, _, err = accept(nil, func(c *acceptCommand) { c.Yes, c.LeaveOut = true, true })
	require.NoError(t, err)
	require.Equal(t, "GET /api/v1/experiments/x/plan?action=accept&leave_out=true", s.asked[0])
	require.JSONEq(t, `{"by":"ada","why":"restored on purpose","seen":"as it is","leave_out":true}`, s.bodies[1])
	_, _, err = accept(nil, func(c *acceptCommand) { c.DryRun, c.Why = true, "" })
	require.NoError(t, err)
	require.Len(t, s.asked, 1, "only looked")

	_, _, err = accept(nil, func(c *acceptCommand) { c.JSON = true })
	require.Equal(t, exitUsage, exitCode(err))
	_, _, err = accept(nil, func(c *acceptCommand) { c.Yes, c.Why = true, "" })
	require.Equal(t, exitUsage, exitCode(err))
	require.ErrorContains(t, err, "--why")
	s.plan.Start, s.plan.Reason = false, "no shard stands refused"
	_, _, err = accept(nil, func(c *acceptCommand) { c.Yes = true })
	require.ErrorContains(t, err, "no shard stands refused")
	require.Len(t, s.asked, 1)
}
