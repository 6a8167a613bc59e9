package child

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
)

// watcher ends quietly when it is told that the child has ended (a line), and kills
// the child when its input ends without one: the holder of the pipe is gone.
const watcher = `read -r _ && exit; kill -9 "$0" 2>/dev/null`

// startWatched is for systems whose kernel does not tie a child to its parent.
// Call release when the child has ended, before its number can be given away.
func startWatched(cmd *exec.Cmd) (release func(), err error) {
	read, write, err := os.Pipe() // neither end is inherited by other children
	if err != nil {
		return nil, err
	}
	defer read.Close()
	if err := cmd.Start(); err != nil {
		write.Close()
		return nil, err
	}
	watch := exec.Command("sh", "-c", watcher, strconv.Itoa(cmd.Process.Pid)) //nolint:noctx // it must outlive everything here
	watch.Stdin = read
	if err := watch.Start(); err != nil {
		write.Close()
		_ = cmd.Process.Kill()
		return nil, fmt.Errorf("watch it: %w", err)
	}
	return func() {
		_, _ = write.WriteString("ended\n")
		write.Close()
		_ = watch.Wait()
	}, nil
}
