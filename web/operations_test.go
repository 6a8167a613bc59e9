package web

import (
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lancefleet/control"
	"lancefleet/fleet"
)

// tried is a run's own entry in the journal.
func tried(id string, minutes int64, kind, outcome string) fleet.Action {
	return fleet.Action{ID: id, At: minutesAgo(minutes), Kind: kind, Target: "rollout:run-1", Outcome: outcome, RunID: "run-" + id, WorkflowID: "experiment/rollout:run-1"}
}

func TestAttemptsUpToTheOneThatSucceededAreOneOperation(t *testing.T) {
	other := tried("x", 4, fleet.ActRetire, "failed")
	other.Target = "rollout:other"
	ops := operationsOf([]fleet.Action{ // newest first
		tried("f", 1, fleet.ActRetire, "refused"),
		tried("e", 2, fleet.ActRetire, "done"),
		tried("d", 3, fleet.ActRetire, "failed"),
		other,
		tried("c", 5, fleet.ActOptimize, "noop"),
		tried("b", 6, fleet.ActRetire, "refused"),
		tried("a", 7, fleet.ActRetire, "done"),
	})
	var told [][]string
	for _, o := range ops {
		var ids []string
		for _, r := range o.runs {
			ids = append(ids, r.own.ID)
		}
		told = append(told, ids)
	}
	require.Equal(t, [][]string{{"f"}, {"e", "d", "b"}, {"x"}, {"c"}, {"a"}}, told)
}

func TestTheStepsOfARunBelongToIt(t *testing.T) {
	step := func(id, kind string, minutes int64) fleet.Action {
		a := tried(id, minutes, kind, "done")
		a.RunID = "one"
		return a
	}
	lost := tried("z", 9, fleet.ActMergeWAL, "failed") // its run left no entry of its own
	ops := operationsOf([]fleet.Action{step("c", fleet.ActOptimize, 1), step("b", fleet.ActCompact, 2), step("a", fleet.ActMergeWAL, 3), lost})
	require.Len(t, ops, 2)
	require.Equal(t, fleet.ActOptimize, ops[0].kind())
	require.Equal(t, "a", ops[0].runs[0].steps[0].ID, "in the order in which they were done")
	require.Equal(t, fleet.ActMergeWAL, ops[1].kind())
	late := operationsOf([]fleet.Action{step("b", fleet.ActCompact, 2), step("c", fleet.ActOptimize, 3)})
	require.Equal(t, fleet.ActOptimize, late[0].kind(), "also when a step's entry is the newest")
}

func TestWhatRunsIsTheNewestAttemptAtWhatFailedBefore(t *testing.T) {
	store := oneRow(120)
	store.actions = []fleet.Action{tried("b", 30, fleet.ActOptimize, "failed"), tried("a", 60, fleet.ActOptimize, "failed"), tried("0", 90, fleet.ActOptimize, "done")}
	b := newBench(t, store)
	id := fleet.ID{Kind: fleet.Rollout, Name: "run-1"}
	b.temporal.maintaining = []control.Running{{ID: id, Action: "optimize", Wanted: "merge", WorkflowID: "experiment/rollout:run-1", RunID: "now", StartedAt: minutesAgo(1)}}
	b.renew(t)
	ops := decode[Operations](t, b.get("/api/v1/operations"), 200)
	require.Equal(t, 2, ops.Work.Total)
	first := ops.Work.Operations[0]
	require.Equal(t, "running", first.Outcome)
	require.Equal(t, 3, first.Attempts)
	require.Equal(t, minutesAgo(60), first.FirstAt)
	require.Len(t, first.Earlier, 2)
	require.Contains(t, first.Link, "/now/history")
	require.Empty(t, ops.Failures, "it is being tried again")
	require.Equal(t, "now", ops.Running[0].RunID)

	b.store.set(func(f *fakeStore) {
		ended := tried("c", 0, fleet.ActOptimize, "done")
		ended.RunID = "now"
		f.actions = slices.Insert(f.actions, 0, ended)
	})
	ops = decode[Operations](t, b.get("/api/v1/operations"), 200)
	require.Equal(t, "done", ops.Work.Operations[0].Outcome, "the journal knows its end before Temporal's list does")
	require.Equal(t, 3, ops.Work.Operations[0].Attempts)
	require.Equal(t, 2, ops.Work.Total)
}

func TestWorkIsFilteredByKindAndOutcomeAndCounted(t *testing.T) {
	b := newBench(t, busyStore())
	all := decode[Operations](t, b.get("/api/v1/operations?limit=500"), 200).Work
	require.Len(t, all.Operations, all.Total)
	require.Equal(t, 1, all.Kinds["tables"], "two attempts are one operation")
	require.Equal(t, 2, all.Kinds["retire"])
	some := decode[Operations](t, b.get("/api/v1/operations?kind=optimize&outcome=failed"), 200).Work
	require.Equal(t, 2, some.Total)
	for _, o := range some.Operations {
		require.Equal(t, "optimize failed", o.Kind+" "+o.Outcome)
		require.Equal(t, 2, o.Attempts)
		require.Equal(t, levelNote, o.Level, "a conflict is not red")
	}
	require.Equal(t, all.Kinds, some.Kinds)
	page := decode[Operations](t, b.get("/api/v1/operations?limit=2&offset=2"), 200).Work
	require.Equal(t, all.Operations[2:4], page.Operations)
	requireError(t, b.get("/api/v1/operations?outcome=lucky"), 422, "outcome")
}

func TestFailuresOfOneCauseAreOneWithCountTimesAndNextRetry(t *testing.T) {
	store := oneRow(120)
	for i, name := range []string{"a-1", "b-2", "c-3"} {
		r := healthy(fleet.Rollout, name, minutesAgo(60))
		r.Failures, r.FailingSince, r.FailedAt, r.NextAttemptAt = int64(i+1), minutesAgo(int64(50-i)), minutesAgo(int64(9-i)), testNow.UnixMilli()+int64(3-i)*60_000
		r.ErrorClass, r.Error = "unreachable", "head s3://b/"+name+".rollout.lance/_versions/"+name[2:]+": connection refused after 1"+name[2:]+" s"
		store.snapshot.Rows = append(store.snapshot.Rows, r)
	}
	slow := healthy(fleet.Rollout, "slow", minutesAgo(60))
	slow.Failures, slow.FailingSince, slow.ErrorClass, slow.Error = 1, minutesAgo(3), "unreachable", "put: 503 SlowDown: reduce your request rate"
	store.snapshot.Rows = append(store.snapshot.Rows, slow)
	failures := decode[Operations](t, newBench(t, store).get("/api/v1/operations"), 200).Failures
	require.Len(t, failures, 2)
	f := failures[0]
	require.Equal(t, 3, f.Count)
	require.EqualValues(t, 6, f.Attempts)
	require.Equal(t, minutesAgo(50), *f.FirstAt)
	require.Equal(t, minutesAgo(7), *f.LastAt)
	require.Equal(t, testNow.UnixMilli()+60_000, *f.NextAt, "the soonest of them")
	require.Contains(t, f.Sample, "c-3", "the newest one's words")
	require.Equal(t, "/runbook#unreachable", f.Runbook)
	require.Equal(t, levelBad, f.Level)
	require.Equal(t, levelNote, failures[1].Level, "throttling is not red")
	require.Equal(t, "/runbook#throttled", failures[1].Runbook)
}

func TestAFailureIsOverWhenALaterRunSucceededOrTheExperimentIsAtRest(t *testing.T) {
	failed := tried("a", 9, fleet.ActOptimize, "failed")
	failed.ErrorClass, failed.Error = "internal", "no idea"
	held := tried("h", 1, fleet.ActRetire, "refused")
	held.ErrorClass, held.Error = fleet.ClassHeld, "written 2 h ago"
	for name, c := range map[string]struct {
		actions []fleet.Action
		retired bool
		want    int
	}{
		"it fails":                        {[]fleet.Action{failed}, false, 1},
		"it succeeded since":              {[]fleet.Action{tried("b", 3, fleet.ActOptimize, "done"), failed}, false, 0},
		"it is at rest":                   {[]fleet.Action{failed}, true, 0},
		"another kind succeeded since":    {[]fleet.Action{tried("b", 3, fleet.ActWake, "done"), failed}, false, 1},
		"a refusal before anything began": {[]fleet.Action{held}, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			store := oneRow(120)
			store.actions = c.actions
			if c.retired {
				store.snapshot.Rows, store.retired = nil, []fleet.LedgerEntry{retiredOne(fleet.Rollout, "run-1")}
			}
			require.Len(t, decode[Operations](t, newBench(t, store).get("/api/v1/operations"), 200).Failures, c.want)
		})
	}
}

func TestEveryClassOfErrorHasItsPlaceInTheRunbook(t *testing.T) {
	page := newBench(t, oneRow(1)).get("/runbook").Body.String()
	for _, class := range []string{"invalid", "gone", "conflict", "corrupt", "unsupported", "denied", "unreachable", "timeout", "internal", "memory", "refused", "cancelled", "panic", "never heard of"} {
		path := runbookPath(class, "")
		require.Contains(t, page, `id="`+strings.TrimPrefix(path, "/runbook#")+`"`, class)
	}
}

func TestRetirementSaysWhoIsDueBlockedRetiredAndBack(t *testing.T) {
	store := busyStore()
	b := newBench(t, store)
	r := decode[Operations](t, b.get("/api/v1/operations"), 200).Retirement
	require.Equal(t, 1, r.CandidatesAll)
	require.Equal(t, store.snapshot.Rows[42].String(), r.Candidates[0].ID)
	require.Equal(t, 2, r.BlockedAll)
	blocked := r.Blocked[0]
	require.Equal(t, store.snapshot.Rows[40].String(), blocked.ID, "the longest first")
	require.Contains(t, blocked.Reason, "is sealed")
	require.Equal(t, minutesAgo(850), *blocked.Since, "the first refusal in a row")
	require.Contains(t, blocked.Said, "is sealed")
	require.Contains(t, blocked.Link, "/f0/history")
	require.Equal(t, "3 generations, 2 WAL entries", blocked.Shards[0].Left())
	require.Equal(t, 3, r.RetiredAll)
	require.Equal(t, "rollout:olmo-2-13b-webshop-0901", r.Retired[0].ID)
	require.EqualValues(t, 12_000, r.Retired[0].Rows)
	require.Equal(t, 1, r.ReturnedAll)
	require.Contains(t, r.Returned[0].Why, "written again")
}

func TestUpkeepTellsTheTwoNumbersThatItsMetricsTell(t *testing.T) {
	u := decode[Operations](t, newBench(t, busyStore()).get("/api/v1/operations"), 200).Upkeep
	require.EqualValues(t, 2, u.Failures)
	require.EqualValues(t, 140, u.Unreclaimed)
	require.Equal(t, levelBad, u.Level, "above what the alert rule takes")
	require.Contains(t, u.Error, "AccessDenied")
	require.Nil(t, decode[Operations](t, newBench(t, oneRow(1)).get("/api/v1/operations"), 200).Upkeep.LastAt)
}

func TestWhatIsBlockedIsGroupedByItsCause(t *testing.T) {
	plan := decode[FleetPlan](t, newBench(t, busyStore()).get("/api/v1/plan"), 200)
	n := 0
	for _, c := range plan.Causes {
		n += c.Count
	}
	require.Equal(t, plan.BlockedAll, n, "each is counted once")
	require.Equal(t, "refused", plan.Causes[0].Held)
	require.Equal(t, 2, plan.Causes[0].Count)
	require.NotContains(t, plan.Causes[0].Says, "00000000", "no ids")
}

func TestAJournalThatCanNotBeReadLeavesWhatWasReadBefore(t *testing.T) {
	b := newBench(t, busyStore())
	before := decode[Operations](t, b.get("/api/v1/operations"), 200)
	require.Empty(t, before.Missing)
	b.store.set(func(f *fakeStore) { f.err = unreadable() })
	after := decode[Operations](t, b.get("/api/v1/operations"), 200)
	require.Equal(t, before.Work, after.Work)
	require.Contains(t, strings.Join(after.Missing, " "), "reading the journal")
	never := newBench(t, &fakeStore{err: unreadable()}, func(_ *Config, p *parts) { p.steer = nil })
	empty := decode[Operations](t, never.get("/api/v1/operations"), 200)
	require.Nil(t, empty.Plan)
	require.Nil(t, empty.Retirement)
	require.Nil(t, empty.Upkeep)
	require.Len(t, empty.Missing, 3)
}

func TestAPausedScheduleIsObviousOnEveryPage(t *testing.T) {
	b := newBench(t, busyStore())
	b.store.preview = nil
	b.temporal.setPaused(true, "ada", "moving the bucket")
	b.renew(t)
	one := "/experiments/" + b.store.snapshot.Rows[10].String()
	for _, page := range []string{"/", "/operations", "/rounds", "/runbook", one, one + "/do/optimize", one + "/do/verify", "/nowhere"} {
		body := b.get(page).Body.String()
		require.Contains(t, body, "Rounds are paused", page)
		require.Contains(t, body, "moving the bucket", page)
		require.Contains(t, body, `<span class="dot paused">`, page)
	}
}

func TestTheScheduleIsSteeredFromTheOperationsPageEvenBeforeStorageAnswered(t *testing.T) {
	b := newBench(t, &fakeStore{err: unreadable()})
	w := b.postForm("/rounds/pause", "reason=storage+is+away&by=ada&back=operations")
	require.Equal(t, http.StatusSeeOther, w.Code)
	require.Equal(t, "/operations?done=paused", w.Header().Get("Location"))
	require.Contains(t, b.get("/operations?done=paused").Body.String(), "storage is away")
	w = b.postForm("/rounds/pause", "reason=&back=operations")
	require.Equal(t, 422, w.Code)
	require.Contains(t, w.Body.String(), "<h1>Operations</h1>")
	require.Contains(t, w.Body.String(), "reason: say why")
}

func TestAChartIsAPictureWithANameAndAPolicyOfItsOwn(t *testing.T) {
	b := newBench(t, busyStore())
	one := "/experiments/" + b.store.snapshot.Rows[10].String()
	for _, target := range []string{one + "/charts/pending", one + "/charts/size?days=30&theme=dark", "/operations/charts/duration", "/operations/charts/backlog?theme=dark"} {
		w := b.get(target)
		require.Equal(t, 200, w.Code, target)
		require.Equal(t, "image/svg+xml", w.Header().Get("Content-Type"))
		require.Equal(t, chartPolicy, w.Header().Get("Content-Security-Policy"))
		requireXML(t, w.Body.String())
		require.Contains(t, w.Body.String(), "<title id=")
		require.NotContains(t, w.Body.String(), "<script")
	}
	light, dark := b.get(one+"/charts/pending").Body.String(), b.get(one+"/charts/pending?theme=dark").Body.String()
	require.Contains(t, light, "#14677A")
	require.Contains(t, dark, "#62BCCD")
	require.Equal(t, 404, b.get(one+"/charts/luck").Code)
	require.Equal(t, 404, b.get("/experiments/rollout:nobody/charts/pending").Code)
	require.Equal(t, 400, b.get("/experiments/blue:x/charts/pending").Code)
	require.Equal(t, 404, b.get("/operations/charts/luck").Code)
}

func requireXML(t *testing.T, text string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			require.NoError(t, err, text)
		}
	}
}

func TestAChartOfHostileNumbersIsDrawn(t *testing.T) {
	word := wordOf(true)
	for name, points := range map[string][]chartPoint{
		"none": nil, "one": {{5, 3}}, "all unknown": {{1, -1}, {2, -1}}, "a gap": {{1, 4}, {2, -1}, {3, 9}},
		"zero": {{1, 0}, {2, 0}}, "huge": {{1, 9e18}, {2, 1}}, "no time at all": {{7, 1}, {7, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, c := range []chart{{title: "<a>&", desc: `"'<`, from: 1, to: 8, points: points, word: word, binary: true, steps: true, marks: []chartMark{{3, true}, {99, false}}}, {title: "x", from: 5, to: 5, points: points, word: word}} {
				svg, err := c.draw()
				require.NoError(t, err)
				requireXML(t, string(svg))
			}
		})
	}
}

func TestASeriesPutsSamplesMaintenanceAndNowInOrder(t *testing.T) {
	store := oneRow(120)
	id := store.snapshot.Rows[0].ID
	store.snapshot.Rows[0].ObservedAt = minutesAgo(5)
	at := func(hours int64) int64 { a := minutesAgo(60 * hours); return a - a%hourMS }
	store.samples = []fleet.Sample{
		{ID: id, At: at(2), Rows: 30, Fragments: 8, Pending: 9, Bytes: -1}, // in the hour of the run: not when exactly
		{ID: id, At: at(10), Rows: 20, Fragments: 5, Pending: 4, Bytes: 100},
		{ID: fleet.ID{Kind: fleet.Table, Name: "run-1"}, At: at(11), Pending: 77},
		{ID: id, At: at(24 * 9), Rows: 10, Fragments: 3, Pending: 2, Bytes: 50},
		{ID: id, At: at(24 * 12), Rows: 1, Fragments: 1, Pending: 1, Bytes: 10},
	}
	merge := tried("m", 0, fleet.ActOptimize, "done")
	merge.At, merge.DurationMS, merge.Before, merge.After = at(2)+20*60_000, 60_000, facts(8, 9, 100), facts(2, 0, 90)
	store.actions = []fleet.Action{merge}
	b := newBench(t, store)
	s := decode[Series](t, b.get("/api/v1/experiments/run-1/series"), 200)
	var pending []int64
	var by []string
	for _, p := range s.Points {
		pending, by = append(pending, *p.Pending), append(by, p.By)
	}
	require.Equal(t, []int64{2, 4, 9, 0, 0, 0}, pending)
	require.Equal(t, []string{"sample", "sample", "maintenance", "maintenance", "now", "now"}, by)
	require.Equal(t, s.From, s.Points[0].At, "what was known before stands at the beginning")
	require.Equal(t, []Mark{{At: merge.At, Kind: "optimize", Outcome: "done", Link: s.Marks[0].Link}}, s.Marks)
	require.Len(t, decode[Series](t, b.get("/api/v1/experiments/run-1/series?days=30"), 200).Points, 7)
}

func TestTheBacklogOfTheFleetIsTheSumOfWhatWasLastKnown(t *testing.T) {
	a, b := fleet.ID{Kind: fleet.Rollout, Name: "a"}, fleet.ID{Kind: fleet.Rollout, Name: "b"}
	from := 20 * int64(dayMS)
	samples := []fleet.Sample{{ID: a, At: from + 5*hourMS, Pending: 7}, {ID: b, At: from + 2*hourMS, Pending: 5}, {ID: a, At: from - 3*hourMS, Pending: 2}}
	merged := fleet.Action{At: from + 5*hourMS + 60_000, Target: "rollout:a", After: facts(1, 0, 1)}
	require.Equal(t, []BacklogPoint{{from, 2}, {from + 2*hourMS, 7}, {from + 5*hourMS, 5}}, backlogPoints(samples, []fleet.Action{merged}, from))
}

func TestManyRoundsAreDrawnAsTheWorstOfEach(t *testing.T) {
	var records []fleet.RoundRecord // newest first
	for i := range int64(2016) {
		r := fleet.RoundRecord{FinishedAt: minutesAgo(5 * i), DurationSeconds: 1}
		if i == 700 {
			r.DurationSeconds, r.Failed = 90, 3
		}
		records = append(records, r)
	}
	points := roundPoints(records, minutesAgo(7*daysOfMinutes), testNow.UnixMilli())
	require.LessOrEqual(t, len(points), roundsDrawn+1)
	worst := slices.MaxFunc(points, func(a, b RoundPoint) int { return int(a.DurationSeconds - b.DurationSeconds) })
	require.InDelta(t, 90, worst.DurationSeconds, 0, "one bad round among many is seen")
	require.EqualValues(t, 3, worst.Failed)
	require.True(t, slices.IsSortedFunc(points, func(a, b RoundPoint) int { return int(a.At - b.At) }))
}

func TestTheRoundsOfAYoungFleetAreDrawnApart(t *testing.T) {
	var records []fleet.RoundRecord // newest first
	for i := range int64(12) {
		records = append(records, fleet.RoundRecord{FinishedAt: minutesAgo(i), DurationSeconds: 1})
	}
	require.Len(t, roundPoints(records, minutesAgo(7*daysOfMinutes), testNow.UnixMilli()), 12)
}

func TestTheOnlyPointOfAChartLeavesItsTimeAsItIs(t *testing.T) {
	for name, at := range map[string]int64{"now": 0, "a moment ago": 1, "long ago": 5 * daysOfMinutes} {
		c := chart{from: minutesAgo(7 * daysOfMinutes), to: testNow.UnixMilli(), points: []chartPoint{{minutesAgo(at), 3}}, word: wordOf(false)}
		for _, p := range c.parts()[0] {
			require.LessOrEqual(t, p.X, float64(c.to), name)
			require.GreaterOrEqual(t, p.X, float64(c.begin()), name)
		}
	}
}

func TestEachValueOfAPolicySaysWhereItComesFrom(t *testing.T) {
	ten := int64(10)
	b := newBench(t, oneRow(120), func(_ *Config, p *parts) {
		p.policies.Default.RetireAfter = 0
		p.policies.Default.CompactMinFragments = 9
		p.policies.Overrides = []fleet.Override{{Pattern: "other", CompactMinFragments: &ten}, {Pattern: "run-*", Kind: fleet.Rollout, MergeMinGenerations: &ten}}
		p.origins = map[string]string{"retire_after_secs": "environment STATS_COLD_RETIRE_SECS"}
	})
	d := decode[Detail](t, b.get("/api/v1/experiments/run-1"), 200)
	require.Equal(t, "environment STATS_COLD_RETIRE_SECS", d.Policy.Origins["retire_after_secs"])
	require.Equal(t, "override 2: run-*, kind rollout", d.Policy.Origins["merge_min_generations"])
	require.Equal(t, "configuration", d.Policy.Origins["compact_min_fragments"])
	require.Equal(t, "default", d.Policy.Origins["live_shards"])
	require.Len(t, d.Policy.Origins, len(policySettings))
	page := b.get("/experiments/rollout:run-1").Body.String()
	require.Contains(t, page, "override 2: run-*, kind rollout")
	require.Contains(t, page, "environment STATS_COLD_RETIRE_SECS")
}

func TestTheFormOfAnActionLeadsToWhatBecameOfIt(t *testing.T) {
	store := busyStore()
	b := newBench(t, store)
	one := "/experiments/" + store.snapshot.Rows[10].String()
	w := b.postForm(one+"/do/optimize", "why=before+the+demo&by=ada")
	require.Equal(t, http.StatusSeeOther, w.Code)
	require.Equal(t, one+"?done=asked&run=run-7", w.Header().Get("Location"))
	require.Contains(t, b.get(w.Header().Get("Location")).Body.String(), "Asked for, and not listed yet")

	b.store.set(func(f *fakeStore) {
		ended := fleet.Action{ID: "new", At: minutesAgo(0), Kind: fleet.ActOptimize, Target: f.snapshot.Rows[10].String(), Outcome: "refused", Error: "mark erased <b>", RunID: "run-7"}
		f.actions = slices.Insert(f.actions, 0, ended)
	})
	body := b.get(w.Header().Get("Location")).Body.String()
	require.Contains(t, body, "What was asked for: refused")
	require.Contains(t, body, "mark erased &lt;b&gt;")
	require.Equal(t, 200, b.get(one+"?run=%3Cscript%3E").Code, "nonsense asks for nothing")

	require.Equal(t, 404, b.postForm(one+"/do/verify", "").Code, "a look is no action")
	require.Equal(t, 422, b.postForm(one+"/do/seal", "").Code)
	w = b.postForm(one+"/do/seal", "shard=02e81b29-f150-54b9-9a08-ce75944f6889&allow_unknown=true&by=ada")
	require.Equal(t, http.StatusSeeOther, w.Code, w.Body.String())
	said := b.temporal.said()
	require.Contains(t, said[len(said)-1], "shard=02e81b29-f150-54b9-9a08-ce75944f6889 unknown=true")
}

func TestAChartOfWhatCouldBeReadIsDrawn(t *testing.T) {
	b := newBench(t, busyStore())
	b.store.set(func(f *fakeStore) { f.err = unreadable() }) // the rounds answer all the same
	require.Equal(t, 200, b.get("/operations/charts/duration").Code)
	require.Equal(t, 503, b.get("/operations/charts/backlog").Code)
	page := b.get("/operations").Body.String()
	require.Contains(t, page, "/operations/charts/duration")
	require.NotContains(t, page, "/operations/charts/backlog", "no picture that would not come")
	require.Contains(t, page, "Not all charts: reading the samples")
}

func TestWhatRunsIsFoundInWhateverOrderItIsListed(t *testing.T) {
	var m moment
	listed := []control.Running{{ID: fleet.ID{Kind: fleet.Table, Name: "z"}}, {ID: fleet.ID{Kind: fleet.Generic, Name: "a"}}, {ID: fleet.ID{Kind: fleet.Rollout, Name: "m"}}}
	m.runs(slices.Clone(listed))
	for _, r := range listed {
		require.Equal(t, r.ID, m.runningOf(r.ID).ID)
	}
	require.Nil(t, m.runningOf(fleet.ID{Kind: fleet.Rollout, Name: "z"}))
}
