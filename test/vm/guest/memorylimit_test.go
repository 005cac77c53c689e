package guest

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/dovetail-dra/dovetail/demo/machines"
	"github.com/dovetail-dra/dovetail/pkg/cdi"
	"github.com/dovetail-dra/dovetail/pkg/hardware/cgroup"
	"github.com/dovetail-dra/dovetail/pkg/hardware/host"
	"github.com/dovetail-dra/dovetail/pkg/hardware/nvml"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	gpupatience "github.com/dovetail-dra/dovetail/pkg/patience"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/cuda"
	"github.com/dovetail-dra/dovetail/pkg/simulator/description"
	"github.com/dovetail-dra/dovetail/pkg/simulator/mps"
	"github.com/dovetail-dra/dovetail/pkg/simulator/tree"
	"github.com/dovetail-dra/dovetail/test/vm/internal/ramdisk"
)

const gib = 1 << 30

// gpus are a simulated machine's, with its driver.
type gpus struct {
	*simulator.Machine
	uuids []string
}

func newGPUs(t *testing.T, name string) *gpus {
	t.Helper()
	data, err := machines.Description(name)
	must(t, err)
	spec, err := description.Parse(data)
	must(t, err)
	m, _, err := simulator.Create(t.TempDir(), spec)
	must(t, err)
	tree.Follow(m)
	_, err = tree.Sync(m, tree.Built{Library: "/" + ramdisk.Library})
	must(t, err)
	g := &gpus{Machine: m}
	for _, gpu := range spec.GPUs {
		g.uuids = append(g.uuids, gpu.UUID)
	}
	return g
}

// container has shares of GPUs, whose memory the driver limits.
func (g *gpus) container(id string, shares ...cdi.Device) *container {
	for i := range shares {
		shares[i].ShareID = fmt.Sprint("share-", i)
	}
	return &container{id: id, machine: g.Machine, devices: shares}
}

func (g *gpus) share(gpu int, bytes uint64) cdi.Device {
	return cdi.Device{Request: "gpu", Name: fmt.Sprint("timeslice-", gpu), GPU: g.uuids[gpu], MemoryLimit: bytes}
}

// limited checks the limits that a GPU has, by container: these and no others.
func (g *gpus) limited(t *testing.T, gpu int, want map[*container]uint64) {
	t.Helper()
	state, err := g.State()
	must(t, err)
	has, expected := map[string]simulator.MemoryLimits{}, map[string]simulator.MemoryLimits{}
	for path, limits := range state.GPUs[gpu].MemoryLimits {
		has[path] = limits.MemoryLimits
	}
	for c, bytes := range want {
		expected[c.cgroup()] = simulator.MemoryLimits{Soft: bytes, Hard: bytes}
	}
	if !maps.Equal(has, expected) {
		t.Errorf("GPU %d has limits %v, want %v", gpu, has, expected)
	}
}

// TestEnforcement: GPUs are asked about this kernel's cgroups whether the driver can limit
// containers, each for itself.
func TestEnforcement(t *testing.T) {
	g := newGPUs(t, "mps-v3")
	must(t, g.Inject(g.uuids[1], simulator.FaultNoMemoryLimits))
	adapter := nvml.New(nvml.Options{DriverRoot: g.Root(), Cgroup: cgroup.Own(cgroup.Root)})
	t.Cleanup(func() { must(t, adapter.Close()) })
	here := host.New(adapter, "/sys", "/proc")
	here.CgroupRoot = cgroup.Root
	m, err := here.Describe(t.Context())
	must(t, err)
	if !m.CgroupV2 || len(m.Faults) > 0 {
		t.Errorf("cgroup version 2: %v, faults %+v", m.CgroupV2, m.Faults)
	}
	for i, want := range []machine.Enforcement{machine.EnforcementStrict, machine.EnforcementNone} {
		if got := m.Enforces(&m.GPUs[i], machine.KindTimeSlice); got != want {
			t.Errorf("the memory of shares of GPU %d is kept: %s, want %s", i, got, want)
		}
	}
}

// TestMemoryLimit: two containers of one Pod, one of them with two shares of one GPU and
// one of another.
func TestMemoryLimit(t *testing.T) {
	g := newGPUs(t, "mps-v3")
	first := g.container("first", g.share(0, 10*gib), g.share(1, 20*gib), g.share(0, 5*gib))
	second := g.container("second", g.share(0, 7*gib))
	must(t, first.create(t))
	must(t, second.create(t))
	g.limited(t, 0, map[*container]uint64{first: 15 * gib, second: 7 * gib})
	g.limited(t, 1, map[*container]uint64{first: 20 * gib})

	// Made anew it has another cgroup, even where that is called as the last one was.
	first.remove(t)
	if now, _, err := g.ReadMemoryLimits(g.uuids[0], first.cgroup()); !errors.Is(err, simulator.ErrNoCgroup) {
		t.Errorf("a container that is gone has limits %+v, %v", now, err)
	}
	first.devices = []cdi.Device{g.share(0, 3*gib)}
	must(t, first.create(t))
	g.limited(t, 0, map[*container]uint64{first: 3 * gib, second: 7 * gib})
}

// TestMemoryLimitHolds for what runs in the container, and for nobody else.
func TestMemoryLimitHolds(t *testing.T) {
	g := newGPUs(t, "mps-v3")
	limited, free := g.container("limited", g.share(0, 4*gib)), g.container("free")
	for _, c := range []*container{limited, free} {
		must(t, c.create(t))
		c.start(t)
	}
	for _, step := range []struct {
		in   *container
		size string
		want cuda.Line
	}{
		{limited, "3G", cuda.Line{Allocated: 3 * gib}},
		{free, "30G", cuda.Line{Allocated: 30 * gib}},
		{limited, "2G", cuda.Line{Error: mps.ErrOutOfMemory}},
		{limited, "1G", cuda.Line{Allocated: gib}},
	} {
		line := step.in.do(t, "allocate "+step.size)
		if line.Allocated != step.want.Allocated || line.Error != step.want.Error {
			t.Errorf("%s in container %s: %+v", step.size, step.in.id, line)
		}
	}
	if now, used, err := g.ReadMemoryLimits(g.uuids[0], limited.cgroup()); err != nil || now.Hard != 4*gib || used != 4*gib {
		t.Errorf("limits %+v, %d bytes used, %v", now, used, err)
	}
}

// TestMemoryLimitFails: the container does not start, runc says why, and no cgroup is left.
func TestMemoryLimitFails(t *testing.T) {
	recent, old := newGPUs(t, "mps-v3"), newGPUs(t, "t4")
	sick := recent.uuids[1]
	share, second := recent.share(0, gib), recent.share(1, 2*gib)
	unknown, large := second, second
	unknown.GPU, large.MemoryLimit = "GPU-none", 1<<40
	for name, c := range map[string]struct {
		make, unmake func() error
		container    *container
		says         string
		within       time.Duration
	}{
		"old driver": {container: old.container("old", old.share(0, gib)), says: "they need a driver of branch 615 or later"},
		"GPU without limits": {
			make:      func() error { return recent.Inject(sick, simulator.FaultNoMemoryLimits) },
			unmake:    func() error { return recent.Restore(sick, simulator.FaultNoMemoryLimits) },
			container: recent.container("lacks", share, second), says: "a claim that is made anew gets what the GPU can do now",
		},
		"no such GPU":        {container: recent.container("unknown", share, unknown), says: "delete the claims that have it"},
		"more than there is": {container: recent.container("large", share, large), says: "must not be above the GPU's memory"},
		"driver unloaded": {
			make:      func() error { return recent.SetDriver(simulator.DriverUnloaded) },
			unmake:    func() error { return recent.SetDriver(simulator.DriverLoaded) },
			container: recent.container("unloaded", share), says: "load its kernel module",
		},
		"GPU lost": {
			make:      func() error { return recent.Inject(sick, simulator.FaultLost) },
			unmake:    func() error { return recent.Restore(sick, simulator.FaultLost) },
			container: recent.container("lost", share, second), says: "it fell off the bus: reboot the node",
		},
		"GPU hangs": {
			make:      func() error { return recent.Slow(sick, "nvmlDeviceSetMemoryLimits", time.Hour) },
			unmake:    func() error { return recent.Slow(sick, "nvmlDeviceSetMemoryLimits", 0) },
			container: recent.container("hung", share, second), says: "has not answered for", within: gpupatience.Default,
		},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			if c.make != nil {
				must(t, c.make())
				t.Cleanup(func() { must(t, c.unmake()) })
			}
			began := time.Now()
			err := c.container.create(t)
			if took := time.Since(began); took > c.within+patience {
				t.Errorf("it took %s", took)
			}
			d := c.container.devices[len(c.container.devices)-1]
			limit := fmt.Sprintf("share %s of request gpu: limit the container to %d bytes of GPU %s's memory", d.Name, d.MemoryLimit, d.GPU)
			for _, want := range []string{fmt.Sprint("createRuntime hook #", len(c.container.devices)-1), limit, c.says} {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("runc says: %v, want: …%s…", err, want)
				}
			}
			must(t, absent(c.container.cgroup()))
		})
	}
}
