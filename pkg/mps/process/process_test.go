package process_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dovetail-dra/dovetail/pkg/mps/process"
	"github.com/dovetail-dra/dovetail/pkg/patience/patiencetest"
)

func sleeper(t *testing.T, environment ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command("sleep", "60")
	c.Env = environment
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	return c
}

func TestEnd(t *testing.T) {
	c := sleeper(t)
	p, err := process.Open(c.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	again, err := process.Again(p.ID)
	if err != nil || again.ID != p.ID {
		t.Fatalf("%+v, %v, want %+v", again, err, p.ID)
	}
	if err := again.Close(); err != nil { // that ends no other wait
		t.Fatal(err)
	}
	other := p.ID
	other.Start++
	if _, err := process.Again(other); !errors.Is(err, process.ErrGone) {
		t.Errorf("another process with that ID: %v", err)
	}
	select {
	case <-p.Ended():
		t.Fatal("it has not ended")
	default:
	}
	if err := p.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.Ended():
	case <-time.After(patiencetest.Limit):
		t.Fatal("nobody noticed the end")
	}
	if _, err := process.Again(p.ID); !errors.Is(err, process.ErrGone) { // a zombie
		t.Errorf("after its end: %v", err)
	}
	_ = c.Wait()
	if _, err := process.Again(p.ID); !errors.Is(err, process.ErrGone) {
		t.Errorf("after it was waited for: %v", err)
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("a signal after the end: %v", err)
	}
	if _, err := process.Again(process.ID{}); !errors.Is(err, process.ErrGone) {
		t.Errorf("no process: %v", err)
	}
}

// firstThreadEnds has this program be a process whose first thread ends, as a process's
// does which goes on to another program by another thread.
const firstThreadEnds = "PROCESS_TEST_FIRST_THREAD_ENDS"

func init() { // which runs on the first thread
	if os.Getenv(firstThreadEnds) == "" {
		return
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	_, _, _ = syscall.Syscall(syscall.SYS_EXIT, 0, 0, 0)
}

// TestFirstThreadEnded: a process has not ended with its first thread, whatever the state
// in /proc is.
func TestFirstThreadEnded(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self)
	c.Env = []string{firstThreadEnds + "=yes"}
	input, err := c.StdinPipe()
	if err := errors.Join(err, c.Start()); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Process.Kill(); _ = c.Wait() }()
	stat := fmt.Sprintf("/proc/%d/stat", c.Process.Pid)
	for deadline := time.Now().Add(patiencetest.Limit); ; {
		data, err := os.ReadFile(stat)
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("the first thread does not end: %s, %v", data, err)
		}
		if strings.Contains(string(data), ") Z ") {
			break
		}
	}
	p, err := process.Open(c.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	select {
	case <-p.Ended():
		t.Error("it has not ended")
	default:
	}
	if err := input.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.Ended():
	case <-time.After(patiencetest.Limit):
		t.Error("nobody noticed the end")
	}
}

func TestFind(t *testing.T) {
	c := sleeper(t, "A=1", "PROCESS_TEST=yes")
	sleeper(t, "PROCESS_TEST=yes-but-longer")
	open := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	before := open()
	var seen process.Look
	found, err := process.Find(func(l *process.Look) bool {
		if l.Has("PROCESS_TEST", "yes") {
			seen = *l
			return true
		}
		return false
	})
	if err != nil || len(found) != 1 || found[0].ID.PID != c.Process.Pid || seen.Name != "sleep" || seen.Program != "sleep" {
		t.Errorf("%v, %v, of which the first is %+v", found, err, seen)
	}
	for _, p := range found {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if after := open(); after != before {
		t.Errorf("%d descriptors are open, %d were", after, before)
	}
}
