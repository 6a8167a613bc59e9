package store

import "time"

// SetClock gives staging another clock.
func SetClock(s *Staging, now func() time.Time) { s.now = now }

// TrimRounds and the others are what a rewrite keeps.
var (
	TrimRounds  = trimRounds
	TrimActions = trimActions
	TrimLedger  = trimLedger
	TrimSamples = trimSamples
)
