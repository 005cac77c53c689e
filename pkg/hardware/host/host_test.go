package host_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/dovetail-dra/dovetail/demo/machines"
	"github.com/dovetail-dra/dovetail/pkg/hardware/host"
	"github.com/dovetail-dra/dovetail/pkg/hardware/nvml"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

func TestDescribe(t *testing.T) {
	for _, name := range machines.WithGPUs() {
		t.Run(name, func(t *testing.T) {
			m := simulatortest.New(t, name)
			h := host.New(m.GPUs(), filepath.Join(m.Root(), "sys"), filepath.Join(m.Root(), "proc"))
			before, err := h.Describe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, g := range before.GPUs {
				spec := m.Spec().GPUs[g.Index]
				if g.Location.PCIeRoot != spec.Above[0] || g.Location.NUMANode != spec.NUMANode {
					t.Errorf("GPU %s lies at %+v, is built in at %v, NUMA node %d", g.Address, g.Location, spec.Above, spec.NUMANode)
				}
				if (g.Location.Switch != "") != (len(spec.Above) > 3) {
					t.Errorf("GPU %s has switch %q, is built in at %v", g.Address, g.Location.Switch, spec.Above)
				}
			}
			if err := m.Reboot(); err != nil {
				t.Fatal(err)
			}
			m.Sync()
			after, err := h.Describe(t.Context())
			if err != nil || after.BootID == before.BootID || after.BootID == "" {
				t.Errorf("boot ID %q became %q: %v", before.BootID, after.BootID, err)
			}
		})
	}
}

// NVML has no address for a GPU that was lost before it was read; sysfs has.
func TestLostGPUIsNamedByItsAddress(t *testing.T) {
	m := simulatortest.NewWithLibrary(t, "broken")
	gpus := nvml.New(nvml.Options{DriverRoot: m.Root()})
	t.Cleanup(func() { _ = gpus.Close() })
	described, err := host.New(gpus, filepath.Join(m.Root(), "sys"), filepath.Join(m.Root(), "proc")).Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range described.Faults {
		if f.Kind == machine.FaultLost && f.Device == "0000:52:00.0" {
			return
		}
	}
	t.Errorf("faults %+v", described.Faults)
}

func TestNoProc(t *testing.T) {
	m := simulatortest.New(t, "t4")
	h := host.New(m.GPUs(), filepath.Join(m.Root(), "sys"), t.TempDir())
	if _, err := h.Describe(t.Context()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a boot ID: %v", err)
	}
}
