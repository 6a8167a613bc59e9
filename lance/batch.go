package lance

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// defaultConcurrency is how many targets of a batch are under way at once when
// the caller does not say.
const defaultConcurrency = 64

// BatchOptions bound a batch.
type BatchOptions struct {
	Concurrency int           // targets under way at once; 0 = 64
	Timeout     time.Duration // for each target; 0 = none but the context's
}

func (o BatchOptions) check(op string) error {
	if o.Concurrency < 0 || o.Timeout < 0 {
		return &Error{Class: Invalid, Op: op, Message: "concurrency and timeout must not be negative"}
	}
	return nil
}

func (o BatchOptions) concurrency() int {
	if o.Concurrency == 0 {
		return defaultConcurrency
	}
	return o.Concurrency
}

// runBatch sends the targets with a usable uri and hands every target's result
// to set: a uri that cannot be sent costs its own target an error, not the batch.
func runBatch[T, W any](
	ctx context.Context, r *Reader, op string, targets []T, uri func(T) string,
	args func(sent []T) any, set func(i int, w *W, err *Error),
) error {
	if err := r.usable(op, ""); err != nil {
		return err
	}
	sent := make([]T, 0, len(targets))
	index := make([]int, 0, len(targets))
	for i, t := range targets {
		var refused *Error
		if errors.As(checkURI(op, uri(t)), &refused) {
			set(i, nil, refused)
			continue
		}
		sent, index = append(sent, t), append(index, i)
	}
	if len(sent) == 0 {
		return nil
	}
	answer, err := ask[struct {
		Results []W `json:"results"`
	}](ctx, r, op, "", args(sent), nil)
	if err != nil {
		return err
	}
	if len(answer.Results) != len(sent) {
		return &Error{Class: Internal, Op: op, Message: fmt.Sprintf("%d results for %d targets", len(answer.Results), len(sent))}
	}
	for n := range answer.Results {
		set(index[n], &answer.Results[n], nil)
	}
	return nil
}

// targetError is the error of one target, nil for none.
func (w *wireError) targetError(op, uri string) *Error {
	if w == nil {
		return nil
	}
	return w.err(op, uri)
}
