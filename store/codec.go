package store

import (
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"lancefleet/lance"
)

// column is one column of a table of Ts: how a value goes in and comes out.
// Reading is tolerant: a column that a table lacks, one of a type that can't
// stand for it, and a null all read as unknown.
type column[T any] struct {
	field   arrow.Field
	put     func(array.Builder, *T)
	bind    func(arrow.Array, *interner) getter[T] // nil: the type can't be read
	unknown func(*T)
}

// getter reads row i into v. It is never asked for nulls.
type getter[T any] func(i int, v *T)

// codec turns values into records and back.
type codec[T any] struct {
	columns []column[T]
	schema  *arrow.Schema
}

func newCodec[T any](columns []column[T]) codec[T] {
	fields := make([]arrow.Field, len(columns))
	for i, c := range columns {
		fields[i] = c.field
	}
	return codec[T]{columns: columns, schema: arrow.NewSchema(fields, nil)}
}

// encode makes one record of all values. Release it.
func (c codec[T]) encode(values []T) arrow.RecordBatch {
	columns := make([]arrow.Array, len(c.columns))
	for i, col := range c.columns {
		b := array.NewBuilder(memory.DefaultAllocator, col.field.Type)
		b.Reserve(len(values))
		for j := range values {
			col.put(b, &values[j])
		}
		columns[i] = b.NewArray()
		b.Release()
	}
	record := array.NewRecordBatch(c.schema, columns, int64(len(values)))
	for _, a := range columns {
		a.Release()
	}
	return record
}

// decode reads all rows of a table. Nothing of the result shares memory with it.
func (c codec[T]) decode(t *lance.Table) []T {
	values := make([]T, t.Rows())
	in := newInterner()
	from := 0
	for _, record := range t.Records {
		c.decodeRecord(record, in, values[from:from+int(record.NumRows())])
		from += int(record.NumRows())
	}
	return values
}

func (c codec[T]) decodeRecord(record arrow.RecordBatch, in *interner, into []T) {
	for _, col := range c.columns {
		arr := columnNamed(record, col.field.Name)
		var get getter[T]
		if arr != nil {
			get = col.bind(arr, in)
		}
		for i := range into {
			if get == nil || arr.IsNull(i) {
				col.unknown(&into[i])
			} else {
				get(i, &into[i])
			}
		}
	}
}

func columnNamed(record arrow.RecordBatch, name string) arrow.Array {
	found := record.Schema().FieldIndices(name)
	if len(found) == 0 {
		return nil
	}
	return record.Column(found[0])
}

// interner keeps one copy of strings that many rows share: kinds, classes,
// sentences, names of shards. What it returns never shares memory with a record.
type interner struct{ seen map[string]string }

// A table of distinct strings must not be kept a second time in the map.
const internerLimit = 10_000

func newInterner() *interner { return &interner{seen: map[string]string{}} }

func (in *interner) text(s string) string {
	if s == "" {
		return ""
	}
	if known, ok := in.seen[s]; ok {
		return known
	}
	own := strings.Clone(s)
	if len(in.seen) < internerLimit {
		in.seen[own] = own
	}
	return own
}
