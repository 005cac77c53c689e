package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

const pid = 4711

// container is a process in a cgroup of version 2, on a simulated machine.
type container struct {
	*simulatortest.Machine
	roots
	dir string // its cgroup's
}

func newContainer(t *testing.T, machine string) *container {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root may set limits")
	}
	c := &container{Machine: simulatortest.NewWithLibrary(t, machine), roots: roots{proc: t.TempDir(), cgroup: t.TempDir()}}
	c.dir = filepath.Join(c.cgroup, "kubepods/pod1/c1")
	c.in(t, "0::/kubepods/pod1/c1\n")
	for _, dir := range []string{c.cgroup, c.dir} {
		write(t, filepath.Join(dir, "cgroup.controllers"), "memory")
	}
	return c
}

// in puts the process into cgroups.
func (c *container) in(t *testing.T, cgroups string) {
	write(t, filepath.Join(c.proc, fmt.Sprint(pid), "cgroup"), cgroups)
}

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

const state = `{"ociVersion": "1.2.0", "id": "c1", "status": "creating", "pid": 4711, "bundle": "/run/c1", "annotations": {"a": "b"}}`

// limit runs the hook as the container runtime does.
func (c *container) limit(t *testing.T, state string, args ...string) error {
	t.Helper()
	root := newRoot(c.roots)
	root.SetIn(strings.NewReader(state))
	root.SetArgs(append([]string{"memory-limit", "--driver-root=" + c.Root(), "--share=mps-1b-00 of request r"}, args...))
	return root.ExecuteContext(t.Context())
}

func (c *container) limited(t *testing.T, gpu string, want uint64) {
	t.Helper()
	now, _, err := c.ReadMemoryLimits(gpu, c.dir)
	if err != nil || now != (simulator.MemoryLimits{Soft: want, Hard: want}) {
		t.Errorf("GPU %s: limits %+v, %v, want %d bytes", gpu, now, err, want)
	}
}

// TestMemoryLimits: shares of two GPUs, two of them of one GPU, in one container.
func TestMemoryLimits(t *testing.T) {
	c := newContainer(t, "mps-v3")
	a, b := c.Spec().GPUs[0].UUID, c.Spec().GPUs[1].UUID
	for _, share := range []struct {
		gpu string
		gib int
	}{{a, 10}, {b, 20}, {a, 5}} {
		if err := c.limit(t, state, "--gpu="+share.gpu, fmt.Sprintf("--bytes=%d", share.gib<<30)); err != nil {
			t.Fatal(err)
		}
	}
	c.limited(t, a, 15<<30)
	c.limited(t, b, 20<<30)
}

// TestNamedHierarchies of version 1, without controllers, can be there beside.
func TestNamedHierarchies(t *testing.T) {
	c := newContainer(t, "mps-v3")
	c.in(t, "1:name=other:/kubepods\n0::/kubepods/pod1/c1\n")
	gpu := c.Spec().GPUs[0].UUID
	if err := c.limit(t, state, "--gpu="+gpu, "--bytes=1073741824"); err != nil {
		t.Fatal(err)
	}
	c.limited(t, gpu, 1<<30)
}

// TestRefused: each message names share, GPU, limit and a cure.
func TestRefused(t *testing.T) {
	tests := []struct {
		name, state, cgroups string
		args                 []string
		class                error
		cure                 string
	}{
		{name: "no state", class: failure.Invalid, cure: "as an OCI hook"},
		{name: "half a state", state: `{"pid": 47`, class: failure.Invalid, cure: "as an OCI hook"},
		{name: "no process", state: `{"id": "c1"}`, class: failure.Invalid, cure: "createRuntime"},
		{name: "process is gone", state: `{"id": "c1", "pid": 4712}`, class: failure.Absent, cure: "has gone"},
		{name: "cgroup version 1", state: state, cgroups: "4:memory:/kubepods/pod1/c1\n1:cpu:/kubepods/pod1/c1\n", class: failure.Unsupported, cure: "cgroup version 2"},
		{name: "both versions", state: state, cgroups: "4:memory:/kubepods/pod1/c1\n0::/system.slice/c1\n", class: failure.Unsupported, cure: "cgroup version 2"},
		{name: "the root's cgroup", state: state, cgroups: "0::/\n", class: failure.Unsupported, cure: "one of its own"},
		{name: "a cgroup out of sight", state: state, cgroups: "0::/../kubepods/pod1/c1\n", class: failure.Unsupported, cure: "host's cgroup namespace"},
		{name: "no driver", state: state, args: []string{"--driver-root=/nonexistent"}, class: failure.Unreachable, cure: "install the NVIDIA driver"},
		{name: "no such GPU", state: state, args: []string{"--gpu=GPU-none"}, class: failure.Absent, cure: "delete the claims that have it"},
		{name: "no GPU", state: state, args: []string{"--gpu="}, class: failure.Invalid, cure: "--gpu"},
		{name: "nothing", state: state, args: []string{"--bytes=0"}, class: failure.Invalid, cure: "--bytes"},
		{name: "more than there is", state: state, args: []string{"--bytes=1152921504606846976"}, class: failure.Invalid, cure: "above the GPU's memory"},
	}
	c := newContainer(t, "mps-v3")
	gpu := c.Spec().GPUs[0].UUID
	for _, tt := range tests {
		t.Run(strings.ReplaceAll(tt.name, " ", "-"), func(t *testing.T) {
			c.in(t, "0::/kubepods/pod1/c1\n")
			if tt.cgroups != "" {
				c.in(t, tt.cgroups)
			}
			err := c.limit(t, tt.state, append([]string{"--gpu=" + gpu, "--bytes=1073741824"}, tt.args...)...)
			if !errors.Is(err, tt.class) || !strings.Contains(err.Error(), tt.cure) || !strings.HasPrefix(err.Error(), "share mps-1b-00 of request r: limit") || !strings.Contains(err.Error(), "bytes of GPU ") {
				t.Errorf("%v", err)
			}
			if now, _, err := c.ReadMemoryLimits(gpu, c.dir); !errors.Is(err, simulator.ErrNoLimits) {
				t.Errorf("limits %+v, %v", now, err)
			}
		})
	}
}

func TestOldDriver(t *testing.T) {
	c := newContainer(t, "t4")
	err := c.limit(t, state, "--gpu="+c.Spec().GPUs[0].UUID, "--bytes=1073741824")
	if !errors.Is(err, failure.Unsupported) || !strings.Contains(err.Error(), "615") {
		t.Errorf("%v", err)
	}
}

// TestGPUFails: what has become of the GPU since its share was prepared keeps the container
// from starting, and leaves no limit.
func TestGPUFails(t *testing.T) {
	c := newContainer(t, "mps-v3")
	gpu := c.Spec().GPUs[0].UUID
	for fault, cure := range map[simulator.Fault]string{
		simulator.FaultLost:           "reboot the node",
		simulator.FaultResetRequired:  "nvidia-smi --gpu-reset",
		simulator.FaultNoMemoryLimits: "a claim that is made anew gets what the GPU can do now",
	} {
		if err := c.Inject(gpu, fault); err != nil {
			t.Fatal(err)
		}
		err := c.limit(t, state, "--gpu="+gpu, "--bytes=1073741824")
		if err == nil || !strings.HasPrefix(err.Error(), "share mps-1b-00 of request r: ") || !strings.Contains(err.Error(), gpu) || !strings.Contains(err.Error(), cure) {
			t.Errorf("%s: %v", fault, err)
		}
		if err := c.Restore(gpu, fault); err != nil {
			t.Fatal(err)
		}
		if now, _, err := c.ReadMemoryLimits(gpu, c.dir); !errors.Is(err, simulator.ErrNoLimits) {
			t.Errorf("%s: limits %+v, %v", fault, now, err)
		}
	}
}
