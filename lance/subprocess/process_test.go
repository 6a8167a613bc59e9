package subprocess_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"lancefleet/lance"
	"lancefleet/lance/subprocess"
)

const part = "SUBPROCESS_TEST_PART"

// TestMain plays the child when it is asked to.
func TestMain(m *testing.M) {
	if play, ok := children[os.Getenv(part)]; ok {
		play(bufio.NewReader(os.Stdin))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var children = map[string]func(in *bufio.Reader){
	"answers": func(in *bufio.Reader) {
		say(`{}`)
		for hear(in) {
			say(`{"result":{"to":7,"generations":3}}`)
		}
	},
	"refuses": func(in *bufio.Reader) {
		say(`{}`)
		hear(in)
		say(`{"error":{"class":"conflict","op":"merge_wal","uri":"/x","message":"somebody was faster"}}`)
		hear(in)
	},
	"crashes": func(in *bufio.Reader) {
		say(`{}`)
		hear(in)
		fmt.Fprintln(os.Stderr, "fatal: the engine fell over")
		os.Exit(3)
	},
	"babbles": func(in *bufio.Reader) {
		say(`{}`)
		hear(in)
		say(`this is no answer`)
		hear(in)
	},
	"hangs": func(in *bufio.Reader) {
		say(`{}`)
		hear(in)
		fmt.Fprintln(os.Stderr, "working")
		_, _ = io.Copy(io.Discard, in)
		select {} // not even the end of its input ends it
	},
	"eats": func(in *bufio.Reader) {
		say(`{}`)
		hear(in)
		var eaten [][]byte
		for {
			bite := make([]byte, 8<<20)
			for i := range bite {
				bite[i] = 1
			}
			eaten = append(eaten, bite)
			<-time.After(5 * time.Millisecond) // slow enough to be seen growing
			if len(eaten) > 256 {
				select {}
			}
		}
	},
	"no library": func(*bufio.Reader) {
		say(`{"error":{"class":"library","op":"open","message":"it is not there"}}`)
	},
	"serves": func(in *bufio.Reader) {
		if err := subprocess.Serve(context.Background(), in, os.Stdout, lance.Options{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(4)
		}
	},
}

func say(line string) { fmt.Println(line) }

func hear(in *bufio.Reader) bool {
	_, err := in.ReadString('\n')
	return err == nil
}

func start(t *testing.T, child string, ceiling int64) *subprocess.Process {
	t.Helper()
	p, err := subprocess.Start(t.Context(), subprocess.Options{Env: []string{part + "=" + child}, Ceiling: ceiling})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, p.Close()) })
	return p
}

func merge(ctx context.Context, p *subprocess.Process) (lance.Merged, error) {
	return p.MergeWAL(ctx, lance.MergeSpec{URI: "/x"})
}

func TestCallsAreAnsweredByTheChildOneAfterTheOther(t *testing.T) {
	p := start(t, "answers", 0)
	for range 3 {
		merged, err := merge(t.Context(), p)
		require.NoError(t, err)
		assert.Equal(t, uint64(7), merged.To)
		assert.Equal(t, int64(3), merged.Generations)
	}
}

func TestAnErrorOfTheLibraryArrivesWithItsClass(t *testing.T) {
	_, err := merge(t.Context(), start(t, "refuses", 0))
	require.ErrorIs(t, err, lance.ErrConflict)
	assert.EqualError(t, err, "merge wal /x: conflict: somebody was faster")
}

func TestACrashIsTheErrorOfOneCallAndTellsTheLastWords(t *testing.T) {
	p := start(t, "crashes", 0)
	_, err := merge(t.Context(), p)
	require.ErrorIs(t, err, lance.ErrPanic)
	assert.ErrorContains(t, err, "exit status 3: fatal: the engine fell over")
	_, err = merge(t.Context(), p)
	require.Error(t, err, "the child is gone")
}

func TestAChildThatCannotBeUnderstoodIsKilled(t *testing.T) {
	_, err := merge(t.Context(), start(t, "babbles", 0))
	require.ErrorIs(t, err, lance.ErrInternal)
	assert.ErrorContains(t, err, "can't be understood")
}

func TestCancellingACallKillsTheChild(t *testing.T) {
	p := start(t, "hangs", 0)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	_, err := merge(ctx, p)
	require.ErrorIs(t, err, context.Canceled)
	_, err = merge(t.Context(), p)
	require.Error(t, err, "the child is gone")
}

func TestADeadlineIsATimeout(t *testing.T) {
	p := start(t, "hangs", 0)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := merge(ctx, p)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestAChildOverItsCeilingIsKilledAndTheErrorSaysSo(t *testing.T) {
	_, err := merge(t.Context(), start(t, "eats", 256<<20))
	require.ErrorIs(t, err, lance.ErrMemory)
	assert.ErrorContains(t, err, "its ceiling is 256 MiB")
}

func TestAChildKilledFromOutsideIsAQuestionOfMemory(t *testing.T) {
	p := start(t, "hangs", 0)
	failed := make(chan error, 1)
	go func() {
		_, err := merge(t.Context(), p)
		failed <- err
	}()
	require.NoError(t, exec.Command("sh", "-c", fmt.Sprintf("sleep 0.1; kill -9 %d", p.Pid())).Run())
	err := <-failed
	require.ErrorIs(t, err, lance.ErrMemory)
	assert.ErrorContains(t, err, "killed from outside")
}

func TestALibraryThatIsMissingIsSaidAtTheStart(t *testing.T) {
	_, err := subprocess.Start(t.Context(), subprocess.Options{Env: []string{part + "=no library"}})
	require.ErrorIs(t, err, lance.ErrLibrary)
}

func TestTheEndOfTheContextOfStartEndsTheChild(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p, err := subprocess.Start(ctx, subprocess.Options{Env: []string{part + "=hangs"}})
	require.NoError(t, err)
	defer p.Close()
	time.AfterFunc(50*time.Millisecond, cancel)
	_, err = merge(ctx, p)
	require.ErrorIs(t, err, context.Canceled)
}

func TestTheRealLibraryServesMaintenanceAndNothingElse(t *testing.T) {
	p := start(t, "serves", 0)
	_, err := p.ClassifyTail(t.Context(), t.TempDir()+"/nothing.lance")
	require.ErrorIs(t, err, lance.ErrGone)
	_, err = p.Carry(t.Context(), "put", "/x", json.RawMessage(`{}`))
	require.ErrorIs(t, err, lance.ErrInvalid)
}

// The child must not outlive its parent, however that ends: its input ends then.
func TestAServingChildEndsWithItsInput(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), part+"=serves")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	greeting, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "{}", strings.TrimSpace(greeting))
	require.NoError(t, in.Close())
	require.NoError(t, cmd.Wait())
}
