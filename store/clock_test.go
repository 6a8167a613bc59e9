package store_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/store"
)

// later makes what was staged older, and tells what time it is then. A bucket dates its
// objects itself: there it can't be done.
func (b *backend) later(t *testing.T, by time.Duration) (now time.Time, done bool) {
	t.Helper()
	switch {
	case b.memory != nil:
		now = b.memory.Now().Add(by)
		b.memory.Now = func() time.Time { return now }
		return now, true
	case b.local:
		before := time.Now().Add(-by)
		require.NoError(t, filepath.WalkDir(filepath.Join(b.dir, "_lancefleet"), func(name string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Chtimes(name, before, before)
		}))
		return time.Now(), true
	}
	return time.Now(), false
}

func storageTells(t *testing.T, b *backend) {
	s := store.NewStaging(b, b.dir)
	for range 2 {
		at, err := s.StorageNow(t.Context())
		require.NoError(t, err)
		require.WithinDuration(t, time.Now(), time.UnixMilli(at), time.Minute)
	}
	require.Equal(t, 1, objectsBelow(t, b, "_lancefleet"), "always the same object")
	later, aged := b.later(t, time.Hour)
	at, err := s.StorageNow(t.Context())
	require.NoError(t, err)
	if aged {
		require.WithinDuration(t, later, time.UnixMilli(at), time.Minute, "the object is new each time")
	}
}
