package fleettest

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience bounds every wait: a busy machine may be slow, a broken program is for ever.
const patience = 5 * time.Minute

// Process is a running program in a process group of its own.
type Process struct {
	tb   testing.TB
	name string
	cmd  *exec.Cmd
	done chan struct{}
	err  error

	mu    sync.Mutex
	lines []string
	more  chan struct{} // closed and replaced when a line comes
}

// Start runs the built program. It is killed, with all of its group, when the test ends.
func Start(tb testing.TB, env []string, args ...string) *Process {
	tb.Helper()
	return start(tb, "lancefleet "+args[0], exec.Command(Program(tb), args...), append(env, "LANCEFLEET_NATIVE="+Native(tb)))
}

func start(tb testing.TB, name string, cmd *exec.Cmd, env []string) *Process {
	tb.Helper()
	cmd.Env = append(CleanEnv(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdout, err := cmd.StdoutPipe()
	require.NoError(tb, err)
	stderr, err := cmd.StderrPipe()
	require.NoError(tb, err)
	p := &Process{tb: tb, name: name, cmd: cmd, done: make(chan struct{}), more: make(chan struct{})}
	require.NoError(tb, cmd.Start(), name)
	var reading sync.WaitGroup
	reading.Go(func() { p.read("", stdout) })
	reading.Go(func() { p.read("err: ", stderr) })
	go func() {
		reading.Wait()
		p.err = cmd.Wait()
		close(p.done)
	}()
	tb.Cleanup(p.end)
	return p
}

// CleanEnv is the environment without settings that a developer may have.
func CleanEnv() []string {
	var kept []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		switch name {
		case "DATA_DIR", "FLEET", "SOURCES", "HTTP_ADDR", "MASTER_HOST", "MASTER_PORT", "SCAN_INTERVAL", "STATS_SCAN_INTERVAL_SECS",
			"SCAN_CONCURRENCY", "LANCEFLEET_SERVER", "LANCEFLEET_TOKEN", "LANCEFLEET_TOKENS", "LANCEFLEET_TOKENS_FILE", "LANCEFLEET_CONFIG", "LOG_LEVEL", "LOG_FORMAT",
			"TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE":
			continue
		}
		kept = append(kept, entry)
	}
	return kept
}

func (p *Process) read(prefix string, r io.Reader) {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		p.mu.Lock()
		p.lines = append(p.lines, prefix+scanner.Text())
		close(p.more)
		p.more = make(chan struct{})
		p.mu.Unlock()
	}
}

// Line waits for a line that starts with prefix and returns the rest of it. Lines
// of stderr start with "err: ".
func (p *Process) Line(prefix string) string {
	p.tb.Helper()
	return p.wait(func(line string) (string, bool) { return strings.CutPrefix(line, prefix) }, prefix)
}

// Said waits for a line that has the words.
func (p *Process) Said(words string) {
	p.tb.Helper()
	p.wait(func(line string) (string, bool) { return line, strings.Contains(line, words) }, words)
}

func (p *Process) wait(match func(string) (string, bool), what string) string {
	p.tb.Helper()
	deadline := time.After(patience)
	seen := 0
	for {
		p.mu.Lock()
		fresh, more := p.lines[seen:], p.more
		seen = len(p.lines)
		p.mu.Unlock()
		for _, line := range fresh {
			if rest, ok := match(line); ok {
				return rest
			}
		}
		select {
		case <-more:
		case <-p.done:
			p.mu.Lock()
			ended := seen == len(p.lines)
			p.mu.Unlock()
			if ended {
				require.FailNow(p.tb, p.name+" ended without saying "+what, p.Output())
			}
		case <-deadline:
			require.FailNow(p.tb, p.name+" did not say "+what, p.Output())
		}
	}
}

// Output is everything said so far.
func (p *Process) Output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, "\n")
}

// Stdout is what was said on stdout so far.
func (p *Process) Stdout() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var lines []string
	for _, line := range p.lines {
		if !strings.HasPrefix(line, "err: ") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// Signal sends a signal to the program alone, not to its children.
func (p *Process) Signal(s syscall.Signal) {
	p.tb.Helper()
	require.NoError(p.tb, p.cmd.Process.Signal(s))
}

// SignalGroup does what Ctrl-C in a terminal does.
func (p *Process) SignalGroup(s syscall.Signal) {
	p.tb.Helper()
	require.NoError(p.tb, syscall.Kill(-p.cmd.Process.Pid, s))
}

// Exit waits for the end and returns the exit code, -1 after a signal.
func (p *Process) Exit() int {
	p.tb.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		require.FailNow(p.tb, p.name+" did not end", p.Output())
	}
	var exit *exec.ExitError
	if errors.As(p.err, &exit) {
		return exit.ExitCode()
	}
	require.NoError(p.tb, p.err)
	return 0
}

// Kill is kill -9 of the program alone.
func (p *Process) Kill() {
	p.tb.Helper()
	p.Signal(syscall.SIGKILL)
	p.Exit()
}

// GroupIsGone says whether no process of the group lives any more.
func (p *Process) GroupIsGone() bool {
	return errors.Is(syscall.Kill(-p.cmd.Process.Pid, 0), syscall.ESRCH)
}

func (p *Process) end() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.done
	if p.tb.Failed() {
		p.tb.Logf("--- %s said:\n%s", p.name, p.Output())
	}
}

// Run runs the program to its end.
func Run(tb testing.TB, env []string, args ...string) (stdout string, exit int) {
	tb.Helper()
	p := Start(tb, env, args...)
	exit = p.Exit()
	return p.Stdout(), exit
}
