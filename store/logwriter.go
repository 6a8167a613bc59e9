package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"lancefleet/lance"
)

// logWriter appends to a logTable. Every append makes a file and a version, so one
// append in rewriteEvery (fewer in a large table) makes the table anew: in one
// file, without rows that are too old, and removes versions that nobody reads any
// more.
type logWriter[T any] struct {
	writer Writer
	log    *logTable[T]
	action string
	trim   func([]T) []T // newest first, in and out
	group  fresh[[]T, struct{}]
	sure   bool // look at the head after each append
}

const (
	rewriteEvery    = 32
	rewriteAtLeast  = 128       // appends, however large the table
	rowsPerAppend   = 256       // a rewrite of so many rows is worth one append more
	oldVersions     = time.Hour // a reader of an older version has long finished
	versionsAtLeast = 2
)

func newLogWriter[T any](w Writer, l *logTable[T], action string, trim func([]T) []T) *logWriter[T] {
	lw := &logWriter[T]{writer: w, log: l, action: action, trim: trim}
	lw.group.work = lw.appendGroup
	return lw
}

// append adds the values whose ids the table does not have yet. Calls in flight
// share one commit.
func (w *logWriter[T]) append(ctx context.Context, values []T) error {
	if len(values) == 0 {
		return nil
	}
	_, err := w.group.do(ctx, slices.Clone(values))
	return err
}

func (w *logWriter[T]) appendGroup(ctx context.Context, group [][]T) (struct{}, error) {
	values := slices.Concat(group...)
	for attempt := 1; ; attempt++ {
		err := w.tryAppend(ctx, values)
		if w.sure {
			err = w.check(ctx, values, err)
		}
		if !errors.Is(err, lance.ErrConflict) || attempt == conflictAttempts {
			return struct{}{}, err
		}
		if err := backOff(ctx, attempt); err != nil {
			return struct{}{}, err
		}
	}
}

// check finds the values at the head, whatever the append said: an error may come
// after the commit has landed, and a commit may have been lost to somebody who did
// not see it.
func (w *logWriter[T]) check(ctx context.Context, values []T, appended error) error {
	e, err := w.log.ids.head(ctx)
	if err != nil {
		return errors.Join(appended, err)
	}
	missing := len(w.missing(e.value, values))
	if missing == 0 {
		return nil
	}
	if appended != nil {
		return appended
	}
	return &lance.Error{
		Class: lance.Conflict, Op: "append", URI: w.log.uri,
		Message: fmt.Sprintf("version %d lacks %d of %d rows just appended", e.version, missing, len(values)),
	}
}

func (w *logWriter[T]) tryAppend(ctx context.Context, values []T) error {
	known, err := w.log.ids.head(ctx)
	if err != nil {
		return err
	}
	added := w.missing(known.value, values)
	if len(added) == 0 {
		return nil
	}
	every := min(rewriteEvery+len(known.value)/rowsPerAppend, rewriteAtLeast)
	if known.version > 0 && (known.version+1)%uint64(every) == 0 {
		return w.rewrite(ctx, known.version, known.etag, added)
	}
	return w.add(ctx, added)
}

func (w *logWriter[T]) add(ctx context.Context, added []T) error {
	record := w.log.codec.encode(added)
	defer record.Release()
	o := lance.AppendOptions{Create: true, Properties: withAction(nil, w.action)}
	if _, err := w.writer.Append(ctx, w.log.uri, []arrow.RecordBatch{record}, record.Schema(), o); err != nil {
		return fmt.Errorf("append %d rows to %s: %w", len(added), w.log.uri, err)
	}
	return nil
}

// rewrite commits everything at once over the version whose ids were looked at.
// When somebody else was faster, the error is a conflict, and the next attempt is
// a plain append most of the time.
func (w *logWriter[T]) rewrite(ctx context.Context, version uint64, etag string, added []T) error {
	base, err := w.log.table.head(ctx)
	if err != nil {
		return err
	}
	if base.version != version || base.etag != etag {
		return &lance.Error{Class: lance.Conflict, Op: "rewrite", URI: w.log.uri, Message: "it moved while its ids were looked at"}
	}
	rows := slices.Concat(added, base.value)
	w.log.sort(rows)
	record := w.log.codec.encode(w.trim(rows))
	defer record.Release()
	_, err = w.writer.CommitSnapshot(ctx, w.log.uri, version, []arrow.RecordBatch{record}, record.Schema(), withAction(nil, w.action))
	if err != nil {
		return fmt.Errorf("rewrite %s over version %d: %w", w.log.uri, version, err)
	}
	if _, err := w.writer.CleanupVersions(ctx, w.log.uri, oldVersions, versionsAtLeast); err != nil {
		slog.WarnContext(ctx, "old versions stay: cleaning up did not work", "table", w.log.uri, "error", err)
	}
	return nil
}

// missing are the values that are not there, each once.
func (w *logWriter[T]) missing(there map[string]bool, values []T) []T {
	added := make([]T, 0, len(values))
	mine := make(map[string]bool, len(values))
	for i := range values {
		if id := w.log.id(&values[i]); !there[id] && !mine[id] {
			mine[id] = true
			added = append(added, values[i])
		}
	}
	return added
}
