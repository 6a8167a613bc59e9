package e2e

import (
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"lancefleet/e2e/fleettest"
	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/lance/subprocess"
	"lancefleet/worker"
)

// wideVariable says of how many rows a table is to be made. By hand, with half as much
// again as their size free on the disk of TMPDIR (6000 rows are 9 GB):
//
//	WIDE_ROWS=6000 go test ./e2e -run WideRows -v -timeout 1h
const wideVariable = "WIDE_ROWS"

const (
	wideBytes   = 1_500_000
	wideCeiling = 1 << 30
	wideAtOnce  = 4 // rows of one write, and so of one fragment
)

var wideSchema = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.PrimitiveTypes.Int64},
	{Name: "checksum", Type: arrow.PrimitiveTypes.Int64},
	{Name: "payload", Type: arrow.BinaryTypes.LargeBinary, Nullable: true},
}, nil)

// Rows so wide that a fragment with as many of them as others have would be terabytes
// are compacted by a child that may use 1 GiB, and read back as they were written.
func TestWideRowsAreCompactedByAChildThatMayUseOneGiB(t *testing.T) {
	rows, _ := strconv.Atoi(os.Getenv(wideVariable))
	if rows < 1 {
		t.Skipf("writes gigabytes: %s=6000 runs it", wideVariable)
	}
	uri := filepath.Join(t.TempDir(), "wide.lance")
	writeWide(t, uri, rows)
	child, err := subprocess.Start(t.Context(), subprocess.Options{
		Executable: fleettest.Program(t), Args: []string{worker.NativeExec}, Env: []string{"LANCEFLEET_NATIVE=" + fleettest.Native(t)}, Ceiling: wideCeiling,
	})
	require.NoError(t, err)
	defer child.Close()

	began := time.Now()
	passes := compactWide(t, child, uri, rows)

	t.Logf("%d rows of %d bytes: %d passes in %s, the child used %d MiB at most",
		rows, wideBytes, passes, time.Since(began).Round(time.Second), child.PeakBytes()>>20)
	require.Less(t, child.PeakBytes(), int64(wideCeiling))
	var there struct {
		Rows, Distinct int
		Wrong          []int64
	}
	python(t, &there, "wide.py", uri)
	require.Equal(t, []int{rows, rows}, []int{there.Rows, there.Distinct})
	require.Empty(t, there.Wrong)
}

// compactWide asks for passes as a worker does where nobody says otherwise. What a
// pass replaced is removed after it, for the disk's sake.
func compactWide(t *testing.T, child *subprocess.Process, uri string, rows int) int {
	t.Helper()
	config, policy := worker.DefaultConfig(), fleet.DefaultPolicy()
	target := policy.RowsPerFragment(&fleet.Row{RowCount: int64(rows), Bytes: int64(rows) * wideBytes})
	for passes := 1; ; passes++ {
		done, err := child.Compact(t.Context(), lance.CompactSpec{
			URI: uri, TargetRows: target, MinFragments: int(policy.CompactMinFragments),
			MaxSourceFragments: config.CompactFragments, MaxSourceBytes: config.CompactBytes,
		})
		require.NoError(t, err)
		_, err = child.CleanExperiment(t.Context(), uri, time.Millisecond)
		require.NoError(t, err)
		if passes%10 == 0 {
			t.Logf("pass %d: %d fragments, the child used %d MiB so far", passes, done.FragmentsAfter, child.PeakBytes()>>20)
		}
		if done.Tasks == 0 || !done.More {
			require.Less(t, done.FragmentsAfter, int64(rows/wideAtOnce)/10, "compacted")
			return passes
		}
	}
}

// writeWide writes rows that can't be made smaller.
func writeWide(t *testing.T, uri string, rows int) {
	t.Helper()
	engine := fleetEngine(t)
	dice := rand.NewChaCha8([32]byte{1})
	body := make([]byte, wideBytes)
	for first := 0; first < rows; first += wideAtOnce {
		b := array.NewRecordBuilder(memory.DefaultAllocator, wideSchema)
		for row := first; row < min(first+wideAtOnce, rows); row++ {
			_, _ = dice.Read(body)
			b.Field(0).(*array.Int64Builder).Append(int64(row))
			b.Field(1).(*array.Int64Builder).Append(int64(crc32.ChecksumIEEE(body)))
			b.Field(2).(*array.BinaryBuilder).Append(body)
		}
		record := b.NewRecordBatch()
		_, err := engine.Append(t.Context(), uri, []arrow.RecordBatch{record}, wideSchema, lance.AppendOptions{Create: first == 0})
		record.Release()
		b.Release()
		require.NoError(t, err, "row %d", first)
	}
}
