// Package child starts programs that must never outlive the one that started
// them: not when it ends, and not when it is killed.
package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Command is what to start.
type Command struct {
	Path string
	Args []string
	Log  string // file that takes its output, from the start
}

// Process is a running child in the process group of its parent.
type Process struct {
	command Command
	cmd     *exec.Cmd
	done    chan struct{}
	err     error // why it ended; set before done is closed
}

// Start starts a child. It is killed when this process dies, however that happens.
func Start(c Command) (*Process, error) {
	log, err := os.Create(c.Log)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Path, err)
	}
	defer log.Close()                      // the child has its own copy
	cmd := exec.Command(c.Path, c.Args...) //nolint:noctx // it lives until Stop, or as long as this process
	cmd.Stdout, cmd.Stderr = log, log
	p := &Process{command: c, cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Path, err)
	}
	return p, nil
}

// run keeps one thread from start to end: the kernel's promise to kill the child
// (Linux) holds while the thread that started it lives, and threads come and go
// with what runs on them.
func (p *Process) run(started chan<- error) {
	runtime.LockOSThread()
	defer close(p.done)
	release, err := startTied(p.cmd)
	started <- err
	if err == nil {
		p.err = p.cmd.Wait()
		release()
	}
}

// Done is closed when the child has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err says why it ended, with the end of its log. Only after Done.
func (p *Process) Err() error {
	why := "exit status 0"
	if p.err != nil {
		why = p.err.Error()
	}
	return fmt.Errorf("%s ended by itself: %s; the end of %s:\n%s", p.command.Path, why, p.command.Log, tail(p.command.Log))
}

// PID is the child's process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Stop asks the child to end and kills it when it has not after the grace or when
// the context ends.
func (p *Process) Stop(ctx context.Context, grace time.Duration) error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", p.command.Path, err)
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
	case <-ctx.Done():
	}
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill %s: %w", p.command.Path, err)
	}
	<-p.done
	return nil
}

const tailBytes = 2000

func tail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	if len(text) > tailBytes {
		text = text[len(text)-tailBytes:]
	}
	return strings.TrimSpace(string(text))
}
