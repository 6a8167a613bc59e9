package doctor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"lancefleet/control"
	"lancefleet/workflows"
)

const (
	temporalLimit  = 10 * time.Second // for one question
	oldestServer   = "1.29.0"         // tests run with this
	advisedServer  = "1.31.2"
	shortRetention = 24 * time.Hour
)

// Temporal is where the fleet's workflows run.
type Temporal struct {
	Client      client.Client
	Namespace   string
	Address     string
	Names       workflows.Names
	DataDir     string
	FleetID     string // of the data directory; "" = not known
	Maintenance bool
	ReadOnly    bool
	LastRoundAt int64 // end of the newest finished round, unix ms; 0 = none, below 0 = not known
	Now         func() time.Time
}

// Look asks the server. When it gives no answer, or has no such namespace, nothing
// else is asked.
func (t Temporal) Look(ctx context.Context) []Finding {
	found := []Finding{t.server(ctx)}
	if found[0].Status == Fail {
		return found
	}
	found = append(found, t.namespace(ctx))
	if found[1].Status == Fail {
		return found
	}
	found = append(found, t.attributes(ctx), t.schedule(ctx), t.pollers(ctx))
	return append(found, t.clock(ctx))
}

func (t Temporal) server(ctx context.Context) Finding {
	ctx, cancel := context.WithTimeout(ctx, temporalLimit)
	defer cancel()
	info, err := t.Client.WorkflowService().GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{})
	if err != nil {
		return trouble(Fail, "temporal", fmt.Sprintf("no answer from %s: %v", t.Address, err), "nothing can be started; pages keep showing what was seen last",
			"check TEMPORAL_ADDRESS, TLS and API key settings, and that the server runs")
	}
	return JudgeServer(t.Address, info.GetServerVersion())
}

// JudgeServer judges the server's version.
func JudgeServer(address, version string) Finding {
	if older(version, oldestServer) {
		return trouble(Warn, "temporal", fmt.Sprintf("%s runs version %s", address, version), "lancefleet was never tried with one older than "+oldestServer, "upgrade it; "+advisedServer+" or newer is advised")
	}
	if older(version, advisedServer) {
		return fine("temporal", "%s answers, version %s (%s or newer is advised in production)", address, version, advisedServer)
	}
	return fine("temporal", "%s answers, version %s", address, version)
}

// older compares versions like 1.29.1; what is no number counts as 0.
func older(a, b string) bool {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range bs {
		x := 0
		if i < len(as) {
			x, _ = strconv.Atoi(strings.TrimRight(as[i], "-abcdefghijklmnopqrstuvwxyz"))
		}
		y, _ := strconv.Atoi(bs[i])
		if x != y {
			return x < y
		}
	}
	return false
}

func (t Temporal) namespace(ctx context.Context) Finding {
	const check = "namespace"
	ctx, cancel := context.WithTimeout(ctx, temporalLimit)
	defer cancel()
	d, err := t.Client.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: t.Namespace})
	var missing *serviceerror.NamespaceNotFound
	var gone *serviceerror.NotFound
	switch {
	case errors.As(err, &missing), errors.As(err, &gone):
		return trouble(Fail, check, fmt.Sprintf("there is no namespace %q", t.Namespace), "nothing can be started",
			"temporal operator namespace create --namespace "+t.Namespace+" --retention 72h, or set TEMPORAL_NAMESPACE")
	case err != nil:
		return trouble(Fail, check, "describe namespace "+t.Namespace+": "+err.Error(), "nothing can be started", "check the permissions of the API key or certificate")
	}
	keep := d.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration()
	if keep < shortRetention {
		return trouble(Warn, check, fmt.Sprintf("%s keeps histories for %s", t.Namespace, keep), "links to runs go dead soon; lancefleet's own journal keeps 90 days",
			"temporal operator namespace update --namespace "+t.Namespace+" --retention 72h")
	}
	return fine(check, "%s is there and keeps histories for %s", t.Namespace, keep)
}

func (t Temporal) attributes(ctx context.Context) Finding {
	ctx, cancel := context.WithTimeout(ctx, temporalLimit)
	defer cancel()
	known, err := t.Client.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: t.Namespace})
	if err != nil {
		return trouble(Warn, "search attributes", "they can't be listed: "+err.Error(), "whether they are there is not known", "temporal operator search-attribute list")
	}
	return JudgeAttributes(known.GetCustomAttributes())
}

// JudgeAttributes judges what a namespace knows.
func JudgeAttributes(known map[string]enumspb.IndexedValueType) Finding {
	const check = "search attributes"
	var missing []string
	for _, name := range []string{workflows.AttrExperiment, workflows.AttrAction, workflows.AttrOutcome} {
		switch kind, ok := known[name]; {
		case !ok:
			missing = append(missing, name)
		case kind != enumspb.INDEXED_VALUE_TYPE_KEYWORD:
			return trouble(Fail, check, fmt.Sprintf("%s is a %s", name, kind), "workers refuse to start", "it must be a Keyword: remove it, or use another namespace")
		}
	}
	if len(missing) > 0 {
		do := "start a worker, which registers them, or: temporal operator search-attribute create"
		var doSb143 strings.Builder
		for _, name := range missing {
			doSb143.WriteString(" --name " + name + " --type Keyword")
		}
		do += doSb143.String()
		return trouble(Warn, check, strings.Join(missing, ", ")+" not registered", "without them nothing can be started", do)
	}
	return fine(check, "all are registered")
}

func (t Temporal) schedule(ctx context.Context) Finding {
	ctx, cancel := context.WithTimeout(ctx, temporalLimit)
	defer cancel()
	state, err := control.New(t.Client, t.Names).Schedule(ctx)
	if err != nil {
		return trouble(Fail, "schedule", err.Error(), "whether rounds are started is not known", "temporal schedule describe --schedule-id "+t.Names.ScanSchedule())
	}
	return t.JudgeSchedule(state)
}

// JudgeSchedule judges the schedule of rounds, and whether they end.
func (t Temporal) JudgeSchedule(s control.ScheduleState) Finding {
	const check = "schedule"
	id := t.Names.ScanSchedule()
	idle := time.Duration(t.Now().UnixMilli()-max(t.LastRoundAt, s.CreatedAt)) * time.Millisecond
	switch {
	case !s.Exists:
		return trouble(Warn, check, "there is no schedule "+id, "no rounds are started", "start a worker: it makes the schedule, in the state that the journal remembers")
	case s.DataDir != "" && s.DataDir != t.DataDir, t.FleetID != "" && s.FleetID != "" && s.FleetID != t.FleetID:
		return trouble(Fail, check, fmt.Sprintf("%s belongs to the data directory %s (fleet id %s)", id, s.DataDir, s.FleetID), "a worker with these settings refuses to start",
			"use that directory, another FLEET, or another namespace")
	case s.Paused:
		by := s.By
		if by == "" {
			by = "another tool"
		}
		return trouble(Warn, check, fmt.Sprintf("paused by %s: %s", by, s.Reason), "no rounds are started", "lancefleet resume, when it is time")
	case s.IntervalSecs <= 0:
		return trouble(Warn, check, "scheduled rounds are off (SCAN_INTERVAL=0)", "rounds run only when asked for", "set SCAN_INTERVAL if that is not what you want")
	case t.LastRoundAt < 0:
		return skipped(check, id+" is there; whether its rounds end is not known, as what is kept of them can't be read")
	case idle > 3*time.Duration(s.IntervalSecs)*time.Second:
		return trouble(Fail, check, fmt.Sprintf("no round has finished for %s; one is due every %d s", idle.Round(time.Second), s.IntervalSecs), "what is shown is old, and nothing is maintained",
			`look at the newest rounds: temporal workflow list --query 'LfAction="scan"'; docs/operations.md, When rounds fail`)
	}
	return fine(check, "%s runs every %d s", id, s.IntervalSecs)
}

// queueNames are those that need a worker.
func (t Temporal) queueNames() []string {
	names := []string{t.Names.ScanQueue(), t.Names.MaintenanceQueue(), t.Names.TablesQueue()}
	if t.Maintenance {
		names = append(names, t.Names.MergeQueue(), t.Names.CompactQueue(), t.Names.CheckQueue())
	}
	return names
}

func (t Temporal) pollers(ctx context.Context) Finding {
	ctx, cancel := context.WithTimeout(ctx, temporalLimit)
	defer cancel()
	polled := map[string]int{}
	for _, queue := range t.queueNames() {
		d, err := t.Client.DescribeTaskQueue(ctx, queue, enumspb.TASK_QUEUE_TYPE_ACTIVITY)
		if err != nil {
			return trouble(Warn, "workers", "describe task queue "+queue+": "+err.Error(), "whether workers run is not known", "temporal task-queue describe --task-queue "+queue)
		}
		polled[queue] = len(identities(d.GetPollers()))
	}
	return JudgePollers(t.queueNames(), polled)
}

func identities(pollers []*taskqueuepb.PollerInfo) map[string]bool {
	seen := map[string]bool{}
	for _, p := range pollers {
		seen[p.GetIdentity()] = true
	}
	return seen
}

// JudgePollers judges how many workers ask each queue for work.
func JudgePollers(queues []string, polled map[string]int) Finding {
	const check = "workers"
	var idle []string
	most := 0
	for _, queue := range queues {
		if polled[queue] == 0 {
			idle = append(idle, queue)
		}
		most = max(most, polled[queue])
	}
	switch {
	case len(idle) == len(queues):
		return trouble(Fail, check, "no worker asks for work", "rounds are scheduled and wait", "start lancefleet worker with the same FLEET and namespace")
	case len(idle) > 0:
		return trouble(Fail, check, "no worker asks for work of "+strings.Join(idle, ", "), "what is put there waits", "give all workers the same MAINTENANCE, and restart those of an older version")
	}
	return fine(check, "%d ask for work", most)
}

// clock compares the server's with ours: it notes when a worker last asked for work,
// so we ask a queue that nobody else has.
func (t Temporal) clock(ctx context.Context) Finding {
	const check = "temporal clock"
	if t.ReadOnly {
		return skipped(check, "--read-only: no queue is asked")
	}
	ctx, cancel := context.WithTimeout(ctx, temporalLimit)
	defer cancel()
	queue := "lancefleet-doctor-" + uuid.NewString()
	before := t.Now()
	go func() {
		_, _ = t.Client.WorkflowService().PollActivityTaskQueue(ctx, &workflowservice.PollActivityTaskQueueRequest{
			Namespace: t.Namespace, Identity: "lancefleet doctor", TaskQueue: &taskqueuepb.TaskQueue{Name: queue, Kind: enumspb.TASK_QUEUE_KIND_NORMAL},
		})
	}()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		d, err := t.Client.DescribeTaskQueue(ctx, queue, enumspb.TASK_QUEUE_TYPE_ACTIVITY)
		if err == nil && len(d.GetPollers()) > 0 {
			return Skew(check, "temporal", d.GetPollers()[0].GetLastAccessTime().AsTime(), before, t.Now())
		}
		select {
		case <-ctx.Done():
			return skipped(check, "the server did not tell its time")
		case <-ticker.C:
		}
	}
}
