package s3test

import (
	"os/exec"
	"path/filepath"
	"syscall"
)

// endWithParent makes the kernel end the child when we are killed, so that an
// aborted test leaves nothing running.
func endWithParent(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// hasAttributes says whether files in a folder can have the extended attributes
// that the server keeps e-tags in.
func hasAttributes(dir string) bool {
	return syscall.Setxattr(filepath.Clean(dir), "user.lancefleet.probe", []byte("1"), 0) == nil
}
