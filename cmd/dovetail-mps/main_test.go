package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/hardware/hardwaretest"
	"github.com/dovetail-dra/dovetail/pkg/hardware/mps"
	"github.com/dovetail-dra/dovetail/pkg/patience/patiencetest"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

// TestMain is the program itself where it is called as that.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		main()
		return
	}
	os.Exit(m.Run())
}

// daemon is a running dovetail-mps on a simulated machine.
type daemon struct {
	*mps.Client
	machine *simulatortest.Machine
	dir     string
	run     *exec.Cmd
	log     *bytes.Buffer // to be read after its end
}

func start(t *testing.T, machine string) *daemon {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("mount namespaces need root")
	}
	m := simulatortest.NewWithLibrary(t, machine)
	m.InstallTools()
	dir, err := os.MkdirTemp("", "mps") // short: a socket's path has 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	d := &daemon{machine: m, dir: dir, log: &bytes.Buffer{}}
	if d.Client, err = mps.New(mps.Socket(dir)); err != nil {
		t.Fatal(err)
	}
	d.begin(t)
	t.Cleanup(func() {
		_ = d.Close()
		d.end(t)
		if t.Failed() {
			t.Log(d.log)
		}
		for _, pid := range d.controls() {
			_ = syscall.Kill(pid, syscall.SIGTERM)
		}
		patiencetest.Until(t, "control daemons end", func() bool { return len(d.controls()) == 0 })
		_ = os.RemoveAll(dir)
	})
	return d
}

func (d *daemon) begin(t *testing.T) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o := options{runDir: d.dir, driverRoot: d.machine.Root(), procRoot: filepath.Join(d.machine.Root(), "proc")}
	d.run = exec.Command(self, append([]string{"run"}, o.flags()...)...)
	d.run.Stdout, d.run.Stderr, d.run.WaitDelay = d.log, d.log, patiencetest.Limit
	if err := d.run.Start(); err != nil {
		t.Fatal(err)
	}
	patiencetest.Until(t, "it answers", func() bool { return d.probe(t) == nil })
}

func (d *daemon) end(t *testing.T) {
	t.Helper()
	if err := d.run.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
	if err := d.run.Wait(); err != nil && d.run.ProcessState.Exited() {
		t.Error(err)
	}
}

// controls are the process IDs of control daemons.
func (d *daemon) controls() (pids []int) {
	paths, _ := filepath.Glob(filepath.Join(d.dir, "*/pipe/nvidia-cuda-mps-control.pid"))
	for _, path := range paths {
		data, _ := os.ReadFile(path)
		if pid, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil && syscall.Kill(pid, 0) == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// serve is the process ID of the run's child that serves.
func (d *daemon) serve(t *testing.T) (pid int) {
	t.Helper()
	patiencetest.Until(t, "serve is there", func() bool {
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", d.run.Process.Pid))
		var children []byte
		for _, task := range tasks {
			data, _ := os.ReadFile(task)
			children = append(children, data...)
		}
		for _, child := range strings.Fields(string(children)) {
			line, _ := os.ReadFile("/proc/" + child + "/cmdline")
			if strings.Contains(string(line), "\x00serve\x00") {
				pid, _ = strconv.Atoi(child)
			}
		}
		return pid != 0
	})
	return pid
}

func TestSharing(t *testing.T) {
	hardwaretest.TestSharing(t, func(t *testing.T, machine string) hardwaretest.SharingFixture {
		d := start(t, machine)
		return hardwaretest.SharingFixture{Sharing: d.Client, Machine: d.machine, Crash: func(t *testing.T, _ []string) {
			for _, pid := range d.controls() {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}}
	})
}

func (d *daemon) probe(t *testing.T) error {
	t.Helper()
	root := newRoot()
	root.SetArgs([]string{"probe", "--run-dir", d.dir})
	return root.ExecuteContext(t.Context())
}

// TestServeKilled: clients and control daemon live on; calls wait a moment and are
// answered as before.
func TestServeKilled(t *testing.T) {
	d := start(t, "dgx-h100")
	uuid := d.machine.Spec().GPUs[0].UUID
	before, err := d.StartMPS(t.Context(), []string{uuid})
	if err != nil {
		t.Fatal(err)
	}
	control := d.controls()
	for range 3 {
		if err := d.probe(t); err != nil {
			t.Errorf("probe: %v", err)
		}
		if err := syscall.Kill(d.serve(t), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if after, err := d.StartMPS(t.Context(), []string{uuid}); err != nil || after != before {
					t.Errorf("%+v, %v, before %+v", after, err, before)
				}
			})
		}
		all.Wait()
		if now := d.controls(); len(now) != 1 || now[0] != control[0] {
			t.Errorf("control daemons %v, before %v", now, control)
		}
	}
	if err := d.StopMPS(t.Context(), []string{uuid}); err != nil {
		t.Error(err)
	}
	patiencetest.Until(t, "the control daemon is reaped, which is no child of serve's any more", func() bool { return syscall.Kill(control[0], 0) != nil })
}

// TestPodDeleted: the next dovetail-mps starts control daemons for the sets of the one
// before, whose container has taken all processes along, and tells the agent.
func TestPodDeleted(t *testing.T) {
	d := start(t, "dgx-h100")
	uuid := d.machine.Spec().GPUs[0].UUID
	before, err := d.StartMPS(t.Context(), []string{uuid})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	events := make(chan hardware.MPSEvent, 16)
	go func() { _ = d.WatchMPS(ctx, func(e hardware.MPSEvent) { events <- e }) }()
	d.end(t)
	if err := d.probe(t); err == nil {
		t.Error("probe: it answers after its end")
	}
	err = patiencetest.Hurried(t, func(ctx context.Context) error { return d.StopMPS(ctx, []string{uuid}) })
	if !errors.Is(err, failure.Unreachable) {
		t.Errorf("a call while nobody is there: %v", err)
	}
	for _, pid := range d.controls() { // as the end of a container does
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	d.begin(t)
	select {
	case e := <-events:
		if e.Kind != hardware.MPSRestarted || e.Devices[0] != uuid {
			t.Errorf("%+v", e)
		}
	case <-time.After(patiencetest.Limit):
		t.Fatal("nobody was told")
	}
	if after, err := d.StartMPS(t.Context(), []string{uuid}); err != nil || after != before {
		t.Errorf("%+v, %v, before %+v", after, err, before)
	}
}

// TestReboot: what is left of an earlier boot goes.
func TestReboot(t *testing.T) {
	d := start(t, "dgx-h100")
	uuid := d.machine.Spec().GPUs[0].UUID
	if _, err := d.StartMPS(t.Context(), []string{uuid}); err != nil {
		t.Fatal(err)
	}
	control := d.controls()
	if err := d.machine.Reboot(); err != nil {
		t.Fatal(err)
	}
	d.machine.Sync()
	if err := syscall.Kill(d.serve(t), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	patiencetest.Until(t, "the control daemon of the earlier boot ends", func() bool { return syscall.Kill(control[0], 0) != nil })
	patiencetest.Until(t, "its directory goes", func() bool {
		left, _ := filepath.Glob(filepath.Join(d.dir, "????????????"))
		return len(left) == 0
	})
}

// TestOneAtATime: a second one waits until the first has ended.
func TestOneAtATime(t *testing.T) {
	d := start(t, "dgx-h100")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	o := options{runDir: d.dir, driverRoot: d.machine.Root(), procRoot: filepath.Join(d.machine.Root(), "proc")}
	if err := o.serve(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second one: %v", err)
	}
	if err := d.probe(t); err != nil {
		t.Errorf("the first one: %v", err)
	}
}
