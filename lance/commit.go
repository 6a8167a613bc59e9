package lance

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
)

// Commit is what a snapshot became.
type Commit struct {
	Version uint64 `json:"version"`
	UUID    string `json:"uuid"` // of the transaction
}

// CommitSnapshot makes a table exactly these records, in one commit that only
// succeeds if the newest version is expect (0: the table must not exist yet).
// Else the error is [ErrConflict]: read again, merge, try again. The schema of the
// records becomes the table's; it may be nil when there is a record.
//
// After any other error the commit may or may not have happened.
func (e *Engine) CommitSnapshot(
	ctx context.Context, uri string, expect uint64,
	records []arrow.RecordBatch, schema *arrow.Schema, properties map[string]string,
) (Commit, error) {
	const op = "commit_snapshot"
	body, err := checkWrite(op, uri, records, schema, properties)
	if err != nil {
		return Commit{}, err
	}
	args := struct {
		URI           string            `json:"uri"`
		ExpectVersion uint64            `json:"expect_version"`
		Properties    map[string]string `json:"properties"`
	}{uri, expect, orEmpty(properties)}
	return ask[Commit](ctx, e.Reader, op, uri, args, body)
}

// AppendOptions of [Engine.Append].
type AppendOptions struct {
	Create     bool              // make the table when there is none; else that is ErrGone
	Properties map[string]string // of the transaction
}

// Append adds rows. A column the table lacks is added to it first, as nullable; a
// nullable column the records lack reads as null. It returns the new version.
func (e *Engine) Append(
	ctx context.Context, uri string, records []arrow.RecordBatch, schema *arrow.Schema, o AppendOptions,
) (uint64, error) {
	const op = "append"
	body, err := checkWrite(op, uri, records, schema, o.Properties)
	if err != nil {
		return 0, err
	}
	args := struct {
		URI        string            `json:"uri"`
		Create     bool              `json:"create"`
		Properties map[string]string `json:"properties"`
	}{uri, o.Create, orEmpty(o.Properties)}
	answer, err := ask[struct {
		Version uint64 `json:"version"`
	}](ctx, e.Reader, op, uri, args, body)
	return answer.Version, err
}

func checkWrite(op, uri string, records []arrow.RecordBatch, schema *arrow.Schema, properties map[string]string) ([]byte, error) {
	if err := checkURI(op, uri); err != nil {
		return nil, err
	}
	if err := checkProperties(op, uri, properties); err != nil {
		return nil, err
	}
	return encodeTable(op, uri, records, schema)
}

// orEmpty keeps null out of requests: the library wants an object.
func orEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}
