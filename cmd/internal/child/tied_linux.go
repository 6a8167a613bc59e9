package child

import (
	"os/exec"
	"syscall"
)

// startTied has the kernel kill the child when the calling thread ends.
func startTied(cmd *exec.Cmd) (release func(), err error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return func() {}, cmd.Start()
}
