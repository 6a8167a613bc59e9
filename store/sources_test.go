package store_test

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/store"
)

func sourcesSuite() map[string]func(*testing.T, *backend) {
	return map[string]func(*testing.T, *backend){
		"registries of three kinds are listed at their latest version": sourcesKinds,
		"of a name registered twice the newest counts":                 sourcesTwice,
		"a name is missing while a worker replaces it":                 sourcesGap,
		"names and uris that are no good become problems":              sourcesProblems,
		"uris may be anywhere and relative":                            sourcesURIs,
		"an unreadable registry is an error that names it":             sourcesUnreadable,
		"a registry that vanished is an error":                         sourcesVanished,
		"a registry that vanished before a restart is an error":        sourcesVanishedBeforeRestart,
		"no registry where one is wanted is an error":                  sourcesNone,
		"folders are listed where there is no registry":                sourcesFolders,
		"both lists what no registry names":                            sourcesBoth,
		"an unchanged registry is read once":                           sourcesReadOnce,
		"a person's name finds what it may mean":                       sourcesLookup,
		"a search has what can be read, and says what can't":           sourcesNames,
		"a registry that is gone is said to those who search":          sourcesNamesGone,
	}
}

var registryFields = []arrow.Field{
	{Name: "name", Type: arrow.BinaryTypes.String},
	{Name: "uri", Type: arrow.BinaryTypes.String},
	{Name: "created_at", Type: arrow.PrimitiveTypes.Int64},
}

func (b *backend) register(t *testing.T, kind fleet.Kind, rows ...[]any) {
	t.Helper()
	b.write(t, "_registry."+string(kind)+".lance", table(t, registryFields, rows)[0])
}

func entry(name, uri string, created int64) []any { return []any{name, uri, created} }

func list(t *testing.T, s *store.Sources) store.Listing {
	t.Helper()
	l, err := s.List(t.Context())
	require.NoError(t, err)
	return l
}

func names(l store.Listing) []string {
	all := []string{}
	for _, e := range l.Experiments {
		all = append(all, e.String())
	}
	return all
}

func sourcesKinds(t *testing.T, b *backend) {
	b.register(t, fleet.Rollout, entry("b", "/x/b", 5), entry("a", "/x/a", 4))
	b.register(t, fleet.Generic, entry("a", "/x/g", 3))
	b.register(t, fleet.Datagen, entry("a", "/x/d", 2))
	l := list(t, store.NewSources(b, b.dir, store.SourcesAuto))
	require.Equal(t, []fleet.Experiment{
		{ID: fleet.ID{Kind: fleet.Datagen, Name: "a"}, URI: "/x/d", Source: fleet.FromRegistry, CreatedAt: 2},
		{ID: fleet.ID{Kind: fleet.Generic, Name: "a"}, URI: "/x/g", Source: fleet.FromRegistry, CreatedAt: 3},
		{ID: fleet.ID{Kind: fleet.Rollout, Name: "a"}, URI: "/x/a", Source: fleet.FromRegistry, CreatedAt: 4},
		{ID: fleet.ID{Kind: fleet.Rollout, Name: "b"}, URI: "/x/b", Source: fleet.FromRegistry, CreatedAt: 5},
	}, l.Experiments)
	require.Len(t, l.From, 3)
	require.Empty(t, l.Problems)
}

func sourcesTwice(t *testing.T, b *backend) {
	b.register(t, fleet.Rollout, entry("a", "/new", 9), entry("a", "/old", 8), entry("b", "/first", 7), entry("b", "/second", 7))
	l := list(t, store.NewSources(b, b.dir, store.SourcesAuto))
	require.Equal(t, []string{"rollout:a", "rollout:b"}, names(l))
	require.Equal(t, "/new", l.Experiments[0].URI)
	require.Equal(t, "/second", l.Experiments[1].URI)
}

func sourcesGap(t *testing.T, b *backend) {
	s := store.NewSources(b, b.dir, store.SourcesAuto)
	b.register(t, fleet.Rollout, entry("a", "/a", 1), entry("b", "/b", 1))
	require.Equal(t, []string{"rollout:a", "rollout:b"}, names(list(t, s)))
	b.register(t, fleet.Rollout, entry("b", "/b", 1))
	require.Equal(t, []string{"rollout:b"}, names(list(t, s)))
	b.register(t, fleet.Rollout, entry("b", "/b", 1), entry("a", "/moved", 2))
	l := list(t, s)
	require.Equal(t, []string{"rollout:a", "rollout:b"}, names(l))
	require.Equal(t, "/moved", l.Experiments[0].URI)
}

func sourcesProblems(t *testing.T, b *backend) {
	b.register(t, fleet.Rollout,
		entry("ok", "/ok", 1), entry("../up", "/x", 1), entry("_stats", "/x", 1), entry("", "/x", 1),
		entry("no-uri", "", 1), entry("secret", "s3://key:word@bucket/x", 1))
	l := list(t, store.NewSources(b, b.dir, store.SourcesAuto))
	require.Equal(t, []string{"rollout:ok"}, names(l))
	require.Len(t, l.Problems, 5)
	for _, p := range l.Problems {
		require.NotEmpty(t, p.Why, p.Name)
		require.NotContains(t, p.Why, "word")
	}
}

func sourcesURIs(t *testing.T, b *backend) {
	b.register(t, fleet.Rollout,
		entry("bucket", "s3://other/a/b.lance/", 1), entry("file", "file:///data/with%20space", 1), entry("near", "sub/near.lance", 1))
	l := list(t, store.NewSources(b, b.dir, store.SourcesAuto))
	require.Empty(t, l.Problems)
	require.Equal(t, "s3://other/a/b.lance", l.Experiments[0].URI)
	require.Equal(t, "/data/with space", l.Experiments[1].URI)
	require.Equal(t, b.dir+"/sub/near.lance", l.Experiments[2].URI)
}

func sourcesUnreadable(t *testing.T, b *backend) {
	b.register(t, fleet.Rollout, entry("a", "/a", 1))
	s := store.NewSources(b, b.dir, store.SourcesBoth)
	list(t, s)
	b.register(t, fleet.Generic, entry("b", "/b", 1))
	b.breakTable(t, "_registry.generic.lance")
	_, err := s.List(t.Context())
	require.ErrorContains(t, err, "_registry.generic.lance")
	require.NotErrorIs(t, err, lance.ErrGone)
}

func sourcesNames(t *testing.T, b *backend) {
	b.register(t, fleet.Rollout, entry("a", "/a", 1))
	b.register(t, fleet.Generic, entry("b", "/b", 1))
	s := store.NewSources(b, b.dir, store.SourcesAuto)
	whole, err := s.Names(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"generic:b", "rollout:a"}, names(whole.Listing))
	require.Empty(t, whole.Unread)
	again, err := s.Names(t.Context())
	require.NoError(t, err)
	require.True(t, again.Same(whole.Listing), "nothing moved: it is the same listing")

	b.breakTable(t, "_registry.generic.lance")
	partly, err := s.Names(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"generic:b", "rollout:a"}, names(partly.Listing), "what was read before is kept")
	require.Len(t, partly.Unread, 1)
	require.True(t, partly.Unread[0].Kept)
	require.ErrorContains(t, partly.Unread[0].Err, "_registry.generic.lance")

	partly, err = store.NewSources(b, b.dir, store.SourcesAuto).Names(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"rollout:a"}, names(partly.Listing), "a process that never read it has the rest")
	require.Len(t, partly.Unread, 1)
	require.False(t, partly.Unread[0].Kept)
}

func sourcesNamesGone(t *testing.T, b *backend) {
	b.register(t, fleet.Rollout, entry("a", "/a", 1))
	s := store.NewSources(b, b.dir, store.SourcesAuto)
	_, err := s.Names(t.Context())
	require.NoError(t, err)
	b.drop(t, "_registry.rollout.lance")
	gone, err := s.Names(t.Context())
	require.NoError(t, err)
	require.Len(t, gone.Unread, 1)
	require.ErrorIs(t, gone.Unread[0].Err, lance.ErrGone)
}

// breakTable makes a table unreadable: its manifests are cut short.
func (b *backend) breakTable(t *testing.T, table string) {
	t.Helper()
	uri := b.dir + "/" + table
	if b.memory != nil {
		b.memory.Before = func(_, at string) error {
			if at == uri {
				return &lance.Error{Class: lance.Corrupt, Op: "head", URI: at, Message: "made so by the test"}
			}
			return nil
		}
		return
	}
	objects, err := b.List(t.Context(), uri+"/_versions", 0)
	require.NoError(t, err)
	require.NotEmpty(t, objects)
	for _, o := range objects {
		_, err := b.Put(t.Context(), o.URI, []byte("cut"), lance.PutOptions{})
		require.NoError(t, err)
	}
}

func sourcesVanished(t *testing.T, b *backend) {
	for _, mode := range []store.SourceMode{store.SourcesAuto, store.SourcesRegistry, store.SourcesBoth} {
		b.register(t, fleet.Rollout, entry("a", "/a", 1))
		s := store.NewSources(b, b.dir, mode)
		list(t, s)
		b.drop(t, "_registry.rollout.lance")
		_, err := s.List(t.Context())
		require.ErrorIs(t, err, lance.ErrGone, mode)
		require.ErrorContains(t, err, "_registry.rollout.lance")
		require.NotContains(t, err.Error(), "from it", "nobody has counted them")
		b.register(t, fleet.Rollout)
		require.Empty(t, list(t, s).Experiments, "an empty registry is the way to say that nothing is left")
		b.drop(t, "_registry.rollout.lance")
	}
}

func sourcesVanishedBeforeRestart(t *testing.T, b *backend) {
	b.register(t, fleet.Rollout, entry("a", "/a", 1))
	rows := []fleet.Row{fleet.UnknownRow(fleet.Experiment{ID: fleet.ID{Kind: fleet.Generic, Name: "g"}, URI: "/g", Source: fleet.FromRegistry})}
	s := store.NewSources(b, b.dir, store.SourcesAuto)
	list(t, s)
	_, err := s.ListKnowing(t.Context(), rows)
	require.ErrorIs(t, err, lance.ErrGone)
	require.ErrorContains(t, err, "_registry.generic.lance")
	require.ErrorContains(t, err, "the fleet has 1 experiment from it")
	rows[0].Source = fleet.FromFolder
	_, err = s.ListKnowing(t.Context(), rows)
	require.NoError(t, err)
	rows[0].Source = fleet.FromRegistry
	folders := store.NewSources(b, b.dir, store.SourcesFolder)
	_, err = folders.ListKnowing(t.Context(), rows)
	require.NoError(t, err, "who asks for folders has left registries behind")
}

func sourcesNone(t *testing.T, b *backend) {
	b.put(t, "a.rollout.lance/_versions/1.manifest", "x")
	_, err := store.NewSources(b, b.dir, store.SourcesRegistry).List(t.Context())
	require.ErrorIs(t, err, lance.ErrGone)
}

func sourcesFolders(t *testing.T, b *backend) {
	for _, folder := range []string{
		"a.rollout.lance", "b.generic.lance", "c.datagen.lance", "d.lance", "d.rollout.lance", "dotted.name.lance",
		"_stats.rollout.lance", "_registry.x.lance", "_retired.lance", "_journal.lance", "_lancefleet", "notes", "-bad.lance",
	} {
		b.put(t, folder+"/_versions/1.manifest", "x")
	}
	for _, mode := range []store.SourceMode{store.SourcesAuto, store.SourcesFolder} {
		l := list(t, store.NewSources(b, b.dir, mode))
		require.Equal(t, []string{"datagen:c", "generic:b", "rollout:a", "rollout:d", "table:d", "table:dotted.name"}, names(l))
		require.Equal(t, b.dir+"/c.datagen.lance", l.Experiments[0].URI)
		require.Equal(t, fleet.FromFolder, l.Experiments[0].Source)
		require.Len(t, l.Problems, 1)
		require.Equal(t, "-bad.lance", l.Problems[0].Name)
		require.Equal(t, []string{b.dir}, l.From)
	}
}

func sourcesBoth(t *testing.T, b *backend) {
	for _, folder := range []string{"a.rollout.lance", "b.rollout.lance", "c.rollout.lance"} {
		b.put(t, folder+"/_versions/1.manifest", "x")
	}
	b.register(t, fleet.Rollout, entry("a", "/elsewhere/a", 1), entry("another-name", "b.rollout.lance", 1))
	require.Equal(t, []string{"rollout:a", "rollout:another-name"}, names(list(t, store.NewSources(b, b.dir, store.SourcesAuto))))
	l := list(t, store.NewSources(b, b.dir, store.SourcesBoth))
	require.Equal(t, []string{"rollout:a", "rollout:another-name", "rollout:c"}, names(l))
	require.Equal(t, "/elsewhere/a", l.Experiments[0].URI, "the registry says where it is")
}

func sourcesReadOnce(t *testing.T, b *backend) {
	b.register(t, fleet.Rollout, entry("a", "/a", 1))
	s := store.NewSources(b, b.dir, store.SourcesAuto)
	first := list(t, s)
	for range 10 {
		require.Equal(t, first, list(t, s))
	}
	require.EqualValues(t, 1, b.reads.Load())
	b.register(t, fleet.Rollout, entry("b", "/b", 1))
	require.Equal(t, []string{"rollout:b"}, names(list(t, s)))
	require.EqualValues(t, 2, b.reads.Load())
}

func sourcesLookup(t *testing.T, b *backend) {
	b.register(t, fleet.Rollout, entry("both", "/r", 1))
	b.register(t, fleet.Generic, entry("both", "/g", 1), entry("one", "/o", 1), entry("two", "/t", 1))
	b.register(t, fleet.Datagen, entry("two", "/u", 1))
	s := store.NewSources(b, b.dir, store.SourcesAuto)
	for asked, want := range map[string][]string{
		"both": {"rollout:both"}, "generic:both": {"generic:both"}, "one": {"generic:one"},
		"two": {"generic:two", "datagen:two"}, "none": {}, "table:both": {},
	} {
		ref, err := fleet.ParseRef(asked)
		require.NoError(t, err)
		found, err := s.Lookup(t.Context(), ref)
		require.NoError(t, err)
		require.Equal(t, want, names(store.Listing{Experiments: found}), asked)
	}
}

func TestSourcesAreReadAsPeopleWriteThem(t *testing.T) {
	for text, want := range map[string]store.SourceMode{
		"": store.SourcesAuto, "auto": store.SourcesAuto, "registry": store.SourcesRegistry, " Folder ": store.SourcesFolder,
		"registry,folder": store.SourcesBoth, "folder, registry": store.SourcesBoth,
	} {
		got, err := store.ParseSources(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"folders", "registry,disk", "registry;folder", ",", "registry,", "registry,registry", "registry,,folder", "registry folder", "auto,folder"} {
		_, err := store.ParseSources(text)
		require.ErrorContains(t, err, text)
	}
}

func TestADataDirectoryThatIsNotThereIsAnError(t *testing.T) {
	b := memoryBackend()
	b.memory.Before = func(op, uri string) error {
		if op == "list_dirs" {
			return &lance.Error{Class: lance.Gone, Op: op, URI: uri}
		}
		return nil
	}
	_, err := store.NewSources(b, b.dir, store.SourcesAuto).List(t.Context())
	require.ErrorContains(t, err, "does not exist")
	require.ErrorIs(t, err, lance.ErrGone)
}
