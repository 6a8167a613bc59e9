package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Machine is where the numbers come from, and what was measured.
type Machine struct {
	Platform string `json:"platform"`
	CPU      string `json:"cpu"`
	Cores    int    `json:"cores"`
	Memory   int64  `json:"memory"` // bytes
	Kernel   string `json:"kernel"`

	Lancefleet string `json:"lancefleet"` // version and Go's
	Revision   string `json:"revision"`   // of the checkout
	Library    string `json:"library"`    // profile of the native library
	Temporal   string `json:"temporal"`
	S3Server   string `json:"s3_server"`
	Pylance    string `json:"pylance"`
}

const unknown = "unknown"

func (b *bench) describe(ctx context.Context) (Machine, error) {
	library, err := b.tools.profile()
	if err != nil {
		return Machine{}, err
	}
	m := Machine{
		Platform: runtime.GOOS + "/" + runtime.GOARCH, Cores: runtime.NumCPU(),
		CPU: field("/proc/cpuinfo", "model name"), Kernel: firstLine("/proc/sys/kernel/osrelease"),
		Lancefleet: versionOf(ctx, b.tools.lancefleet, "version"),
		Revision:   versionOf(ctx, "git", "-C", checkout(), "describe", "--always", "--dirty"),
		Library:    library,
		Temporal:   versionOf(ctx, b.tools.temporal, "--version"),
	}
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		m.Memory, _ = kilobytes(text, "MemTotal:") // 0 = unknown
	}
	if b.settings.S3Experiments > 0 {
		m.S3Server = pinned("versitygw") + ", " + pinned("toxiproxy")
	}
	if b.tools.python != "" {
		m.Pylance = versionOf(ctx, b.tools.python, "-c", "import lance, platform; print('pylance', lance.__version__, 'on Python', platform.python_version())")
	}
	return m, nil
}

// profile tells which build of the library lies beside the program.
func (t tools) profile() (string, error) {
	used, err := os.Stat(t.native)
	if err != nil {
		return "", err
	}
	for profile, described := range map[string]string{"release": "release", "fast": "development (`fast`)"} {
		path := filepath.Join(t.target, profile, libraryName())
		built, err := os.Stat(path)
		if err != nil || built.Size() != used.Size() {
			continue
		}
		same, err := sameContent(path, t.native)
		if err != nil {
			return "", err
		}
		if same {
			return described, nil
		}
	}
	return "of an unknown profile", nil
}

func sameContent(a, b string) (bool, error) {
	textA, errA := os.ReadFile(a)
	textB, errB := os.ReadFile(b)
	return bytes.Equal(textA, textB), errors.Join(errA, errB)
}

func versionOf(ctx context.Context, path string, args ...string) string {
	text, err := output(ctx, time.Minute, nil, "", path, args...)
	if err != nil {
		return unknown
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	return line
}

// pinned is the name and version of a tool, from its go.mod: what is its own
// module's first requirement.
func pinned(tool string) string {
	text, err := os.ReadFile(filepath.Join(checkout(), "tools", tool, "go.mod"))
	if err != nil {
		return tool
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(fields) >= 2 && strings.Contains(fields[0], tool) && strings.HasPrefix(fields[1], "v") {
			return tool + " " + fields[1]
		}
	}
	return tool
}

func firstLine(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return unknown
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}

func field(path, name string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return unknown
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return unknown
}

// loadAverage is what the kernel says about the last minute; "" = unknown.
func loadAverage() string {
	first, _, _ := strings.Cut(firstLine("/proc/loadavg"), " ")
	return first
}
