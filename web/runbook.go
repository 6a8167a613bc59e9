package web

import (
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"lancefleet/fleet"
)

// remedy is one entry of the runbook: what a failure means and what to do.
type remedy struct {
	Anchor, Title string
	Means         string // what it usually is
	Itself        string // what happens without anybody
	Do            []string
}

// runbook is served with the pages, so that it is at hand when nothing else is. The
// anchors are the classes of errors; docs/operations.md has the longer story.
var runbook = []remedy{
	{"unreachable", "Storage gives no answer", "The store, the network or a proxy between them is away, or answers with errors of its own.",
		"Each experiment is asked again, later and later, at most an hour apart. Old numbers stay on the pages.",
		[]string{"Look whether the store answers from a worker's machine: lancefleet show NAME --fresh.", "When it is back, lancefleet scan --full forgets the back-offs."}},
	{"throttled", "The store throttles", "More requests than the store takes: normal life on a busy bucket.",
		"Requests are tried again with pauses. Nothing is lost.",
		[]string{"If rounds grow longer than their interval, lower SCAN_CONCURRENCY or raise STATS_SCAN_INTERVAL_SECS."}},
	{"timeout", "It took too long", "One very large dataset, or a slow store.",
		"It is tried again later.", []string{"If it stays so for one experiment, look at its shards and fragments: a backlog of thousands takes long to list.", "Raise OBSERVE_TIMEOUT if the store is just slow."}},
	{"denied", "The store refuses the credentials", "Credentials have expired, or a policy forbids it. Reading may be allowed where writing is not.",
		"It is tried again, in vain, until somebody mends it.", []string{"Check the worker's credentials and the bucket's policy: docs/own-data.md lists the permissions.", "Then lancefleet scan --full."}},
	{"gone", "It is not there", "The dataset was removed while its registry still names it, or was never finished.",
		"Two rounds after its source stops naming it the row goes.", []string{"If it was removed on purpose, take it out of the registry.", "If not, restore it: what retired ones rest on is in the ledger."}},
	{"corrupt", "It can't be decoded", "A manifest or a file is damaged or half written.",
		"It is tried again: its owner may mend it. Nothing of it is touched.", []string{"lancefleet verify NAME says what can't be read.", "Restore that version from a backup, or check an older version out and make it the newest."}},
	{"unsupported", "A format that this version does not know", "Written by a newer Lance, or a feature that is not supported.",
		"It is left alone.", []string{"Update lancefleet, or exclude the experiment by an override: maintenance: off."}},
	{"conflict", "Somebody else was first", "A writer or another merger committed in between: normal on a busy experiment.",
		"It is tried again by itself, later and later. No row is lost or doubled by it.",
		[]string{"Nothing. If it stays so for a day: live-shards: leave, or a quiet window, by an override."}},
	{"refused", "Refused half way", "Something was found that must not be decided by a program: a mark that was erased, a counter that began again, a sealed shard, entries of which nobody can tell.",
		"Nothing was touched. It is looked at again when the experiment changes.",
		[]string{"Read the sentence on the experiment's page; docs/operations.md explains each.", "For entries of which nobody can tell: lancefleet seal NAME --shard S shows them and asks."}},
	{"memory", "A child process needed too much memory", "One generation or one fragment is very large.",
		"The worker lives on; the run is tried again.", []string{"Raise CHILD_MEMORY, or lower MERGE_MAX_BYTES and COMPACT_MAX_BYTES.", "If the machine is out of memory, fewer HEAVY_SLOTS."}},
	{"invalid", "A request that can't be right", "A wrong address in a registry, or a setting.",
		"It is tried again, in vain.", []string{"The sentence names the value. Mend the registry's uri, or the setting."}},
	{"internal", "Anything else", "A fault that has no class: perhaps a bug.",
		"It is tried again.", []string{"Follow the link to Temporal: the run has the whole story.", "Report it, with the sentence and the version in this page's footer."}},
	{"tables", "Upkeep of lancefleet's own tables fails", "Old versions of _stats, _journal and the others are not removed: they grow, one version for each round.",
		"It is tried again with the next upkeep. Rounds and maintenance go on.",
		[]string{"The sentence has the cause: usually permission to delete.", "Alert on master_stats_unreclaimed_versions."}},
	{"overdue", "No round has finished for long", "Workers are away, storage hangs, or a round is stuck.",
		"A worker that finds the schedule standing still starts a round by itself.",
		[]string{"Look whether a worker runs and reaches Temporal.", "Open the running round in Temporal: it says which pages it waits for."}},
}

// runbookPath is where the runbook tells of a class of errors.
func runbookPath(class, text string) string {
	if throttled.MatchString(text) {
		return "/runbook#throttled"
	}
	anchor := class
	switch class {
	case "cancelled", "closed", "library", "exists", "panic":
		anchor = "internal"
	case fleet.OutcomeRefused:
		anchor = "refused"
	}
	for _, r := range runbook {
		if r.Anchor == anchor {
			return "/runbook#" + anchor
		}
	}
	return "/runbook#internal"
}

type runbookContent struct {
	chrome
	Remedies []remedy
}

func (s *Server) runbookPage(c echo.Context) error {
	p := runbookContent{chrome: s.chrome(c, s.feed.moment(), "runbook", "Runbook"), Remedies: runbook}
	return s.show(c, http.StatusOK, s.pages.runbook, p)
}

// outcomeTitle words an outcome for a heading.
func outcomeTitle(outcome string) string {
	if outcome == fleet.OutcomeNoOp {
		return "nothing to do"
	}
	return strings.ReplaceAll(outcome, "_", " ")
}
