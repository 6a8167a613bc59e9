package doctor

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAMachineIsJudgedByWhatTheSettingsAskOfIt(t *testing.T) {
	const gib = int64(1) << 30
	needs := Needs{ScanConcurrency: 256, HeavySlots: 1, ChildMemory: 4 * gib, Maintenance: true}
	for name, c := range map[string]struct {
		machine Machine
		change  func(*Needs)
		check   string
		status  Status
		words   string
	}{
		"plenty":                  {Machine{OpenFiles: 65536, Memory: 32 * gib}, nil, "memory", OK, ""},
		"one step does not fit":   {Machine{Memory: 2 * gib, Limited: "the cgroup"}, nil, "memory", Fail, "2048 MiB by the cgroup"},
		"all at once do not fit":  {Machine{Memory: 8 * gib}, nil, "memory", Warn, "HEAVY_SLOTS"},
		"not watched":             {Machine{Memory: 32 * gib}, func(n *Needs) { n.ChildMemory = 0 }, "memory", Warn, "CHILD_MEMORY"},
		"maintenance is off":      {Machine{Memory: gib}, func(n *Needs) { n.Maintenance = false }, "memory", OK, "off"},
		"memory unknown":          {Machine{}, nil, "memory", Skipped, ""},
		"few files":               {Machine{OpenFiles: 1024}, nil, "open files", Warn, "ulimit -n"},
		"files for fewer at once": {Machine{OpenFiles: 1024}, func(n *Needs) { n.ScanConcurrency = 16 }, "open files", OK, ""},
		"files unknown":           {Machine{}, nil, "open files", Skipped, ""},
	} {
		t.Run(name, func(t *testing.T) {
			n := needs
			if c.change != nil {
				c.change(&n)
			}
			requireTold(t, byCheck(c.machine.Judge(n))[c.check], c.status, c.words)
		})
	}
}

func TestDiskSpaceIsJudged(t *testing.T) {
	const mib = int64(1) << 20
	require.Equal(t, OK, JudgeDisk("/d", 500<<10*mib, 1000<<10*mib).Status)
	require.Equal(t, OK, JudgeDisk("/d", 5<<10*mib, 20<<10*mib).Status, "a small disk that is not full")
	requireTold(t, JudgeDisk("/d", 5<<10*mib, 1000<<10*mib), Warn, "make room")
	requireTold(t, JudgeDisk("/d", 100*mib, 1000<<10*mib), Fail, "make room")
	require.Equal(t, Skipped, Disk("s3://bucket/x").Status)
	require.NotEqual(t, Skipped, Disk(t.TempDir()).Status)
	requireTold(t, Disk(filepath.Join(t.TempDir(), "nowhere")), Warn, "df")
}

func TestTheSmallestMemoryLimitCounts(t *testing.T) {
	root := t.TempDir()
	put := func(file, text string) {
		path := filepath.Join(root, file)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	put("proc/meminfo", "MemFree: 1 kB\nMemTotal:       8388608 kB\n")
	limit, by := memoryLimit(root)
	require.Equal(t, int64(8<<30), limit)
	require.Equal(t, "the machine", by)

	put("sys/fs/cgroup/memory.max", "max\n")
	limit, _ = memoryLimit(root)
	require.Equal(t, int64(8<<30), limit)

	put("proc/self/cgroup", "0::/system.slice/lancefleet.service\n")
	put("sys/fs/cgroup/system.slice/memory.max", "4294967296\n")
	put("sys/fs/cgroup/system.slice/lancefleet.service/memory.max", "max\n")
	limit, by = memoryLimit(root)
	require.Equal(t, int64(4<<30), limit)
	require.Equal(t, "the cgroup", by)

	put("sys/fs/cgroup/memory/memory.limit_in_bytes", "2147483648\n")
	limit, _ = memoryLimit(root)
	require.Equal(t, int64(2<<30), limit)
}

func TestThisMachineHasLimits(t *testing.T) {
	m := ThisMachine()
	require.Positive(t, m.OpenFiles)
	require.Positive(t, m.Memory)
}
