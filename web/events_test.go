package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
)

// inBucket is a fleet in s3://lake/fleet, with one retired experiment.
func inBucket(t testing.TB, options ...option) *bench {
	t.Helper()
	at := func(kind fleet.Kind, name, uri string) fleet.Row {
		r := healthy(kind, name, minutesAgo(5))
		r.URI = uri
		return r
	}
	cold := retiredOne(fleet.Rollout, "cold")
	cold.URI = "s3://lake/fleet/cold.rollout.lance"
	store := &fakeStore{
		snapshot: Snapshot{Version: 1, Rows: []fleet.Row{
			at(fleet.Rollout, "exp-1", "s3://lake/fleet/exp-1.rollout.lance"),
			at(fleet.Rollout, "exp-10", "s3://lake/fleet/exp-10.rollout.lance"),
			at(fleet.Generic, "exp-1", "s3://lake/fleet/exp-1.generic.lance"),
			at(fleet.Table, "odd", "s3+ddb://other/a b/50%+.lance?ddbTableName=t"),
			at(fleet.Table, "local", "/srv/tables/local.lance"),
		}},
		retired: []fleet.LedgerEntry{cold},
	}
	return newBench(t, store, append(options, func(_ *Config, p *parts) { p.dataDir = "s3://lake/fleet" })...)
}

// recordsOf is what S3 sends for keys, encoded as S3 does.
func recordsOf(eventName, bucket string, keys ...string) string {
	records := make([]map[string]any, len(keys))
	for i, key := range keys {
		records[i] = map[string]any{
			"eventVersion": "2.1", "eventSource": "aws:s3", "eventName": eventName,
			"s3": map[string]any{"bucket": map[string]any{"name": bucket}, "object": map[string]any{"key": key, "size": 7}},
		}
	}
	return asJSON(map[string]any{"Records": records})
}

// asJSON is for values that are always told: maps and strings.
func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (b *bench) event(body string, headers ...string) (int, string) {
	w := b.do(http.MethodPost, eventsPath, body, headers...)
	return w.Code, w.Body.String()
}

func (b *bench) waitingFor() []string {
	var names []string
	for _, h := range b.events.next() {
		names = append(names, h.id.String())
	}
	return names
}

func TestEventsOfEveryShapeFindTheirExperiment(t *testing.T) {
	wal := "fleet/exp-1.rollout.lance/_mem_wal/s1/wal/7"
	quote := func(s string) string { return asJSON(s) }
	one := []string{"rollout:exp-1"}
	for name, c := range map[string]struct {
		body string
		want []string
		out  EventsTaken
	}{
		"S3":                   {recordsOf("ObjectCreated:Put", "lake", wal), one, EventsTaken{Events: 1, Taken: 1, Experiments: 1}},
		"MinIO, with envelope": {`{"EventName":"s3:ObjectCreated:Put","Key":"lake/` + wal + `",` + recordsOf("s3:ObjectCreated:Put", "lake", strings.ReplaceAll(wal, "/", "%2F"))[1:], one, EventsTaken{Events: 1, Taken: 1, Experiments: 1}},
		"MinIO's envelope":     {`{"EventName":"s3:ObjectCreated:Put","Key":"lake/` + wal + `"}`, one, EventsTaken{Events: 1, Taken: 1, Experiments: 1}},
		"EventBridge":          {`{"detail-type":"Object Created","source":"aws.s3","detail":{"bucket":{"name":"lake"},"object":{"key":"` + wal + `"}}}`, one, EventsTaken{Events: 1, Taken: 1, Experiments: 1}},
		"SNS":                  {`{"Type":"Notification","TopicArn":"arn","Message":` + quote(recordsOf("ObjectCreated:Put", "lake", wal)) + `}`, one, EventsTaken{Events: 1, Taken: 1, Experiments: 1}},
		"a name":               {`{"name":"rollout:exp-1"}`, one, EventsTaken{Events: 1, Taken: 1, Experiments: 1}},
		"a bare name is all that it may mean": {`{"name":"exp-1"}`, []string{"generic:exp-1", "rollout:exp-1"},
			EventsTaken{Events: 1, Taken: 1, Experiments: 2}},
		"a uri":                       {`{"uri":"s3a://lake/` + wal + `"}`, one, EventsTaken{Events: 1, Taken: 1, Experiments: 1}},
		"a path":                      {`{"uri":"/srv/tables/local.lance/data/x.lance"}`, []string{"table:local"}, EventsTaken{Events: 1, Taken: 1, Experiments: 1}},
		"a list of both":              {`[{"name":"exp-10"},` + recordsOf("ObjectCreated:Copy", "lake", wal) + `]`, []string{"rollout:exp-1", "rollout:exp-10"}, EventsTaken{Events: 2, Taken: 2, Experiments: 2}},
		"many on one":                 {recordsOf("ObjectCreated:Put", "lake", wal, wal, wal+"1"), one, EventsTaken{Events: 3, Taken: 3, Experiments: 1}},
		"a key with plus and percent": {recordsOf("ObjectCreated:Put", "other", "a+b/50%25%2B.lance/_versions/3.manifest"), []string{"table:odd"}, EventsTaken{Events: 1, Taken: 1, Experiments: 1}},
		"a retired one":               {recordsOf("ObjectCreated:CompleteMultipartUpload", "lake", "fleet/cold.rollout.lance/data/a"), []string{"rollout:cold"}, EventsTaken{Events: 1, Taken: 1, Experiments: 1}},
		"the experiment itself":       {`{"uri":"s3://lake/fleet/exp-1.rollout.lance/"}`, one, EventsTaken{Events: 1, Taken: 1, Experiments: 1}},

		"another bucket":           {recordsOf("ObjectCreated:Put", "pond", wal), nil, EventsTaken{Events: 1, Unknown: 1}},
		"a name that begins alike": {recordsOf("ObjectCreated:Put", "lake", "fleet/exp-1.rollout.lance.bak/x"), nil, EventsTaken{Events: 1, Unknown: 1}},
		"nobody":                   {`[{"name":"nobody"},{"name":"../../etc/passwd"},{"name":""}]`, nil, EventsTaken{Events: 3, Unknown: 3}},
		"our own tables": {recordsOf("ObjectCreated:Put", "lake", "fleet/_stats.rollout.lance/_versions/9.manifest", "fleet/_lancefleet/rounds/r/page", "fleet/_registry.rollout.lance/x", "fleet/_journal.lance/data/y"),
			nil, EventsTaken{Events: 4, Own: 4}},
		"a removal":           {recordsOf("ObjectRemoved:Delete", "lake", wal), nil, EventsTaken{Events: 1, Ignored: 1}},
		"EventBridge removed": {`{"detail-type":"Object Deleted","detail":{"bucket":{"name":"lake"},"object":{"key":"` + wal + `"}}}`, nil, EventsTaken{Events: 1, Ignored: 1}},
		"S3's test":           {`{"Service":"Amazon S3","Event":"s3:TestEvent","Bucket":"lake"}`, nil, EventsTaken{Events: 1, Ignored: 1}},
		"SNS's confirmation":  {`{"Type":"SubscriptionConfirmation","SubscribeURL":"https://sns.example/confirm"}`, nil, EventsTaken{Events: 1, Ignored: 1}},
		"no records":          {`{"Records":[]}`, nil, EventsTaken{}},
		"an empty list":       {`[]`, nil, EventsTaken{}},
		"a very long key":     {recordsOf("ObjectCreated:Put", "lake", strings.Repeat("a/", 3000)), nil, EventsTaken{Events: 1, Unknown: 1}},
		"no key at all":       {`{"Records":[{"eventName":"ObjectCreated:Put"}]}`, nil, EventsTaken{Events: 1, Unknown: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			b := inBucket(t)
			for _, sent := range []string{"application/json", "text/plain; charset=UTF-8", ""} { // SNS says text/plain
				code, answer := b.event(c.body, "Content-Type", sent)
				require.Equal(t, 202, code, answer)
				var out EventsTaken
				require.NoError(t, json.Unmarshal([]byte(answer), &out))
				require.Equal(t, c.out, out)
				require.ElementsMatch(t, c.want, b.waitingFor())
			}
			require.Empty(t, b.temporal.said(), "no event starts a workflow by itself")
		})
	}
}

func TestWhatIsNoEventIsRefusedWithWhatIsAllowed(t *testing.T) {
	deep := strings.Repeat("[", 9) + strings.Repeat("]", 9)
	for name, c := range map[string]struct {
		body   string
		status int
		says   string
	}{
		"nothing":           {"", 400, "a body of JSON is needed"},
		"not JSON":          {`{"name":`, 400, "not JSON"},
		"another thing":     {`{"hello":"world"}`, 422, "allowed are"},
		"text":              {`"exp-1"`, 422, "allowed are"},
		"null":              {`null`, 422, "allowed are"},
		"in a list":         {`[{"name":"exp-1"},{"x":1}]`, 422, "allowed are"},
		"nested too deep":   {deep, 422, "too deep"},
		"SNS without JSON":  {`{"Type":"Notification","Message":"hello"}`, 422, "allowed are"},
		"a key not encoded": {recordsOf("ObjectCreated:Put", "lake", "a%zz"), 422, "percent-encoded"},
		"a name of a type":  {`{"name":7}`, 422, "allowed are"},
	} {
		t.Run(name, func(t *testing.T) {
			b := inBucket(t)
			w := b.do(http.MethodPost, eventsPath, c.body, "Content-Type", "application/json")
			requireError(t, w, c.status, c.says)
			require.Empty(t, b.waitingFor(), "all or nothing")
		})
	}
}

func TestEventsMayBeAMebibyteAndNoMore(t *testing.T) {
	b := inBucket(t)
	fill := func(size int) string { return `[{"name":"exp-1"}` + strings.Repeat(" ", size) + `]` }
	code, answer := b.event(fill(500<<10), "Content-Type", "application/json")
	require.Equal(t, 202, code, answer)
	code, answer = b.event(fill(1<<20), "Content-Type", "application/json")
	require.Equal(t, 413, code)
	require.Contains(t, answer, "1024 KiB")
	w := b.do(http.MethodPost, "/api/v1/rescan", `{"by":"`+strings.Repeat("x", 100<<10)+`"}`, "Content-Type", "application/json")
	require.Equal(t, 413, w.Code, "of other routes nothing is changed")
	require.Contains(t, w.Body.String(), "64 KiB")
}

func TestABurstOfEventsOnOneExperimentIsOneLook(t *testing.T) {
	b := inBucket(t)
	keys := make([]string, 1000)
	for i := range keys {
		keys[i] = fmt.Sprintf("fleet/exp-1.rollout.lance/_mem_wal/s1/wal/%d", i)
	}
	body := recordsOf("ObjectCreated:Put", "lake", keys...)
	for range 100 {
		code, _ := b.event(body)
		require.Equal(t, 202, code)
	}
	require.Equal(t, []string{"rollout:exp-1"}, b.waitingFor())
}

func TestEventsAreNotTakenWhereNobodyCouldBeToldOfThem(t *testing.T) {
	b := inBucket(t, func(_ *Config, p *parts) { p.steer = nil })
	w := b.do(http.MethodPost, eventsPath, `{"name":"exp-1"}`)
	requireError(t, w, 503, "Temporal")

	empty := inBucket(t)
	empty.feed.update(func(m *moment) { m.view = nil })
	w = empty.do(http.MethodPost, eventsPath, `{"name":"exp-1"}`)
	requireError(t, w, 503, "not been read yet")
}

// counted keeps what metrics would.
type counted struct {
	outcomes          map[string]int
	handed, not, last int
}

func (c *counted) Events(outcome string, n int) { c.outcomes[outcome] += n }
func (c *counted) EventsHandedOver(n int)       { c.handed += n }
func (c *counted) EventsNotHandedOver()         { c.not++ }
func (c *counted) EventsWaiting(n int)          { c.last = n }

func TestEventsAreCountedByWhatTheyWereAbout(t *testing.T) {
	m := &counted{outcomes: map[string]int{}}
	b := inBucket(t, func(_ *Config, p *parts) { p.events = m })
	b.event(`[{"name":"exp-10"},{"name":"exp-10"},{"name":"nobody"},{"uri":"s3://lake/fleet/_stats.rollout.lance/x"},` + recordsOf("ObjectRemoved:Delete", "lake", "x") + `]`)
	require.Equal(t, map[string]int{"taken": 2, "unknown": 1, "own": 1, "ignored": 1}, m.outcomes)
	require.Equal(t, 1, m.last)
}

func TestAnExperimentThatIsNewInTheTableIsFoundByItsNextEvent(t *testing.T) {
	b := inBucket(t)
	body := recordsOf("ObjectCreated:Put", "lake", "fleet/new.rollout.lance/data/x")
	_, answer := b.event(body)
	require.Contains(t, answer, `"unknown":1`)
	row := healthy(fleet.Rollout, "new", minutesAgo(1))
	row.URI = "s3://lake/fleet/new.rollout.lance"
	b.store.set(func(s *fakeStore) { s.snapshot = Snapshot{Version: 2, Rows: append(s.snapshot.Rows, row)} })
	b.renew(t)
	_, answer = b.event(body)
	require.Contains(t, answer, `"taken":1`)
}
