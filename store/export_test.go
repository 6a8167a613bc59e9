package store

import "time"

// SetClock gives staging another clock.
func SetClock(s *Staging, now func() time.Time) { s.now = now }

// TrimRounds and TrimActions are what a rewrite keeps.
var (
	TrimRounds  = trimRounds
	TrimActions = trimActions
)
