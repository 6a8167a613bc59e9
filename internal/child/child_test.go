package child

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The test program plays the parent in a process of its own, since one of the
// things to show is what happens when it is killed.
func TestMain(m *testing.M) {
	switch os.Getenv("CHILD_TEST_PARENT") {
	case "tied":
		playParent(func(cmd *exec.Cmd) error {
			_, err := Start(cmd)
			return err
		})
	case "tied group":
		playParent(func(cmd *exec.Cmd) error {
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			_, err := Start(cmd)
			return err
		})
	case "watched":
		playParent(func(cmd *exec.Cmd) error {
			_, err := startWatched(cmd)
			return err
		})
	default:
		os.Exit(m.Run())
	}
}

func playParent(start func(*exec.Cmd) error) {
	cmd := exec.Command("sleep", "300")
	if err := start(cmd); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(cmd.Process.Pid)
	select {}
}

func TestAChildDiesWithAParentThatIsKilled(t *testing.T) {
	for _, how := range []string{"tied", "tied group", "watched"} {
		t.Run(how, func(t *testing.T) {
			parent := exec.Command(os.Args[0])
			parent.Env = append(os.Environ(), "CHILD_TEST_PARENT="+how)
			out, err := parent.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, parent.Start())
			line, err := bufio.NewReader(out).ReadString('\n')
			require.NoError(t, err)
			pid, err := strconv.Atoi(strings.TrimSpace(line))
			require.NoError(t, err, line)
			require.True(t, alive(pid))
			t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })

			require.NoError(t, parent.Process.Kill())
			_ = parent.Wait()
			require.Eventually(t, func() bool { return !alive(pid) }, 20*time.Second, 10*time.Millisecond)
		})
	}
}

// alive is false for what has ended, waited for or not.
func alive(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.Contains(string(status), ") Z ")
}

func TestStopEndsAChildThatListens(t *testing.T) {
	p, err := Start(exec.Command("sleep", "300"))
	require.NoError(t, err)
	require.NoError(t, p.Stop(t.Context(), time.Minute))
	require.False(t, alive(p.PID()))
}

func TestStopKillsAChildThatDoesNotListen(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	p, err := StartLogged(log, "sh", "-c", `trap "" TERM; echo ready; while :; do sleep 1; done`)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return tail(log) == "ready" }, 20*time.Second, 10*time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, p.Stop(ctx, time.Hour))
	require.False(t, alive(p.PID()))
}

func TestAChildTakesItsOwnGroupAlong(t *testing.T) {
	said := filepath.Join(t.TempDir(), "said")
	cmd := exec.Command("sh", "-c", `sleep 300 & echo $! >"$0"; wait`, said)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p, err := Start(cmd)
	require.NoError(t, err)
	grandchild := 0
	require.Eventually(t, func() bool {
		text, _ := os.ReadFile(said)
		grandchild, err = strconv.Atoi(strings.TrimSpace(string(text)))
		return err == nil
	}, 20*time.Second, 10*time.Millisecond)
	require.NoError(t, p.Stop(t.Context(), time.Minute))
	require.Eventually(t, func() bool { return !alive(grandchild) }, 20*time.Second, 10*time.Millisecond)
}

func TestTheErrorOfAChildShowsTheEndOfItsLog(t *testing.T) {
	p, err := StartLogged(filepath.Join(t.TempDir(), "log"), "sh", "-c", "echo out of ports; exit 3")
	require.NoError(t, err)
	<-p.Done()
	require.ErrorContains(t, p.Err(), "exit status 3")
	require.ErrorContains(t, p.Err(), "out of ports")
}

func TestAMissingProgramIsAnErrorOfStart(t *testing.T) {
	_, err := StartLogged(filepath.Join(t.TempDir(), "log"), filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
