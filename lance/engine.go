package lance

import (
	"context"
	"sync"

	"lancefleet/fleet"
)

// Options of [Open].
type Options struct {
	// Library is the path of the native library. Empty: the environment variable
	// LANCEFLEET_NATIVE, else beside the executable, else where a development
	// build leaves it.
	Library string
	// Threads of the engine's runtime; 0 = one for each core.
	Threads int
	// StorageOptions are handed to the object stores, with the names Lance takes
	// (aws_region, aws_endpoint, allow_http, ...). What is missing comes from the
	// environment the process was started with: without cgo the library does not
	// see what os.Setenv changes.
	StorageOptions map[string]string
}

// Reader asks questions. It cannot write: give it to code that only browses.
// Its zero value is closed.
type Reader struct{ session *session }

// Engine is a [Reader] that can write too. Its methods may be called by many
// goroutines at once.
type Engine struct {
	*Reader
	closing *sync.Once
}

// Open loads the native library and starts an engine. Its errors are of class
// [Library] when the library is missing or does not fit, else of any other.
func Open(o Options) (*Engine, error) {
	if o.Threads < 0 {
		return nil, &Error{Class: Invalid, Op: "open", Message: "threads must not be negative"}
	}
	if err := checkProperties("open", "", o.StorageOptions); err != nil {
		return nil, err
	}
	lib, err := loadLibrary(o.Library)
	if err != nil {
		return nil, err
	}
	reader := &Reader{session: &session{lib: lib, slots: make(chan struct{}, maxCalls)}}
	args := struct {
		Threads        int               `json:"threads,omitempty"`
		StorageOptions map[string]string `json:"storage_options,omitempty"`
	}{o.Threads, o.StorageOptions}
	opened, err := ask[struct {
		Engine uint64 `json:"engine"`
	}](context.Background(), reader, "open", "", args, nil)
	if err != nil {
		return nil, err
	}
	reader.session.engine = opened.Engine
	return &Engine{Reader: reader, closing: new(sync.Once)}, nil
}

// ReadOnly is the engine without its power to write. It is closed with the engine.
func (e *Engine) ReadOnly() *Reader { return e.Reader }

// Close ends the engine. Calls under way finish, later ones fail with
// [ErrClosed]. Closing again does nothing.
func (e *Engine) Close() error {
	if e == nil || e.Reader == nil || e.session == nil || e.closing == nil {
		return nil
	}
	var err error
	e.closing.Do(func() {
		e.session.closed.Store(true)
		// Past the gate of call: it is shut now, and its slots may all be taken.
		err = e.session.run(context.Background(), "close", "", struct{}{}, nil, func(_, _ []byte) error { return nil })
	})
	return err
}

// LibraryPath is the file the native library was loaded from.
func (r *Reader) LibraryPath() string {
	if r == nil || r.session == nil {
		return ""
	}
	return r.session.lib.path
}

// Stats are totals of an engine since it was opened.
type Stats struct {
	Requests fleet.Requests `json:"requests"`
	Stores   int            `json:"stores"` // object stores held open
}

// Stats tells what the engine has asked of storage so far.
func (r *Reader) Stats(ctx context.Context) (Stats, error) {
	return ask[Stats](ctx, r, "stats", "", struct{}{}, nil)
}
