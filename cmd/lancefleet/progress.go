package main

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"lancefleet/web"
	"lancefleet/workflows"
)

// progressWait is how long a question waits on the server while somebody looks on.
const progressWait = 2 * time.Second

// progress tells how far a run is, each thing once.
type progress struct {
	to    io.Writer
	steps int    // told already
	now   string // told last
}

func (p *progress) tell(text json.RawMessage) {
	var running web.MaintenanceRunning
	if json.Unmarshal(text, &running) != nil || running.Progress == nil {
		return // no worker tells
	}
	p.told(*running.Progress)
}

func (p *progress) told(far workflows.MaintenanceProgress) {
	for ; p.steps < len(far.Steps); p.steps++ {
		s := far.Steps[p.steps]
		fmt.Fprintf(p.to, "  %s %s: %s\n", s.Action, s.Outcome, s.Sentence)
	}
	if far.Now != "" && far.Now != p.now {
		p.now = far.Now
		fmt.Fprintf(p.to, "  %s\n", far.Now)
	}
}
