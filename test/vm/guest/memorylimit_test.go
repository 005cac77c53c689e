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
	"github.com/dovetail-dra/dovetail/pkg/hardware/host"
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

// TestEnforcement: the node is seen to be one on which a driver can limit containers.
func TestEnforcement(t *testing.T) {
	for name, want := range map[string]machine.Enforcement{"mps-v3": machine.EnforcementStrict, "t4": machine.EnforcementNone} {
		here := host.New(newGPUs(t, name).GPUs(), "/sys", "/proc")
		here.CgroupRoot = "/sys/fs/cgroup"
		m, err := here.Describe(t.Context())
		must(t, err)
		if got := m.Enforces(machine.KindTimeSlice); !m.CgroupV2 || got != want {
			t.Errorf("%s: cgroup version 2: %v; the memory of shares is kept: %s, want %s", name, m.CgroupV2, got, want)
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

// TestMemoryLimitFails: the container does not start, runc says why, and nothing is left.
func TestMemoryLimitFails(t *testing.T) {
	for name, c := range map[string]struct {
		machine string
		change  func(t *testing.T, g *gpus, shares []cdi.Device)
		says    string
		within  time.Duration
	}{
		"old driver": {machine: "t4", says: "they need a driver of branch 615 or later"},
		"driver unloaded": {change: func(t *testing.T, g *gpus, _ []cdi.Device) { must(t, g.SetDriver(simulator.DriverUnloaded)) },
			says: "the NVIDIA driver is not loaded: load its kernel module"},
		"GPU lost": {change: func(t *testing.T, g *gpus, _ []cdi.Device) { must(t, g.Inject(g.uuids[1], simulator.FaultLost)) },
			says: "fell off the bus"},
		"no such GPU": {change: func(_ *testing.T, _ *gpus, shares []cdi.Device) { shares[1].GPU = "GPU-none" },
			says: "no such GPU"},
		"more than there is": {change: func(_ *testing.T, _ *gpus, shares []cdi.Device) { shares[1].MemoryLimit = 1 << 40 },
			says: "must not be above the GPU's memory"},
		"GPU hangs": {change: func(t *testing.T, g *gpus, _ []cdi.Device) {
			must(t, g.Slow(g.uuids[1], "nvmlDeviceSetMemoryLimits", time.Hour))
		}, says: "has not answered for", within: gpupatience.Default},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			if c.machine == "" {
				c.machine = "mps-v3"
			}
			g := newGPUs(t, c.machine)
			last := len(g.uuids) - 1
			shares := []cdi.Device{g.share(0, gib), g.share(last, 2*gib)}
			if c.change != nil {
				c.change(t, g, shares)
			}
			refused := g.container("refused", shares...)
			began := time.Now()
			err := refused.create(t)
			took := time.Since(began)
			text := fmt.Sprint(err)
			t.Logf("%s: %s", took, text)
			for _, want := range []string{"createRuntime hook #", "limit the container to ", " bytes of GPU ", c.says} {
				if err == nil || !strings.Contains(text, want) {
					t.Errorf("runc says: %s\nwant: …%s…", text, want)
				}
			}
			if limit := c.within + 2*patience; took > limit {
				t.Errorf("it took %s, more than %s", took, limit)
			}
			must(t, absent(refused.cgroup()))
		})
	}
}
