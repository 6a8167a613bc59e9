// Package control is the client side of Temporal: the schedule of rounds,
// starting rounds and refreshes, and asking what became of them. It reads and
// writes nothing but Temporal; what operators do is journalled by a workflow.
package control

import (
	"context"
	"time"

	"go.temporal.io/sdk/client"

	"lancefleet/workflows"
)

// Control talks to Temporal for one fleet. It may be used by many goroutines.
type Control struct {
	client  client.Client
	names   workflows.Names
	now     func() time.Time
	running runningList
}

// New makes a Control of the fleet that names stands for.
func New(c client.Client, names workflows.Names) *Control {
	return &Control{client: c, names: names, now: time.Now}
}

// Reachable says whether Temporal answers: nil, or an *Error of class unreachable.
func (c *Control) Reachable(ctx context.Context) error {
	_, err := c.client.CheckHealth(ctx, &client.CheckHealthRequest{})
	return wrap("reach temporal", "", err)
}
