package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
	"lancefleet/lance"
)

func TestADecisionIsShownFirstAndMadeForWhatWasShown(t *testing.T) {
	store := oneRow(120)
	after := fleet.UnknownFacts()
	after.Version, after.Marks = 1, map[string]uint64{"s": 4}
	store.actions = append(store.actions, fleet.Action{ID: "1", At: minutesAgo(60), Kind: fleet.ActMergeWAL, Target: "rollout:run-1", Outcome: fleet.OutcomeDone, After: after.Text()})
	b := newBench(t, store)
	b.store.accepting = func(spec lance.AcceptSpec) (lance.Accepted, error) {
		require.Equal(t, map[string]uint64{"s": 4}, spec.RememberedMarks)
		if spec.LeaveOut {
			return lance.Accepted{Refused: &lance.Refusal{Code: "nothing_refused", Sentence: "no shard stands refused"}}, nil
		}
		return lance.Accepted{Seen: "as it is", Shards: []lance.AcceptedShard{{Shard: "s", Generations: 2, Sentences: []string{"it was restored"}}}}, nil
	}
	path := "/api/v1/experiments/run-1/accept"
	plan := decode[MaintenancePlan](t, b.do("POST", path+"?dry_run=true", `{}`), 200)
	require.True(t, plan.Start, plan.Reason)
	require.EqualValues(t, 2, plan.Generations)
	require.Equal(t, "as it is", plan.Accept.Seen)
	plan = decode[MaintenancePlan](t, b.get("/api/v1/experiments/run-1/plan?action=accept&leave_out=true"), 200)
	require.False(t, plan.Start)
	require.Equal(t, "no shard stands refused", plan.Reason)
	require.Contains(t, plan.Blocking, "no shard stands refused")

	requireError(t, b.do("POST", path, ""), 422, "why")
	requireError(t, b.do("POST", path, `{"seen":"as it is"}`), 422, "why")
	requireError(t, b.do("POST", path, `{"why":"restored on purpose"}`), 422, "seen")
	started := decode[MaintenanceStarted](t, b.do("POST", path, `{"by":"ada","why":"restored on purpose","seen":"as it is","leave_out":true}`), 202)
	require.Equal(t, "accept", started.Action)
	asked := b.temporal.asked
	require.Equal(t, []any{"ada", "restored on purpose", "as it is", true}, []any{asked.By, asked.Why, asked.Seen, asked.LeaveOut})
}

const accepting = "/experiments/rollout:run-1/do/accept"

// decidable has run-1 stand as after a restore.
func decidable(t *testing.T, options ...option) *bench {
	t.Helper()
	return remembering(t, 4, options...)
}

// remembering has the journal tell up to which generation the shard was merged once.
// The table says nothing of it.
func remembering(t *testing.T, mark uint64, options ...option) *bench {
	t.Helper()
	store := oneRow(120)
	row := &store.snapshot.Rows[0]
	row.Shards = []fleet.Shard{{ShardMark: fleet.ShardMark{ID: "s"}, Status: "active", CurrentGeneration: 6, Pending: 2}}
	row.PendingWAL = 2
	after := fleet.UnknownFacts()
	after.Version, after.Marks = 1, map[string]uint64{"s": mark}
	store.actions = append(store.actions, fleet.Action{ID: "1", At: minutesAgo(60), Kind: fleet.ActMergeWAL, Target: "rollout:run-1", Outcome: fleet.OutcomeDone, After: after.Text()})
	b := newBench(t, store, options...)
	b.store.accepting = func(spec lance.AcceptSpec) (lance.Accepted, error) {
		seen := "merging"
		if spec.LeaveOut {
			seen = "leaving out"
		}
		return lance.Accepted{Seen: seen, Shards: []lance.AcceptedShard{{Shard: "s", Generations: 2, Sentences: []string{"what comes of " + seen}}}}, nil
	}
	return b
}

func TestADecisionIsOfferedWhereMergesAwaitOneAndNowhereElse(t *testing.T) {
	for mark, awaits := range map[uint64]bool{0: false, 4: true} {
		b := remembering(t, mark)
		require.Equal(t, awaits, decode[Detail](t, b.get("/api/v1/experiments/run-1"), 200).AwaitsDecision)
		require.Equal(t, awaits, strings.Contains(b.get("/experiments/rollout:run-1").Body.String(), accepting))
	}
}

func TestThePageOfADecisionDecidesAboutExactlyWhatItShows(t *testing.T) {
	b := decidable(t)
	for _, one := range []struct {
		query, seen, other string
		leaveOut           bool
	}{
		{"", "merging", accepting + "?leave_out=true", false},
		{"?leave_out=true", "leaving out", accepting + `"`, true},
	} {
		page := b.get(accepting + one.query).Body.String()
		require.Contains(t, page, "what comes of "+one.seen)
		require.Contains(t, page, `name="seen" value="`+one.seen+`"`)
		require.Contains(t, page, `href="`+one.other)
		require.Equal(t, one.leaveOut, strings.Contains(page, `name="leave_out" value="true"`))
		require.Equal(t, one.leaveOut, strings.Contains(page, "rows that are only in it are lost"))

		form := "by=ada&seen=" + url.QueryEscape(one.seen)
		if one.leaveOut {
			form += "&leave_out=true"
		}
		asked := len(b.temporal.said())
		refused := b.postForm(accepting, form+"&why=++")
		require.Equal(t, 422, refused.Code)
		require.Contains(t, refused.Body.String(), "the journal keeps why")
		require.Contains(t, refused.Body.String(), "what comes of "+one.seen, "one stays where one was")
		require.Equal(t, 422, b.postForm(accepting, "by=ada&why=restored").Code, "a decision about nothing that was seen")
		require.Len(t, b.temporal.said(), asked)

		done := b.postForm(accepting, form+"&why=restored")
		require.Equal(t, http.StatusSeeOther, done.Code, done.Body.String())
		got := b.temporal.asked
		require.Equal(t, []any{"ada", "restored", one.seen, one.leaveOut}, []any{got.By, got.Why, got.Seen, got.LeaveOut})
	}
}

func TestThereIsNoButtonForADecisionThatCouldNotBeMade(t *testing.T) {
	for name, c := range map[string]struct {
		looked      lance.Accepted
		err         error
		said, other string
	}{
		"nothing is refused":        {lance.Accepted{Seen: "x", Refused: &lance.Refusal{Code: "nothing_refused", Sentence: "no shard stands refused"}}, nil, "no shard stands refused", ""},
		"only leaving out can be":   {lance.Accepted{Seen: "x", Refused: &lance.Refusal{Code: "mixed", Sentence: "take them out together"}}, nil, "take them out together", "?leave_out=true"},
		"it could not be looked at": {lance.Accepted{}, unreadable(), "could not be looked at", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := decidable(t)
			b.store.accepting = func(lance.AcceptSpec) (lance.Accepted, error) { return c.looked, c.err }
			page := b.get(accepting).Body.String()
			require.Contains(t, page, c.said)
			require.NotContains(t, page, `method="post" action="`+accepting)
			require.Equal(t, c.other != "", strings.Contains(page, accepting+"?leave_out=true"))
		})
	}
}

func TestOnlyAnOperatorDecides(t *testing.T) {
	b := decidable(t, withTokens)
	form, asks := "seen=merging&why=restored", []string{"Content-Type", contentType(accepting)}
	viewer := b.do("GET", accepting, "", bearer(lookSecret)...)
	require.Contains(t, viewer.Body.String(), "what comes of merging", "who may look sees what would come of it")
	require.NotContains(t, viewer.Body.String(), `action="`+accepting)
	require.Equal(t, 403, b.do("POST", accepting, form, append(asks, bearer(lookSecret)...)...).Code)
	require.Equal(t, 403, b.do("POST", accepting, form, append(asks, append(bearer(opsSecret), "Origin", "https://evil.example")...)...).Code)
	require.Equal(t, 401, b.do("POST", accepting, form, asks...).Code)
	require.Empty(t, b.temporal.said())
	require.Contains(t, b.do("GET", accepting, "", bearer(opsSecret)...).Body.String(), `action="`+accepting)
	require.Equal(t, http.StatusSeeOther, b.do("POST", accepting, form, append(asks, bearer(opsSecret)...)...).Code)
	require.Len(t, b.temporal.said(), 1)
}
