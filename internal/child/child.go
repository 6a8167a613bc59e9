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
	"syscall"
	"time"
)

// Process is a running child.
type Process struct {
	cmd   *exec.Cmd
	group bool // it leads a process group of its own, which ends with it
	done  chan struct{}
	err   error // how it ended; set before done is closed
}

// Start starts a command that is not bound to a context. It is killed when this
// process dies, however that happens. One with a process group of its own
// (SysProcAttr.Setpgid) is not reached by Ctrl-C, and its group is stopped with it.
func Start(cmd *exec.Cmd) (*Process, error) {
	p := &Process{cmd: cmd, done: make(chan struct{})}
	p.group = cmd.SysProcAttr != nil && cmd.SysProcAttr.Setpgid
	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
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

// Ended says how it ended: "exit status 0", "signal: killed". Only after Done.
func (p *Process) Ended() string {
	if p.err != nil {
		return p.err.Error()
	}
	return "exit status 0"
}

// PID is the child's process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Stop asks the child to end and kills it when it has not after the grace or when
// the context ends.
func (p *Process) Stop(ctx context.Context, grace time.Duration) error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", p.cmd.Path, err)
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
	case <-ctx.Done():
	}
	return p.Kill()
}

// Kill ends the child, and what is left of its group, without asking.
func (p *Process) Kill() error {
	if p.group {
		_ = syscall.Kill(-p.PID(), syscall.SIGKILL) // none may be left
	}
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill %s: %w", p.cmd.Path, err)
	}
	<-p.done
	return nil
}
