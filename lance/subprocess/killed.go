package subprocess

import (
	"os"
	"syscall"
)

// killed says whether a process was ended by SIGKILL.
func killed(state *os.ProcessState) bool {
	if state == nil {
		return false
	}
	status, ok := state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}
