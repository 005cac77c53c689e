package libtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

func open(t *testing.T, machine string) (*simulatortest.Machine, nvml.Interface) {
	t.Helper()
	m := simulatortest.NewWithLibrary(t, machine)
	library := nvml.New(nvml.WithLibraryPath(m.Library))
	if ret := library.Init(); ret != nvml.SUCCESS {
		t.Fatal(ret)
	}
	t.Cleanup(func() { library.Shutdown() })
	return m, library
}

func TestHasEveryFunctionOfTheHeader(t *testing.T) {
	_, library := open(t, "t4")
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/NVIDIA/go-nvml").Output()
	if err != nil {
		t.Fatal(err)
	}
	header, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(module)), "pkg/nvml/nvml.h"))
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`\bnvml[A-Z]\w*(?:\s*\()`).FindAllString(string(header), -1)
	slices.Sort(names)
	known := 0
	for _, name := range slices.Compact(names) {
		name = strings.TrimRight(name, "( \t\n")
		if !regexp.MustCompile(`DECLDIR\s+(char\s*\*\s*)?` + name + `\s*\(`).Match(header) {
			continue
		}
		known++
		if err := library.Extensions().LookupSymbol(name); err != nil {
			t.Errorf("%s is missing: run go generate in cmd/libnvidia-ml", name)
		}
	}
	if known < 400 {
		t.Errorf("only %d functions were found in nvml.h", known)
	}
}

func TestUnneededFunctionsAreNotSupported(t *testing.T) {
	_, library := open(t, "dgx-h100")
	device, _ := library.DeviceGetHandleByIndex(0)
	if _, ret := device.GetTemperature(nvml.TEMPERATURE_GPU); ret != nvml.ERROR_NOT_SUPPORTED {
		t.Errorf("temperature: %v", ret)
	}
	if _, ret := library.UnitGetCount(); ret != nvml.ERROR_NOT_SUPPORTED {
		t.Errorf("units: %v", ret)
	}
}

// TestAnswers goes through what the adapter does not ask for, but others do.
func TestAnswers(t *testing.T) {
	m, library := open(t, "dgx-h100")
	spec := m.Spec().GPUs[4]
	device, ret := library.DeviceGetHandleByPciBusId("00000000:9D:00.0")
	if ret != nvml.SUCCESS {
		t.Fatal(ret)
	}
	if uuid, _ := device.GetUUID(); uuid != spec.UUID {
		t.Errorf("UUID %s, want %s", uuid, spec.UUID)
	}
	if index, _ := device.GetIndex(); index != 4 {
		t.Errorf("index %d", index)
	}
	if v1, ret := device.GetMemoryInfo(); ret != nvml.SUCCESS || v1.Total != 81559<<20 || v1.Used+v1.Free != v1.Total {
		t.Errorf("memory %+v, %v", v1, ret)
	}
	if info, ret := device.GetPciInfoExt(); ret != nvml.SUCCESS || info.Bus != 0x9d || info.BaseClass != 3 {
		t.Errorf("PCI %+v, %v", info, ret)
	}
	if mig, ret := device.IsMigDeviceHandle(); ret != nvml.SUCCESS || mig {
		t.Errorf("a MIG device: %t, %v", mig, ret)
	}
	if n, ret := device.GetMaxMigDeviceCount(); ret != nvml.SUCCESS || n != 0 {
		t.Errorf("room for %d MIG devices with MIG mode off, %v", n, ret)
	}
	if _, ret := device.GetMigDeviceHandleByIndex(0); ret != nvml.ERROR_NOT_FOUND {
		t.Errorf("first MIG device: %v", ret)
	}
	if list, ret := device.GetComputeRunningProcesses(); ret != nvml.SUCCESS || len(list) != 0 {
		t.Errorf("processes %v, %v", list, ret)
	}
	if state, ret := device.GetNvLinkState(17); ret != nvml.SUCCESS || state != nvml.FEATURE_ENABLED {
		t.Errorf("last NVLink: %v, %v", state, ret)
	}
	if _, ret := device.GetNvLinkState(18); ret != nvml.ERROR_INVALID_ARGUMENT {
		t.Errorf("NVLink beyond the last: %v", ret)
	}
	v3, ret := device.GetGpuInstanceProfileInfoV(nvml.GPU_INSTANCE_PROFILE_1_SLICE_REV1).V3()
	if ret != nvml.SUCCESS || v3.Id != 20 || v3.OfaCount != 1 || v3.MemorySizeMB != 9984 {
		t.Errorf("1g+me: %+v, %v", v3, ret)
	}
	if _, ret := device.GetGpuInstanceProfileInfo(nvml.GPU_INSTANCE_PROFILE_COUNT); ret != nvml.ERROR_INVALID_ARGUMENT {
		t.Errorf("profile beyond the last: %v", ret)
	}
	for _, id := range []string{"0000:00:00.0", "nonsense"} {
		if _, ret := library.DeviceGetHandleByPciBusId(id); ret == nvml.SUCCESS {
			t.Errorf("%s is a GPU", id)
		}
	}
	if version, ret := library.SystemGetNVMLVersion(); ret != nvml.SUCCESS || version != "12.570.195.03" {
		t.Errorf("NVML %q, %v", version, ret)
	}
}

func TestLostGPU(t *testing.T) {
	m, library := open(t, "dgx-h100")
	device, _ := library.DeviceGetHandleByIndex(2)
	if err := m.Inject("2", "lost"); err != nil {
		t.Fatal(err)
	}
	if _, ret := device.GetUUID(); ret != nvml.ERROR_GPU_IS_LOST {
		t.Errorf("an old handle: %v", ret)
	}
	if _, ret := library.DeviceGetHandleByIndex(2); ret != nvml.ERROR_GPU_IS_LOST {
		t.Errorf("a new handle: %v", ret)
	}
	if n, _ := library.DeviceGetCount(); n != 8 {
		t.Errorf("%d GPUs", n)
	}
}
