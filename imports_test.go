// Package lancefleet has no code: its test keeps the directions of imports.
package lancefleet

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mayImport says which parts of ours each part may know, directly. Everything may
// import fleet; fleet imports nothing of ours.
var mayImport = map[string][]string{
	"fleet":      {},
	"internal":   {}, // what no part owns and knows none: see its packages
	"lance":      {"fleet"},
	"store":      {"fleet", "lance"},
	"workflows":  {"fleet"},
	"activities": {"fleet", "workflows", "store", "lance"},
	"metrics":    {"fleet", "store", "lance"},
	"worker":     {"fleet", "workflows", "activities", "control", "store", "lance", "metrics"},
	"control":    {"fleet", "workflows"},
	"web":        {"fleet", "workflows", "control", "store", "lance", "metrics"},
	"cmd":        {"fleet", "workflows", "worker", "web", "control", "store", "lance", "metrics", "internal", "cmd"},
	"bench":      {"fleet", "workflows", "store", "lance", "control", "worker", "web", "metrics", "internal", "e2e", "bench"},
}

// foreign are packages from outside that a part must not know: workflows are
// replayed, and fleet decides without looking at the world.
var foreign = map[string][]string{
	"fleet":     {"os", "net", "net/http", "context", "database/sql", "go.temporal.io/"},
	"workflows": {"os", "net", "net/http", "math/rand", "math/rand/v2", "database/sql", "go.temporal.io/sdk/client", "go.temporal.io/sdk/activity"},
}

const module = "lancefleet"

func TestPartsImportOnlyWhatTheDesignAllows(t *testing.T) {
	seen := 0
	eachGoFile(t, func(file string) {
		part := partOf(file)
		allowed, known := mayImport[part]
		if !known || strings.HasSuffix(file, "_test.go") {
			return // tests may use any part as a backend; e2e and tools are tests themselves
		}
		for _, imported := range importsOf(t, file) {
			seen++
			for _, wrong := range foreign[part] {
				require.False(t, imported == wrong || strings.HasSuffix(wrong, "/") && strings.HasPrefix(imported, wrong),
					"%s imports %s, which %s must not know", file, imported, part)
			}
			ours, isOurs := strings.CutPrefix(imported, module+"/")
			if !isOurs {
				continue
			}
			target, _, _ := strings.Cut(ours, "/")
			require.True(t, target == part || slices.Contains(allowed, target), "%s imports %s: DESIGN allows %s only %v", file, imported, part, allowed)
		}
	})
	require.Greater(t, seen, 100, "the test looked at too few imports to mean anything")
}

func TestEveryPartIsListed(t *testing.T) {
	unlisted := []string{"e2e", ""} // tests; this file
	eachGoFile(t, func(file string) {
		part := partOf(file)
		_, known := mayImport[part]
		require.True(t, known || slices.Contains(unlisted, part), "%s belongs to no part that mayImport lists", file)
	})
}

func TestOnlyLanceLoadsTheNativeLibrary(t *testing.T) {
	eachGoFile(t, func(file string) {
		if partOf(file) == "lance" {
			return
		}
		for _, imported := range importsOf(t, file) {
			require.False(t, strings.HasPrefix(imported, "github.com/ebitengine/purego"), "%s loads libraries", file)
		}
	})
}

func eachGoFile(t *testing.T, visit func(file string)) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (file == "tools" || file == "native" || entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), ".") && file != ".") {
			return filepath.SkipDir
		}
		if path.Ext(file) == ".go" {
			visit(filepath.ToSlash(file))
		}
		return nil
	}))
}

func partOf(file string) string {
	part, _, nested := strings.Cut(file, "/")
	if !nested {
		return ""
	}
	return part
}

func importsOf(t *testing.T, file string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	require.NoError(t, err)
	var found []string
	for _, spec := range parsed.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		require.NoError(t, err)
		found = append(found, imported)
	}
	return found
}
