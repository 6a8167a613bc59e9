package lance

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestALibraryThatDoesNotFitIsAClearError(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text.so")
	require.NoError(t, os.WriteFile(text, []byte("not a library"), 0o600))

	for _, c := range []struct {
		name, library, says string
	}{
		{"a file that is not there", filepath.Join(dir, "absent.so"), "there is no such file"},
		{"a folder", dir, "it is a folder"},
		{"a file that is no library", text, "cannot be loaded"},
		{"another abi version", buildFake(t, "-DABI=1"), "has abi version 1, this program needs 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Open(Options{Library: c.library})
			require.ErrorIs(t, err, ErrLibrary)
			assert.Equal(t, Library, ClassOf(err))
			assert.ErrorContains(t, err, c.says)
			assert.ErrorContains(t, err, c.library)
		})
	}
}

func TestEachMissingSymbolIsNamed(t *testing.T) {
	for _, symbol := range []string{
		"lf_abi_version", "lf_call", "lf_reply_free", "lf_cancel_new", "lf_cancel_fire", "lf_cancel_free",
	} {
		t.Run(symbol, func(t *testing.T) {
			_, err := Open(Options{Library: buildFake(t, "-DWITHOUT_"+symbol)})
			require.ErrorIs(t, err, ErrLibrary)
			assert.ErrorContains(t, err, "has no symbol "+symbol)
		})
	}
}

func TestAnotherAbiVersionIsToldEvenIfSymbolsAreMissingToo(t *testing.T) {
	_, err := Open(Options{Library: buildFake(t, "-DABI=9", "-DWITHOUT_lf_cancel_new")})
	assert.ErrorContains(t, err, "has abi version 9")
}

func TestTheEnvironmentNamesTheLibraryAndTheOptionComesFirst(t *testing.T) {
	path := copyFake(t)
	t.Setenv(EnvLibrary, path)
	engine, err := Open(Options{})
	require.NoError(t, err)
	assert.Equal(t, path, engine.LibraryPath())
	require.NoError(t, engine.Close())

	t.Setenv(EnvLibrary, filepath.Join(t.TempDir(), "absent.so"))
	_, err = Open(Options{})
	require.ErrorIs(t, err, ErrLibrary, "a library asked for by name is never replaced by another")
	assert.ErrorContains(t, err, EnvLibrary)

	engine, err = Open(Options{Library: path})
	require.NoError(t, err)
	require.NoError(t, engine.Close())
}

func TestWithoutAnyNameTheFirstPlaceThatHasTheLibraryWins(t *testing.T) {
	beside, build := t.TempDir(), t.TempDir()
	places := []string{filepath.Join(beside, libraryName()), filepath.Join(build, libraryName())}

	_, err := firstLibrary(places)
	require.ErrorIs(t, err, ErrLibrary)
	for _, says := range append(places, EnvLibrary) {
		assert.ErrorContains(t, err, says)
	}

	require.NoError(t, os.WriteFile(places[1], nil, 0o600))
	found, err := firstLibrary(places)
	require.NoError(t, err)
	assert.Equal(t, places[1], found)

	require.NoError(t, os.WriteFile(places[0], nil, 0o600))
	found, err = firstLibrary(places)
	require.NoError(t, err)
	assert.Equal(t, places[0], found)
}

func TestPlacesToLookAreBesideTheExecutableThenTheBuildFolder(t *testing.T) {
	exe, err := os.Executable()
	require.NoError(t, err)
	dir := t.TempDir()
	for _, c := range []struct{ env, value, folder string }{ // each comes before those above it
		{"HOME", dir, dir + "/.cache/lancefleet/target"},
		{"XDG_CACHE_HOME", dir + "/xdg", dir + "/xdg/lancefleet/target"},
		{"LANCEFLEET_CACHE", dir + "/cache", dir + "/cache/target"},
		{"CARGO_TARGET_DIR", dir + "/cargo", dir + "/cargo"},
	} {
		if c.env == "HOME" {
			for _, other := range []string{"XDG_CACHE_HOME", "LANCEFLEET_CACHE", "CARGO_TARGET_DIR"} {
				t.Setenv(other, "")
			}
		}
		t.Setenv(c.env, c.value)
		places := libraryPlaces()
		assert.Equal(t, filepath.Join(filepath.Dir(exe), libraryName()), places[0])
		assert.Equal(t, filepath.Join(c.folder, "fast", libraryName()), places[len(places)-1], c.env)
	}
}

// The loader keeps its last error per thread; goroutines move between threads.
func TestLoadErrorsOfManyGoroutinesAreNotMixedUp(t *testing.T) {
	dir := t.TempDir()
	var all sync.WaitGroup
	failures := make([]error, 64)
	for i := range failures {
		path := filepath.Join(dir, fmt.Sprintf("broken-%d.so", i))
		require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
		all.Go(func() {
			_, err := bindLibrary(path)
			var e *Error
			if !errors.As(err, &e) || e.URI != path || !assert.Contains(t, e.Message, path) {
				failures[i] = fmt.Errorf("goroutine %d: %w", i, err)
			}
		})
	}
	all.Wait()
	require.NoError(t, errors.Join(failures...))
}
