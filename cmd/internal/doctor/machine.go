package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Machine is what this process may use.
type Machine struct {
	OpenFiles uint64 // 0 unknown
	Memory    int64  // of the cgroup, or the machine, in bytes; 0 unknown
	Limited   string // by what
}

// ThisMachine reads the limits of this process.
func ThisMachine() Machine {
	var m Machine
	var files syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files) == nil {
		m.OpenFiles = uint64(files.Cur) //nolint:unconvert // signed on some systems
	}
	m.Memory, m.Limited = memoryLimit("/")
	return m
}

// memoryLimit is the smallest that holds: the cgroup's, or all of the machine.
func memoryLimit(root string) (int64, string) {
	least, by := totalMemory(root), "the machine"
	for _, file := range cgroupFiles(root) {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err == nil && limit > 0 && (least == 0 || limit < least) { // "max" is no number
			least, by = limit, "the cgroup"
		}
	}
	return least, by
}

// cgroupFiles are where a limit may stand: of the process's own group, and of those
// above it. In a container its own is the root.
func cgroupFiles(root string) []string {
	base := filepath.Join(root, "sys/fs/cgroup")
	files := []string{filepath.Join(base, "memory.max"), filepath.Join(base, "memory/memory.limit_in_bytes")}
	text, _ := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) == 3 && parts[0] == "0" {
			for dir := parts[2]; dir != "/" && dir != "." && dir != ""; dir = filepath.Dir(dir) {
				files = append(files, filepath.Join(base, dir, "memory.max"))
			}
		}
	}
	return files
}

func totalMemory(root string) int64 {
	text, _ := os.ReadFile(filepath.Join(root, "proc/meminfo"))
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == "MemTotal:" {
			kib, _ := strconv.ParseInt(fields[1], 10, 64)
			return kib << 10
		}
	}
	return 0
}

// Needs is what the settings ask of a machine.
type Needs struct {
	ScanConcurrency int
	HeavySlots      int   // merges, compactions and checks at once, each
	ChildMemory     int64 // of one of them; 0 = not watched
	Maintenance     bool
}

const (
	ownMemory    = 1 << 30 // of a worker beside its children, for tens of thousands of experiments
	filesPerLook = 4
	otherFiles   = 256
)

// Judge compares the limits with the settings.
func (m Machine) Judge(n Needs) []Finding {
	return []Finding{m.judgeFiles(n), m.judgeMemory(n)}
}

func (m Machine) judgeFiles(n Needs) Finding {
	const check = "open files"
	want := uint64(filesPerLook*n.ScanConcurrency + otherFiles)
	switch {
	case m.OpenFiles == 0:
		return skipped(check, "the limit is not known here")
	case m.OpenFiles < want:
		return trouble(Warn, check, fmt.Sprintf("%d may be open at once; SCAN_CONCURRENCY=%d may want %d", m.OpenFiles, n.ScanConcurrency, want), "observations fail with too many open files",
			"raise it (ulimit -n, LimitNOFILE, ulimits of the container), or lower SCAN_CONCURRENCY")
	}
	return fine(check, "%d may be open at once", m.OpenFiles)
}

func (m Machine) judgeMemory(n Needs) Finding {
	const check = "memory"
	if m.Memory == 0 {
		return skipped(check, "the limit is not known here")
	}
	has := fmt.Sprintf("%d MiB by %s", m.Memory>>20, m.Limited)
	if !n.Maintenance {
		return fine(check, "%s; maintenance is off, so no heavy step runs", has)
	}
	if n.ChildMemory == 0 {
		return trouble(Warn, check, has+", and heavy steps are not watched (CHILD_MEMORY=0)", "one huge experiment can take the worker down", "set CHILD_MEMORY")
	}
	one, all := n.ChildMemory+ownMemory, 3*int64(n.HeavySlots)*n.ChildMemory+ownMemory
	switch {
	case m.Memory < one:
		return trouble(Fail, check, fmt.Sprintf("%s, but one heavy step may use %d MiB and the worker itself some %d MiB", has, n.ChildMemory>>20, ownMemory>>20), "heavy steps are killed from outside instead of being tried again smaller",
			"lower CHILD_MEMORY, or give the worker more")
	case m.Memory < all:
		return trouble(Warn, check, fmt.Sprintf("%s, but %d heavy steps at once may use %d MiB together", has, 3*n.HeavySlots, all>>20), "when all are large at once, one is killed and tried again",
			"lower CHILD_MEMORY or HEAVY_SLOTS, or give the worker more")
	}
	return fine(check, "%s is enough for %d heavy steps at once", has, 3*n.HeavySlots)
}

const (
	diskFails = 512 << 20
	diskWarns = 10 << 30
	warnShare = 10 // percent
)

// Disk judges the space of a local data directory.
func Disk(dataDir string) Finding {
	const check = "disk space"
	if strings.Contains(dataDir, "://") {
		return skipped(check, "the data directory is no local disk")
	}
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dataDir, &fs); err != nil {
		return trouble(Warn, check, "ask for the space of "+dataDir+": "+err.Error(), "whether there is room is not known", "df "+dataDir)
	}
	size := int64(fs.Bsize) //nolint:unconvert // narrower on some systems
	return JudgeDisk(dataDir, int64(fs.Bavail)*size, int64(fs.Blocks)*size)
}

// JudgeDisk judges free space, in bytes.
func JudgeDisk(dataDir string, free, total int64) Finding {
	const check = "disk space"
	found := fmt.Sprintf("%d MiB of %d MiB free at %s", free>>20, total>>20, dataDir)
	const means, do = "a compaction writes a table anew before the old one goes: it needs that much room", "make room, or set CLEANUP_OLDER_THAN so that old versions go"
	switch {
	case free < diskFails:
		return trouble(Fail, check, found, means, do)
	case free < diskWarns && free*100 < warnShare*total:
		return trouble(Warn, check, found, means, do)
	}
	return fine(check, "%s", found)
}
