package subprocess

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"lancefleet/lance"
)

// Options say what to start.
type Options struct {
	Executable string        // "" = this program
	Args       []string      // that make it call Serve
	Env        []string      // beside this process's environment
	Ceiling    int64         // resident bytes of the child; 0 = no ceiling. Only Linux can be watched
	WatchEvery time.Duration // 0 = 100 ms
}

// Process is a running child. Its calls are made one after the other. When the
// context of a call ends the child is killed, and every later call fails.
type Process struct {
	*lance.Maintainer

	cmd     *exec.Cmd
	ceiling int64
	in      io.WriteCloser
	answers *json.Decoder
	words   *lastWords
	busy    chan struct{} // one slot
	peak    atomic.Int64
	over    atomic.Bool // killed for its memory
	ended   chan struct{}
	once    sync.Once

	killedByUs atomic.Bool
}

const (
	watchEvery = 100 * time.Millisecond
	dyingFor   = 5 * time.Second // a child that closed its output and does not end is killed
)

// Start starts a child and waits until its library is loaded. It is killed when
// ctx ends. Close it.
func Start(ctx context.Context, o Options) (*Process, error) {
	path := o.Executable
	if path == "" {
		var err error
		if path, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("find this program: %w", err)
		}
	}
	cmd := exec.CommandContext(ctx, path, o.Args...)
	cmd.Env = append(os.Environ(), o.Env...)
	p := &Process{cmd: cmd, ceiling: o.Ceiling, words: &lastWords{}, busy: make(chan struct{}, 1), ended: make(chan struct{})}
	p.Maintainer = lance.NewMaintainer(p.Carry)
	cmd.Stderr = p.words
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("pipe to %s: %w", path, err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("pipe from %s: %w", path, err)
	}
	p.in, p.answers = in, json.NewDecoder(out)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	go p.watch(o.WatchEvery)
	if _, err := p.answer(ctx, "open", ""); err != nil {
		p.kill()
		return nil, err
	}
	return p, nil
}

// Carry is the [lance.Carrier] of the child's Maintainer.
func (p *Process) Carry(ctx context.Context, op, uri string, args json.RawMessage) (json.RawMessage, error) {
	select {
	case p.busy <- struct{}{}:
		defer func() { <-p.busy }()
	case <-ctx.Done():
		return nil, contextError(ctx, op, uri)
	}
	if ctx.Err() != nil {
		return nil, contextError(ctx, op, uri)
	}
	stop := context.AfterFunc(ctx, p.kill)
	defer stop()
	if err := json.NewEncoder(p.in).Encode(request{op, uri, args}); err != nil {
		return nil, p.died(ctx, op, uri)
	}
	return p.answer(ctx, op, uri)
}

func (p *Process) answer(ctx context.Context, op, uri string) (json.RawMessage, error) {
	var a answer
	switch err := p.answers.Decode(&a); {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, os.ErrClosed):
		return nil, p.died(ctx, op, uri)
	case err != nil:
		p.kill()
		return nil, &lance.Error{Class: lance.Internal, Op: op, URI: uri, Message: "the child process can't be understood: " + err.Error()}
	case a.Error != nil:
		return nil, a.Error.err()
	}
	return a.Result, nil
}

// died says why there is no answer. A child that closed its output is ending.
func (p *Process) died(ctx context.Context, op, uri string) error {
	slow := time.AfterFunc(dyingFor, p.kill)
	p.wait()
	slow.Stop()
	peak := p.peak.Load() >> 20
	e := &lance.Error{Class: lance.Memory, Op: op, URI: uri}
	switch status := p.cmd.ProcessState; {
	case p.over.Load():
		e.Message = fmt.Sprintf("the child process used %d MiB, its ceiling is %d MiB", peak, p.ceiling>>20)
	case ctx.Err() != nil:
		return contextError(ctx, op, uri)
	case p.killedByUs.Load():
		e.Class, e.Message = lance.Closed, "the child process was stopped"
	case killed(status):
		e.Message = fmt.Sprintf("the child process was killed from outside, at %d MiB: most likely the machine ran out of memory", peak)
	default:
		e.Class, e.Message = lance.Panic, fmt.Sprintf("the child process ended: %v", status)
		if said := p.words.String(); said != "" {
			e.Message += ": " + said
		}
	}
	return e
}

// kill ends the child, whatever it does, and waits until it is gone.
func (p *Process) kill() {
	p.killedByUs.Store(true)
	_ = p.cmd.Process.Kill()
	p.wait()
}

func (p *Process) wait() {
	p.once.Do(func() {
		_ = p.cmd.Wait()
		close(p.ended)
	})
	<-p.ended
}

// Close ends the child. Closing again does nothing.
func (p *Process) Close() error {
	p.kill()
	return nil
}

// Pid is the child's process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// PeakBytes is the most memory the child was seen to use; 0 = not seen.
func (p *Process) PeakBytes() int64 { return p.peak.Load() }

// watch kills a child that uses more memory than it may.
func (p *Process) watch(every time.Duration) {
	if every <= 0 {
		every = watchEvery
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-p.ended:
			return
		case <-ticker.C:
		}
		bytes, err := residentBytes(p.cmd.Process.Pid)
		if err != nil {
			continue // it ends, or this system does not tell
		}
		p.peak.Store(max(p.peak.Load(), bytes))
		if p.ceiling > 0 && bytes > p.ceiling {
			p.over.Store(true)
			_ = p.cmd.Process.Kill()
			return
		}
	}
}

func contextError(ctx context.Context, op, uri string) error {
	e := &lance.Error{Class: lance.Cancelled, Op: op, URI: uri, Message: "the child process was stopped"}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		e.Class = lance.Timeout
	}
	return e
}
