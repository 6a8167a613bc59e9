package subprocess

import (
	"encoding/json"

	"lancefleet/lance"
)

// request is one line to the child. Calls are made one after the other, so an
// answer needs no number.
type request struct {
	Op   string          `json:"op"`
	URI  string          `json:"uri"`
	Args json.RawMessage `json:"args"`
}

// answer is one line from the child. The first one, before any request, says that
// the native library is loaded or why it is not.
type answer struct {
	Result json.RawMessage `json:"result,omitempty"`
	Error  *failure        `json:"error,omitempty"`
}

// failure is a lance.Error on the wire.
type failure struct {
	Class   lance.Class `json:"class"`
	Op      string      `json:"op"`
	URI     string      `json:"uri"`
	Message string      `json:"message"`
}

func wireFailure(op, uri string, err error) *failure {
	var e *lance.Error
	if ok := asLance(err, &e); ok {
		return &failure{e.Class, e.Op, e.URI, e.Message}
	}
	return &failure{lance.ClassOf(err), op, uri, err.Error()}
}

func (f *failure) err() error {
	return &lance.Error{Class: f.Class, Op: f.Op, URI: f.URI, Message: f.Message}
}
