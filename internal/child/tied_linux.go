package child

import (
	"os/exec"
	"syscall"
)

// startTied has the kernel kill the child when the calling thread ends.
func startTied(cmd *exec.Cmd) (release func(), err error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	return func() {}, cmd.Start()
}
