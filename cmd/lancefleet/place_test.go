package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func placeOf(t *testing.T, c devCommand) devPlace {
	t.Helper()
	place, err := c.place()
	require.NoError(t, err)
	return place
}

func TestWithoutADataDirDevHasADemoOfItsOwn(t *testing.T) {
	state := t.TempDir()
	place := placeOf(t, devCommand{StateDir: state})
	require.True(t, place.demo)
	require.Equal(t, filepath.Join(state, "demo", "data"), place.dataDir)
}

func TestADataDirOfSomebodyElseIsNeverADemo(t *testing.T) {
	state, data := t.TempDir(), t.TempDir()
	require.False(t, placeOf(t, devCommand{StateDir: state, DataDir: data}).demo)
	require.False(t, placeOf(t, devCommand{StateDir: state, DataDir: "s3://bucket/prefix"}).demo)
}

func TestADirectoryThatDevMadeIsItsDemoWhenNamed(t *testing.T) {
	state := t.TempDir()
	made := placeOf(t, devCommand{StateDir: state})
	require.NoError(t, made.markDemo())
	require.True(t, placeOf(t, devCommand{StateDir: state, DataDir: made.dataDir}).demo)
	require.False(t, placeOf(t, devCommand{StateDir: state, DataDir: made.dataDir, NoDemo: true}).demo)
}

func TestEachDataDirHasADatabaseOfItsOwn(t *testing.T) {
	state, one, other := t.TempDir(), t.TempDir(), t.TempDir()
	first := placeOf(t, devCommand{StateDir: state, DataDir: one})
	require.Equal(t, first, placeOf(t, devCommand{StateDir: state, DataDir: one + "/"}), "the same folder, written otherwise")
	require.NotEqual(t, first.state, placeOf(t, devCommand{StateDir: state, DataDir: other}).state)
	require.NotEqual(t, first.state, placeOf(t, devCommand{StateDir: state}).state)
}

func TestADataDirThatIsNoFolderIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, dir := range []string{file, filepath.Join(t.TempDir(), "none")} {
		c := devCommand{StateDir: t.TempDir(), DataDir: dir}
		_, err := c.place()
		require.ErrorContains(t, err, dir)
		require.Equal(t, exitUsage, exitCode(err))
	}
	c := devCommand{StateDir: t.TempDir(), NoDemo: true}
	_, err := c.place()
	require.ErrorContains(t, err, "--data-dir")
}

func TestTwoRunsNeverUseOneDatabase(t *testing.T) {
	place := placeOf(t, devCommand{StateDir: t.TempDir()})
	unlock, err := place.lock()
	require.NoError(t, err)
	_, err = place.lock()
	require.ErrorContains(t, err, place.state)
	unlock()
	unlock, err = place.lock()
	require.NoError(t, err)
	unlock()
}

func TestEverySettingIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/configuration.md")
	require.NoError(t, err)
	for _, name := range settingVariables() {
		require.Contains(t, string(text), "`"+name+"`")
	}
}
