package store

import (
	"context"
	"fmt"
	"time"
)

// Cleanup removes versions of `_stats` older than a time, but never the newest
// keep. Every commit stores the whole table, so without it the directory grows by
// that much for each round in which something changed. Other readers may be on an
// older version: leave them an hour.
func (w *StatsWriter) Cleanup(ctx context.Context, olderThan time.Duration, keep int) (int64, error) {
	removed, err := w.writer.CleanupVersions(ctx, w.stats.uri, olderThan, keep)
	if err != nil {
		return 0, fmt.Errorf("clean up %s: %w", w.stats.uri, err)
	}
	return removed, nil
}
