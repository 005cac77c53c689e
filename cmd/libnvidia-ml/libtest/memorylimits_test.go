package libtest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// TestMemoryLimits: the core's own rules are tested there.
func TestMemoryLimits(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may set limits")
	}
	m, library := open(t, "mps-v3")
	device, _ := library.DeviceGetHandleByIndex(0)
	cgroup := filepath.Join(t.TempDir(), "pod")
	answers(t, "limits of no cgroup", device.SetMemoryLimits_v1(cgroup, 0, 1<<30), nvml.ERROR_OPERATING_SYSTEM)
	if err := os.Mkdir(cgroup, 0o755); err != nil {
		t.Fatal(err)
	}
	_, ret := device.GetMemoryLimits_v1(cgroup)
	answers(t, "reading none", ret, nvml.ERROR_NOT_FOUND)
	answers(t, "a soft limit above the hard", device.SetMemoryLimits_v1(cgroup, 2<<30, 1<<30), nvml.ERROR_INVALID_ARGUMENT)
	answers(t, "setting them", device.SetMemoryLimits_v1(cgroup, 1<<20, 1<<30), nvml.SUCCESS)
	get, ret := device.GetMemoryLimits_v1(cgroup)
	answers(t, "reading them", ret, nvml.SUCCESS)
	if get.SoftLimit != 1<<20 || get.HardLimit != 1<<30 || get.CurrentUsed != 0 {
		t.Errorf("limits %+v", get)
	}
	answers(t, "taking them away", device.SetMemoryLimits_v1(cgroup, 0, ^uint64(0)), nvml.SUCCESS)
	_, ret = device.GetMemoryLimits_v1(cgroup)
	answers(t, "reading none again", ret, nvml.ERROR_NOT_FOUND)

	if err := m.Inject("0", simulator.FaultNoMemoryLimits); err != nil {
		t.Fatal(err)
	}
	_, ret = device.GetMemoryLimits_v1(cgroup)
	answers(t, "reading on a GPU that has none", ret, nvml.ERROR_NOT_SUPPORTED)
	answers(t, "setting there", device.SetMemoryLimits_v1(cgroup, 0, 1<<30), nvml.ERROR_NOT_SUPPORTED)
	if err := m.Restore("0", simulator.FaultNoMemoryLimits); err != nil {
		t.Fatal(err)
	}
	if err := m.SetMIGMode("0", true); err != nil {
		t.Fatal(err)
	}
	if _, err := m.MakePartition("0", "1g.10gb", nil); err != nil {
		t.Fatal(err)
	}
	mig, _ := device.GetMigDeviceHandleByIndex(0)
	answers(t, "limits on a MIG device", mig.SetMemoryLimits_v1(cgroup, 0, 1<<30), nvml.ERROR_NOT_SUPPORTED)
	answers(t, "limits on its GPU", device.SetMemoryLimits_v1(cgroup, 0, 1<<30), nvml.ERROR_NOT_SUPPORTED)
}

func TestMemoryLimitsOfOldDriver(t *testing.T) {
	_, library := open(t, "t4")
	device, _ := library.DeviceGetHandleByIndex(0)
	_, ret := device.GetMemoryLimits_v1("/")
	answers(t, "driver 535", ret, nvml.ERROR_NOT_SUPPORTED)
}
