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
	oomScoreFile = "/proc/self/oom_score_adj"
	threadsDir   = "/proc/self/task"
)

// stepAside makes this process the first that the kernel takes when memory ends,
// and the last that gets a processor. Both are wishes: a system may refuse them.
func stepAside() {
	_ = os.WriteFile(oomScoreFile, []byte(firstToKill), 0o600)
	// Linux keeps niceness by thread, and a thread has that of the one which began it:
	// one that began another before its own turn came is why this is done twice.
	for range 2 {
		beNice()
	}
}

func beNice() {
	threads, err := os.ReadDir(threadsDir)
	if err != nil {
		return
	}
	for _, t := range threads {
		if id, err := strconv.Atoi(t.Name()); err == nil {
			_ = syscall.Setpriority(syscall.PRIO_PROCESS, id, politeness)
		}
	}
}
