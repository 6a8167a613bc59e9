package control

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"lancefleet/workflows"
)

func TestANoteTellsPeopleAndProgramsTheSame(t *testing.T) {
	for _, reason := range []string{"disk is full", "", "two\nlines", "again (by bob, 2026-01-02T03:04:05Z, x)", "(by eve)"} {
		for _, by := range []string{"alice", "Ann, of ops", ""} {
			p := Pause{EntryID: "6f1c9a52-0000-4000-8000-000000000001", By: by, Reason: reason, At: 1_764_000_000_123}
			require.Equal(t, p, parseNote(p.note()), "%q", p.note())
		}
	}
}

func TestTheNoteOfAnotherToolIsTheReason(t *testing.T) {
	for _, note := range []string{"paused via UI", "", "maintenance (by hand)", "x (by a, not a time, 6f1c9a52-0000-4000-8000-000000000001)"} {
		require.Equal(t, Pause{Reason: note}, parseNote(note))
	}
}

func TestOnlyWantedSettingsChangeTheScheduleNotWhoAskedForARound(t *testing.T) {
	args := workflows.ScanArgs{Fleet: "default", FleetID: "id", DataDir: "/d", IntervalSecs: 300, PageSize: 1000}
	names := workflows.Names{Fleet: "default"}
	base := newWanted(names, args).args.ConfigHash
	require.NotEmpty(t, base)

	same := args
	same.Full, same.By, same.ConfigHash = true, "alice", "something"
	require.Equal(t, base, newWanted(names, same).args.ConfigHash)

	for name, change := range map[string]func(*workflows.ScanArgs){
		"interval":  func(a *workflows.ScanArgs) { a.IntervalSecs = 60 },
		"page size": func(a *workflows.ScanArgs) { a.PageSize = 10 },
		"directory": func(a *workflows.ScanArgs) { a.DataDir = "/e" },
		"pages":     func(a *workflows.ScanArgs) { a.MaxPagesAtOnce = 3 },
	} {
		other := args
		change(&other)
		require.NotEqual(t, base, newWanted(names, other).args.ConfigHash, name)
	}
}

func TestOnlyRoundsOfThisFleetCanBeReadThroughARoundsAddress(t *testing.T) {
	c := New(nil, workflows.Names{Fleet: "blue"})
	require.True(t, c.isRound("lancefleet-scan-now-blue"))
	require.True(t, c.isRound("lancefleet-scan-blue-2026-01-02T03:04:05Z"))
	for _, id := range []string{"lancefleet-scan-now", "blue/refresh/rollout:a", "lancefleet-scan-2026-01-02T03:04:05Z", ""} {
		require.False(t, c.isRound(id), id)
	}
}

func TestOnlyMaintenanceOfThisFleetCanBeReadThroughItsAddress(t *testing.T) {
	c := New(nil, workflows.Names{Fleet: "blue"})
	for _, id := range []string{"blue/experiment/rollout:a", "blue/wake/table:b"} {
		require.True(t, c.isMaintenance(id), id)
	}
	for _, id := range []string{"experiment/rollout:a", "blue/refresh/rollout:a", "blue/experiment/rollout:../x", "lancefleet-scan-blue", "other", ""} {
		require.False(t, c.isMaintenance(id), id)
		_, err := c.AwaitMaintenance(t.Context(), id, "run")
		require.Equal(t, ClassGone, ClassOf(err), id)
	}
}

func TestALongSummaryIsCutWhereTheServerWouldRefuseIt(t *testing.T) {
	require.Equal(t, "short", summary("short"))
	cut := summary(strings.Repeat("ä", 300))
	require.LessOrEqual(t, len(cut), summaryLimit)
	require.True(t, utf8.ValidString(cut))
	require.True(t, strings.HasSuffix(cut, "…"))
}

func TestALongReasonIsCutButTellsStillWhoAndWhen(t *testing.T) {
	p := Pause{EntryID: "6f1c9a52-0000-4000-8000-000000000001", By: strings.Repeat("who", 500), Reason: strings.Repeat("ü", 5000), At: 1}
	require.LessOrEqual(t, len(p.note()), noteLimit)
	got := parseNote(p.note())
	require.Equal(t, p.EntryID, got.EntryID)
	require.Equal(t, p.At, got.At)
	require.True(t, strings.HasPrefix(p.By, strings.TrimSuffix(got.By, "…")))
	require.True(t, strings.HasPrefix(p.Reason, strings.TrimSuffix(got.Reason, "…")))
}
