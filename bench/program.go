package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"lancefleet/internal/child"
)

const (
	startPatience = 3 * time.Minute  // for a program to say that it serves
	stopPatience  = 20 * time.Second // from asking a program to end to killing it
)

// program is a running program in a process group of its own: Ctrl-C in a terminal
// reaches bench alone, which then ends its children in order.
type program struct {
	*child.Process
	name string
	said *transcript
}

// startProgram starts a program. It is killed when bench dies, however that happens.
func startProgram(name, log string, env []string, path string, args ...string) (*program, error) {
	file, err := os.Create(log)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	said := &transcript{file: file, more: make(chan struct{})}
	// Not tied to a context: stop ends it in its turn, also after Ctrl-C.
	cmd := exec.CommandContext(context.Background(), path, args...)
	cmd.Env = append(cleanEnv(), env...)
	cmd.Stdout, cmd.Stderr = said, said
	cmd.SysProcAttr = group()
	process, err := child.Start(cmd)
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		<-process.Done()
		file.Close()
	}()
	return &program{Process: process, name: name, said: said}, nil
}

// await waits for a line that has the words and returns it.
func (p *program) await(ctx context.Context, words string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for {
		line, more := p.said.find(words)
		if line != "" {
			return line, nil
		}
		select {
		case <-more:
		case <-p.Done():
			if line, _ := p.said.find(words); line != "" {
				return line, nil
			}
			return "", fmt.Errorf("%s ended without saying %q: %s:\n%s", p.name, words, p.Ended(), p.said.tail())
		case <-ctx.Done():
			return "", fmt.Errorf("%s did not say %q: %w:\n%s", p.name, words, ctx.Err(), p.said.tail())
		}
	}
}

// stop asks the program to end, and kills its group when it does not.
func (p *program) stop() {
	_ = p.Stop(context.Background(), stopPatience) // it fails only where nothing is left to stop
}

// group is for programs with a process group of their own.
func group() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// transcript keeps what a program says and passes it on to a file.
type transcript struct {
	mu   sync.Mutex
	file *os.File
	text []byte
	more chan struct{} // closed and replaced when something comes
}

func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	close(t.more)
	t.more = make(chan struct{})
	return t.file.Write(p)
}

func (t *transcript) find(words string) (line string, more <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for line := range bytes.Lines(t.text) {
		if bytes.HasSuffix(line, []byte("\n")) && bytes.Contains(line, []byte(words)) {
			return string(bytes.TrimSpace(line)), t.more
		}
	}
	return "", t.more
}

func (t *transcript) tail() string {
	const most = 2000
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text[max(0, len(t.text)-most):])
}

// output runs a program to its end and returns what it printed on stdout.
func output(ctx context.Context, limit time.Duration, env []string, stdin string, path string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(cleanEnv(), env...)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.SysProcAttr = group()
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = stopPatience
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", filepath.Base(path), strings.Join(args, " "), errors.Join(err, ctx.Err()), bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.Bytes(), nil
}

// cleanEnv is the environment without settings that would change what is measured.
func cleanEnv() []string {
	dropped := []string{
		"DATA_DIR", "FLEET", "SOURCES", "HTTP_ADDR", "MASTER_HOST", "MASTER_PORT", "SCAN_INTERVAL", "STATS_SCAN_INTERVAL_SECS",
		"SCAN_CONCURRENCY", "SCAN_PAGE_SIZE", "SCAN_PAGES_AT_ONCE", "PROBE_TIMEOUT", "OBSERVE_TIMEOUT", "METRICS_ADDR",
		"LANCEFLEET_SERVER", "LANCEFLEET_TOKEN", "LANCEFLEET_CONFIG", "LANCEFLEET_NATIVE", "LOG_LEVEL", "LOG_FORMAT",
		"TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE", "TEMPORAL_CONFIG_FILE", "TEMPORAL_PROFILE",
	}
	var kept []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		drop := strings.HasPrefix(name, "AWS_")
		for _, d := range dropped {
			drop = drop || name == d
		}
		if !drop {
			kept = append(kept, entry)
		}
	}
	return kept
}
