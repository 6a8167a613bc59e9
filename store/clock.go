package store

import (
	"context"
	"fmt"

	"lancefleet/lance"
)

// StorageNow is the storage's time, unix ms: that of an object which is written to be
// asked, always the same one. Other objects bear the storage's time, and a worker's
// clock may be wrong.
func (s *Staging) StorageNow(ctx context.Context) (int64, error) {
	uri := join(s.dataDir, ownFolder, "clock")
	if _, err := s.writer.Put(ctx, uri, nil, lance.PutOptions{}); err != nil {
		return 0, fmt.Errorf("ask the storage for its time: %w", err)
	}
	object, err := s.writer.Get(ctx, uri)
	if err != nil {
		return 0, fmt.Errorf("ask the storage for its time: %w", err)
	}
	return object.Time, nil
}
