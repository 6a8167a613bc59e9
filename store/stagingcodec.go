package store

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow/ipc"

	"lancefleet/fleet"
	"lancefleet/lance"
)

func encodeListing(l Listing) (text []byte, hash string, err error) {
	if text, err = json.Marshal(l); err != nil {
		return nil, "", fmt.Errorf("encode a listing: %w", err)
	}
	sum := sha256.Sum256(text)
	return text, hex.EncodeToString(sum[:]), nil
}

func pack(text []byte) ([]byte, error) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err := z.Write(text)
	err = errors.Join(err, z.Close())
	return packed.Bytes(), err
}

func unpack(body []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

// decodeListing checks the content against the hash that names it.
func decodeListing(body []byte, hash string) (*Listing, error) {
	text, err := unpack(body)
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != hash {
		return nil, errors.New("its content is not what its name says")
	}
	var l Listing
	return &l, json.Unmarshal(text, &l)
}

func encodePage(rows []fleet.Row) ([]byte, error) {
	record, err := encodeRows(rows)
	if err != nil {
		return nil, err
	}
	defer record.Release()
	var body bytes.Buffer
	w := ipc.NewWriter(&body, ipc.WithSchema(record.Schema()), ipc.WithZstd())
	err = w.Write(record)
	err = errors.Join(err, w.Close())
	return body.Bytes(), err
}

func decodePage(body []byte) ([]fleet.Row, error) {
	r, err := ipc.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	defer r.Release()
	t := &lance.Table{}
	defer t.Release()
	for r.Next() {
		record := r.RecordBatch()
		record.Retain()
		t.Records = append(t.Records, record)
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	rows, bad, err := decodeRows(t)
	if len(bad) > 0 {
		return nil, fmt.Errorf("it has %d names that are none of ours", len(bad))
	}
	return rows, err
}
