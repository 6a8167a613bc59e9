package store_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lancefleet/lance"
	"lancefleet/store"
)

// only is the one object of `_stats` that is called so. On local disk there is a
// hint of the version beside the manifests.
func (b *backend) only(t *testing.T, suffix string) string {
	t.Helper()
	objects, err := b.List(t.Context(), b.dir+"/"+statsName+"/", 0)
	require.NoError(t, err)
	objects = slices.DeleteFunc(objects, func(o lance.ObjectInfo) bool { return !strings.HasSuffix(o.URI, suffix) })
	require.Len(t, objects, 1)
	return objects[0].URI
}

// damages are ways in which the newest version of `_stats` can be broken.
func damages() map[string]func(*testing.T, *backend) {
	return map[string]func(*testing.T, *backend){
		"its manifest is cut short": func(t *testing.T, b *backend) {
			manifest := b.only(t, ".manifest")
			got, err := b.engine.Get(t.Context(), manifest)
			require.NoError(t, err)
			_, err = b.engine.Put(t.Context(), manifest, got.Body[:len(got.Body)/2], lance.PutOptions{})
			require.NoError(t, err)
		},
		"its data file is missing": func(t *testing.T, b *backend) {
			_, err := b.Delete(t.Context(), b.only(t, ".lance"))
			require.NoError(t, err)
		},
	}
}

func statsDamaged(t *testing.T, b *backend) {
	if b.engine == nil {
		return // the engine in memory has no files
	}
	for name, damage := range damages() {
		t.Run(name, func(t *testing.T) {
			b := &backend{
				counted: counted{Writer: b.engine}, dir: b.dir + "/" + strings.ReplaceAll(name, " ", "-"),
				engine: b.engine, local: b.local, options: b.options,
			}
			s, w := newStats(b)
			commit(t, w, latest(t, s), observedRows(2, 1))
			commit(t, w, latest(t, s), observedRows(3, 2))
			require.Len(t, latest(t, s).Rows, 3)
			b.age(t, statsName)
			damage(t, b)

			b.Writer = openEngine(t, b.options) // that has nothing in its caches
			fresh, writer := newStats(b)
			_, err := fresh.Latest(t.Context())
			require.ErrorIs(t, err, lance.ErrCorrupt, "never an empty fleet")
			require.ErrorContains(t, err, statsName)
			_, err = writer.Commit(t.Context(), &store.Snapshot{}, observedRows(1, 3), nil)
			require.Error(t, err, "nor is one begun over it")

			b.drop(t, statsName)
			rebuilt := latest(t, s)
			require.Zero(t, rebuilt.Version, "moved away it is a new table")
			require.EqualValues(t, 1, commit(t, w, rebuilt, observedRows(4, 4)))
			require.Len(t, latest(t, fresh).Rows, 4)
		})
	}
}
