package mps_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/hardware"
)

// killServers kills the servers of a set, and lets its control daemon live.
func (w *world) killServers(t testing.TB, devices []string) {
	t.Helper()
	killed := 0
	for _, p := range processes(t, w.options.Dir) {
		if p.ID.PID != w.control(t, devices) {
			_ = p.Signal(syscall.SIGKILL)
			<-p.Ended()
			killed++
		}
	}
	if killed == 0 {
		t.Fatal("there is no server")
	}
}

// listsNoProcesses is a launcher whose list of servers has no process IDs.
func listsNoProcesses(t *testing.T) []string {
	script := filepath.Join(t.TempDir(), "launcher")
	text := `#!/bin/sh
case "$3" in
*'"server","list"'*) "$@" | awk -F, -v OFS=, '{ $3 = "-"; print }' ;;
*) exec "$@" ;;
esac
`
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return []string{script, self(t), launcher}
}

// TestServerDied: of protocol 3, a server that dies while its control daemon lives comes
// back with its namespaces, and that is told.
func TestServerDied(t *testing.T) {
	for name, how := range map[string]func(t *testing.T, w *world, kill func()){
		"watched": func(_ *testing.T, _ *world, kill func()) { kill() },
		"while nobody kept it": func(t *testing.T, w *world, kill func()) {
			w.Close()
			kill()
			w.open(t)
		},
		"process not known": func(_ *testing.T, w *world, kill func()) {
			kill()
			w.LookNow()
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "mps-v3")
			if name == "process not known" {
				w.Close()
				w.options.Launcher = listsNoProcesses(t)
				w.open(t)
			}
			devices := w.uuids(0)
			before := w.start(t, devices)
			limits := hardware.MPSLimits{ThreadPercentage: 50, Memory: map[string]uint64{devices[0]: 2 << 30}}
			pipe, err := w.MakeNamespace(t.Context(), devices, "a", limits)
			if err != nil {
				t.Fatal(err)
			}
			how(t, w, func() { w.killServers(t, devices) })
			w.watch(t).await(hardware.MPSRestarted)
			if after := w.start(t, devices); after != before {
				t.Errorf("%+v, before %+v", after, before)
			}
			if l := newClient(t, pipe, 0).do(t, "allocate 3G"); l.Error == "" {
				t.Error("the namespace's memory limit is gone")
			}
			if _, err := w.MakeNamespace(t.Context(), devices, "b", limits); err != nil {
				t.Error(err)
			}
			if err := w.RemoveNamespace(t.Context(), devices, "a"); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestRemoveNamespaceThatIsGone: what the server does not have is removed.
func TestRemoveNamespaceThatIsGone(t *testing.T) {
	w := newWorld(t, "mps-v3")
	devices := w.uuids(0)
	w.start(t, devices)
	pipe, err := w.MakeNamespace(t.Context(), devices, "a-b", hardware.MPSLimits{})
	if err != nil {
		t.Fatal(err)
	}
	control := exec.Command(filepath.Join(w.machine.Root(), "usr/bin/nvidia-cuda-mps-control"), "namespace", "delete", "a_b", "--server=mps")
	control.Env = []string{"CUDA_MPS_PIPE_DIRECTORY=" + filepath.Dir(filepath.Dir(pipe))}
	if output, err := control.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	if err := w.RemoveNamespace(t.Context(), devices, "a-b"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(pipe); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s: %v", pipe, err)
	}
}
