package store_test

import (
	"reflect"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/store"
)

func schemaSuite() map[string]func(*testing.T, *backend) {
	return map[string]func(*testing.T, *backend){
		"nine upstream columns with data read, and migrate on the first commit": schemaNine,
		"ten upstream columns read":                         schemaTen,
		"columns of ours that are missing read as unknown":  schemaMissing,
		"foreign columns do not hurt and go with a commit":  schemaForeign,
		"a column of an odd type reads as unknown":          schemaOddType,
		"of a name twice the row confirmed last counts":     schemaTwice,
		"names that are none of ours are told and left out": schemaNames,
		"a table without names is corrupt":                  schemaCorrupt,
		"upstream reads its ten columns in what we write":   schemaUpstreamReads,
		"every field of a row survives":                     schemaEveryField,
	}
}

// upstreamFields are lance-context's columns, the first n of them, as COMPAT says.
func upstreamFields(n int) []arrow.Field {
	fields := []arrow.Field{{Name: "name", Type: arrow.BinaryTypes.String}, {Name: "uri", Type: arrow.BinaryTypes.String}}
	for _, name := range []string{
		"row_count", "fragment_count", "last_updated", "pending_wal_generations",
		"last_compaction", "total_compactions", "scanned_at", "version",
	} {
		fields = append(fields, arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Int64})
	}
	return fields[:n]
}

func upstreamValues(name string) []any {
	return []any{name, "/data/" + name, int64(11), int64(12), int64(13), int64(14), int64(15), int64(16), int64(17), int64(18)}
}

// table makes one record from rows of values.
func table(t *testing.T, fields []arrow.Field, rows [][]any) []arrow.RecordBatch {
	t.Helper()
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	defer b.Release()
	for _, row := range rows {
		for i := range fields {
			switch v := row[i].(type) {
			case nil:
				b.Field(i).AppendNull()
			case string:
				b.Field(i).(*array.StringBuilder).Append(v)
			case bool:
				b.Field(i).(*array.BooleanBuilder).Append(v)
			case int64:
				b.Field(i).(*array.Int64Builder).Append(v)
			default:
				t.Fatalf("a value of type %T", v)
			}
		}
	}
	return []arrow.RecordBatch{b.NewRecordBatch()}
}

const statsName = "_stats.rollout.lance"

func schemaNine(t *testing.T, b *backend) {
	b.write(t, statsName, table(t, upstreamFields(9), [][]any{upstreamValues("a"), upstreamValues("generic:b")})[0])
	s, w := newStats(b)
	before := latest(t, s)
	require.Len(t, before.Rows, 2)
	row, ok := before.Row(fleet.ID{Kind: fleet.Rollout, Name: "a"})
	require.True(t, ok)
	want := fleet.UnknownRow(fleet.Experiment{ID: row.ID, URI: "/data/a"})
	want.Known, want.RowCount, want.FragmentCount, want.LastWrite, want.PendingWAL = true, 11, 12, 13, 14
	want.LastCompaction, want.TotalCompactions, want.ScannedAt = 15, 16, 17
	require.Equal(t, want, *row, "data kept; version and everything of ours unknown")
	commit(t, w, before, before.Rows)
	require.Equal(t, before.Rows, latest(t, s).Rows)
	require.Equal(t, store.StatsSchema().Fields()[:10], schemaOf(t, b).Fields()[:10])
}

func schemaOf(t *testing.T, b *backend) *arrow.Schema {
	t.Helper()
	read, err := b.Writer.ReadTable(t.Context(), b.dir+"/"+statsName, lance.ReadOptions{})
	require.NoError(t, err)
	defer read.Release()
	fields := make([]arrow.Field, len(read.Schema.Fields()))
	for i, f := range read.Schema.Fields() {
		fields[i] = arrow.Field{Name: f.Name, Type: f.Type, Nullable: f.Nullable}
	}
	return arrow.NewSchema(fields, nil)
}

func schemaTen(t *testing.T, b *backend) {
	b.write(t, statsName, table(t, upstreamFields(10), [][]any{upstreamValues("table:c")})[0])
	s, _ := newStats(b)
	row, ok := latest(t, s).Row(fleet.ID{Kind: fleet.Table, Name: "c"})
	require.True(t, ok)
	require.EqualValues(t, 18, row.Version)
	require.True(t, row.Known)
	require.Zero(t, row.ObservedAt)
	require.Zero(t, row.Fingerprint)
}

func schemaMissing(t *testing.T, b *backend) {
	fields := append(upstreamFields(10), arrow.Field{Name: "bytes", Type: arrow.PrimitiveTypes.Int64, Nullable: true})
	b.write(t, statsName, table(t, fields, [][]any{append(upstreamValues("a"), int64(19)), append(upstreamValues("b"), nil)})[0])
	s, _ := newStats(b)
	rows := latest(t, s).Rows
	require.EqualValues(t, 19, rows[0].Bytes)
	require.EqualValues(t, -1, rows[1].Bytes)
	require.EqualValues(t, -1, rows[0].PendingRows)
}

func schemaForeign(t *testing.T, b *backend) {
	fields := append(upstreamFields(10), arrow.Field{Name: "somebody_elses", Type: arrow.PrimitiveTypes.Int64, Nullable: true})
	b.write(t, statsName, table(t, fields, [][]any{append(upstreamValues("a"), int64(19))})[0])
	s, w := newStats(b)
	require.Len(t, latest(t, s).Rows, 1)
	commit(t, w, latest(t, s), latest(t, s).Rows)
	require.Empty(t, schemaOf(t, b).FieldIndices("somebody_elses"))
}

func schemaOddType(t *testing.T, b *backend) {
	fields := append(upstreamFields(10), arrow.Field{Name: "bytes", Type: arrow.BinaryTypes.String, Nullable: true},
		arrow.Field{Name: "shards", Type: arrow.PrimitiveTypes.Int64, Nullable: true})
	b.write(t, statsName, table(t, fields, [][]any{append(upstreamValues("a"), "many", int64(4))})[0])
	s, _ := newStats(b)
	row := latest(t, s).Rows[0]
	require.EqualValues(t, -1, row.Bytes)
	require.Nil(t, row.Shards)
	require.EqualValues(t, 11, row.RowCount)
}

func schemaTwice(t *testing.T, b *backend) {
	older, newer := upstreamValues("a"), upstreamValues("a")
	newer[2], newer[8] = int64(99), int64(18)
	b.write(t, statsName, table(t, upstreamFields(10), [][]any{newer, older})[0])
	s, _ := newStats(b)
	rows := latest(t, s).Rows
	require.Len(t, rows, 1)
	require.EqualValues(t, 99, rows[0].RowCount)
}

func schemaNames(t *testing.T, b *backend) {
	b.write(t, statsName, table(t, upstreamFields(10), [][]any{upstreamValues("../../etc"), upstreamValues("a"), upstreamValues("what:ever")})[0])
	s, _ := newStats(b)
	snapshot := latest(t, s)
	require.Len(t, snapshot.Rows, 1)
	require.Equal(t, []string{"../../etc", "what:ever"}, snapshot.Skipped)
}

func schemaCorrupt(t *testing.T, b *backend) {
	b.write(t, statsName, table(t, upstreamFields(10)[1:], [][]any{upstreamValues("a")[1:]})[0])
	s, _ := newStats(b)
	_, err := s.Latest(t.Context())
	require.ErrorIs(t, err, lance.ErrCorrupt)
	require.ErrorContains(t, err, `"name"`)
	require.ErrorContains(t, err, b.dir+"/"+statsName)
}

func schemaUpstreamReads(t *testing.T, b *backend) {
	s, w := newStats(b)
	row := fleet.UnknownRow(fleet.Experiment{ID: fleet.ID{Kind: fleet.Datagen, Name: "d"}, URI: "/d"})
	commit(t, w, latest(t, s), []fleet.Row{row})
	require.Equal(t, upstreamFields(10), schemaOf(t, b).Fields()[:10], "names, types, not null, order")
	for _, f := range schemaOf(t, b).Fields()[10:] {
		require.True(t, f.Nullable, f.Name)
	}
	names := []string{}
	for _, f := range upstreamFields(10) {
		names = append(names, f.Name)
	}
	read, err := b.Writer.ReadTable(t.Context(), b.dir+"/"+statsName, lance.ReadOptions{Columns: names})
	require.NoError(t, err)
	defer read.Release()
	record := read.Records[0]
	require.Equal(t, "datagen:d", record.Column(0).(*array.String).Value(0))
	values := []int64{}
	for _, column := range record.Columns()[2:] {
		require.Zero(t, column.NullN())
		values = append(values, column.(*array.Int64).Value(0))
	}
	require.Equal(t, []int64{-1, -1, 0, -1, -1, 0, 0, -1}, values)
}

func schemaEveryField(t *testing.T, b *backend) {
	var n int64
	row := fleet.Row{}
	fill(t, reflect.ValueOf(&row).Elem(), &n)
	row.ID = fleet.ID{Kind: fleet.Generic, Name: "full"}
	other := fleet.UnknownRow(experiment(1))
	marked := row
	marked.Kind = fleet.Table
	marked.Fingerprint.Shards = []fleet.ShardMark{row.Shards[0].ShardMark, row.Shards[1].ShardMark}
	noMarks := row
	noMarks.Kind = fleet.Datagen
	noMarks.Fingerprint.Shards = nil
	s, w := newStats(b)
	rows := []fleet.Row{noMarks, row, other, marked}
	commit(t, w, latest(t, s), rows)
	require.Equal(t, rows, latest(t, s).Rows)
}

// fill gives every field another value that is neither zero nor unknown, so that
// a field without a column can't come back.
func fill(t *testing.T, v reflect.Value, n *int64) {
	t.Helper()
	*n++
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(t, v.Index(0), n)
		fill(t, v.Index(1), n)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), n)
	case reflect.String:
		v.SetString("text-" + string(rune('a'+*n%26)) + string(rune('a'+*n/26%26)))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int64:
		v.SetInt(*n)
	case reflect.Uint64:
		v.SetUint(uint64(*n))
	case reflect.Float64:
		v.SetFloat(float64(*n) / 4)
	default:
		t.Fatalf("a field of kind %s needs a value here and a column in the table", v.Kind())
	}
}

func TestAnErrorSentenceThatIsNoTextHurtsNobody(t *testing.T) {
	b := memoryBackend()
	s, w := newStats(b)
	row := observedRow(1, 1)
	row.Error, row.Tags = "open /data/\xff: denied", []string{"\xfe"}
	commit(t, w, latest(t, s), []fleet.Row{row})
	back := latest(t, s).Rows[0]
	require.Equal(t, "open /data/\uFFFD: denied", back.Error)
	require.Equal(t, []string{"\uFFFD"}, back.Tags)
}

func TestAnyRowsSurviveAStagedPage(t *testing.T) {
	b := memoryBackend()
	staging := store.NewStaging(b, b.dir)
	rapid.Check(t, func(rt *rapid.T) {
		ids := rapid.SliceOfNDistinct(rapid.StringMatching(`[A-Za-z0-9_][A-Za-z0-9._-]{1,12}`), 0, 6, rapid.ID[string]).Draw(rt, "names")
		var rows []fleet.Row
		for _, name := range ids {
			row := anyRow(rt)
			row.ID = fleet.ID{Kind: rapid.SampledFrom(fleet.Kinds()).Draw(rt, "kind"), Name: "x" + name}
			rows = append(rows, row)
		}
		key, err := staging.PutPage(t.Context(), "round", 1, 1, rows)
		if err != nil {
			rt.Fatal(err)
		}
		back, err := staging.Page(t.Context(), key)
		if err != nil {
			rt.Fatal(err)
		}
		sortRows(rows)
		if len(rows) != len(back) {
			rt.Fatalf("%d rows became %d", len(rows), len(back))
		}
		for i := range rows {
			if !reflect.DeepEqual(rows[i], back[i]) {
				rt.Fatalf("row %d\n%+v became\n%+v", i, rows[i], back[i])
			}
		}
	})
}

func anyRow(rt *rapid.T) fleet.Row {
	var row fleet.Row
	draw(rt, reflect.ValueOf(&row).Elem(), "row")
	if !rapid.Bool().Draw(rt, "marks differ from shards") {
		row.Fingerprint.Shards = nil
		for _, s := range row.Shards {
			row.Fingerprint.Shards = append(row.Fingerprint.Shards, s.ShardMark)
		}
	}
	return row
}

func draw(rt *rapid.T, v reflect.Value, at string) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			draw(rt, v.Field(i), v.Type().Field(i).Name)
		}
	case reflect.Slice: // none is nil
		if n := rapid.IntRange(0, 3).Draw(rt, at); n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				draw(rt, v.Index(i), at)
			}
		}
	case reflect.String:
		v.SetString(rapid.OneOf(rapid.Just(""), rapid.String()).Draw(rt, at))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(rt, at))
	case reflect.Int64:
		v.SetInt(rapid.Int64Range(-1, 1<<62).Draw(rt, at))
	case reflect.Uint64:
		v.SetUint(rapid.Uint64().Draw(rt, at))
	}
}
