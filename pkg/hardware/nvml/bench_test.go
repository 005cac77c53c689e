package nvml_test

import (
	"testing"

	api "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dovetail-dra/dovetail/pkg/hardware/nvml"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

// BenchmarkDescribe describes sixteen GPUs. Compare with BenchmarkCalls, the
// bare NVML calls that it cannot do without.
func BenchmarkDescribe(b *testing.B) {
	m := simulatortest.NewWithLibrary(b, "sixteen")
	gpus := nvml.New(nvml.Options{DriverRoot: m.Root(), Cgroup: b.TempDir()})
	defer gpus.Close()
	for b.Loop() {
		d, err := gpus.Describe(b.Context())
		if err != nil || len(d.GPUs) != 16 {
			b.Fatal(len(d.GPUs), err)
		}
	}
}

func BenchmarkCalls(b *testing.B) {
	m := simulatortest.NewWithLibrary(b, "sixteen")
	library := api.New(api.WithLibraryPath(m.Library))
	if ret := library.Init(); ret != api.SUCCESS {
		b.Fatal(ret)
	}
	defer library.Shutdown()
	cgroup := b.TempDir()
	for b.Loop() {
		library.SystemGetDriverVersion()
		library.SystemGetCudaDriverVersion_v2()
		count, _ := library.DeviceGetCount()
		for i := range count {
			calls(library, i, cgroup)
		}
	}
}

// calls makes every call that one GPU's description needs.
func calls(library api.Interface, index int, cgroup string) {
	d, _ := library.DeviceGetHandleByIndex(index)
	d.GetPciInfo()
	d.GetUUID()
	d.GetMinorNumber()
	d.GetName()
	d.GetBrand()
	d.GetCudaComputeCapability()
	d.GetArchitecture()
	d.GetNumGpuCores()
	d.GetEccMode()
	d.GetComputeMode()
	d.GetMemoryInfo_v2()
	d.GetMigMode()
	for number := range 19 { // the last one ends the list
		if info, ret := d.GetGpuInstanceProfileInfoV(number).V2(); ret == api.SUCCESS {
			d.GetGpuInstancePossiblePlacements(&api.GpuInstanceProfileInfo{Id: info.Id})
		}
	}
	d.GetFieldValues([]api.FieldValue{{FieldId: api.FI_DEV_IS_RESETLESS_MIG_SUPPORTED}})
	d.GetMemoryLimits_v1(cgroup)
	d.GetGpuFabricInfoV().V2()
	d.GetFieldValues([]api.FieldValue{{FieldId: api.FI_DEV_GET_GPU_RECOVERY_ACTION}})
}
