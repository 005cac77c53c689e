package simulator_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

const gib = 1 << 30

func open(t *testing.T, m *simulatortest.Machine, devices ...string) *simulator.Context {
	t.Helper()
	c, err := m.OpenContext(devices)
	must(t, err)
	t.Cleanup(c.Close)
	return c
}

func full(t *testing.T, c *simulator.Context, cgroup string, bytes uint64) {
	t.Helper()
	if err := c.Allocate(c.Devices()[0], "somebody", cgroup, bytes); !errors.Is(err, failure.Conflict) {
		t.Errorf("%d bytes more: %v", bytes, err)
	}
}

// TestComputeModes: how many processes they let in.
func TestComputeModes(t *testing.T) {
	m := simulatortest.New(t, "l40s")
	uuid := m.Spec().GPUs[0].UUID
	first := open(t, m, uuid)
	must(t, m.SetComputeMode("0", machine.ComputeModeExclusiveProcess))
	if _, err := m.OpenContext([]string{uuid}); !errors.Is(err, failure.Busy) {
		t.Errorf("a second process in mode ExclusiveProcess: %v", err)
	}
	open(t, m, m.Spec().GPUs[1].UUID)
	first.Close()
	open(t, m, uuid)
	must(t, m.SetComputeMode("2", machine.ComputeModeProhibited))
	if _, err := m.OpenContext([]string{m.Spec().GPUs[2].UUID}); !errors.Is(err, failure.Busy) {
		t.Errorf("a process in mode Prohibited: %v", err)
	}
}

// TestContextHoldsItsGPU, as every process does.
func TestContextHoldsItsGPU(t *testing.T) {
	m := simulatortest.New(t, "static-mig")
	c := open(t, m, gpu(t, m, 0).Instances[0].ComputeInstances[0].UUID)
	if err := m.Reset("0"); !errors.Is(err, failure.Busy) {
		t.Errorf("reset of a GPU in use: %v", err)
	}
	c.Close()
	must(t, m.Reset("0"))
}

// TestMemoryIsShared between the processes of a GPU, and given back by each.
func TestMemoryIsShared(t *testing.T) {
	m := simulatortest.New(t, "l40s")
	uuid := m.Spec().GPUs[0].UUID
	a, b := open(t, m, uuid), open(t, m, uuid)
	d := a.Devices()[0]
	if d.Memory != (46068-595)<<20 {
		t.Errorf("%d bytes of memory", d.Memory)
	}
	must(t, a.Allocate(d, "one", "", 30*gib))
	full(t, b, "", 20*gib)
	must(t, b.Allocate(d, "two", "", 10*gib))
	full(t, a, "", 5*gib)
	must(t, a.Free("one"))
	must(t, b.Allocate(d, "two", "", 30*gib))
	b.Close()
	must(t, a.Allocate(d, "one", "", d.Memory))
	full(t, a, "", 1)
}

// TestMemoryOfComputeInstances is that of their GPU instance.
func TestMemoryOfComputeInstances(t *testing.T) {
	m := simulatortest.New(t, "dgx-h100")
	must(t, m.SetMIGMode("0", true))
	in, err := m.MakeGPUInstance("0", 9, nil) // 3g.40gb
	must(t, err)
	var contexts []*simulator.Context
	for range 2 {
		ci, err := m.MakeComputeInstance("0", in.ID, 1)
		must(t, err)
		contexts = append(contexts, open(t, m, ci.UUID))
	}
	d := contexts[0].Devices()[0]
	if d.Memory != 40448<<20 || d.Multiprocessors != 20 {
		t.Errorf("a third of 3g.40gb is %+v", d)
	}
	must(t, contexts[0].Allocate(d, "", "", 30*gib))
	full(t, contexts[1], "", 10*gib)
	if _, err := m.OpenContext([]string{m.Spec().GPUs[0].UUID}); !errors.Is(err, failure.Unsupported) {
		t.Errorf("a GPU in MIG mode as a whole: %v", err)
	}
}

// TestMemoryLimits hold for a cgroup and those below it, and end with it.
func TestMemoryLimits(t *testing.T) {
	m := simulatortest.New(t, "mps-v3")
	pod := filepath.Join(t.TempDir(), "pod")
	limits := simulator.MemoryLimits{Hard: 4 * gib}
	if err := m.SetMemoryLimits("0", pod, limits); !errors.Is(err, simulator.ErrNoCgroup) {
		t.Errorf("a cgroup that is not there: %v", err)
	}
	must(t, os.Mkdir(pod, 0o755))
	must(t, m.SetMemoryLimits("0", pod, limits))
	c := open(t, m, m.Spec().GPUs[0].UUID)
	d := c.Devices()[0]
	must(t, c.Allocate(d, "one", pod+"/a", 3*gib))
	must(t, c.Allocate(d, "other", pod+"s", 30*gib))
	full(t, c, pod, 2*gib)
	var stat syscall.Stat_t
	must(t, syscall.Stat(pod, &stat))
	full(t, c, simulator.NamespaceCgroup(stat.Ino), 2*gib)
	got, used, err := m.ReadMemoryLimits("0", pod)
	if err != nil || got != limits || used != 3*gib {
		t.Errorf("limits %+v, %d bytes used, %v", got, used, err)
	}
	must(t, os.Mkdir(pod+"2", 0o755))
	must(t, os.Remove(pod))
	must(t, os.Rename(pod+"2", pod)) // another one of the same path
	if got, _, err := m.ReadMemoryLimits("0", pod); !errors.Is(err, simulator.ErrNoLimits) {
		t.Errorf("limits %+v, %v of a cgroup whose predecessor had some", got, err)
	}
	must(t, c.Allocate(d, "third", pod, 2*gib))
	must(t, os.Mkdir(pod+"2", 0o755))
	must(t, m.SetMemoryLimits("0", pod+"2", limits))
	if now := gpu(t, m, 0).MemoryLimits; len(now) != 1 {
		t.Errorf("limits of a cgroup that is gone are left: %+v", now)
	}
}
