package store

import (
	"context"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"lancefleet/lance"
)

// Reader is what this package needs for looking: [lance.Reader] is one.
type Reader interface {
	Head(ctx context.Context, uri string) (lance.Head, error)
	ReadTable(ctx context.Context, uri string, o lance.ReadOptions) (*lance.Table, error)
	Get(ctx context.Context, uri string) (lance.Object, error)
	List(ctx context.Context, uri string, limit int) ([]lance.ObjectInfo, error)
	ListDirs(ctx context.Context, uri string) ([]string, error)
}

// Writer is what this package needs for committing: [lance.Engine] is one.
type Writer interface {
	Reader
	CommitSnapshot(ctx context.Context, uri string, expect uint64, records []arrow.RecordBatch, schema *arrow.Schema, props map[string]string) (lance.Commit, error)
	Append(ctx context.Context, uri string, records []arrow.RecordBatch, schema *arrow.Schema, o lance.AppendOptions) (uint64, error)
	CleanupVersions(ctx context.Context, uri string, olderThan time.Duration, keep int) (int64, error)
	Put(ctx context.Context, uri string, body []byte, o lance.PutOptions) (string, error)
	Delete(ctx context.Context, uris ...string) (int64, error)
}
