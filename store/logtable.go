package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"lancefleet/lance"
)

// logTable is a small table to which rows are only ever added: rounds, actions,
// entries of the ledger, samples.
type logTable[T any] struct {
	uri   string
	codec codec[T]
	id    func(*T) string
	at    func(*T) int64 // unix ms
	tidy  func([]T) []T  // what decoded rows, newest first, become; nil = nothing
	table *cachedTable[[]T]
	ids   *cachedTable[map[string]bool] // only the ids, for who appends
}

// newLogTable makes one whose id is made from the first columns of its codec.
func newLogTable[T any](r Reader, uri string, c codec[T], idColumns int, id func(*T) string, at func(*T) int64) *logTable[T] {
	l := &logTable[T]{uri: uri, codec: c, id: id, at: at}
	l.table = newCachedTable(r, uri, l.decode)
	l.ids = newCachedTable(r, uri, l.decodeIDs)
	for _, col := range c.columns[:max(idColumns, tellingColumns)] {
		l.ids.columns = append(l.ids.columns, col.field.Name)
	}
	return l
}

// tellingColumns are as many columns, from the first on, as each table of ours has had
// from its beginning: what lacks one of them is somebody else's, and neither read nor
// added to.
const tellingColumns = 2

func (l *logTable[T]) isOurs(t *lance.Table) error {
	if err := requireColumns(t, l.codec.columns[0].field.Name); err != nil {
		return err
	}
	for _, record := range t.Records {
		for _, col := range l.codec.columns[:tellingColumns] {
			if columnNamed(record, col.field.Name) == nil {
				return &lance.Error{Class: lance.Corrupt, Op: "decode", Message: fmt.Sprintf("it has no column %q", col.field.Name)}
			}
		}
	}
	return nil
}

// decode sorts newest first. The first column is the id, or its first part. An
// append that was tried twice at the same moment may be there twice: the first counts.
func (l *logTable[T]) decode(t *lance.Table, _ Version) ([]T, error) {
	if err := l.isOurs(t); err != nil {
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
	l.sort(rows)
	if l.tidy != nil {
		rows = l.tidy(rows)
	}
	return rows, nil
}

func (l *logTable[T]) decodeIDs(t *lance.Table, _ Version) (map[string]bool, error) {
	if err := l.isOurs(t); err != nil {
		return nil, err
	}
	rows := l.codec.decode(t)
	ids := make(map[string]bool, len(rows))
	for i := range rows {
		ids[l.id(&rows[i])] = true
	}
	return ids, nil
}

func (l *logTable[T]) sort(rows []T) {
	slices.SortStableFunc(rows, func(a, b T) int { return cmp.Compare(l.at(&b), l.at(&a)) })
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
