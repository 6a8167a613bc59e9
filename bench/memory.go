package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// Memory of a process, in bytes, as the kernel counts it.
type Memory struct {
	Resident int64 `json:"resident"`
	Peak     int64 `json:"peak"` // resident, since the start or the last resetPeak
}

// memoryOf reads /proc (Linux only).
func memoryOf(pid int) (Memory, error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return Memory{}, fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	return parseMemory(text)
}

func parseMemory(status []byte) (m Memory, err error) {
	for name, into := range map[string]*int64{"VmRSS:": &m.Resident, "VmHWM:": &m.Peak} {
		if *into, err = kilobytes(status, name); err != nil {
			return Memory{}, err
		}
	}
	return m, nil
}

func kilobytes(status []byte, name string) (int64, error) {
	for line := range bytes.Lines(status) {
		fields := bytes.Fields(line)
		if len(fields) != 3 || string(fields[0]) != name || string(fields[2]) != "kB" {
			continue
		}
		n, err := strconv.ParseInt(string(fields[1]), 10, 64)
		return n * 1024, err
	}
	return 0, fmt.Errorf("process status has no %s in kB", name)
}

// resetPeak makes the peak count from now.
func resetPeak(pid int) error {
	const peak = "5"
	return os.WriteFile(filepath.Join("/proc", strconv.Itoa(pid), "clear_refs"), []byte(peak), 0)
}
