package store

import (
	"math"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// A kind of column for each type that our tables use. Those that may be null hold
// null where the value is the unknown one, so that other programs see no magic
// numbers; upstream's columns are never null and hold the number.

func intColumn[T any](name string, nullable bool, unknown int64, at func(*T) *int64) column[T] {
	return column[T]{
		field: arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Int64, Nullable: nullable},
		put: func(b array.Builder, v *T) {
			if n := *at(v); nullable && n == unknown {
				b.AppendNull()
			} else {
				b.(*array.Int64Builder).Append(n)
			}
		},
		bind: func(a arrow.Array, _ *interner) getter[T] {
			read := integers(a)
			if read == nil {
				return nil
			}
			return func(i int, v *T) { *at(v) = read(i) }
		},
		unknown: func(v *T) { *at(v) = unknown },
	}
}

// countColumn is an int column for an unsigned value, whose unknown is 0.
func countColumn[T any](name string, nullable bool, at func(*T) *uint64) column[T] {
	return column[T]{
		field: arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Int64, Nullable: nullable},
		put: func(b array.Builder, v *T) {
			if n := *at(v); nullable && n == 0 {
				b.AppendNull()
			} else {
				b.(*array.Int64Builder).Append(int64(n))
			}
		},
		bind: func(a arrow.Array, _ *interner) getter[T] {
			read := integers(a)
			if read == nil {
				return nil
			}
			return func(i int, v *T) { *at(v) = uint64(read(i)) }
		},
		unknown: func(v *T) { *at(v) = 0 },
	}
}

func boolColumn[T any](name string, unknown bool, at func(*T) *bool) column[T] {
	return column[T]{
		field: arrow.Field{Name: name, Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
		put:   func(b array.Builder, v *T) { b.(*array.BooleanBuilder).Append(*at(v)) },
		bind: func(a arrow.Array, _ *interner) getter[T] {
			bools, ok := a.(*array.Boolean)
			if !ok {
				return nil
			}
			return func(i int, v *T) { *at(v) = bools.Value(i) }
		},
		unknown: func(v *T) { *at(v) = unknown },
	}
}

func floatColumn[T any](name string, at func(*T) *float64) column[T] {
	return column[T]{
		field: arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Float64, Nullable: true},
		put:   func(b array.Builder, v *T) { b.(*array.Float64Builder).Append(*at(v)) },
		bind: func(a arrow.Array, _ *interner) getter[T] {
			floats, ok := a.(*array.Float64)
			if !ok {
				return nil
			}
			return func(i int, v *T) { *at(v) = floats.Value(i) }
		},
		unknown: func(v *T) { *at(v) = 0 },
	}
}

// textColumn's unknown is the empty string.
func textColumn[S ~string, T any](name string, nullable bool, at func(*T) *S) column[T] {
	return column[T]{
		field: arrow.Field{Name: name, Type: arrow.BinaryTypes.String, Nullable: nullable},
		put: func(b array.Builder, v *T) {
			if s := *at(v); nullable && s == "" {
				b.AppendNull()
			} else {
				b.(*array.StringBuilder).Append(valid(string(s)))
			}
		},
		bind: func(a arrow.Array, in *interner) getter[T] {
			read := texts(a)
			if read == nil {
				return nil
			}
			return func(i int, v *T) { *at(v) = S(in.text(read(i))) }
		},
		unknown: func(v *T) { *at(v) = "" },
	}
}

// valid keeps one odd sentence, such as a path in an error, from making a whole
// table unreadable: Arrow's text is UTF-8.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// uniqueColumn is a text column whose values hardly ever repeat.
func uniqueColumn[T any](name string, nullable bool, at func(*T) *string) column[T] {
	c := textColumn(name, nullable, at)
	c.bind = func(a arrow.Array, _ *interner) getter[T] {
		read := texts(a)
		if read == nil {
			return nil
		}
		return func(i int, v *T) { *at(v) = strings.Clone(read(i)) }
	}
	return c
}

// textsColumn is a list of strings; none and unknown are both null.
func textsColumn[T any](name string, at func(*T) *[]string) column[T] {
	return column[T]{
		field: arrow.Field{Name: name, Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true},
		put: func(b array.Builder, v *T) {
			list := b.(*array.ListBuilder)
			if len(*at(v)) == 0 {
				list.AppendNull()
				return
			}
			list.Append(true)
			items := list.ValueBuilder().(*array.StringBuilder)
			for _, s := range *at(v) {
				items.Append(valid(s))
			}
		},
		bind: func(a arrow.Array, in *interner) getter[T] {
			list, ok := a.(array.ListLike)
			if !ok {
				return nil
			}
			read := texts(list.ListValues())
			if read == nil {
				return nil
			}
			return func(i int, v *T) {
				from, to := list.ValueOffsets(i)
				all := make([]string, 0, to-from)
				for j := from; j < to; j++ {
					all = append(all, in.text(read(int(j))))
				}
				*at(v) = all
			}
		},
		unknown: func(v *T) { *at(v) = nil },
	}
}

// listColumn is a list of structs, whose fields are the columns of another codec.
// None and unknown are both null.
func listColumn[E, T any](name string, fields codec[E], at func(*T) *[]E) column[T] {
	item := arrow.StructOf(fields.schema.Fields()...)
	return column[T]{
		field: arrow.Field{Name: name, Type: arrow.ListOf(item), Nullable: true},
		put: func(b array.Builder, v *T) {
			list := b.(*array.ListBuilder)
			if len(*at(v)) == 0 {
				list.AppendNull()
				return
			}
			list.Append(true)
			items := list.ValueBuilder().(*array.StructBuilder)
			for i := range *at(v) {
				items.Append(true)
				for j, col := range fields.columns {
					col.put(items.FieldBuilder(j), &(*at(v))[i])
				}
			}
		},
		bind:    func(a arrow.Array, in *interner) getter[T] { return bindList(a, in, fields, at) },
		unknown: func(v *T) { *at(v) = nil },
	}
}

func bindList[E, T any](a arrow.Array, in *interner, fields codec[E], at func(*T) *[]E) getter[T] {
	list, ok := a.(array.ListLike)
	if !ok {
		return nil
	}
	items, ok := list.ListValues().(*array.Struct)
	if !ok {
		return nil
	}
	readers := make([]func(i int, e *E), len(fields.columns))
	for j, col := range fields.columns {
		readers[j] = bindField(items, in, col)
	}
	return func(i int, v *T) {
		from, to := list.ValueOffsets(i)
		all := make([]E, to-from)
		for k := range all {
			for _, read := range readers {
				read(int(from)+k, &all[k])
			}
		}
		*at(v) = all
	}
}

func bindField[E any](items *array.Struct, in *interner, col column[E]) func(i int, e *E) {
	var arr arrow.Array
	var get getter[E]
	if at, ok := items.DataType().(*arrow.StructType).FieldIdx(col.field.Name); ok {
		arr = items.Field(at)
		get = col.bind(arr, in)
	}
	return func(i int, e *E) {
		if get == nil || arr.IsNull(i) {
			col.unknown(e)
		} else {
			get(i, e)
		}
	}
}

// integers reads any type that other writers use for whole numbers; nil if it is
// none. Times are milliseconds whatever their unit.
func integers(a arrow.Array) func(i int) int64 {
	switch a := a.(type) {
	case *array.Int64:
		return a.Value
	case *array.Uint64:
		return func(i int) int64 { return int64(a.Value(i)) }
	case *array.Int32:
		return func(i int) int64 { return int64(a.Value(i)) }
	case *array.Uint32:
		return func(i int) int64 { return int64(a.Value(i)) }
	case *array.Float64: // pandas makes whole numbers with a gap into these
		return func(i int) int64 {
			if f := a.Value(i); !math.IsNaN(f) {
				return int64(math.Round(f))
			}
			return -1
		}
	case *array.Timestamp:
		unit := a.DataType().(*arrow.TimestampType).Unit
		return func(i int) int64 { return a.Value(i).ToTime(unit).UnixMilli() }
	}
	return nil
}

// texts reads any type that other writers use for strings; nil if it is none. The
// strings share memory with the array.
func texts(a arrow.Array) func(i int) string {
	switch a := a.(type) {
	case *array.String:
		return a.Value
	case *array.LargeString:
		return a.Value
	case *array.StringView:
		return a.Value
	case *array.Dictionary:
		words := texts(a.Dictionary())
		if words == nil {
			return nil
		}
		return func(i int) string { return words(a.GetValueIndex(i)) }
	}
	return nil
}
