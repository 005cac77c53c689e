package libtest

import (
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

// Profiles of an H100-80 by their IDs.
var (
	oneSlice    = &nvml.GpuInstanceProfileInfo{Id: 19, InstanceCount: 7}
	threeSlices = &nvml.GpuInstanceProfileInfo{Id: 9, InstanceCount: 2}
)

// answers reports where a call does not answer that code.
func answers(t *testing.T, what string, got, want nvml.Return) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %s (%d), want %d", what, got, int(got), int(want))
	}
}

// divided is the first GPU of a machine of H100s, in MIG mode.
func divided(t *testing.T) (*simulatortest.Machine, nvml.Interface, nvml.Device) {
	t.Helper()
	m, library := open(t, "dgx-h100")
	device, _ := library.DeviceGetHandleByIndex(0)
	activation, ret := device.SetMigMode(nvml.DEVICE_MIG_ENABLE)
	answers(t, "switching MIG mode on", ret, nvml.SUCCESS)
	answers(t, "its activation", activation, nvml.SUCCESS)
	return m, library, device
}

// TestMIGDevice goes through what others ask of a MIG device: nvcdi, go-nvlib.
func TestMIGDevice(t *testing.T) {
	m, library, device := divided(t)
	in, ret := device.CreateGpuInstanceWithPlacement(threeSlices, &nvml.GpuInstancePlacement{Start: 4, Size: 4})
	answers(t, "making a GPU instance", ret, nvml.SUCCESS)
	third, ret := in.GetComputeInstanceProfileInfo(nvml.COMPUTE_INSTANCE_PROFILE_1_SLICE, nvml.COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED)
	answers(t, "the profile of a third", ret, nvml.SUCCESS)
	if third.InstanceCount != 3 || third.MultiprocessorCount != 20 {
		t.Errorf("a third of 3g is %+v", third)
	}
	for range 2 {
		_, ret := in.CreateComputeInstance(&third)
		answers(t, "making a compute instance", ret, nvml.SUCCESS)
	}
	if n, ret := in.GetComputeInstanceRemainingCapacity(&third); n != 1 || ret != nvml.SUCCESS {
		t.Errorf("room for %d more, %v", n, ret)
	}
	second, ret := device.GetMigDeviceHandleByIndex(1)
	answers(t, "the second MIG device", ret, nvml.SUCCESS)
	_, ret = device.GetMigDeviceHandleByIndex(2)
	answers(t, "a third one", ret, nvml.ERROR_NOT_FOUND)

	state, err := m.State()
	if err != nil {
		t.Fatal(err)
	}
	want := state.GPUs[0].Instances[0]
	uuid, ret := second.GetUUID()
	answers(t, "its UUID", ret, nvml.SUCCESS)
	if uuid != want.ComputeInstances[1].UUID {
		t.Errorf("UUID %s, want %s", uuid, want.ComputeInstances[1].UUID)
	}
	found, ret := library.DeviceGetHandleByUUID(uuid)
	answers(t, "by its UUID", ret, nvml.SUCCESS)
	if isMIG, ret := found.IsMigDeviceHandle(); !isMIG || ret != nvml.SUCCESS || found != second {
		t.Errorf("by its UUID: a MIG device: %t, %v; the same: %t", isMIG, ret, found == second)
	}
	gi, _ := found.GetGpuInstanceId()
	ci, _ := found.GetComputeInstanceId()
	index, _ := found.GetIndex()
	if gi != want.ID || ci != 1 || index != 1 {
		t.Errorf("IDs %d and %d, index %d", gi, ci, index)
	}
	if name, _ := found.GetName(); name != "NVIDIA H100 80GB HBM3 MIG 1c.3g.40gb" {
		t.Errorf("name %q", name)
	}
	if memory, ret := found.GetMemoryInfo_v2(); ret != nvml.SUCCESS || memory.Total != 40448<<20 {
		t.Errorf("memory %+v, %v", memory, ret)
	}
	if a, ret := found.GetAttributes(); ret != nvml.SUCCESS || a.MemorySizeMB != 40448 || a.GpuInstanceSliceCount != 3 ||
		a.ComputeInstanceSliceCount != 1 || a.MultiprocessorCount != 20 {
		t.Errorf("attributes %+v, %v", a, ret)
	}
	if parent, ret := found.GetDeviceHandleFromMigDeviceHandle(); ret != nvml.SUCCESS || parent != device {
		t.Errorf("parent: %v, the same: %t", ret, parent == device)
	}
	_, ret = device.GetGpuInstanceId()
	answers(t, "the GPU instance of a whole GPU", ret, nvml.ERROR_INVALID_ARGUMENT)
	_, ret = library.DeviceGetHandleByUUID("MIG-00000000-0000-5000-8000-000000000000")
	answers(t, "a MIG device that is not there", ret, nvml.ERROR_NOT_FOUND)
}

// TestMIGHandles: a handle of what is gone is worth nothing.
func TestMIGHandles(t *testing.T) {
	_, library, device := divided(t)
	in, ret := device.CreateGpuInstance(oneSlice)
	answers(t, "making a GPU instance", ret, nvml.SUCCESS)
	info, _ := in.GetInfo()
	if info.Device != device || info.ProfileId != oneSlice.Id || info.Placement.Size != 1 {
		t.Errorf("the instance is %+v", info)
	}
	whole, _ := in.GetComputeInstanceProfileInfo(nvml.COMPUTE_INSTANCE_PROFILE_1_SLICE, nvml.COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED)
	ci, ret := in.CreateComputeInstance(&whole)
	answers(t, "making a compute instance", ret, nvml.SUCCESS)
	if c, ret := ci.GetInfo(); ret != nvml.SUCCESS || c.Device != device || c.GpuInstance != in || c.Placement.Size != 1 {
		t.Errorf("the compute instance is %+v, %v", c, ret)
	}
	mig, _ := device.GetMigDeviceHandleByIndex(0)
	if n, ret := device.GetGpuInstanceRemainingCapacity(oneSlice); n != 6 || ret != nvml.SUCCESS {
		t.Errorf("room for %d more, %v", n, ret)
	}
	answers(t, "destroying what has a compute instance", in.Destroy(), nvml.ERROR_IN_USE)
	answers(t, "destroying the compute instance", ci.Destroy(), nvml.SUCCESS)
	answers(t, "destroying the GPU instance", in.Destroy(), nvml.SUCCESS)

	answers(t, "destroying the compute instance again", ci.Destroy(), nvml.ERROR_INVALID_ARGUMENT)
	answers(t, "destroying the GPU instance again", in.Destroy(), nvml.ERROR_INVALID_ARGUMENT)
	_, ret = in.GetInfo()
	answers(t, "looking at the GPU instance", ret, nvml.ERROR_INVALID_ARGUMENT)
	_, ret = ci.GetInfo()
	answers(t, "looking at the compute instance", ret, nvml.ERROR_INVALID_ARGUMENT)
	_, ret = mig.GetUUID()
	answers(t, "looking at the MIG device", ret, nvml.ERROR_INVALID_ARGUMENT)
	_, ret = device.GetGpuInstanceById(int(info.Id))
	answers(t, "finding the GPU instance", ret, nvml.ERROR_NOT_FOUND)
	again, ret := device.CreateGpuInstance(oneSlice)
	answers(t, "making it again", ret, nvml.SUCCESS)
	if again != in {
		t.Error("it has another handle than the one before it with its ID")
	}
	library.Shutdown()
	_, ret = again.GetInfo()
	answers(t, "after the end of the session", ret, nvml.ERROR_UNINITIALIZED)
	library.Init() // whose end the test expects
}

// TestMIGCodes: what the adapter does not let it come to.
func TestMIGCodes(t *testing.T) {
	m, library, device := divided(t)
	off, _ := library.DeviceGetHandleByIndex(1)
	_, ret := off.CreateGpuInstance(oneSlice)
	answers(t, "making an instance with MIG mode off", ret, nvml.ERROR_NOT_SUPPORTED)
	_, ret = off.GetGpuInstances(oneSlice)
	answers(t, "listing instances with MIG mode off", ret, nvml.ERROR_NOT_SUPPORTED)
	_, ret = off.GetGpuInstanceRemainingCapacity(oneSlice)
	answers(t, "room with MIG mode off", ret, nvml.ERROR_NOT_SUPPORTED)
	_, ret = device.CreateGpuInstanceWithPlacement(oneSlice, &nvml.GpuInstancePlacement{Start: 7, Size: 1})
	answers(t, "a placement that is not there", ret, nvml.ERROR_INVALID_ARGUMENT)
	_, ret = device.CreateGpuInstance(&nvml.GpuInstanceProfileInfo{Id: 1234})
	answers(t, "a profile that is not there", ret, nvml.ERROR_INVALID_ARGUMENT)
	in, ret := device.CreateGpuInstanceWithPlacement(threeSlices, &nvml.GpuInstancePlacement{Start: 0, Size: 4})
	answers(t, "making a GPU instance", ret, nvml.SUCCESS)
	_, ret = device.CreateGpuInstanceWithPlacement(oneSlice, &nvml.GpuInstancePlacement{Start: 3, Size: 1})
	answers(t, "making one over it", ret, nvml.ERROR_INSUFFICIENT_RESOURCES)
	activation, ret := device.SetMigMode(nvml.DEVICE_MIG_DISABLE)
	answers(t, "switching off with an instance", ret, nvml.SUCCESS)
	answers(t, "its activation", activation, nvml.ERROR_IN_USE)
	_, ret = in.GetComputeInstanceProfileInfo(nvml.COMPUTE_INSTANCE_PROFILE_4_SLICE, nvml.COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED)
	answers(t, "4 slices of 3g", ret, nvml.ERROR_NOT_SUPPORTED)
	_, ret = in.GetComputeInstanceProfileInfo(nvml.COMPUTE_INSTANCE_PROFILE_COUNT, nvml.COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED)
	answers(t, "beyond the last profile", ret, nvml.ERROR_INVALID_ARGUMENT)

	for kind, want := range map[simulator.FailureKind]nvml.Return{
		simulator.FailureUnknown:               nvml.ERROR_UNKNOWN,
		simulator.FailureInUse:                 nvml.ERROR_IN_USE,
		simulator.FailureInsufficientResources: nvml.ERROR_INSUFFICIENT_RESOURCES,
	} {
		// One call that changes something, one that does not, and one that has nothing to
		// do with MIG.
		for call, make := range map[string]func() nvml.Return{
			simulator.CallMakeGPUInstance: func() nvml.Return { _, ret := device.CreateGpuInstance(oneSlice); return ret },
			"nvmlGpuInstanceGetInfo":      func() nvml.Return { _, ret := in.GetInfo(); return ret },
			"nvmlDeviceGetName":           func() nvml.Return { _, ret := device.GetName(); return ret },
		} {
			if err := m.Fail("0", call, simulator.Failure{Times: 1, Error: kind}); err != nil {
				t.Fatal(err)
			}
			answers(t, call+" that fails", make(), want)
			answers(t, call+" after that", make(), nvml.SUCCESS)
		}
	}
	if err := m.Fail("0", "nvmlGpuInstanceGetInfo", simulator.Failure{Times: 1, Error: simulator.FailureLost}); err != nil {
		t.Fatal(err)
	}
	_, ret = in.GetInfo()
	answers(t, "losing the GPU", ret, nvml.ERROR_GPU_IS_LOST)
	answers(t, "destroying on it", in.Destroy(), nvml.ERROR_GPU_IS_LOST)
}

func TestMIGModePends(t *testing.T) {
	m, library := open(t, "dgx-a100")
	device, _ := library.DeviceGetHandleByIndex(0)
	activation, ret := device.SetMigMode(nvml.DEVICE_MIG_ENABLE)
	answers(t, "switching on", ret, nvml.SUCCESS)
	answers(t, "its activation", activation, nvml.ERROR_RESET_REQUIRED)
	if now, pending, _ := device.GetMigMode(); now != nvml.DEVICE_MIG_DISABLE || pending != nvml.DEVICE_MIG_ENABLE {
		t.Errorf("mode %d, and %d pending", now, pending)
	}
	if err := m.Reset("0"); err != nil {
		t.Fatal(err)
	}
	if now, pending, _ := device.GetMigMode(); now != nvml.DEVICE_MIG_ENABLE || pending != nvml.DEVICE_MIG_ENABLE {
		t.Errorf("after a reset mode %d, and %d pending", now, pending)
	}
}

func TestMIGModeWithoutMIG(t *testing.T) {
	_, library := open(t, "t4")
	device, _ := library.DeviceGetHandleByIndex(0)
	_, ret := device.SetMigMode(nvml.DEVICE_MIG_ENABLE)
	answers(t, "switching a T4", ret, nvml.ERROR_NOT_SUPPORTED)
}
