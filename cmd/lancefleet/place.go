package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"lancefleet/cmd/internal/makefleet"
	"lancefleet/fleet"
)

// devPlace says where one development fleet keeps what outlives a run.
type devPlace struct {
	state   string // folder of Temporal's database and logs
	dataDir string
	demo    bool // dataDir was made by dev itself: it may be written
}

// demoMark is a file in a data directory that dev made. Only such a directory is
// ever written by writers of the demo.
const demoMark = "_lancefleet/demo.json"

func (c *devCommand) place() (devPlace, error) {
	base := c.StateDir
	if base == "" {
		base = filepath.Join(stateDir(), "dev")
	}
	base, err := filepath.Abs(base)
	if err != nil {
		return devPlace{}, usageError{fmt.Errorf("--state-dir: %w", err)}
	}
	place := devPlace{state: filepath.Join(base, "demo"), demo: true}
	place.dataDir = filepath.Join(place.state, "data")
	switch {
	case c.DataDir != "":
		if place, err = ownPlace(base, c.DataDir, c.NoDemo); err != nil {
			return devPlace{}, err
		}
	case c.NoDemo:
		return devPlace{}, usageError{errors.New("--no-demo: then say with --data-dir what to look at")}
	}
	if err := os.MkdirAll(place.state, 0o755); err != nil {
		return devPlace{}, usageError{fmt.Errorf("--state-dir (LANCEFLEET_STATE_DIR) %q: a folder that can be written is allowed: %w", base, err)}
	}
	return place, nil
}

// ownPlace is for data that somebody else has made. Each data directory has a
// Temporal database of its own, so that what is paused for one is not for another.
func ownPlace(base, dataDir string, noDemo bool) (devPlace, error) {
	clean, err := cleanDataDir(dataDir)
	if err != nil {
		return devPlace{}, err
	}
	place := devPlace{dataDir: clean}
	if !strings.Contains(clean, "://") {
		info, err := os.Stat(clean)
		if err != nil || !info.IsDir() {
			return devPlace{}, usageError{fmt.Errorf("--data-dir %q: a folder that exists, or a bucket, is allowed", dataDir)}
		}
		place.demo = isFile(filepath.Join(clean, demoMark)) && !noDemo
	}
	sum := sha256.Sum256([]byte(clean))
	place.state = filepath.Join(base, hex.EncodeToString(sum[:6]))
	return place, nil
}

func (p devPlace) file(name string) string { return filepath.Join(p.state, name) }

func (p devPlace) markDemo() error {
	mark := filepath.Join(p.dataDir, demoMark)
	if err := os.MkdirAll(filepath.Dir(mark), 0o755); err != nil {
		return err
	}
	return os.WriteFile(mark, []byte("{\"made_by\": \"lancefleet dev\"}\n"), 0o644)
}

// lock keeps two runs from using one database, and from looking at one folder, each
// by a schedule of its own.
func (p devPlace) lock() (unlock func(), err error) {
	f, err := os.OpenFile(p.file("lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("--state-dir (LANCEFLEET_STATE_DIR): %w", err)
	}
	if err := locked(f); err != nil {
		return nil, usageError{fmt.Errorf("another lancefleet dev runs on %s: end it, or choose another --state-dir", p.state)}
	}
	data, err := os.Open(p.dataDir) // nothing is written for it
	if err != nil {
		return func() { f.Close() }, nil //nolint:nilerr // a bucket, or a demo that is not made yet
	}
	if err := locked(data); err != nil {
		f.Close()
		return nil, usageError{fmt.Errorf("another lancefleet dev, with another --state-dir, looks at %s: end it first", p.dataDir)}
	}
	return func() { data.Close(); f.Close() }, nil
}

// locked locks an open file or folder until it is closed; one that another process
// has locked is closed.
func locked(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err != nil {
		f.Close()
	}
	return err
}

// demoPlan is a small fleet with everything to look at.
func demoPlan(experiments int) makefleet.Plan {
	return makefleet.Plan{
		Experiments: experiments, Shards: 2, Generations: 3, Rows: 20, Fragments: 3, Tombstones: true,
		ColdShare: 0.3, Kinds: []fleet.Kind{fleet.Rollout, fleet.Generic, fleet.Table}, Seed: 1,
	}
}

func cacheDir() string {
	if dir := os.Getenv("LANCEFLEET_CACHE"); dir != "" {
		return dir
	}
	return xdg("XDG_CACHE_HOME", ".cache")
}

func stateDir() string { return xdg("XDG_STATE_HOME", ".local/state") }

func xdg(variable, below string) string {
	if dir := os.Getenv(variable); dir != "" {
		return filepath.Join(dir, "lancefleet")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = os.TempDir()
	}
	return filepath.Join(home, below, "lancefleet")
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func onPath(name string) (string, bool) {
	found, err := exec.LookPath(name)
	return found, err == nil
}
