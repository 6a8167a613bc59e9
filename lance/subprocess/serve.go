package subprocess

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"lancefleet/lance"
)

func asLance(err error, target **lance.Error) bool { return errors.As(err, target) }

// errParentGone ends a child whose stdin ended.
var errParentGone = errors.New("the parent process is gone")

// Serve is the child's side: it opens an engine and carries out what arrives on
// in, until in ends. A call under way when in ends is abandoned: Serve returns at
// once, and the caller ends the process.
func Serve(ctx context.Context, in io.Reader, out io.Writer, o lance.Options) error {
	stepAside() // before there is an engine: its threads have the priority of those that begin them
	encoder := json.NewEncoder(out)
	engine, err := lance.Open(o)
	if err != nil {
		return encoder.Encode(answer{Error: wireFailure("open", "", err)})
	}
	defer engine.Close()
	if err := encoder.Encode(answer{}); err != nil {
		return fmt.Errorf("greet the parent: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	requests := make(chan request)
	go receive(ctx, in, requests, cancel)
	for {
		select {
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), io.EOF) {
				return nil
			}
			return context.Cause(ctx)
		case r := <-requests:
			if err := encoder.Encode(carryOut(ctx, engine, r)); err != nil {
				return fmt.Errorf("answer the parent: %w", err)
			}
		}
	}
}

// receive reads ahead of the work, so that the end of in is seen during a call.
func receive(ctx context.Context, in io.Reader, requests chan<- request, end context.CancelCauseFunc) {
	decoder := json.NewDecoder(in)
	for {
		var r request
		if err := decoder.Decode(&r); err != nil {
			end(err)
			return
		}
		select {
		case requests <- r:
		case <-ctx.Done():
			return
		}
	}
}

func carryOut(ctx context.Context, engine *lance.Engine, r request) answer {
	result, err := engine.Carry(ctx, r.Op, r.URI, r.Args)
	switch {
	case ctx.Err() != nil:
		return answer{Error: wireFailure(r.Op, r.URI, errParentGone)}
	case err != nil:
		return answer{Error: wireFailure(r.Op, r.URI, err)}
	}
	return answer{Result: result}
}
