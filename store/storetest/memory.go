// Package storetest has an engine in memory for tests of what stands on package
// store: exact about versions, conflicts and e-tags, and open to hooks, so that a
// race can be had on demand. The suite of package store runs over it and over the
// native library alike.
package storetest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"lancefleet/lance"
)

// Memory is a store.Writer in memory. Its zero value is not usable: see New.
type Memory struct {
	// Before, if set, is called before each operation, without a lock held: it
	// may run other operations, block, or return an error to fail this one.
	Before func(op, uri string) error
	// Now is the clock of commits and objects.
	Now func() time.Time

	mu      sync.Mutex
	tables  map[string]*table
	objects map[string]lance.Object
	calls   map[string]int
	writes  uint64 // makes e-tags
}

type table struct {
	head     uint64
	versions map[uint64]version
}

type version struct {
	body []byte // IPC stream
	etag string
	time int64
}

// New makes an empty store.
func New() *Memory {
	return &Memory{
		Now: time.Now, tables: map[string]*table{}, objects: map[string]lance.Object{}, calls: map[string]int{},
	}
}

// Calls says how often an operation was called: head, read_table, commit_snapshot,
// append, compact, cleanup_versions, get, put, list, list_dirs, delete.
func (m *Memory) Calls(op string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls[op]
}

// Drop removes a dataset as a person with rm would.
func (m *Memory) Drop(uri string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.tables, uri)
}

func (m *Memory) enter(ctx context.Context, op, uri string) error {
	m.mu.Lock()
	m.calls[op]++
	m.mu.Unlock()
	if m.Before != nil {
		if err := m.Before(op, uri); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return &lance.Error{Class: lance.ClassOf(err), Op: op, URI: uri, Message: err.Error()}
	}
	return nil
}

func fail(class lance.Class, op, uri, format string, args ...any) error {
	return &lance.Error{Class: class, Op: op, URI: uri, Message: fmt.Sprintf(format, args...)}
}

// Head implements store.Reader.
func (m *Memory) Head(ctx context.Context, uri string) (lance.Head, error) {
	if err := m.enter(ctx, "head", uri); err != nil {
		return lance.Head{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.tables[uri]
	if t == nil {
		return lance.Head{}, fail(lance.Gone, "head", uri, "there is no dataset")
	}
	v := t.versions[t.head]
	return lance.Head{Version: t.head, ETag: v.etag, Time: v.time}, nil
}

// ReadTable implements store.Reader.
func (m *Memory) ReadTable(ctx context.Context, uri string, o lance.ReadOptions) (*lance.Table, error) {
	if err := m.enter(ctx, "read_table", uri); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.tables[uri]
	if t == nil {
		return nil, fail(lance.Gone, "read_table", uri, "there is no dataset")
	}
	number := o.Version
	if number == 0 {
		number = t.head
	}
	v, ok := t.versions[number]
	if !ok {
		return nil, fail(lance.Gone, "read_table", uri, "there is no version %d", number)
	}
	records, schema, err := decode(v.body)
	if err != nil {
		return nil, err
	}
	if o.Columns != nil {
		if records, schema, err = project(records, schema, o.Columns); err != nil {
			return nil, err
		}
	}
	return &lance.Table{Version: number, ETag: v.etag, Schema: schema, Records: records}, nil
}

func project(records []arrow.RecordBatch, schema *arrow.Schema, columns []string) ([]arrow.RecordBatch, *arrow.Schema, error) {
	var fields []arrow.Field
	var at []int
	for _, name := range columns {
		found := schema.FieldIndices(name)
		if len(found) == 0 {
			return nil, nil, fail(lance.Invalid, "read_table", "", "there is no column %s", name)
		}
		at = append(at, found[0])
		fields = append(fields, schema.Field(found[0]))
	}
	projected := arrow.NewSchema(fields, nil)
	out := make([]arrow.RecordBatch, len(records))
	for i, r := range records {
		var some []arrow.Array
		for _, c := range at {
			some = append(some, r.Column(c))
		}
		out[i] = array.NewRecordBatch(projected, some, r.NumRows())
	}
	return out, projected, nil
}

// CommitSnapshot implements store.Writer.
func (m *Memory) CommitSnapshot(
	ctx context.Context, uri string, expect uint64, records []arrow.RecordBatch, schema *arrow.Schema, _ map[string]string,
) (lance.Commit, error) {
	const op = "commit_snapshot"
	if err := m.enter(ctx, op, uri); err != nil {
		return lance.Commit{}, err
	}
	body, err := encode(records, schema)
	if err != nil {
		return lance.Commit{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.tables[uri]
	if t == nil {
		t = &table{versions: map[uint64]version{}}
	}
	if t.head != expect {
		return lance.Commit{}, fail(lance.Conflict, op, uri, "the head is version %d, not %d", t.head, expect)
	}
	m.tables[uri] = t
	return lance.Commit{Version: m.add(t, body), UUID: fmt.Sprintf("commit-%d", m.writes)}, nil
}

// add makes a new head. The lock is held.
func (m *Memory) add(t *table, body []byte) uint64 {
	m.writes++
	t.head++
	t.versions[t.head] = version{body: body, etag: fmt.Sprintf("etag-%d", m.writes), time: m.Now().UnixMilli()}
	return t.head
}

// Append implements store.Writer. Unlike the native library it wants the schema
// that the table has.
func (m *Memory) Append(
	ctx context.Context, uri string, records []arrow.RecordBatch, schema *arrow.Schema, o lance.AppendOptions,
) (uint64, error) {
	const op = "append"
	if err := m.enter(ctx, op, uri); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.tables[uri]
	if t == nil {
		if !o.Create {
			return 0, fail(lance.Gone, op, uri, "there is no dataset")
		}
		t = &table{versions: map[uint64]version{}}
		m.tables[uri] = t
	}
	if t.head > 0 {
		there, had, err := decode(t.versions[t.head].body)
		if err != nil {
			return 0, err
		}
		if !had.Equal(schema) {
			return 0, fail(lance.Invalid, op, uri, "the schemas differ")
		}
		records = append(there, records...)
	}
	body, err := encode(records, schema)
	if err != nil {
		return 0, err
	}
	return m.add(t, body), nil
}

// Compact implements store.Compactor: as many records as make a pass worth it
// become one, with every row in its place.
func (m *Memory) Compact(ctx context.Context, s lance.CompactSpec) (lance.Compacted, error) {
	const op = "compact"
	if err := m.enter(ctx, op, s.URI); err != nil {
		return lance.Compacted{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.tables[s.URI]
	if t == nil {
		return lance.Compacted{}, fail(lance.Gone, op, s.URI, "there is no dataset")
	}
	records, schema, err := decode(t.versions[t.head].body)
	done := lance.Compacted{VersionBefore: t.head, Version: t.head, FragmentsBefore: int64(len(records)), FragmentsAfter: int64(len(records))}
	if err != nil || len(records) < s.MinFragments {
		return done, err
	}
	whole, err := concatenate(schema, records)
	if err != nil {
		return lance.Compacted{}, err
	}
	body, err := encode([]arrow.RecordBatch{whole}, schema)
	if err != nil {
		return lance.Compacted{}, err
	}
	done.Version, done.Tasks, done.FragmentsAfter = m.add(t, body), 1, 1
	done.FragmentsRemoved, done.FragmentsAdded = done.FragmentsBefore, 1
	return done, nil
}

func concatenate(schema *arrow.Schema, records []arrow.RecordBatch) (arrow.RecordBatch, error) {
	columns := make([]arrow.Array, schema.NumFields())
	var rows int64
	for i := range columns {
		parts := make([]arrow.Array, len(records))
		for j, r := range records {
			parts[j] = r.Column(i)
		}
		var err error
		if columns[i], err = array.Concatenate(parts, memory.DefaultAllocator); err != nil {
			return nil, err
		}
		rows = int64(columns[i].Len())
	}
	return array.NewRecordBatch(schema, columns, rows), nil
}

// CleanupVersions implements store.Writer.
func (m *Memory) CleanupVersions(ctx context.Context, uri string, olderThan time.Duration, keep int) (int64, error) {
	if err := m.enter(ctx, "cleanup_versions", uri); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.tables[uri]
	if t == nil {
		return 0, fail(lance.Gone, "cleanup_versions", uri, "there is no dataset")
	}
	old := m.Now().Add(-olderThan).UnixMilli()
	var removed int64
	for number, v := range t.versions {
		if number != t.head && number+uint64(keep) <= t.head && v.time <= old {
			delete(t.versions, number)
			removed++
		}
	}
	return removed, nil
}

// Get implements store.Reader.
func (m *Memory) Get(ctx context.Context, uri string) (lance.Object, error) {
	if err := m.enter(ctx, "get", uri); err != nil {
		return lance.Object{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	o, ok := m.objects[uri]
	if !ok {
		return lance.Object{}, fail(lance.Gone, "get", uri, "there is no object")
	}
	o.Body = slices.Clone(o.Body)
	return o, nil
}

// List implements store.Reader. Of a dataset it shows the manifests, as large as
// their versions.
func (m *Memory) List(ctx context.Context, uri string, limit int) ([]lance.ObjectInfo, error) {
	if err := m.enter(ctx, "list", uri); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []lance.ObjectInfo
	for at, o := range m.objects {
		if strings.HasPrefix(at, strings.TrimSuffix(uri, "/")+"/") {
			found = append(found, lance.ObjectInfo{URI: at, Size: int64(len(o.Body)), Time: o.Time, ETag: o.ETag})
		}
	}
	for at, t := range m.tables {
		for number, v := range t.versions {
			manifest := fmt.Sprintf("%s/_versions/%020d.manifest", at, number)
			if strings.HasPrefix(manifest, strings.TrimSuffix(uri, "/")+"/") {
				found = append(found, lance.ObjectInfo{URI: manifest, Size: int64(len(v.body)), Time: v.time, ETag: v.etag})
			}
		}
	}
	slices.SortFunc(found, func(a, b lance.ObjectInfo) int { return strings.Compare(a.URI, b.URI) })
	if limit > 0 {
		found = found[:min(limit, len(found))]
	}
	return found, nil
}

// ListDirs implements store.Reader: folders are what datasets and objects lie in.
func (m *Memory) ListDirs(ctx context.Context, uri string) ([]string, error) {
	if err := m.enter(ctx, "list_dirs", uri); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	add := func(at string, whole bool) {
		below, ok := strings.CutPrefix(at, strings.TrimSuffix(uri, "/")+"/")
		name, _, deeper := strings.Cut(below, "/")
		if ok && (deeper || whole) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for at := range m.tables {
		add(at, true)
	}
	for at := range m.objects {
		add(at, false)
	}
	slices.Sort(names)
	return names, nil
}

// Put implements store.Writer.
func (m *Memory) Put(ctx context.Context, uri string, body []byte, o lance.PutOptions) (string, error) {
	if err := m.enter(ctx, "put", uri); err != nil {
		return "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, there := m.objects[uri]; there && o.IfAbsent {
		return "", fail(lance.Exists, "put", uri, "there is an object")
	}
	m.writes++
	etag := fmt.Sprintf("etag-%d", m.writes)
	m.objects[uri] = lance.Object{Body: slices.Clone(body), ETag: etag, Time: m.Now().UnixMilli()}
	return etag, nil
}

// Delete implements store.Writer.
func (m *Memory) Delete(ctx context.Context, uris ...string) (int64, error) {
	if err := m.enter(ctx, "delete", strings.Join(uris, " ")); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, uri := range uris {
		delete(m.objects, uri)
	}
	return int64(len(uris)), nil
}

func encode(records []arrow.RecordBatch, schema *arrow.Schema) ([]byte, error) {
	if schema == nil && len(records) > 0 {
		schema = records[0].Schema()
	}
	var body bytes.Buffer
	w := ipc.NewWriter(&body, ipc.WithSchema(schema))
	for _, r := range records {
		if err := w.Write(r); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return body.Bytes(), err
}

func decode(body []byte) ([]arrow.RecordBatch, *arrow.Schema, error) {
	r, err := ipc.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	defer r.Release()
	var records []arrow.RecordBatch
	for r.Next() {
		record := r.RecordBatch()
		record.Retain()
		records = append(records, record)
	}
	return records, r.Schema(), r.Err()
}
