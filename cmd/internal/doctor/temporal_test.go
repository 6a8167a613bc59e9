package doctor

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"lancefleet/control"
	"lancefleet/e2e/temporaltest"
	"lancefleet/workflows"
)

func look(t *testing.T, c client.Client, change func(*Temporal)) map[string]Finding {
	t.Helper()
	l := Temporal{Client: c, Namespace: "default", Address: "here", Names: workflows.Names{Fleet: "default"}, DataDir: dataDir, Now: time.Now}
	if change != nil {
		change(&l)
	}
	return byCheck(l.Look(t.Context()))
}

func TestARealServerIsLookedAt(t *testing.T) {
	server := temporaltest.Start(t, temporaltest.Options{})

	found := look(t, server.Client, nil)
	require.Equal(t, OK, found["temporal"].Status, "%+v", found["temporal"])
	require.Equal(t, OK, found["namespace"].Status, "%+v", found["namespace"])
	require.Equal(t, OK, found["temporal clock"].Status, "%+v", found["temporal clock"])
	requireTold(t, found["search attributes"], Warn, "--name LfExperiment --type Keyword")
	requireTold(t, found["schedule"], Warn, "start a worker")
	requireTold(t, found["workers"], Fail, "start lancefleet worker")

	skewed := look(t, server.Client, func(l *Temporal) { l.Now = func() time.Time { return time.Now().Add(-30 * time.Second) } })
	requireTold(t, skewed["temporal clock"], Warn, "NTP")

	quiet := look(t, server.Client, func(l *Temporal) { l.ReadOnly = true })
	require.Equal(t, Skipped, quiet["temporal clock"].Status)

	missing := look(t, server.Client, func(l *Temporal) { l.Namespace = "nowhere" })
	requireTold(t, missing["namespace"], Fail, "temporal operator namespace create --namespace nowhere")
	require.Len(t, missing, 2, "nothing else is asked")
}

func TestAServerThatGivesNoAnswerIsAllThatIsSaid(t *testing.T) {
	c, err := client.NewLazyClient(client.Options{HostPort: "127.0.0.1:1", Logger: temporaltest.Quiet()})
	require.NoError(t, err)
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	found := Temporal{Client: c, Namespace: "default", Address: "127.0.0.1:1", Names: workflows.Names{}, Now: time.Now}.Look(ctx)
	require.Len(t, found, 1)
	requireTold(t, found[0], Fail, "TEMPORAL_ADDRESS")
}

func TestVersionsAreCompared(t *testing.T) {
	for version, status := range map[string]Status{"1.28.4": Warn, "1.29.1": OK, "1.31.2": OK, "1.100.0": OK, "2.0": OK, "1.29.0-rc.1": OK, "": Warn} {
		f := JudgeServer("here", version)
		require.Equal(t, status, f.Status, version)
		require.Equal(t, version == "1.29.1" || version == "1.29.0-rc.1", f.Status == OK && f.Found != "here answers, version "+version, version)
	}
}

func TestSearchAttributesAreJudged(t *testing.T) {
	keyword, text := enumspb.INDEXED_VALUE_TYPE_KEYWORD, enumspb.INDEXED_VALUE_TYPE_TEXT
	all := map[string]enumspb.IndexedValueType{workflows.AttrExperiment: keyword, workflows.AttrAction: keyword, workflows.AttrOutcome: keyword}
	require.Equal(t, OK, JudgeAttributes(all).Status)
	all[workflows.AttrOutcome] = text
	requireTold(t, JudgeAttributes(all), Fail, "LfOutcome is a Text")
	delete(all, workflows.AttrOutcome)
	requireTold(t, JudgeAttributes(all), Warn, "LfOutcome not registered")
}

func TestTheScheduleIsJudged(t *testing.T) {
	now := time.UnixMilli(100_000_000)
	l := Temporal{Names: workflows.Names{Fleet: "default"}, DataDir: dataDir, FleetID: "id", Now: func() time.Time { return now }, LastRoundAt: now.Add(-time.Minute).UnixMilli()}
	good := control.ScheduleState{Exists: true, IntervalSecs: 300, DataDir: dataDir, FleetID: "id", CreatedAt: 1}
	require.Equal(t, OK, l.JudgeSchedule(good).Status)
	for name, c := range map[string]struct {
		change func(*control.ScheduleState, *Temporal)
		status Status
		words  string
	}{
		"missing":             {func(s *control.ScheduleState, _ *Temporal) { s.Exists = false }, Warn, "start a worker"},
		"another directory's": {func(s *control.ScheduleState, _ *Temporal) { s.DataDir = "/other" }, Fail, "/other"},
		"another fleet's":     {func(s *control.ScheduleState, _ *Temporal) { s.FleetID = "x" }, Fail, "refuses to start"},
		"paused":              {func(s *control.ScheduleState, _ *Temporal) { s.Paused, s.By, s.Reason = true, "ada", "moving" }, Warn, "paused by ada: moving"},
		"off":                 {func(s *control.ScheduleState, _ *Temporal) { s.IntervalSecs = 0 }, Warn, "SCAN_INTERVAL"},
		"no round ends":       {func(_ *control.ScheduleState, l *Temporal) { l.LastRoundAt = now.Add(-time.Hour).UnixMilli() }, Fail, "1h0m0s"},
		"rounds not readable": {func(_ *control.ScheduleState, l *Temporal) { l.LastRoundAt = -1 }, Skipped, ""},
		"no round ever ended": {func(_ *control.ScheduleState, l *Temporal) { l.LastRoundAt = 0 }, Fail, "no round has finished"},
	} {
		t.Run(name, func(t *testing.T) {
			s, l := good, l
			c.change(&s, &l)
			requireTold(t, l.JudgeSchedule(s), c.status, c.words)
		})
	}
	fresh := good
	fresh.CreatedAt = now.Add(-time.Second).UnixMilli()
	l.LastRoundAt = 0
	require.Equal(t, OK, l.JudgeSchedule(fresh).Status, "the first round of a new fleet is still under way")
}

func TestWorkersAreJudgedByWhoAsksForWork(t *testing.T) {
	queues := []string{"scan", "maintenance"}
	require.Equal(t, OK, JudgePollers(queues, map[string]int{"scan": 2, "maintenance": 2}).Status)
	requireTold(t, JudgePollers(queues, map[string]int{"scan": 2}), Fail, "maintenance")
	requireTold(t, JudgePollers(queues, nil), Fail, "no worker asks for work")
	l := Temporal{Names: workflows.Names{Fleet: "blue"}}
	require.Len(t, l.queueNames(), 3)
	l.Maintenance = true
	require.Len(t, l.queueNames(), 6, "heavy queues are only served where maintenance is on")
}
