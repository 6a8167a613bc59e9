package lance

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// numbers is a schema of one column.
var numbers = arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)

// record of numbers from..to-1.
func record(from, to int64) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, numbers)
	defer b.Release()
	for n := from; n < to; n++ {
		b.Field(0).(*array.Int64Builder).Append(n)
	}
	return b.NewRecordBatch()
}

// textSchema has a string, a nullable number and a binary column.
var textSchema = arrow.NewSchema([]arrow.Field{
	{Name: "name", Type: arrow.BinaryTypes.String},
	{Name: "rows", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "payload", Type: arrow.BinaryTypes.LargeBinary, Nullable: true},
}, nil)

// texts is a record with unicode names, and every third number and payload null.
func texts(n int) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, textSchema)
	defer b.Release()
	for i := range n {
		b.Field(0).(*array.StringBuilder).Append(fmt.Sprintf("実験-%d-ñ-🚀", i))
		if i%3 == 0 {
			b.Field(1).AppendNull()
			b.Field(2).AppendNull()
			continue
		}
		b.Field(1).(*array.Int64Builder).Append(int64(i))
		b.Field(2).(*array.BinaryBuilder).Append(bytes.Repeat([]byte{byte(i)}, i%40))
	}
	return b.NewRecordBatch()
}

// equalRows compares tables row by row, whatever their batches are.
func equalRows(t *testing.T, want []arrow.RecordBatch, got *Table) {
	t.Helper()
	a, b := array.NewTableFromRecords(want[0].Schema(), want), array.NewTableFromRecords(got.Schema, got.Records)
	defer a.Release()
	defer b.Release()
	require.Equal(t, a.NumRows(), b.NumRows())
	require.Equal(t, a.NumCols(), b.NumCols())
	for i := range int(a.NumCols()) {
		require.Equal(t, a.Column(i).Name(), b.Column(i).Name())
		assert.True(t, array.ChunkedEqual(a.Column(i).Data(), b.Column(i).Data()), "column %s differs", a.Column(i).Name())
	}
}

func TestRecordsSurviveEncodingAndDecoding(t *testing.T) {
	whole := texts(1000)
	slice := whole.NewSlice(10, 20)
	for name, records := range map[string][]arrow.RecordBatch{
		"several records": {whole, texts(1), texts(0)},
		"a slice":         {slice},
		"no rows":         {texts(0)},
	} {
		t.Run(name, func(t *testing.T) {
			stream, err := encodeTable("append", "/x", records, nil)
			require.NoError(t, err)
			table, err := decodeTable(stream)
			require.NoError(t, err)
			equalRows(t, records, table)
			table.Release()
			table.Release()
			assert.Zero(t, table.Rows())
		})
	}
}

func TestASchemaWithoutRecordsIsATable(t *testing.T) {
	stream, err := encodeTable("append", "/x", nil, textSchema)
	require.NoError(t, err)
	table, err := decodeTable(stream)
	require.NoError(t, err)
	assert.True(t, table.Schema.Equal(textSchema))
	assert.Zero(t, table.Rows())
}

func TestRecordsThatCannotBeATableAreRefused(t *testing.T) {
	for name, records := range map[string][]arrow.RecordBatch{
		"a nil record":       {nil},
		"different schemas":  {record(0, 1), texts(1)},
		"another than asked": {texts(1)},
	} {
		_, err := encodeTable("append", "/x", records, numbers)
		require.ErrorIs(t, err, ErrInvalid, name)
		assert.ErrorContains(t, err, "/x")
	}
}

func TestATruncatedTableIsAnError(t *testing.T) {
	stream, err := encodeTable("append", "/x", []arrow.RecordBatch{texts(1000)}, nil)
	require.NoError(t, err)
	for _, n := range []int{0, 3, 100, len(stream) / 2} {
		_, err := decodeTable(stream[:n])
		assert.Error(t, err, "%d of %d bytes", n, len(stream))
	}
}

// The stream is the library's memory: it is gone when the call returns.
func TestADecodedTableDoesNotShareTheStream(t *testing.T) {
	want := []arrow.RecordBatch{texts(500)}
	stream, err := encodeTable("append", "/x", want, nil)
	require.NoError(t, err)
	table, err := decodeTable(stream)
	require.NoError(t, err)
	clear(stream)
	equalRows(t, want, table)
}

func TestManySlicesOfOneRecordDoNotReserveItManyTimes(t *testing.T) {
	whole := record(0, 100_000)
	records := make([]arrow.RecordBatch, 100)
	for i := range records {
		records[i] = whole.NewSlice(int64(i), int64(i)+1)
	}
	stream, err := encodeTable("append", "/x", records, nil)
	require.NoError(t, err)
	assert.Less(t, cap(stream), 4<<20)
}
