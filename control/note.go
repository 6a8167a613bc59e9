package control

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Pause is a pause of the schedule, or the end of one: who, why and when.
type Pause struct {
	EntryID string // of its journal entry; "" = made outside of lancefleet
	By      string
	Reason  string
	At      int64 // unix ms; 0 unknown
}

// A schedule keeps one note. Ours reads well in Temporal's UI and still tells who,
// when, and which journal entry belongs to it:
//
//	disk is full (by alice, 2026-01-02T03:04:05Z, 6f1c9a52-...)
//
// Any other note was written by somebody else's tool and is the reason as it is.
var notePattern = regexp.MustCompile(`(?s)^(.*) \(by (.*), (\d{4}-\d\d-\d\dT[\d:.]+Z), ([0-9a-f-]{36})\)$`)

func (p Pause) note() string {
	at := time.UnixMilli(p.At).UTC().Format("2006-01-02T15:04:05.000Z")
	signature := fmt.Sprintf(" (by %s, %s, %s)", cut(p.By, authorLimit), at, p.EntryID)
	return cut(p.Reason, noteLimit-len(signature)) + signature
}

// The server refuses a note of more than 1,000 bytes. A reason that is cut here
// stands in the journal in full.
const (
	noteLimit   = 1000
	authorLimit = 100
)

// cut shortens a text to at most limit bytes, in between characters.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len("…")], "") + "…"
}

func parseNote(note string) Pause {
	m := notePattern.FindStringSubmatch(note)
	if m == nil {
		return Pause{Reason: strings.TrimSpace(note)}
	}
	at, err := time.Parse(time.RFC3339, m[3])
	if err != nil {
		return Pause{Reason: strings.TrimSpace(note)}
	}
	return Pause{Reason: m[1], By: m[2], At: at.UnixMilli(), EntryID: m[4]}
}
