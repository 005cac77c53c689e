package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/cuda"
	"github.com/dovetail-dra/dovetail/pkg/simulator/mps"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

// TestInARootWithNothingElse, as dovetail-mps runs the programs.
func TestInARootWithNothingElse(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to change the root")
	}
	m := simulatortest.New(t, "l40s")
	m.InstallTools()
	run := func(stdin, name string, args ...string) string {
		t.Helper()
		c := exec.Command("/usr/bin/"+name, args...)
		c.SysProcAttr = &syscall.SysProcAttr{Chroot: m.Root()}
		c.Env = []string{"CUDA_MPS_PIPE_DIRECTORY=/run/pipe", "CUDA_MPS_LOG_DIRECTORY=/run/log", "CUDA_VISIBLE_DEVICES=" + m.Spec().GPUs[1].UUID}
		c.Dir, c.Stdin = "/", strings.NewReader(stdin)
		output, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %q: %v: %s", name, args, err, output)
		}
		return string(output)
	}
	run("", "nvidia-smi", "compute-policy", "-i", "0", "--set-timeslice=3")
	run("", mps.ControlName, "-d")
	run("start_server -uid 0\n", mps.ControlName)
	if server := run("get_server_list\n", mps.ControlName); server == "" {
		t.Error("no server was started")
	}
	run("quit\n", mps.ControlName)
	if _, err := os.Lstat(filepath.Join(m.Root(), "run/pipe/control")); err == nil {
		t.Error("the socket is left")
	}
}

// client runs a CUDA process on a machine and returns what it got.
func client(t *testing.T, environment []string, args ...string) cuda.Line {
	t.Helper()
	return lines(t, environment, args...)[0]
}

// lines are all that the process says.
func lines(t *testing.T, environment []string, args ...string) (all []cuda.Line) {
	t.Helper()
	c := exec.Command(simulatortest.Tools(t), append([]string{cuda.Name}, args...)...)
	c.Env = append([]string{"CUDA_MPS_PIPE_DIRECTORY=/nonexistent"}, environment...)
	output, err := c.Output()
	for decoder := json.NewDecoder(bytes.NewReader(output)); decoder.More(); {
		var l cuda.Line
		if err := decoder.Decode(&l); err != nil {
			t.Fatalf("%q prints %q: %v", args, output, err)
		}
		all = append(all, l)
	}
	if len(all) == 0 {
		t.Fatalf("%q prints %q: %v", args, output, err)
	}
	if (err != nil) != (all[0].Error != "") {
		t.Errorf("%q: %v, %+v", args, err, all[0])
	}
	return all
}

// TestWithoutMPS: processes take what is there, one after the other.
func TestWithoutMPS(t *testing.T) {
	m := simulatortest.New(t, "l40s")
	on := []string{simulator.RootVariable + "=" + m.Root()}
	if l := client(t, on, "--device", "3", "--allocate", "40G"); l.MPS != nil || len(l.Devices) != 4 || l.Allocated != 40<<30 {
		t.Errorf("a process got %+v", l)
	}
	if l := lines(t, on, "--allocate", "1G", "--then", "allocate 40G", "--then", "allocate 50G"); len(l) != 3 || l[1].Allocated != 40<<30 || l[2].Error != mps.ErrOutOfMemory {
		t.Errorf("with --then: %+v", l)
	}
	second := append(on, "CUDA_VISIBLE_DEVICES="+m.Spec().GPUs[2].UUID)
	c, err := m.OpenContext([]string{m.Spec().GPUs[2].UUID})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Allocate(c.Devices()[0], "", "", 30<<30); err != nil {
		t.Fatal(err)
	}
	if l := client(t, second, "--allocate", "20G"); l.Error != mps.ErrOutOfMemory {
		t.Errorf("a process on a GPU that is full got %+v", l)
	}
	if err := m.SetComputeMode("2", machine.ComputeModeExclusiveProcess); err != nil {
		t.Fatal(err)
	}
	if l := client(t, second); l.Error != mps.ErrUnavailable {
		t.Errorf("a second process on an exclusive GPU got %+v", l)
	}
}

// TestCgroupLimit: a process without MPS is held to its cgroup's limit.
func TestCgroupLimit(t *testing.T) {
	m := simulatortest.New(t, "mps-v3")
	pod := t.TempDir()
	if err := m.SetMemoryLimits("0", pod, simulator.MemoryLimits{Hard: 2 << 30}); err != nil {
		t.Fatal(err)
	}
	on := []string{simulator.RootVariable + "=" + m.Root(), cuda.CgroupVariable + "=" + pod}
	if l := client(t, on, "--allocate", "3G"); l.Error != mps.ErrOutOfMemory {
		t.Errorf("a process in the cgroup got %+v", l)
	}
	if l := client(t, on, "--allocate", "1G"); l.Error != "" {
		t.Errorf("a process in the cgroup got %+v", l)
	}
}

// TestWithoutAnything: a process that sees neither a machine nor device nodes.
func TestWithoutAnything(t *testing.T) {
	if nodes, _ := filepath.Glob("/dev/nvidia[0-9]*"); len(nodes) > 0 {
		t.Skip("this computer has NVIDIA GPUs")
	}
	if l := client(t, nil); l.Error != "CUDA_ERROR_NO_DEVICE" {
		t.Errorf("it got %+v", l)
	}
}
