package lance

import (
	"bytes"
	"context"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Head is the newest version of a dataset.
type Head struct {
	Version uint64 `json:"version"`
	ETag    string `json:"etag"` // of its manifest; a version number alone may come back after drop and recreate
	Time    int64  `json:"time"` // of the commit
}

// Head asks for the newest version. A dataset that does not exist is [ErrGone].
func (r *Reader) Head(ctx context.Context, uri string) (Head, error) {
	const op = "head"
	if err := checkURI(op, uri); err != nil {
		return Head{}, err
	}
	return ask[Head](ctx, r, op, uri, uriArgs{uri}, nil)
}

type uriArgs struct {
	URI string `json:"uri"`
}

// ReadOptions say what of a table to read.
type ReadOptions struct {
	Version uint64   // 0 = newest
	Columns []string // nil = all
}

// Table is one version of a small table, in memory.
type Table struct {
	Version uint64
	ETag    string
	Schema  *arrow.Schema
	Records []arrow.RecordBatch
}

// Rows counts the rows of all records.
func (t *Table) Rows() int64 {
	var n int64
	for _, r := range t.Records {
		n += r.NumRows()
	}
	return n
}

// Release gives the records back. Releasing again does nothing.
func (t *Table) Release() {
	if t == nil {
		return
	}
	for _, r := range t.Records {
		r.Release()
	}
	t.Records = nil
}

// ReadTable reads a whole table, or some columns of it, into memory: meant for
// tables of at most some hundred thousand rows. Release the result.
func (r *Reader) ReadTable(ctx context.Context, uri string, o ReadOptions) (*Table, error) {
	const op = "read_table"
	if err := checkURI(op, uri); err != nil {
		return nil, err
	}
	for _, c := range o.Columns {
		if err := checkText(op, uri, "a column's name", c); err != nil {
			return nil, err
		}
	}
	args := struct {
		URI     string   `json:"uri"`
		Version uint64   `json:"version,omitempty"`
		Columns []string `json:"columns,omitempty"`
	}{uri, o.Version, o.Columns}
	var table *Table
	err := r.call(ctx, op, uri, args, nil, func(js, body []byte) error {
		var head Head
		if err := decode(js, op, uri, &head); err != nil {
			return err
		}
		var err error
		table, err = decodeTable(body)
		if err != nil {
			return &Error{Class: Internal, Op: op, URI: uri, Message: "the library's table cannot be read: " + err.Error()}
		}
		table.Version, table.ETag = head.Version, head.ETag
		return nil
	})
	if err != nil {
		return nil, err
	}
	return table, nil
}

// decodeTable copies an IPC stream into records: the only copy that is made.
func decodeTable(stream []byte) (*Table, error) {
	reader, err := ipc.NewReader(bytes.NewReader(stream))
	if err != nil {
		return nil, err
	}
	defer reader.Release()
	table := &Table{Schema: reader.Schema()}
	for reader.Next() {
		record := reader.RecordBatch()
		record.Retain()
		table.Records = append(table.Records, record)
	}
	if err := reader.Err(); err != nil {
		table.Release()
		return nil, err
	}
	return table, nil
}

// encodeTable writes records as an IPC stream. The schema may be nil when there
// is a record to take it from.
func encodeTable(op, uri string, records []arrow.RecordBatch, schema *arrow.Schema) ([]byte, error) {
	invalid := func(message string) error {
		return &Error{Class: Invalid, Op: op, URI: uri, Message: message}
	}
	sizes := bufferSizes{seen: map[*memory.Buffer]struct{}{}}
	for _, r := range records {
		if r == nil {
			return nil, invalid("a record is nil")
		}
		if schema == nil {
			schema = r.Schema()
		}
		for _, column := range r.Columns() {
			sizes.add(column.Data())
		}
	}
	if schema == nil {
		return nil, invalid("no schema and no record to take it from")
	}
	var stream bytes.Buffer
	stream.Grow(sizes.total + sizes.total/16 + 4096)
	writer := ipc.NewWriter(&stream, ipc.WithSchema(schema))
	for _, r := range records {
		if err := writer.Write(r); err != nil {
			_ = writer.Close()
			return nil, invalid("the records cannot be encoded: " + err.Error())
		}
	}
	if err := writer.Close(); err != nil {
		return nil, invalid("the records cannot be encoded: " + err.Error())
	}
	return stream.Bytes(), nil
}

// bufferSizes adds up distinct buffers: enough to grow a stream only once, and
// slices of one big record count it once.
type bufferSizes struct {
	seen  map[*memory.Buffer]struct{}
	total int
}

func (s *bufferSizes) add(data arrow.ArrayData) {
	for _, b := range data.Buffers() {
		if _, known := s.seen[b]; b != nil && !known {
			s.seen[b] = struct{}{}
			s.total += b.Len()
		}
	}
	for _, child := range data.Children() {
		s.add(child)
	}
}

// CountRows counts the live rows of a version; 0 = newest. It reads no data.
// MemWAL's pending rows are not part of any version.
func (r *Reader) CountRows(ctx context.Context, uri string, version uint64) (int64, error) {
	const op = "count_rows"
	if err := checkURI(op, uri); err != nil {
		return 0, err
	}
	args := struct {
		URI     string `json:"uri"`
		Version uint64 `json:"version,omitempty"`
	}{uri, version}
	answer, err := ask[struct {
		Rows int64 `json:"rows"`
	}](ctx, r, op, uri, args, nil)
	return answer.Rows, err
}

// CleanupVersions removes old versions of one of the caller's own small tables:
// those older than olderThan, but never the newest keep. It says how many went.
func (e *Engine) CleanupVersions(ctx context.Context, uri string, olderThan time.Duration, keep int) (int64, error) {
	const op = "cleanup_versions"
	if err := checkURI(op, uri); err != nil {
		return 0, err
	}
	if olderThan < 0 || keep < 0 {
		return 0, &Error{Class: Invalid, Op: op, URI: uri, Message: "age and number to keep must not be negative"}
	}
	args := struct {
		URI         string `json:"uri"`
		OlderThanMS int64  `json:"older_than_ms"`
		Keep        int    `json:"keep"`
	}{uri, milliseconds(olderThan), keep}
	answer, err := ask[struct {
		Removed int64 `json:"removed"`
	}](ctx, e.Reader, op, uri, args, nil)
	return answer.Removed, err
}
