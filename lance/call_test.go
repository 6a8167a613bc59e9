package lance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
)

func TestEveryReplyIsCopiedAndFreedOnce(t *testing.T) {
	f := openFake(t)
	before := f.counts()
	body := bytes.Repeat([]byte("abc"), 1<<20)
	var js, got []byte
	require.NoError(t, f.call(t.Context(), "echo", "", map[string]string{"k": "v"}, body, func(j, b []byte) error {
		js, got = append(js, j...), append(got, b...)
		return nil
	}))
	assert.JSONEq(t, `{"k":"v"}`, string(js))
	assert.True(t, bytes.Equal(body, got))

	f.fails(`{"class":"gone","message":"no"}`)
	_, err := f.Head(t.Context(), "/x")
	require.ErrorIs(t, err, ErrGone)
	assert.Panics(t, func() {
		_ = f.call(t.Context(), "echo", "", 1, nil, func(_, _ []byte) error { panic("reader") }) //nolint:forbidigo // that is what is tested
	})

	after := f.counts()
	// The reply of each count itself is freed after it was counted.
	assert.Equal(t, after.Allocated-after.Freed, before.Allocated-before.Freed)
	assert.Greater(t, after.Freed, before.Freed)
}

// The library's memory is overwritten when it is freed: what was kept shows it.
func TestAnswersDoNotPointIntoFreedMemory(t *testing.T) {
	f := openFake(t)
	f.answers(`{"version":3,"etag":"an e-tag","time":5}`)
	head, err := f.Head(t.Context(), "/x")
	require.NoError(t, err)
	assert.Equal(t, Head{Version: 3, ETag: "an e-tag", Time: 5}, head)

	object, err := f.Get(t.Context(), "/x")
	require.NoError(t, err)
	assert.Equal(t, "an e-tag", object.ETag)
	assert.JSONEq(t, `{"version":3,"etag":"an e-tag","time":5}`, string(object.Body))
}

func TestEmptySlicesReachTheLibraryAsRealAddresses(t *testing.T) {
	f := openFake(t)
	_, err := f.Put(t.Context(), "/x", nil, PutOptions{})
	require.NoError(t, err)
	_, err = f.Put(t.Context(), "/x", []byte{}, PutOptions{})
	require.NoError(t, err)
	require.NoError(t, f.call(t.Context(), "echo", "", struct{}{}, []byte{}, func(_, body []byte) error {
		assert.Empty(t, body)
		return nil
	}))
	assert.Zero(t, f.counts().Nulls)
}

func TestErrorsKeepClassOperationAndURI(t *testing.T) {
	f := openFake(t)
	for class, sentinel := range map[Class]error{
		Invalid: ErrInvalid, Gone: ErrGone, Exists: ErrExists, Conflict: ErrConflict, Corrupt: ErrCorrupt,
		Unsupported: ErrUnsupported, Denied: ErrDenied, Unreachable: ErrUnreachable, Timeout: ErrTimeout,
		Cancelled: ErrCancelled, Closed: ErrClosed, Panic: ErrPanic, Internal: ErrInternal,
	} {
		f.fails(`{"class":"` + string(class) + `","message":"because"}`)
		_, err := f.CountRows(t.Context(), "/a/b.lance", 0)
		require.ErrorIs(t, err, sentinel)
		assert.Equal(t, "count rows /a/b.lance: "+string(class)+": because", err.Error())
		for other, unlike := range map[Class]error{Gone: ErrGone, Conflict: ErrConflict, Library: ErrLibrary} {
			assert.Equal(t, other == class, errors.Is(err, unlike), "%s against %s", class, other)
		}
		var e *Error
		require.ErrorAs(t, err, &e)
		assert.Equal(t, Error{Class: class, Op: "count_rows", URI: "/a/b.lance", Message: "because"}, *e)
	}
}

func TestTheURIThatTheLibraryNamesIsTheMoreExactOne(t *testing.T) {
	f := openFake(t)
	f.fails(`{"class":"corrupt","message":"bad","uri":"/a/b.lance/_versions/1.manifest"}`)
	_, err := f.Head(t.Context(), "/a/b.lance")
	assert.ErrorContains(t, err, "head /a/b.lance/_versions/1.manifest: corrupt")
}

func TestLongMessagesAreCutAtACharacter(t *testing.T) {
	f := openFake(t)
	f.fails(`{"class":"denied","message":"x` + strings.Repeat("é", 5000) + `"}`)
	_, err := f.Head(t.Context(), "/a")
	require.ErrorIs(t, err, ErrDenied)
	assert.Less(t, len(err.Error()), 2200)
	assert.True(t, utf8.ValidString(err.Error()))
}

func TestAnswersThatMakeNoSenseAreInternalErrors(t *testing.T) {
	for name, script := range map[string]func(fake){
		"an error that is no json":     func(f fake) { f.fails(`oops`) },
		"an error without any json":    func(f fake) { f.fails(``) },
		"an error of an unknown class": func(f fake) { f.fails(`{"class":"wild","message":"m"}`) },
		"an answer that is no json":    func(f fake) { f.answers(`{"version":`) },
		"an answer of another shape":   func(f fake) { f.answers(`{"version":"three"}`) },
	} {
		t.Run(name, func(t *testing.T) {
			f := openFake(t)
			script(f)
			_, err := f.Head(t.Context(), "/x")
			require.ErrorIs(t, err, ErrInternal)
			assert.ErrorContains(t, err, "/x")
		})
	}
}

func TestABatchWithTooFewResultsIsAnError(t *testing.T) {
	f := openFake(t)
	f.answers(`{"results":[{"state":"unchanged"}]}`)
	_, err := f.Probe(t.Context(), []ProbeTarget{{URI: "/a"}, {URI: "/b"}}, BatchOptions{})
	require.ErrorIs(t, err, ErrInternal)
	assert.ErrorContains(t, err, "1 results for 2 targets")
}

func TestATargetThatCannotBeSentCostsOnlyItself(t *testing.T) {
	f := openFake(t)
	f.answers(`{"results":[
		{"state":"changed","detail":"wal tail","requests":{"head":3}},
		{"state":"unknown","error":{"class":"denied","message":"403"}}]}`)
	results, err := f.Probe(t.Context(), []ProbeTarget{{URI: "/a\xff"}, {URI: "/b"}, {URI: ""}, {URI: "/d"}}, BatchOptions{})
	require.NoError(t, err)
	require.Len(t, results, 4)
	assert.Equal(t, Invalid, results[0].Err.Class)
	assert.Equal(t, Unknown, results[0].State)
	assert.Equal(t, ProbeResult{State: Changed, Detail: "wal tail", Requests: fleet.Requests{Head: 3}}, results[1])
	assert.Equal(t, Invalid, results[2].Err.Class)
	assert.Equal(t, &Error{Class: Denied, Op: "probe", URI: "/d", Message: "403"}, results[3].Err)

	f.answers(`{"results":[{"observation":{"base_rows":4}},{}]}`)
	observed, err := f.Observe(t.Context(), []ObserveTarget{{URI: "\x00"}, {URI: "/b"}, {URI: "/c"}}, ObserveOptions{})
	require.NoError(t, err)
	assert.Equal(t, Invalid, observed[0].Err.Class)
	assert.Equal(t, int64(4), observed[1].Observation.BaseRows)
	assert.Equal(t, Internal, observed[2].Err.Class, "a result that holds nothing is an error")
}

func TestAFingerprintThatCannotBeSentCostsOnlyItsTarget(t *testing.T) {
	f := openFake(t)
	f.answers(`{"results":[{"state":"unchanged"}]}`)
	results, err := f.Probe(t.Context(), []ProbeTarget{
		{URI: "/a", Fingerprint: fleet.Fingerprint{Naming: "v3"}},
		{URI: "/b", Fingerprint: fleet.Fingerprint{Naming: "v1", Shards: []fleet.ShardMark{{ID: "02e81b29-f150-54b9-9a08-ce75944f6889"}}}},
		{URI: "/c", Fingerprint: fleet.Fingerprint{Shards: []fleet.ShardMark{{ID: "no uuid"}}}},
	}, BatchOptions{})
	require.NoError(t, err)
	assert.Equal(t, Unknown, results[0].State)
	assert.ErrorContains(t, results[0].Err, "/a")
	assert.Equal(t, Unchanged, results[1].State)
	assert.Equal(t, Invalid, results[2].Err.Class)
}

func TestRequestsHaveTheShapeThatTheABIDescribes(t *testing.T) {
	f := openFake(t)
	f.answers(`{}`)
	ctx := t.Context()
	mark := fleet.Fingerprint{Version: 1<<64 - 1, ETag: `"x"`, Naming: "v2"}
	for want, ask := range map[string]func(){
		`{"targets":[{"uri":"/ü","fingerprint":{"version":18446744073709551615,"etag":"\"x\"","naming":"v2"},"deep":true,"list_versions":false}],"concurrency":0,"timeout_ms":1}`: func() {
			_, _ = f.Probe(ctx, []ProbeTarget{{URI: "/ü", Fingerprint: mark, Deep: true}}, BatchOptions{Timeout: time.Microsecond})
		},
		`{"targets":[{"uri":"/a","known_version":4,"target_rows":100}],"walk_past":{"operations":[],"marks":false,"property":""},"max_commits":9,"concurrency":3}`: func() {
			_, _ = f.Observe(ctx, []ObserveTarget{{URI: "/a", KnownVersion: 4, TargetRows: 100}},
				ObserveOptions{BatchOptions: BatchOptions{Concurrency: 3}, MaxCommits: 9})
		},
		`{"uri":"/a","version":2}`:                          func() { _, _ = f.CountRows(ctx, "/a", 2) },
		`{"uri":"/a","version":2,"columns":["x"]}`:          func() { _, _ = f.ReadTable(ctx, "/a", ReadOptions{Version: 2, Columns: []string{"x"}}) },
		`{"uri":"/a","expect_version":0,"properties":{}}`:   func() { _, _ = f.CommitSnapshot(ctx, "/a", 0, nil, numbers, nil) },
		`{"uri":"/a","create":true,"properties":{"k":"v"}}`: func() { _, _ = f.Append(ctx, "/a", nil, numbers, AppendOptions{true, map[string]string{"k": "v"}}) },
		`{"uri":"/a","older_than_ms":60000,"keep":3}`:       func() { _, _ = f.CleanupVersions(ctx, "/a", time.Minute, 3) },
		`{"uri":"/a","if_absent":true}`:                     func() { _, _ = f.Put(ctx, "/a", []byte("x"), PutOptions{IfAbsent: true}) },
		`{"uri":"/a","limit":5}`:                            func() { _, _ = f.List(ctx, "/a", 5) },
		`{"uri":"/a","shards":0,"generations":0,"keyless":false,"rows":0,"fragments":0,"tombstones":false,"stranded":false,"age_ms":0,"seed":0}`: func() {
			_, _ = f.MakeDataset(ctx, DatasetSpec{URI: "/a"})
		},
		`{"items":[{"uri":"/a","template":0}],"templates":[{"kind":"table","shards":0,"generations":0,"keyless":false,"rows":1,"fragments":2,"tombstones":false,"stranded":true,"age_ms":1000,"seed":18446744073709551615}],"concurrency":4}`: func() {
			_, _ = f.MakeFleet(ctx, FleetSpec{
				Items:       []FleetItem{{URI: "/a"}},
				Templates:   []DatasetSpec{{URI: "/t", Kind: fleet.Table, Rows: 1, Fragments: 2, Stranded: true, Age: time.Second, Seed: -1}},
				Concurrency: 4,
			})
		},
		`{"uri":"/a","shard":"w","rows":3,"delete":2,"flush":true,"append":false,"seed":9}`: func() {
			_, _ = f.MakeWrites(ctx, WritesSpec{URI: "/a", Shard: "w", Rows: 3, Delete: 2, Flush: true, Seed: 9})
		},
		`{"uris":["/a","/b"]}`: func() { _, _ = f.Delete(ctx, "/a", "/b") },
		`{"uri":"/a"}`:         func() { _, _ = f.ListDirs(ctx, "/a") },
		`{}`:                   func() { _, _ = f.Stats(ctx) },
	} {
		ask()
		js, _ := f.last()
		assert.JSONEq(t, want, js)
	}
}

func TestArgumentsThatCannotBeMeantAreRefusedBeforeTheCall(t *testing.T) {
	f := openFake(t)
	f.answers(`{}`)
	ctx := t.Context()
	bad := "/a\xff"
	for name, ask := range map[string]func() error{
		"head of nothing":       func() error { _, err := f.Head(ctx, ""); return err },
		"head":                  func() error { _, err := f.Head(ctx, bad); return err },
		"read":                  func() error { _, err := f.ReadTable(ctx, bad, ReadOptions{}); return err },
		"column":                func() error { _, err := f.ReadTable(ctx, "/a", ReadOptions{Columns: []string{bad}}); return err },
		"count":                 func() error { _, err := f.CountRows(ctx, bad, 0); return err },
		"get with a zero byte":  func() error { _, err := f.Get(ctx, "/a\x00b"); return err },
		"list":                  func() error { _, err := f.List(ctx, bad, 0); return err },
		"negative limit":        func() error { _, err := f.List(ctx, "/a", -1); return err },
		"folders":               func() error { _, err := f.ListDirs(ctx, bad); return err },
		"put":                   func() error { _, err := f.Put(ctx, bad, nil, PutOptions{}); return err },
		"one of many to delete": func() error { _, err := f.Delete(ctx, "/a", bad); return err },
		"negative age":          func() error { _, err := f.CleanupVersions(ctx, "/a", -1, 0); return err },
		"negative keep":         func() error { _, err := f.CleanupVersions(ctx, "/a", 0, -1); return err },
		"snapshot, no schema":   func() error { _, err := f.CommitSnapshot(ctx, "/a", 0, nil, nil, nil); return err },
		"append, no schema":     func() error { _, err := f.Append(ctx, "/a", nil, nil, AppendOptions{}); return err },
		"property's name": func() error {
			_, err := f.CommitSnapshot(ctx, "/a", 0, nil, numbers, map[string]string{bad: ""})
			return err
		},
		"property's value": func() error {
			_, err := f.CommitSnapshot(ctx, "/a", 0, nil, numbers, map[string]string{"a": bad})
			return err
		},
		"negative concurrency": func() error { _, err := f.Probe(ctx, nil, BatchOptions{Concurrency: -1}); return err },
		"negative timeout": func() error {
			_, err := f.Observe(ctx, nil, ObserveOptions{BatchOptions: BatchOptions{Timeout: -1}})
			return err
		},
		"negative commits":       func() error { _, err := f.Observe(ctx, nil, ObserveOptions{MaxCommits: -1}); return err },
		"negative threads":       func() error { _, err := Open(Options{Threads: -1}); return err },
		"storage option's value": func() error { _, err := Open(Options{StorageOptions: map[string]string{"a": bad}}); return err },
	} {
		err := ask()
		require.ErrorIs(t, err, ErrInvalid, name)
		_, jsonErr := json.Marshal(err.Error())
		require.NoError(t, jsonErr)
		assert.Equal(t, strings.ToValidUTF8(err.Error(), "?"), err.Error(), "%s: the message itself is valid utf-8", name)
	}
	js, _ := f.last()
	assert.Empty(t, js, "nothing reached the library")
}

func TestBatchesOfNothingMakeNoCall(t *testing.T) {
	f := openFake(t)
	probed, err := f.Probe(t.Context(), nil, BatchOptions{})
	require.NoError(t, err)
	assert.Empty(t, probed)
	deleted, err := f.Delete(t.Context())
	require.NoError(t, err)
	assert.Zero(t, deleted)
	js, _ := f.last()
	assert.Empty(t, js)
}

func TestCancellingTheContextFiresTheToken(t *testing.T) {
	f := openFake(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.call(ctx, "wait", "/x", struct{}{}, nil, f.ignore) }()
	f.run("await_active", make([]byte, 1), f.ignore)
	cancel(errors.New("the page was closed"))
	err := <-ended
	require.ErrorIs(t, err, ErrCancelled)
	require.ErrorIs(t, err, context.Canceled)
	assert.ErrorContains(t, err, "the page was closed")
	c := f.counts()
	assert.Equal(t, c.TokensMade, c.TokensFreed)
	assert.Positive(t, c.TokensMade)
}

func TestADeadlineFiresTheTokenAndIsATimeout(t *testing.T) {
	f := openFake(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err := f.call(ctx, "wait", "/x", struct{}{}, nil, f.ignore)
	require.ErrorIs(t, err, ErrTimeout)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.NotErrorIs(t, err, ErrCancelled)
}

func TestAContextThatHasEndedMakesNoCall(t *testing.T) {
	f := openFake(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := f.Stats(ctx)
	require.ErrorIs(t, err, ErrCancelled)
	js, _ := f.last()
	assert.Empty(t, js)
}

func TestManyCallersDoNotBlockMoreThreadsThanTheLimit(t *testing.T) {
	f := openFake(t)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range 4 * maxCalls {
		all.Go(func() {
			assert.ErrorIs(t, f.call(ctx, "wait", "", struct{}{}, nil, f.ignore), ErrCancelled)
		})
	}
	f.run("await_active", make([]byte, maxCalls), f.ignore)
	cancel() // reaches those inside and those who wait for a slot
	all.Wait()
	assert.EqualValues(t, maxCalls, f.counts().Peak)
}

func TestAClosedEngineRefusesEverythingAndClosesAgain(t *testing.T) {
	f := openFake(t)
	reader := f.ReadOnly()
	require.NoError(t, f.Close())
	require.NoError(t, f.Close())
	ctx := t.Context()
	for name, ask := range map[string]func() error{
		"head":   func() error { _, err := reader.Head(ctx, "/a"); return err },
		"probe":  func() error { _, err := reader.Probe(ctx, []ProbeTarget{{URI: "/a"}}, BatchOptions{}); return err },
		"none":   func() error { _, err := reader.Probe(ctx, nil, BatchOptions{}); return err },
		"delete": func() error { _, err := f.Delete(ctx); return err },
		"put":    func() error { _, err := f.Put(ctx, "/a", nil, PutOptions{}); return err },
	} {
		require.ErrorIs(t, ask(), ErrClosed, name)
	}
}

func TestAnEngineThatWasNeverOpenedIsClosed(t *testing.T) {
	_, err := new(Reader).Head(t.Context(), "/a")
	require.ErrorIs(t, err, ErrClosed)
	var e Engine
	_, err = e.Stats(t.Context())
	require.ErrorIs(t, err, ErrClosed)
	require.NoError(t, e.Close())
	var none *Engine
	require.NoError(t, none.Close())
}

func TestClosingIsNotHeldUpByCallsUnderWay(t *testing.T) {
	f := openFake(t)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range maxCalls {
		all.Go(func() { _ = f.call(ctx, "wait", "", struct{}{}, nil, f.ignore) })
	}
	f.run("await_active", make([]byte, maxCalls), f.ignore)
	require.NoError(t, f.Close())
	cancel()
	all.Wait()
}
