package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	startPatience = 3 * time.Minute  // for a program to say that it serves
	stopPatience  = 20 * time.Second // from asking a program to end to killing it
)

// child is a running program in a process group of its own: Ctrl-C in a terminal
// reaches bench alone, which then ends its children in order.
type child struct {
	name string
	cmd  *exec.Cmd
	said *transcript
	done chan struct{}
	err  error // why it ended; set before done is closed
}

// startChild starts a program. It is killed when bench dies, however that happens
// (on Linux).
func startChild(name, log string, env []string, path string, args ...string) (*child, error) {
	file, err := os.Create(log)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	// Not tied to a context: stop ends it in its turn, also after Ctrl-C.
	c := &child{name: name, cmd: exec.CommandContext(context.Background(), path, args...), said: &transcript{file: file, more: make(chan struct{})}, done: make(chan struct{})}
	c.cmd.Env = append(cleanEnv(), env...)
	c.cmd.Stdout, c.cmd.Stderr = c.said, c.said
	c.cmd.SysProcAttr = tied()
	started := make(chan error)
	go c.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return c, nil
}

// run keeps one thread from start to end: the kernel kills the child when the
// thread that started it ends.
func (c *child) run(started chan<- error) {
	runtime.LockOSThread()
	defer close(c.done)
	defer c.said.file.Close()
	err := c.cmd.Start()
	started <- err
	if err == nil {
		c.err = c.cmd.Wait()
	}
}

func (c *child) pid() int { return c.cmd.Process.Pid }

// await waits for a line that has the words and returns it.
func (c *child) await(ctx context.Context, words string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for {
		line, more := c.said.find(words)
		if line != "" {
			return line, nil
		}
		select {
		case <-more:
		case <-c.done:
			if line, _ := c.said.find(words); line != "" {
				return line, nil
			}
			return "", fmt.Errorf("%s ended without saying %q: %w:\n%s", c.name, words, c.ended(), c.said.tail())
		case <-ctx.Done():
			return "", fmt.Errorf("%s did not say %q: %w:\n%s", c.name, words, ctx.Err(), c.said.tail())
		}
	}
}

// ended says how the program ended. Only after done.
func (c *child) ended() error {
	if c.err != nil {
		return c.err
	}
	return errors.New("exit status 0")
}

// stop asks the program to end, and kills its group when it does not.
func (c *child) stop() {
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-c.done:
	case <-time.After(stopPatience):
	}
	_ = syscall.Kill(-c.pid(), syscall.SIGKILL)
	<-c.done
}

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
