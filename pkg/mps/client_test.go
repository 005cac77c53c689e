package mps_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dovetail-dra/dovetail/pkg/patience/patiencetest"
	"github.com/dovetail-dra/dovetail/pkg/simulator/cuda"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

// client is a program that uses CUDA through MPS and holds what it got.
type client struct {
	cuda.Line // the first
	command   *exec.Cmd
	lines     chan cuda.Line // the following; closed at its end
	input     io.Writer
}

// newClient starts one, which sees nothing of the machine but the pipe directory.
func newClient(t testing.TB, pipe string, uid uint32, args ...string) *client {
	t.Helper()
	command := exec.Command(simulatortest.Tools(t), append([]string{cuda.Name, "-commands"}, args...)...)
	command.Env = []string{"CUDA_MPS_PIPE_DIRECTORY=" + pipe}
	if uid != 0 { // nobody else may pass the directories on the way to the program
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		command.Path = readable(t, command.Path)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c := &client{command: command, lines: make(chan cuda.Line, 16)}
	if c.input, err = command.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(c.lines)
		for in := bufio.NewScanner(output); in.Scan(); {
			var l cuda.Line
			if json.Unmarshal(in.Bytes(), &l) == nil {
				c.lines <- l
			}
		}
	}()
	t.Cleanup(c.end)
	c.Line = c.next(t)
	if c.Error == "" && c.MPS == nil {
		t.Error("the client runs without MPS")
	}
	return c
}

func (c *client) end() {
	_ = c.command.Process.Signal(syscall.SIGTERM)
	_ = c.command.Wait()
}

// freeze stops the client, which does nothing more until it is killed.
func (c *client) freeze(t testing.TB) {
	t.Helper()
	pid := c.command.Process.Pid
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	patiencetest.Until(t, "the client stops", func() bool { // its threads do so one after the other
		stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		for _, path := range stats {
			stat, _ := os.ReadFile(path)
			if err != nil || !strings.Contains(string(stat), ") T ") {
				return false
			}
		}
		return len(stats) > 0
	})
}

func (c *client) next(t testing.TB) cuda.Line {
	t.Helper()
	select {
	case l, ok := <-c.lines:
		if !ok {
			t.Fatal("the client has ended")
		}
		return l
	case <-time.After(patiencetest.Limit):
		t.Fatal("the client says nothing")
	}
	return cuda.Line{}
}

// do gives the client a command and returns what it says.
func (c *client) do(t testing.TB, command string) cuda.Line {
	t.Helper()
	if _, err := io.WriteString(c.input, command+"\n"); err != nil {
		t.Fatal(err)
	}
	return c.next(t)
}
