package mps_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/hardware/hardwaretest"
	"github.com/dovetail-dra/dovetail/pkg/mps"
	"github.com/dovetail-dra/dovetail/pkg/mps/launch"
	"github.com/dovetail-dra/dovetail/pkg/mps/process"
	"github.com/dovetail-dra/dovetail/pkg/patience/patiencetest"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

// launcher is what this program is called with to be the launcher.
const launcher = "launch"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == launcher {
		fmt.Fprintln(os.Stderr, launch.Exec(os.Args[2]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// world is a simulated machine with its driver's programs, and where a Manager has its
// files.
type world struct {
	*mps.Manager
	machine *simulatortest.Machine
	options mps.Options
}

func newWorld(t testing.TB, machine string) *world {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("mount namespaces need root")
	}
	m := simulatortest.New(t, machine)
	m.InstallTools()
	dir, err := os.MkdirTemp("", "mps") // short: a socket's path has 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	w := &world{machine: m, options: mps.Options{
		Dir: dir, DriverRoot: m.Root(), BootID: "this", Launcher: []string{self(t), launcher},
		Describe: m.GPUs().Describe, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}}
	w.open(t)
	t.Cleanup(func() {
		w.Close()
		killAll(t, dir)
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return w
}

func self(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func (w *world) open(t testing.TB) {
	t.Helper()
	manager, err := mps.New(w.options)
	if err != nil {
		t.Fatal(err)
	}
	w.Manager = manager
}

// reopen is what is there after the Manager's process was killed.
func (w *world) reopen(t testing.TB) {
	t.Helper()
	w.Close() // it does nothing to daemons
	w.open(t)
}

func (w *world) uuids(indices ...int) (uuids []string) {
	for _, i := range indices {
		uuids = append(uuids, w.machine.Spec().GPUs[i].UUID)
	}
	return uuids
}

func (w *world) start(t testing.TB, devices []string) hardware.MPSDaemon {
	t.Helper()
	d, err := w.StartMPS(t.Context(), devices)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// control is the process ID of the control daemon over these devices, 0 for none.
func (w *world) control(t testing.TB, devices []string) int {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(w.options.Dir, "*", "pipe", "nvidia-cuda-mps-control.pid"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		pid, bad := strconv.Atoi(strings.TrimSpace(string(data)))
		if err != nil || bad != nil {
			continue
		}
		environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err == nil && strings.Contains(string(environment)+"\x00", "CUDA_VISIBLE_DEVICES="+strings.Join(devices, ",")+"\x00") {
			return pid
		}
	}
	return 0
}

func (w *world) crash(t testing.TB, devices []string) {
	t.Helper()
	if pid := w.control(t, devices); pid != 0 {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Fatal(err)
		}
	}
}

// processes are all that run for the Manager: control daemons, servers, commands.
func processes(t testing.TB, dir string) (found []*process.Process) {
	t.Helper()
	all, err := process.Find(func(l *process.Look) bool { return strings.HasPrefix(l.Name, "nvidia-cuda-mps") })
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.ID.PID))
		if err == nil && strings.Contains(string(environment), dir) {
			found = append(found, p)
		} else if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	return found
}

func killAll(t testing.TB, dir string) {
	for _, p := range processes(t, dir) {
		_ = p.Signal(syscall.SIGKILL)
		<-p.Ended()
	}
}

// nothing checks that nothing is left: no process, no mount, no directory.
func (w *world) nothing(t testing.TB) {
	t.Helper()
	if left := processes(t, w.options.Dir); len(left) > 0 {
		t.Errorf("%d processes are left", len(left))
	}
	entries, err := os.ReadDir(w.options.Dir)
	if err != nil || len(entries) > 0 {
		t.Errorf("left are %v, %v", entries, err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(mounts), w.options.Dir+"/") {
		t.Errorf("a mount is left, %v", err)
	}
}

func TestSharing(t *testing.T) {
	hardwaretest.TestSharing(t, func(t *testing.T, machine string) hardwaretest.SharingFixture {
		w := newWorld(t, machine)
		return hardwaretest.SharingFixture{Sharing: w.Manager, Machine: w.machine, Crash: func(t *testing.T, devices []string) { w.crash(t, devices) }}
	})
}

// watched is a watch of MPS's events.
type watched struct {
	*patiencetest.Watched[hardware.MPSEvent]
}

// watch runs WatchMPS beside the test.
func (w *world) watch(t testing.TB) watched {
	t.Helper()
	return watched{patiencetest.Watch(t, w.WatchMPS)}
}

func (w watched) await(kind hardware.MPSEventKind) hardware.MPSEvent {
	return w.Await(string(kind), nil, func(e hardware.MPSEvent) bool { return e.Kind == kind })
}
