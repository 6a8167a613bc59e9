package lance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
)

// openReal opens the real library. It must be there: nothing else proves that the
// two sides understand each other.
func openReal(t testing.TB) *Engine {
	t.Helper()
	return openRealWith(t, Options{})
}

func openRealWith(t testing.TB, o Options) *Engine {
	t.Helper()
	engine, err := Open(o)
	require.NoError(t, err, "build the native library first: ./task build")
	t.Cleanup(func() { assert.NoError(t, engine.Close()) })
	return engine
}

func discard(_, _ []byte) error { return nil }

func TestAPanicOfTheLibraryIsAnErrorAndTheEngineGoesOn(t *testing.T) {
	engine := openReal(t)
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			err := engine.call(t.Context(), "debug_panic", "", struct{}{}, nil, discard)
			assert.ErrorIs(t, err, ErrPanic)
			assert.ErrorContains(t, err, "debug_panic")
		})
	}
	all.Wait()
	_, err := engine.Stats(t.Context())
	require.NoError(t, err)
}

func TestTheLibraryStopsWhenTheContextEnds(t *testing.T) {
	engine := openReal(t)
	const anHour = 3_600_000
	sleep := func(ctx context.Context) error {
		return engine.call(ctx, "debug_sleep", "", map[string]int{"ms": anHour}, nil, discard)
	}
	deadline, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, sleep(deadline), ErrTimeout)

	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() { assert.ErrorIs(t, sleep(ctx), ErrCancelled) })
	}
	cancel()
	all.Wait()
}

func TestARequestThatTheLibraryDoesNotKnowIsInvalid(t *testing.T) {
	engine := openReal(t)
	err := engine.call(t.Context(), "no_such_thing", "", struct{}{}, nil, discard)
	require.ErrorIs(t, err, ErrInvalid)
	assert.ErrorContains(t, err, "no_such_thing")
	err = engine.call(t.Context(), "debug_sleep", "", []int{}, nil, discard)
	require.ErrorIs(t, err, ErrInvalid)
	err = engine.call(t.Context(), "append", "/x", map[string]any{"uri": "/x", "create": true}, []byte("no table"), discard)
	assert.Error(t, err)
	assert.NotErrorIs(t, err, ErrPanic)
}

// The binding's own gate is passed here: the library itself must notice.
func TestAStaleEngineNumberIsAnErrorNotACrash(t *testing.T) {
	engine := openReal(t)
	for _, number := range []uint64{0, engine.session.engine + 1000, 1<<64 - 1} {
		stale := &Reader{session: &session{lib: engine.session.lib, engine: number, slots: make(chan struct{}, 1)}}
		_, err := stale.Stats(t.Context())
		require.ErrorIs(t, err, ErrClosed, "engine %d", number)
	}
}

func TestClosingBesideCallsIsSafe(t *testing.T) {
	engine := openReal(t)
	dir := t.TempDir()
	_, err := engine.Put(t.Context(), dir+"/object", []byte("content"), PutOptions{})
	require.NoError(t, err)
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for {
				if _, err := engine.Get(t.Context(), dir+"/object"); err != nil {
					assert.ErrorIs(t, err, ErrClosed)
					return
				}
			}
		})
	}
	for range 8 {
		all.Go(func() { assert.NoError(t, engine.Close()) })
	}
	all.Wait()
	require.NoError(t, engine.Close())
	_, err = engine.Stats(t.Context())
	require.ErrorIs(t, err, ErrClosed)
}

func TestEnginesAreIndependent(t *testing.T) {
	one, other := openReal(t), openReal(t)
	require.NoError(t, one.Close())
	_, err := other.Stats(t.Context())
	require.NoError(t, err)
}

func TestSixtyFourGoroutinesShareAnEngine(t *testing.T) {
	engine := openReal(t)
	ctx, dir := t.Context(), t.TempDir()
	uri := dir + "/shared.rollout.lance"
	facts, err := engine.MakeDataset(ctx, DatasetSpec{URI: uri, Shards: 1, Generations: 2, Rows: 4, Fragments: 2})
	require.NoError(t, err)

	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			own := fmt.Sprintf("%s/own-%d", dir, i)
			body := bytes.Repeat([]byte{byte(i)}, 1000+i)
			for range 5 {
				_, err := engine.Put(ctx, own, body, PutOptions{})
				assert.NoError(t, err)
				object, err := engine.Get(ctx, own)
				assert.NoError(t, err)
				assert.Equal(t, body, object.Body)
				seen, err := engine.Observe(ctx, []ObserveTarget{{URI: uri}, {URI: own + ".lance"}}, ObserveOptions{})
				if assert.NoError(t, err) && assert.Nil(t, seen[0].Err) {
					assert.Equal(t, facts.BaseRows, seen[0].Observation.BaseRows)
					assert.Equal(t, Gone, ClassOf(seen[1].Err))
				}
				head, err := engine.Head(ctx, uri)
				assert.NoError(t, err)
				assert.Equal(t, facts.Version, head.Version)
			}
		})
	}
	all.Wait()
}

func TestHostileURIsAreErrorsOfTheirOwn(t *testing.T) {
	engine := openReal(t)
	ctx := t.Context()
	dir := t.TempDir()
	_, err := engine.Put(ctx, dir+"/file", []byte("x"), PutOptions{})
	require.NoError(t, err)
	// Some of these would look for a host that does not answer.
	short, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var all sync.WaitGroup
	for _, uri := range []string{
		" ", ".", "..", "/", "//", "///", "file:", "file://", "file:///", "s3:", "s3://", "s3:///key", "://", "http://[::1", "bogus://host/path",
		"file:///../../../etc/passwd", dir + "/file", dir + "/file/below", dir + "/../../absent", strings.Repeat("/deep", 2000),
		"/" + strings.Repeat("x", 10_000), "memory://x", "s3+ddb://bucket/x", "\u202e", "{}", `"`, "%", "%zz", "file://%zz/x",
	} {
		for name, ask := range questions {
			all.Go(func() {
				err := ask(short, engine, uri)
				assert.Error(t, err, "%s %.40q", name, uri)
				assert.NotErrorIs(t, err, ErrPanic, "%s %.40q", name, uri)
				assert.NotErrorIs(t, err, ErrClosed, "%s %.40q", name, uri)
			})
		}
	}
	all.Wait()
	_, err = engine.Get(ctx, dir+"/file")
	require.NoError(t, err, "the engine goes on")
}

// questions are calls that only succeed where there is a dataset.
var questions = map[string]func(context.Context, *Engine, string) error{
	"head": func(ctx context.Context, e *Engine, uri string) error { _, err := e.Head(ctx, uri); return err },
	"read": func(ctx context.Context, e *Engine, uri string) error {
		_, err := e.ReadTable(ctx, uri, ReadOptions{})
		return err
	},
	"count": func(ctx context.Context, e *Engine, uri string) error {
		_, err := e.CountRows(ctx, uri, 0)
		return err
	},
	"probe": func(ctx context.Context, e *Engine, uri string) error {
		mark := fleet.Fingerprint{Version: 1, ETag: "x", Naming: "v2"}
		r, err := e.Probe(ctx, []ProbeTarget{{URI: uri, Fingerprint: mark, Deep: true}}, BatchOptions{})
		switch {
		case err != nil:
			return err
		case r[0].Err != nil:
			return r[0].Err
		case r[0].State == Changed:
			return errors.New("what is not there has changed")
		}
		return nil
	},
	"observe": func(ctx context.Context, e *Engine, uri string) error {
		r, err := e.Observe(ctx, []ObserveTarget{{URI: uri}}, ObserveOptions{})
		if err == nil && r[0].Err != nil {
			return r[0].Err
		}
		return err
	},
}

// stores is how an engine reaches an S3 server under test.
func stores(endpoint string) Options {
	return Options{StorageOptions: map[string]string{
		"aws_endpoint": endpoint, "allow_http": "true", "aws_region": "us-east-1",
		"aws_access_key_id": "key", "aws_secret_access_key": "secret",
	}}
}

func TestRefusedCredentialsAreDenied(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
	}))
	defer server.Close()
	engine := openRealWith(t, stores(server.URL))
	_, err := engine.Get(t.Context(), "s3://bucket/key")
	require.ErrorIs(t, err, ErrDenied)
	observed, err := engine.Observe(t.Context(), []ObserveTarget{{URI: "s3://bucket/a.lance"}}, ObserveOptions{})
	require.NoError(t, err)
	require.NotNil(t, observed[0].Err)
	assert.ErrorIs(t, observed[0].Err, ErrDenied)
	assert.NotContains(t, observed[0].Err.Error(), "secret")
}

func TestStorageThatHangsCostsATimeoutOfItsTargetOnly(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") // accepts in the kernel, never answers
	require.NoError(t, err)
	defer listener.Close()
	engine := openRealWith(t, stores("http://"+listener.Addr().String()))
	local := t.TempDir() + "/a.lance"
	_, err = engine.MakeDataset(t.Context(), DatasetSpec{URI: local, Kind: fleet.Table, Rows: 2, Fragments: 1})
	require.NoError(t, err)

	results, err := engine.Observe(t.Context(), []ObserveTarget{{URI: "s3://bucket/a.lance"}, {URI: local}},
		ObserveOptions{BatchOptions: BatchOptions{Timeout: 5 * time.Second}}) // room for the local one on a busy machine
	require.NoError(t, err)
	require.NotNil(t, results[0].Err)
	assert.ErrorIs(t, results[0].Err, ErrTimeout)
	assert.Nil(t, results[1].Err)

	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = engine.Get(ctx, "s3://bucket/key")
	assert.ErrorIs(t, err, ErrTimeout)
}
