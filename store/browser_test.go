package store_test

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lancefleet/lance"
	"lancefleet/store"
)

// What a browsing process can reach must not be able to write: neither by a method
// nor by holding an engine that somebody could get at by a type assertion.
func TestTheBrowserCannotWrite(t *testing.T) {
	b := store.NewBrowser(&lance.Reader{}, "/data", store.SourcesBoth)
	seen := map[reflect.Type]bool{}
	reach(t, reflect.ValueOf(b), "Browser", seen)
	require.Contains(t, seen, reflect.TypeFor[*lance.Reader](), "the walk gets as far as the reader")
	require.Contains(t, seen, reflect.TypeFor[*store.Journal]())
}

func TestTheWalkOverTheBrowserFindsAWriter(t *testing.T) {
	for what, v := range map[string]any{
		"an engine in an interface": store.NewStats(&lance.Engine{Reader: &lance.Reader{}}, "/data"),
		"a writing method":          store.NewStatsWriter(memoryBackend(), store.NewStats(memoryBackend(), "/data")),
	} {
		r := &recorder{TB: t}
		reach(r, reflect.ValueOf(v), "v", map[reflect.Type]bool{})
		require.True(t, r.failed, what)
	}
}

type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Errorf(string, ...any) { r.failed = true }
func (r *recorder) Helper()               {}

var writing = regexp.MustCompile(`^(Put|Append|Commit|Delete|Cleanup|Refresh|Make|Remove|Sweep|Claim|Write|Set|Drop)`)

// reach visits every value that can be reached through fields, pointers and
// interfaces, unexported ones included.
func reach(t testing.TB, v reflect.Value, path string, seen map[reflect.Type]bool) {
	t.Helper()
	if !v.IsValid() || v.Kind() == reflect.Pointer && seen[v.Type()] {
		return
	}
	inspect(t, v.Type(), path)
	switch v.Kind() {
	case reflect.Interface:
		reach(t, v.Elem(), path, seen)
	case reflect.Pointer:
		seen[v.Type()] = true
		if v.Type() != reflect.TypeFor[*lance.Reader]() { // what it holds is its own package's matter
			reach(t, v.Elem(), path, seen)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			reach(t, v.Field(i), path+"."+v.Type().Field(i).Name, seen)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			reach(t, v.Index(i), path, seen)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			reach(t, v.MapIndex(key), path, seen)
		}
	}
}

func inspect(t testing.TB, typ reflect.Type, path string) {
	t.Helper()
	if typ == reflect.TypeFor[*lance.Engine]() || typ == reflect.TypeFor[lance.Engine]() {
		t.Errorf("%s is an engine", path)
	}
	if typ.Implements(reflect.TypeFor[store.Writer]()) {
		t.Errorf("%s (%s) can write", path, typ)
	}
	if !strings.HasPrefix(typ.String(), "*store.") && !strings.HasPrefix(typ.String(), "*lance.") {
		return
	}
	for i := range typ.NumMethod() {
		if name := typ.Method(i).Name; writing.MatchString(name) {
			t.Errorf("%s (%s) has a method %s", path, typ, name)
		}
	}
}
