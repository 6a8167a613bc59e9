//go:build !linux

package child

import "os/exec"

// startTied has a watcher kill the child when this process ends.
func startTied(cmd *exec.Cmd) (release func(), err error) { return startWatched(cmd) }
