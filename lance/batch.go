package lance

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// BatchOptions bound a batch.
type BatchOptions struct {
	Concurrency int           // targets under way at once; 0 = 64
	Timeout     time.Duration // for each target, from when its turn comes; 0 = 60 s
}

func (o BatchOptions) check(op string) error {
	if o.Concurrency < 0 || o.Timeout < 0 {
		return &Error{Class: Invalid, Op: op, Message: "concurrency and timeout must not be negative"}
	}
	return nil
}

// runBatch sends the targets that pass check and hands every target's result to
// set: what cannot be sent costs its own target an error, not the batch.
func runBatch[T, W any](
	ctx context.Context, r *Reader, op string, targets []T, check func(T) error,
	args func(sent []T) any, set func(i int, w *W, err *Error),
) error {
	if err := r.usable(op, ""); err != nil {
		return err
	}
	sent := make([]T, 0, len(targets))
	index := make([]int, 0, len(targets))
	for i, t := range targets {
		var refused *Error
		if errors.As(check(t), &refused) {
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
