package subprocess

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEveryThreadOfAChildStepsAside runs itself as a child: a process can't take
// niceness back.
func TestEveryThreadOfAChildStepsAside(t *testing.T) {
	const child = "SUBPROCESS_TEST_STEPS_ASIDE"
	if os.Getenv(child) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), child+"=1")
		said, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", said)
		return
	}
	threads(t, 8, func() {
		stepAside()
		threads(t, 8, func() {
			files, err := filepath.Glob(threadsDir + "/*/stat")
			require.NoError(t, err)
			require.Greater(t, len(files), 16)
			for _, file := range files {
				stat, err := os.ReadFile(file)
				require.NoError(t, err)
				fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
				require.Equal(t, "10", fields[16], "niceness of %s, see proc(5)", file)
			}
		})
	})
}

// threads has so many more threads while something is done.
func threads(t *testing.T, n int, do func()) {
	t.Helper()
	var begun, ended sync.WaitGroup
	over := make(chan struct{})
	begun.Add(n)
	for range n {
		ended.Go(func() {
			runtime.LockOSThread() // its own one, that ends with it
			begun.Done()
			<-over
		})
	}
	begun.Wait()
	do()
	close(over)
	ended.Wait()
}
