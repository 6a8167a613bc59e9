package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// tools are the programs that take part.
type tools struct {
	lancefleet string
	native     string // library
	temporal   string
	toxiproxy  string // "" = not to be had
	vegeta     string // load; "" = not to be had
	python     string // "" = not to be had; has pylance
	script     string // poll.py
	target     string // cargo's folder: tells which profile the library is of
}

// findTools says what is missing that nothing can be measured without.
func findTools() (tools, error) {
	root := checkout()
	t := tools{
		lancefleet: filepath.Join(root, "bin", "lancefleet"),
		native:     filepath.Join(root, "bin", libraryName()),
		temporal:   place("LANCEFLEET_TEMPORAL", "bin/temporal"),
		toxiproxy:  place("LANCEFLEET_TOXIPROXY", "bin/toxiproxy"),
		vegeta:     place("LANCEFLEET_VEGETA", "bin/vegeta"),
		python:     place("LANCEFLEET_PYTHON", "venv/bin/python"),
		script:     filepath.Join(root, "bench", "poll.py"),
		target:     os.Getenv("CARGO_TARGET_DIR"),
	}
	if t.target == "" {
		t.target = filepath.Join(cache(), "target")
	}
	for _, path := range []string{t.lancefleet, t.native} {
		if !isFile(path) {
			return t, fmt.Errorf("no %s; ./task build makes it", path)
		}
	}
	if !isFile(t.temporal) {
		return t, fmt.Errorf("no Temporal server %s; ./task setup makes it", t.temporal)
	}
	if !isFile(t.toxiproxy) {
		t.toxiproxy = ""
	}
	if !isFile(t.python) {
		t.python = ""
	}
	return t, nil
}

// pin puts what is measured where a build during the run does not replace it.
func (t *tools) pin(dir string) error {
	for _, path := range []*string{&t.lancefleet, &t.native} {
		pinned := filepath.Join(dir, filepath.Base(*path))
		if err := linkOrCopy(*path, pinned); err != nil {
			return fmt.Errorf("pin %s: %w", *path, err)
		}
		*path = pinned
	}
	return nil
}

// linkOrCopy links where it can: builds replace their results by renaming.
func linkOrCopy(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o755)
}

// checkout is the folder of the repository that bench was built from.
func checkout() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(filepath.Dir(file))
}

func libraryName() string {
	if runtime.GOOS == "darwin" {
		return "liblancefleet_native.dylib"
	}
	return "liblancefleet_native.so"
}

func place(variable, inCache string) string {
	if path := os.Getenv(variable); path != "" {
		return path
	}
	return filepath.Join(cache(), filepath.FromSlash(inCache))
}

func cache() string {
	if dir := os.Getenv("LANCEFLEET_CACHE"); dir != "" {
		return dir
	}
	if dir := os.Getenv("XDG_CACHE_HOME"); dir != "" {
		return filepath.Join(dir, "lancefleet")
	}
	home, _ := os.UserHomeDir() // without one nothing is found, which is told
	return filepath.Join(home, ".cache", "lancefleet")
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return path != "" && err == nil && info.Mode().IsRegular()
}
