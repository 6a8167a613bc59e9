package doctor

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/lance"
	"lancefleet/store"
	"lancefleet/store/storetest"
)

const dataDir = "s3://lake/fleet"

// ward is storage in memory that a test can make ill.
type ward struct {
	*storetest.Memory
	observe  func(uri string) *lance.Error // nil = fine
	careless bool                          // a second conditional write is not refused
	denied   error                         // of every write
}

func (w *ward) Observe(_ context.Context, targets []lance.ObserveTarget, _ lance.ObserveOptions) ([]lance.ObserveResult, error) {
	answers := make([]lance.ObserveResult, len(targets))
	for i, t := range targets {
		if w.observe != nil {
			answers[i].Err = w.observe(t.URI)
		}
	}
	return answers, nil
}

func (w *ward) Put(ctx context.Context, uri string, body []byte, o lance.PutOptions) (string, error) {
	if w.denied != nil {
		return "", w.denied
	}
	if w.careless {
		o.IfAbsent = false
	}
	return w.Memory.Put(ctx, uri, body, o)
}

func healthy(t *testing.T) *ward {
	t.Helper()
	w := &ward{Memory: storetest.New()}
	_, err := store.ClaimIdentity(t.Context(), w, dataDir, store.Identity{Name: "default"})
	require.NoError(t, err)
	for _, name := range []string{"a", "b", "c"} {
		_, err := w.Memory.Put(t.Context(), dataDir+"/"+name+".rollout.lance/_versions/1.manifest", nil, lance.PutOptions{})
		require.NoError(t, err)
	}
	return w
}

func place() Place {
	return Place{DataDir: dataDir, Fleet: "default", Now: time.Now}
}

func byCheck(found []Finding) map[string]Finding {
	all := map[string]Finding{}
	for _, f := range found {
		all[f.Check] = f
	}
	return all
}

// requireTold checks that nobody is left alone with a problem.
func requireTold(t *testing.T, f Finding, status Status, words string) {
	t.Helper()
	require.Equal(t, status, f.Status, "%+v", f)
	require.Contains(t, f.Found+" "+f.Means+" "+f.Do, words)
	if status == Warn || status == Fail {
		require.NotEmpty(t, f.Found)
		require.NotEmpty(t, f.Means)
		require.NotEmpty(t, f.Do)
	}
}

func TestAHealthyDirectoryIsFineAndLeftAsItWas(t *testing.T) {
	w := healthy(t)
	before, err := w.List(t.Context(), dataDir, 0)
	require.NoError(t, err)

	found := byCheck(place().Storage(t.Context(), w))

	for _, check := range []string{"data directory", "identity", "sources", "experiments", "conditional writes", "storage clock"} {
		require.Equal(t, OK, found[check].Status, "%s: %+v", check, found[check])
	}
	after, err := w.List(t.Context(), dataDir, 0)
	require.NoError(t, err)
	require.Equal(t, before, after, "the probe object is gone")
}

func TestReadOnlyWritesNothing(t *testing.T) {
	w, p := healthy(t), place()
	p.ReadOnly = true
	puts := w.Calls("put")
	found := byCheck(p.Storage(t.Context(), w))
	require.Equal(t, Skipped, found["conditional writes"].Status)
	require.Equal(t, Skipped, found["storage clock"].Status)
	require.Equal(t, puts, w.Calls("put"))
	require.Zero(t, w.Calls("delete"))
}

func TestEachIllnessOfStorageIsFoundAndExplained(t *testing.T) {
	refuse := func(op string, class lance.Class) func(string, string) error {
		return func(called, uri string) error {
			if called == op {
				return &lance.Error{Class: class, Op: op, URI: uri, Message: "no"}
			}
			return nil
		}
	}
	for name, c := range map[string]struct {
		ill    func(t *testing.T, w *ward, p *Place)
		check  string
		status Status
		words  string
	}{
		"denied":              {func(_ *testing.T, w *ward, _ *Place) { w.Before = refuse("list_dirs", lance.Denied) }, "data directory", Fail, "AWS_ACCESS_KEY_ID"},
		"unreachable":         {func(_ *testing.T, w *ward, _ *Place) { w.Before = refuse("list_dirs", lance.Unreachable) }, "data directory", Fail, "AWS_ENDPOINT_URL"},
		"not there":           {func(_ *testing.T, w *ward, _ *Place) { w.Before = refuse("list_dirs", lance.Gone) }, "data directory", Fail, "DATA_DIR"},
		"another fleet's":     {func(_ *testing.T, _ *ward, p *Place) { p.Fleet = "blue" }, "identity", Fail, "FLEET=default"},
		"identity unreadable": {func(_ *testing.T, w *ward, _ *Place) { w.Before = refuse("get", lance.Corrupt) }, "identity", Fail, "data-directory.md"},
		"nobody's": {func(_ *testing.T, w *ward, _ *Place) {
			*w = ward{Memory: storetest.New()}
			_, _ = w.Memory.Put(context.Background(), dataDir+"/a.lance/x", nil, lance.PutOptions{})
		}, "identity", Warn, "start a worker"},
		"no registry":   {func(_ *testing.T, _ *ward, p *Place) { p.Sources = store.SourcesRegistry }, "sources", Fail, "registry"},
		"nothing in it": {func(_ *testing.T, w *ward, p *Place) { p.DataDir = "s3://lake/empty"; p.Fleet = "default" }, "sources", Warn, "SOURCES"},
		"names nobody can use": {func(t *testing.T, w *ward, _ *Place) {
			_, err := w.Memory.Put(t.Context(), dataDir+"/a b!.lance/x", nil, lance.PutOptions{})
			require.NoError(t, err)
		}, "sources", Warn, "a b!"},
		"some broken": {func(_ *testing.T, w *ward, _ *Place) {
			w.observe = func(uri string) *lance.Error {
				if strings.Contains(uri, "b.rollout") {
					return &lance.Error{Class: lance.Corrupt, Message: "manifest is cut"}
				}
				return nil
			}
		}, "experiments", Warn, "manifest is cut"},
		"all broken": {func(_ *testing.T, w *ward, _ *Place) {
			w.observe = func(string) *lance.Error { return &lance.Error{Class: lance.Denied, Message: "no access"} }
		}, "experiments", Fail, "no access"},
		"writes denied": {func(_ *testing.T, w *ward, _ *Place) {
			w.denied = &lance.Error{Class: lance.Denied, Op: "put", Message: "read only"}
		}, "conditional writes", Fail, "not written"},
		"second write not refused": {func(_ *testing.T, w *ward, _ *Place) { w.careless = true }, "conditional writes", Fail, "not safe"},
		"storage lives in the past": {func(_ *testing.T, w *ward, _ *Place) {
			w.Now = func() time.Time { return time.Now().Add(-20 * time.Second) }
		}, "storage clock", Warn, "NTP"},
		"storage lives far ahead": {func(_ *testing.T, w *ward, _ *Place) {
			w.Now = func() time.Time { return time.Now().Add(10 * time.Minute) }
		}, "storage clock", Fail, "NTP"},
	} {
		t.Run(name, func(t *testing.T) {
			w, p := healthy(t), place()
			c.ill(t, w, &p)
			found := byCheck(p.Storage(t.Context(), w))
			requireTold(t, found[c.check], c.status, c.words)
			if c.check == "data directory" {
				require.Len(t, found, 1, "nothing else is asked")
			}
			left, err := w.Memory.List(t.Context(), p.DataDir, 0)
			if err == nil {
				for _, o := range left {
					require.NotContains(t, o.URI, ".probe")
				}
			}
		})
	}
}

func TestAReportCountsWhatItHas(t *testing.T) {
	var r Report
	r.Add(Finding{Status: OK}, Finding{Status: Warn}, Finding{Status: Fail}, Finding{Status: Fail}, Finding{Status: Skipped})
	require.Equal(t, [4]int{1, 1, 2, 1}, [4]int{r.OK, r.Warn, r.Fail, r.Skipped})
	require.Len(t, r.Findings, 5)
}

var _ Storage = (*lance.Engine)(nil)
