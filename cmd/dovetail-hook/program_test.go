package main

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kerneltest"
)

// built is the hook as it ships.
func built(t testing.TB) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "dovetail-hook")
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// started starts a process in a network namespace, which ends with the test.
func started(t testing.TB, k *kerneltest.Real, namespace string) *exec.Cmd {
	t.Helper()
	process := exec.Command("sleep", "300")
	if err := k.Inside(namespace, process.Start); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait()
	})
	return process
}

// hooked runs the program for a container whose process is in the Pod's namespace.
func (n *node) hooked(t testing.TB, program, order string, process *exec.Cmd) {
	t.Helper()
	hook := exec.Command(program, "nic", "--sysfs-root="+n.sysfs, "--lock="+n.lock, "--order="+order)
	hook.Stdin = strings.NewReader(strings.Replace(state, "4711", fmt.Sprint(process.Process.Pid), 1))
	var words bytes.Buffer
	hook.Stderr = &words
	if err := n.Inside(n.HostNamespace, hook.Run); err != nil {
		t.Fatalf("%v: %s", err, words.String())
	}
}

// TestProgram is the hook as the container runtime runs it, on this machine's kernel.
func TestProgram(t *testing.T) {
	n, program := newNode(t), built(t)
	process := started(t, n.Real, n.pod)
	for range 2 {
		n.hooked(t, program, n.order(t, nil), process)
	}
	if got := n.interfaces(t, n.pod); !slices.Equal(got, []string{"net1 up=true mtu=1400"}) {
		t.Errorf("in the Pod there are %q", got)
	}
	refused := exec.Command(program, "nic", "--sysfs-root="+n.sysfs, "--lock="+n.lock)
	if out, err := refused.CombinedOutput(); err == nil || !strings.HasPrefix(string(out), "dovetail-hook: --order") {
		t.Errorf("%v: %s", err, out)
	}
}

// BenchmarkProgram is the time by which a container starts later: the program is started,
// moves a NIC, or finds it moved, and ends. Beside it is one that only prints its version.
func BenchmarkProgram(b *testing.B) {
	n := newNode(b)
	program, order := built(b), n.order(b, nil)
	process := started(b, n.Real, n.pod)
	nics := rdma.New(rdma.Options{SysfsRoot: n.sysfs, Kernel: n.Real})
	b.Run("moves", func(b *testing.B) {
		for range b.N {
			n.hooked(b, program, order, process)
			b.StopTimer()
			if err := nics.BringHome(b.Context(), n.home); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	})
	b.Run("moved", func(b *testing.B) {
		for range b.N {
			n.hooked(b, program, order, process)
		}
	})
	b.Run("version", func(b *testing.B) {
		for range b.N {
			if err := exec.Command(program, "--version").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
