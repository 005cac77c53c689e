package abi

import (
	"reflect"
	"testing"
	"unsafe"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// TestLayouts compares sizes, and the offset of the last field that means
// something, with what go-nvml generated from nvml.h.
func TestLayouts(t *testing.T) {
	for _, c := range []struct {
		ours, theirs any
		last         [2]string
	}{
		{Memory{}, nvml.Memory{}, [2]string{"Used", "Used"}},
		{MemoryV2{}, nvml.Memory_v2{}, [2]string{"Used", "Used"}},
		{PCIInfo{}, nvml.PciInfo{}, [2]string{"BusID", "BusId"}},
		{PCIInfoExt{}, nvml.PciInfoExt{}, [2]string{"BusID", "BusId"}},
		{ProfileInfo{}, nvml.GpuInstanceProfileInfo{}, [2]string{"MemoryMiB", "MemorySizeMB"}},
		{ProfileInfoV2{}, nvml.GpuInstanceProfileInfo_v2{}, [2]string{"Name", "Name"}},
		{ProfileInfoV3{}, nvml.GpuInstanceProfileInfo_v3{}, [2]string{"Capabilities", "Capabilities"}},
		{Placement{}, nvml.GpuInstancePlacement{}, [2]string{"Size", "Size"}},
		{Placement{}, nvml.ComputeInstancePlacement{}, [2]string{"Size", "Size"}},
		{ComputeProfileInfo{}, nvml.ComputeInstanceProfileInfo{}, [2]string{"OFA", "SharedOfaCount"}},
		{ComputeProfileInfoV2{}, nvml.ComputeInstanceProfileInfo_v2{}, [2]string{"Name", "Name"}},
		{ComputeProfileInfoV3{}, nvml.ComputeInstanceProfileInfo_v3{}, [2]string{"Capabilities", "Capabilities"}},
		{Attributes{}, nvml.DeviceAttributes{}, [2]string{"MemoryMiB", "MemorySizeMB"}},
		{FieldValue{}, nvml.FieldValue{}, [2]string{"Value", "Value"}},
		{FabricInfo{}, nvml.GpuFabricInfo{}, [2]string{"State", "State"}},
		{FabricInfoV2{}, nvml.GpuFabricInfo_v2{}, [2]string{"HealthMask", "HealthMask"}},
		{FabricInfoV3{}, nvml.GpuFabricInfo_v3{}, [2]string{"HealthSummary", "HealthSummary"}},
		{SetMemoryLimits{}, nvml.SetMemoryLimits_v1{}, [2]string{"Hard", "HardLimit"}},
		{GetMemoryLimits{}, nvml.GetMemoryLimits_v1{}, [2]string{"Used", "CurrentUsed"}},
	} {
		ours, theirs := reflect.TypeOf(c.ours), reflect.TypeOf(c.theirs)
		if ours.Size() != theirs.Size() {
			t.Errorf("%v has %d bytes, %v has %d", ours, ours.Size(), theirs, theirs.Size())
		}
		a, okA := ours.FieldByName(c.last[0])
		b, okB := theirs.FieldByName(c.last[1])
		if !okA || !okB || a.Offset != b.Offset || a.Type.Size() != b.Type.Size() {
			t.Errorf("%v.%s: %+v, %v.%s: %+v", ours, c.last[0], a, theirs, c.last[1], b)
		}
	}
	// go-nvml keeps these to itself; the sizes are nvml.h's.
	for name, sizes := range map[string][2]uintptr{
		"EventData":           {unsafe.Sizeof(EventData{}), 32},
		"InstanceInfo":        {unsafe.Sizeof(InstanceInfo{}), 24},
		"ComputeInstanceInfo": {unsafe.Sizeof(ComputeInstanceInfo{}), 32},
	} {
		if sizes[0] != sizes[1] {
			t.Errorf("%s has %d bytes, want %d", name, sizes[0], sizes[1])
		}
	}
}

func TestNumbers(t *testing.T) {
	for ours, theirs := range map[Return]nvml.Return{
		NotSupported: nvml.ERROR_NOT_SUPPORTED, NoPermission: nvml.ERROR_NO_PERMISSION, NotFound: nvml.ERROR_NOT_FOUND,
		DriverNotLoaded: nvml.ERROR_DRIVER_NOT_LOADED, Timeout: nvml.ERROR_TIMEOUT, GPUIsLost: nvml.ERROR_GPU_IS_LOST,
		ResetRequired: nvml.ERROR_RESET_REQUIRED, InUse: nvml.ERROR_IN_USE, InsufficientResources: nvml.ERROR_INSUFFICIENT_RESOURCES,
		OperatingSystem: nvml.ERROR_OPERATING_SYSTEM, ArgumentVersionMismatch: nvml.ERROR_ARGUMENT_VERSION_MISMATCH,
	} {
		if ours != Return(theirs) {
			t.Errorf("code %d is %d in go-nvml", ours, theirs)
		}
	}
	for name, number := range map[string]nvml.DeviceArchitecture{
		"Pascal": nvml.DEVICE_ARCH_PASCAL, "Turing": nvml.DEVICE_ARCH_TURING, "Ada Lovelace": nvml.DEVICE_ARCH_ADA, "Blackwell": nvml.DEVICE_ARCH_BLACKWELL,
	} {
		if Architectures[name] != uint32(number) {
			t.Errorf("%s is %d, in go-nvml %d", name, Architectures[name], number)
		}
	}
	if FieldRecoveryAction != nvml.FI_DEV_GET_GPU_RECOVERY_ACTION || FieldNVLinkCount != nvml.FI_DEV_NVLINK_LINK_COUNT ||
		FieldResetlessMIG != nvml.FI_DEV_IS_RESETLESS_MIG_SUPPORTED {
		t.Error("a field's number differs from go-nvml's")
	}
	if ProfileCount != nvml.GPU_INSTANCE_PROFILE_COUNT || len(ComputeProfileSlices) != nvml.COMPUTE_INSTANCE_PROFILE_COUNT {
		t.Errorf("go-nvml knows %d profiles, and %d of compute instances", nvml.GPU_INSTANCE_PROFILE_COUNT, nvml.COMPUTE_INSTANCE_PROFILE_COUNT)
	}
	if Brands["NVIDIA RTX"] != uint32(nvml.BRAND_NVIDIA_RTX) || Brands["NVIDIA"] != uint32(nvml.BRAND_NVIDIA) {
		t.Error("a brand's number differs from go-nvml's")
	}
}
