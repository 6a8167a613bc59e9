package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/e2e/fleettest"
	"lancefleet/e2e/s3test"
	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/web"
	"lancefleet/workflows"
)

// lateCase is an experiment whose first attempt at a merge is stopped at a request of
// its, and runs on when everything is over.
type lateCase struct {
	name     string
	at       string // part of the key of the first object that it stores and that is held back
	keyless  bool
	stranded bool
	cancel   bool // its run is cancelled while nobody carries it out
}

var lateCases = []lateCase{
	{name: "staging", at: "/data/"},
	{name: "staging-keyless", at: "/data/", keyless: true},
	{name: "committing", at: "/_versions/"},
	{name: "committing-keyless", at: "/_versions/", keyless: true},
	{name: "draining", at: "/manifest/"},
	{name: "draining-keyless", at: "/manifest/", keyless: true},
	{name: "sealing", at: "/manifest/", stranded: true},
	{name: "cancelled", at: "/_versions/", cancel: true},
}

// A worker and its children are stopped in the middle of merges, with a request of
// each on its way. Another worker does those retirements, writers go on, and what
// they wrote is merged too. Then the late requests arrive, the children run on with
// what they knew, and at last their worker: not one row is lost, doubled, or set back.
func TestLateAttemptsChangeNothing(t *testing.T) {
	l := newLate(t)
	first := l.b.Worker("HEAVY_SLOTS=8")
	l.b.Web()
	l.b.Scan()
	<-time.After(1100 * time.Millisecond) // silent for a second
	l.proxy.Decide(l.held.decide)
	for _, c := range lateCases {
		l.b.Client("retire", c.name, "--json")
	}
	for _, c := range lateCases {
		l.held.arrived(t, c.name)
	}
	children := fleettest.Children(t, first.PID())
	require.Len(t, children, len(lateCases), "each merge is a process of its own")
	l.signal(syscall.SIGSTOP, append([]int{first.PID()}, children...)...)
	l.b.Temporal.CLI("workflow", "cancel", "--workflow-id", idOf("cancelled"))

	l.b.Worker("HEAVY_SLOTS=2")
	l.takenOver()
	l.writeOn()
	want := l.twins()

	answers := make([]*fleettest.Answer, len(children))
	for i, pid := range children {
		answers[i] = fleettest.AnswerOf(t, pid)
	}
	l.held.release(t)
	l.signal(syscall.SIGCONT, children...)
	for _, a := range answers {
		a.Wait()
	}
	l.signal(syscall.SIGCONT, first.PID())
	require.Eventually(t, func() bool { return !slices.ContainsFunc(children, fleettest.Lives) }, patience, 20*time.Millisecond,
		"the worker that comes late ends its children")

	for _, c := range lateCases {
		result := maintain(t, l.b.Fleet, "retire", c.name, "--force")
		require.Equal(t, "done", result.Outcome, "%s: %s", c.name, result.Sentence)
		var seen web.Verification
		require.NoError(t, json.Unmarshal([]byte(l.b.Client("verify", c.name, "--deep", "--json")), &seen))
		require.True(t, seen.Clean, "%s: %v", c.name, seen.Blocking)
		require.Equal(t, want[c.name], l.content(l.b.uri(c.name)), c.name)
	}
}

func idOf(name string) string {
	return workflows.Names{}.Maintenance(fleet.ID{Kind: fleet.Rollout, Name: name})
}

// late is the stage of the test.
type late struct {
	t     *testing.T
	b     *bucket
	proxy *s3test.Proxy
	held  *held
	facts map[string]lance.DatasetFacts
}

func newLate(t *testing.T) *late {
	t.Helper()
	l := &late{t: t, b: newBucket(t, cold()...), held: newHeld(), facts: map[string]lance.DatasetFacts{}}
	l.proxy = l.b.server.Behind(t, func(*http.Request) s3test.Fault { return s3test.Pass })
	l.proxy.Answered(l.held.tell)
	l.b.Env = append(l.b.Env, s3test.EnvironmentFor(l.proxy.Endpoint)...)
	var names []string
	for i, c := range lateCases {
		spec := lance.DatasetSpec{
			URI: l.b.uri(c.name), Kind: fleet.Rollout, Keyless: c.keyless, Shards: 1, Generations: 3, Rows: 10, Fragments: 2,
			Tombstones: !c.keyless, Stranded: c.stranded, Seed: int64(i + 1),
		}
		facts, err := l.b.engine.MakeDataset(t.Context(), spec)
		require.NoError(t, err)
		if !c.stranded {
			l.b.write(lance.WritesSpec{URI: l.b.uri(c.name), Rows: 3, Flush: true, Seed: 7})
			facts.Keys += 3
		}
		l.facts[c.name] = facts
		names = append(names, c.name)
	}
	l.b.register(names...)
	return l
}

func (l *late) signal(s syscall.Signal, pids ...int) {
	l.t.Helper()
	for _, pid := range pids {
		require.NoError(l.t, syscall.Kill(pid, s))
	}
}

// takenOver waits until Temporal has given up the attempts and the other worker has
// done all of it.
func (l *late) takenOver() {
	l.t.Helper()
	for _, c := range lateCases {
		if c.cancel {
			ended := func() bool { return l.b.statusOf(idOf(c.name)) != "WORKFLOW_EXECUTION_STATUS_RUNNING" }
			require.Eventually(l.t, ended, patience, 500*time.Millisecond)
			require.Equal(l.t, "WORKFLOW_EXECUTION_STATUS_CANCELED", l.b.statusOf(idOf(c.name)))
			// Pages look at what runs every now and then.
			require.Eventually(l.t, func() bool { return l.b.Show(c.name).State == web.Hot }, patience, time.Second)
			continue
		}
		retired := func() bool { return l.b.Show(c.name).State == web.Retired }
		require.Eventually(l.t, retired, patience, time.Second, c.name)
		facts := l.facts[c.name]
		require.Len(l.t, l.content(l.b.uri(c.name)), int(facts.Keys+facts.StrandedRows), c.name)
	}
}

// writeOn writes, has it merged, and writes on: rows anew, rows once more, deletes of
// what the late attempts are about to insert. The last of it stays pending.
func (l *late) writeOn() {
	l.t.Helper()
	for _, c := range lateCases {
		write := lance.WritesSpec{URI: l.b.uri(c.name), Rows: 4, Flush: true, Seed: 7}
		if !c.keyless {
			write.Delete = 12
		}
		l.b.write(write)
	}
	require.EqualValues(l.t, len(lateCases), l.b.Scan("--full").Hot)
	for _, c := range lateCases {
		require.Equal(l.t, "done", maintain(l.t, l.b.Fleet, "optimize", c.name).Outcome, c.name)
		l.b.write(lance.WritesSpec{URI: l.b.uri(c.name), Rows: 5, Flush: true, Seed: 7})
	}
}

// twins are the rows of each as a merge finds them that nobody disturbs, in a copy.
func (l *late) twins() map[string][]string {
	l.t.Helper()
	rows := map[string][]string{}
	for _, c := range lateCases {
		twin := l.b.uri("twin-of-" + c.name)
		l.copy(l.b.uri(c.name), twin)
		merge := lance.MergeSpec{URI: twin, Shard: l.facts[c.name].Shards[0]}
		for left := int64(1); left > 0; {
			merged, err := l.b.engine.Maintainer().MergeWAL(l.t.Context(), merge)
			require.NoError(l.t, err)
			require.Nil(l.t, merged.Refused)
			left = merged.Left
		}
		rows[c.name] = l.content(twin)
	}
	return rows
}

func (l *late) copy(from, to string) {
	l.t.Helper()
	objects, err := l.b.engine.List(l.t.Context(), from+"/", 0)
	require.NoError(l.t, err)
	for _, o := range objects {
		object, err := l.b.engine.Get(l.t.Context(), o.URI)
		require.NoError(l.t, err)
		_, err = l.b.engine.Put(l.t.Context(), to+strings.TrimPrefix(o.URI, from), object.Body, lance.PutOptions{})
		require.NoError(l.t, err)
	}
}

// content is every row of the base, all of its columns, in an order of its own.
func (l *late) content(uri string) []string {
	l.t.Helper()
	read, err := l.b.engine.ReadTable(l.t.Context(), uri, lance.ReadOptions{})
	require.NoError(l.t, err)
	defer read.Release()
	var rows []string
	for _, record := range read.Records {
		text, err := record.MarshalJSON()
		require.NoError(l.t, err)
		var parsed []json.RawMessage
		require.NoError(l.t, json.Unmarshal(text, &parsed))
		for _, row := range parsed {
			rows = append(rows, string(row))
		}
	}
	slices.Sort(rows)
	return rows
}

// held keeps back the first request of each experiment at the point where its attempt
// is to be stopped.
type held struct {
	mu       sync.Mutex
	seen     map[string]bool
	requests map[string]chan struct{} // closed when it is there, by experiment
	late     chan struct{}            // closed: they go on
	answered chan struct{}            // one for each that the server has answered
}

// isLate marks a request that was held back.
type isLate struct{}

func newHeld() *held {
	h := &held{seen: map[string]bool{}, requests: map[string]chan struct{}{}, late: make(chan struct{}), answered: make(chan struct{}, len(lateCases))}
	for _, c := range lateCases {
		h.requests[c.name] = make(chan struct{})
	}
	return h
}

func (h *held) decide(r *http.Request) s3test.Fault {
	if r.Method != http.MethodPut {
		return s3test.Pass
	}
	for _, c := range lateCases {
		if strings.Contains(r.URL.Path, "/"+c.name+".rollout.lance") && strings.Contains(path.Dir(r.URL.Path)+"/", c.at) && h.isFirst(c.name) {
			h.hold(r, c.name)
		}
	}
	return s3test.Pass
}

func (h *held) isFirst(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.seen[name] {
		return false
	}
	h.seen[name] = true
	return true
}

// hold takes all of a request and lets it go on late, even if nobody waits for its
// answer any more.
func (h *held) hold(r *http.Request, name string) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // it will be missed
	}
	*r = *r.WithContext(context.WithValue(context.WithoutCancel(r.Context()), isLate{}, true))
	r.Body = io.NopCloser(bytes.NewReader(body))
	close(h.requests[name])
	<-h.late
}

// tell is called for each request that was answered.
func (h *held) tell(r *http.Request) {
	if r.Context().Value(isLate{}) != nil {
		h.answered <- struct{}{}
	}
}

func (h *held) arrived(t *testing.T, name string) {
	t.Helper()
	select {
	case <-h.requests[name]:
	case <-time.After(patience):
		require.FailNow(t, "no request of "+name+" came to where it is to be stopped")
	}
}

// release lets all of them go on, and waits until the server has answered.
func (h *held) release(t *testing.T) {
	t.Helper()
	close(h.late)
	for range lateCases {
		select {
		case <-h.answered:
		case <-time.After(patience):
			require.FailNow(t, "a request that was held back is not answered")
		}
	}
}
