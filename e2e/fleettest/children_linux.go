package fleettest

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// PID is the program's process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Children are the processes that a process has started and that live (Linux).
func Children(tb testing.TB, pid int) []int {
	tb.Helper()
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	require.NoError(tb, err)
	var found []int
	for _, task := range tasks {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, task.Name()))
		if err != nil {
			continue // the thread has ended
		}
		for _, field := range strings.Fields(string(text)) {
			child, err := strconv.Atoi(field)
			require.NoError(tb, err)
			found = append(found, child)
		}
	}
	return found
}

// Lives says whether there is a process of that id that has not ended (Linux).
func Lives(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	after := strings.SplitN(string(text), ") ", 2)
	return len(after) == 2 && !strings.HasPrefix(after[1], "Z")
}

// Answer is what a child writes to a parent that does not read it.
type Answer struct {
	tb   testing.TB
	pid  int
	pipe *os.File
}

// AnswerOf looks into the pipe that is a child's stdout, without taking from it
// (Linux).
func AnswerOf(tb testing.TB, pid int) *Answer {
	tb.Helper()
	pipe, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/1", pid), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = pipe.Close() })
	return &Answer{tb: tb, pid: pid, pipe: pipe}
}

// Wait waits until something stands in the pipe.
func (a *Answer) Wait() {
	a.tb.Helper()
	require.Eventually(a.tb, func() bool {
		waiting, err := a.unread()
		return err == nil && waiting > 0
	}, patience, 20*time.Millisecond, "process %d does not answer", a.pid)
}

func (a *Answer) unread() (bytes int32, err error) {
	raw, err := a.pipe.SyscallConn()
	if err != nil {
		return 0, err
	}
	var failed syscall.Errno
	err = raw.Control(func(fd uintptr) {
		_, _, failed = syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCINQ, uintptr(unsafe.Pointer(&bytes)))
	})
	if err == nil && failed != 0 {
		err = failed
	}
	return bytes, err
}
