package subprocess

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// residentBytes is the memory a process has in RAM, without the pages of files
// that it maps: the native library is 200 MB of those.
func residentBytes(pid int) (int64, error) {
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	fields := bytes.Fields(statm)
	if len(fields) < 3 {
		return 0, fmt.Errorf("statm of process %d: %q", pid, statm)
	}
	resident, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0, err
	}
	shared, err := strconv.ParseInt(string(fields[2]), 10, 64)
	if err != nil {
		return 0, err
	}
	return (resident - shared) * int64(os.Getpagesize()), nil
}

const (
	firstToKill  = "900" // of -1000 to 1000
	politeness   = 10    // so that scans beside it stay quick
	thisProcess  = 0
	oomScoreFile = "/proc/self/oom_score_adj"
)

// stepAside makes this process the first that the kernel takes when memory ends,
// and the last that gets a processor. Both are wishes: a system may refuse them.
func stepAside() {
	_ = os.WriteFile(oomScoreFile, []byte(firstToKill), 0o600)
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, thisProcess, politeness)
}
