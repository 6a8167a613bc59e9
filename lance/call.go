package lance

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// maxCalls bounds the operating system threads that one engine's calls block.
// The runtime dies at 10,000 threads; storage is kept busy by batches, not by
// calls.
const maxCalls = 128

// session is an open engine of the native library.
type session struct {
	lib    *library
	engine uint64
	closed atomic.Bool
	slots  chan struct{}
}

// outcome reads a reply. Both slices are the library's memory and must not be
// kept.
type outcome func(json, body []byte) error

// call runs one operation and lets read take what it needs from the reply before
// the library's memory is freed. uri is what an error is about.
func (r *Reader) call(ctx context.Context, op, uri string, args any, body []byte, read outcome) error {
	if err := r.usable(op, uri); err != nil {
		return err
	}
	s := r.session
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return contextError(ctx, op, uri)
	}
	return s.run(ctx, op, uri, args, body, read)
}

// usable is the error of a reader that was never opened or is closed.
func (r *Reader) usable(op, uri string) error {
	if r == nil || r.session == nil {
		return &Error{Class: Closed, Op: op, URI: uri, Message: "the engine was never opened"}
	}
	if r.session.closed.Load() {
		return &Error{Class: Closed, Op: op, URI: uri, Message: "the engine is closed"}
	}
	return nil
}

func (s *session) run(ctx context.Context, op, uri string, args any, body []byte, read outcome) error {
	if ctx.Err() != nil {
		return contextError(ctx, op, uri)
	}
	text, err := json.Marshal(args)
	if err != nil {
		return &Error{Class: Invalid, Op: op, URI: uri, Message: err.Error()}
	}
	token, release := s.cancelToken(ctx)
	defer release()

	var answer reply
	status := s.enter(op, token, text, body, &answer)
	defer s.lib.replyFree(&answer)

	js, data := nativeBytes(&answer.json, answer.jsonLen), nativeBytes(&answer.body, answer.bodyLen)
	if status != 0 {
		return nativeError(ctx, op, uri, js)
	}
	return read(js, data)
}

// enter makes the native call, with all it reads pinned.
func (s *session) enter(op string, token uint64, text, body []byte, answer *reply) int32 {
	name := []byte(op)
	req := &request{
		engine: s.engine, cancel: token,
		op: first(name), opLen: uintptr(len(name)),
		json: first(text), jsonLen: uintptr(len(text)),
		body: first(body), bodyLen: uintptr(len(body)),
	}
	var pins runtime.Pinner
	defer pins.Unpin()
	pins.Pin(req)
	pins.Pin(answer)
	pins.Pin(req.op)
	pins.Pin(req.json)
	pins.Pin(req.body)
	return s.lib.call(req, answer)
}

// first is the address of b's first byte, and a real address for an empty b:
// Rust makes no slice from null.
func first(b []byte) *byte {
	if len(b) == 0 {
		return new(byte)
	}
	return &b[0]
}

// cancelToken returns a token that fires when ctx ends, and a function that gives
// it back. Firing a token that was given back does nothing: the library never
// uses a number twice.
func (s *session) cancelToken(ctx context.Context) (token uint64, release func()) {
	if ctx.Done() == nil {
		return 0, func() {}
	}
	token = s.lib.cancelNew()
	stop := context.AfterFunc(ctx, func() { s.lib.cancelFire(token) })
	return token, func() {
		stop()
		s.lib.cancelFree(token)
	}
}

// nativeError decodes an error reply. What the library calls cancelled is told as
// the context tells it: a deadline is a Timeout.
func nativeError(ctx context.Context, op, uri string, js []byte) error {
	var w wireError
	if err := json.Unmarshal(js, &w); err != nil {
		return &Error{Class: Internal, Op: op, URI: uri, Message: fmt.Sprintf("the library's error cannot be read: %v", err)}
	}
	if w.Class == Cancelled && ctx.Err() != nil {
		return contextError(ctx, op, uri)
	}
	return w.err(op, uri)
}

// ask runs an operation whose answer is JSON alone.
func ask[T any](ctx context.Context, r *Reader, op, uri string, args any, body []byte) (T, error) {
	var answer T
	err := r.call(ctx, op, uri, args, body, func(js, _ []byte) error {
		return decode(js, op, uri, &answer)
	})
	return answer, err
}

func decode(js []byte, op, uri string, target any) error {
	if len(js) == 0 {
		return nil
	}
	if err := json.Unmarshal(js, target); err != nil {
		return &Error{Class: Internal, Op: op, URI: uri, Message: fmt.Sprintf("the library's answer cannot be read: %v", err)}
	}
	return nil
}

// checkURI refuses what would not reach the library as it was given: JSON
// replaces bytes that are not UTF-8, so another dataset would be meant.
func checkURI(op, uri string) error {
	if uri == "" {
		return &Error{Class: Invalid, Op: op, Message: "the uri is empty"}
	}
	return checkText(op, uri, "the uri", uri)
}

func checkText(op, uri, what, text string) error {
	switch {
	case !utf8.ValidString(text):
		return &Error{Class: Invalid, Op: op, URI: strings.ToValidUTF8(uri, "\uFFFD"), Message: what + " is not valid utf-8"}
	case strings.ContainsRune(text, 0):
		return &Error{Class: Invalid, Op: op, URI: strings.ReplaceAll(uri, "\x00", "\uFFFD"), Message: what + " contains a zero byte"}
	}
	return nil
}

func checkProperties(op, uri string, properties map[string]string) error {
	for k, v := range properties {
		if err := checkText(op, uri, "a property's name", k); err != nil {
			return err
		}
		if err := checkText(op, uri, "property "+k, v); err != nil {
			return err
		}
	}
	return nil
}

// milliseconds rounds up: a tiny deadline must not become "none".
func milliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}
