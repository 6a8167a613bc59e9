package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"lancefleet/lance"
)

// logTable is a small table to which rows are only ever added: rounds, actions.
type logTable[T any] struct {
	uri   string
	codec codec[T]
	id    func(*T) string
	at    func(*T) int64 // unix ms
	table *cachedTable[[]T]
}

func newLogTable[T any](r Reader, uri string, c codec[T], id func(*T) string, at func(*T) int64) *logTable[T] {
	l := &logTable[T]{uri: uri, codec: c, id: id, at: at}
	l.table = newCachedTable(r, uri, l.decode)
	return l
}

// decode sorts newest first. The first column is the id. An append that was tried twice at the same moment
// may be there twice: the first counts.
func (l *logTable[T]) decode(t *lance.Table, _ Version) ([]T, error) {
	if err := requireColumns(t, l.codec.columns[0].field.Name); err != nil {
		return nil, err
	}
	rows := l.codec.decode(t)
	seen := make(map[string]bool, len(rows))
	rows = slices.DeleteFunc(rows, func(row T) bool {
		id := l.id(&row)
		twice := seen[id]
		seen[id] = true
		return twice || id == ""
	})
	slices.SortStableFunc(rows, func(a, b T) int { return cmp.Compare(l.at(&b), l.at(&a)) })
	return rows, nil
}

// latest returns the newest rows, newest first; n <= 0 means all. No table is no rows.
func (l *logTable[T]) latest(ctx context.Context, n int) ([]T, error) {
	e, err := l.table.head(ctx)
	if err != nil {
		return nil, err
	}
	rows := e.value
	if n > 0 && n < len(rows) {
		rows = rows[:n]
	}
	return slices.Clone(rows), nil
}

// logWriter appends to a logTable. Every append makes a file and a version, so one
// append in rewriteEvery makes the table anew: in one file, without rows that are
// too old, and removes versions that nobody reads any more.
type logWriter[T any] struct {
	writer Writer
	log    *logTable[T]
	action string
	trim   func([]T) []T // newest first, in and out
}

const (
	rewriteEvery    = 32
	oldVersions     = time.Hour // a reader of an older version has long finished
	versionsAtLeast = 2
)

// append adds the values whose ids the table does not have yet.
func (w *logWriter[T]) append(ctx context.Context, values []T) error {
	for attempt := 1; ; attempt++ {
		err := w.tryAppend(ctx, values)
		if !errors.Is(err, lance.ErrConflict) || attempt == conflictAttempts {
			return err
		}
		if err := backOff(ctx, attempt); err != nil {
			return err
		}
	}
}

func (w *logWriter[T]) tryAppend(ctx context.Context, values []T) error {
	e, err := w.log.table.head(ctx)
	if err != nil {
		return err
	}
	added := w.missing(e.value, values)
	if len(added) == 0 {
		return nil
	}
	if e.version > 0 && (e.version+1)%rewriteEvery == 0 {
		return w.rewrite(ctx, e, added)
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

// rewrite commits everything at once. When somebody else was faster, the error is
// a conflict, and the next attempt is a plain append most of the time.
func (w *logWriter[T]) rewrite(ctx context.Context, base *edition[[]T], added []T) error {
	rows := slices.Concat(added, base.value)
	slices.SortStableFunc(rows, func(a, b T) int { return cmp.Compare(w.log.at(&b), w.log.at(&a)) })
	record := w.log.codec.encode(w.trim(rows))
	defer record.Release()
	_, err := w.writer.CommitSnapshot(ctx, w.log.uri, base.version, []arrow.RecordBatch{record}, record.Schema(), withAction(nil, w.action))
	if err != nil {
		return fmt.Errorf("rewrite %s over version %d: %w", w.log.uri, base.version, err)
	}
	if _, err := w.writer.CleanupVersions(ctx, w.log.uri, oldVersions, versionsAtLeast); err != nil {
		slog.WarnContext(ctx, "old versions stay: cleaning up did not work", "table", w.log.uri, "error", err)
	}
	return nil
}

// missing are the values that are not there, each once.
func (w *logWriter[T]) missing(there, values []T) []T {
	known := make(map[string]bool, len(there)+len(values))
	for i := range there {
		known[w.log.id(&there[i])] = true
	}
	var added []T
	for i := range values {
		if id := w.log.id(&values[i]); !known[id] {
			known[id] = true
			added = append(added, values[i])
		}
	}
	return added
}
