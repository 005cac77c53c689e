package main

// #include "platform.h"
import "C"

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/dovetail-dra/dovetail/cmd/libnvidia-ml/internal/abi"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// computeInstance is what a handle of one stands for.
type computeInstance struct {
	gpuInstance
	ci    *machine.ComputeInstance
	start int // the compute slice where it begins
}

func computeInstanceHandle(i gpuInstance, id int) unsafe.Pointer {
	return unsafe.Pointer(&C.compute_instance_handles[computePlace(i, id)])
}

// computePlace is the place of a compute instance in arrays of handles.
func computePlace(i gpuInstance, id int) int {
	return (i.gpu.Index*C.MAX_GPU_INSTANCES+i.in.ID)*C.MAX_COMPUTE_INSTANCES + id
}

// atPlace answers a call about the compute instance of a place.
func atPlace(how caller, place uintptr, call string, answer func(computeInstance) abi.Return) abi.Return {
	in := place / C.MAX_COMPUTE_INSTANCES
	return how(handle(int(in/C.MAX_GPU_INSTANCES)), call, func(g simulator.GPU) abi.Return {
		i, ok := findGPUInstance(g, int(in%C.MAX_GPU_INSTANCES))
		if !ok {
			return abi.InvalidArgument
		}
		ci, ok := findComputeInstance(i, int(place%C.MAX_COMPUTE_INSTANCES))
		if !ok {
			return abi.InvalidArgument
		}
		return answer(ci)
	})
}

func findComputeInstance(i gpuInstance, id int) (computeInstance, bool) {
	start := 0
	for n := range i.in.ComputeInstances {
		ci := &i.in.ComputeInstances[n]
		if ci.ID == id {
			return computeInstance{i, ci, start}, true
		}
		start += ci.ComputeSlices
	}
	return computeInstance{}, false
}

// inComputeInstance answers a call about a compute instance.
func inComputeInstance(how caller, h unsafe.Pointer, call string, answer func(computeInstance) abi.Return) abi.Return {
	place := uintptr(h) - uintptr(unsafe.Pointer(&C.compute_instance_handles[0]))
	if place >= uintptr(len(C.compute_instance_handles)) {
		return abi.InvalidArgument
	}
	return atPlace(how, place, call, answer)
}

// offers says whether a GPU instance can have compute instances of so many slices: the
// whole, or little more than half (as nvidia-smi mig -lcip lists them).
func (i gpuInstance) offers(slices int) bool {
	whole := i.profile.ComputeSlices
	return slices == whole || slices > 0 && slices < whole && 2*slices <= whole+1
}

// computeProfile answers with a profile of compute instances. Its ID is its number.
func computeProfile(h unsafe.Pointer, number, engines uint32, answer func(abi.ComputeProfileInfoV2) abi.Return) abi.Return {
	return inGPUInstance(query, h, "nvmlGpuInstanceGetComputeInstanceProfileInfo", func(i gpuInstance) abi.Return {
		switch {
		case number >= uint32(len(abi.ComputeProfileSlices)) || engines > 0:
			return abi.InvalidArgument
		case !i.offers(abi.ComputeProfileSlices[number]):
			return abi.NotSupported
		}
		slices, whole := abi.ComputeProfileSlices[number], i.profile.ComputeSlices
		e := i.profile.Engines
		info := abi.ComputeProfileInfoV2{ComputeProfileInfo: abi.ComputeProfileInfo{
			ID: number, Slices: uint32(slices), Instances: uint32(whole / slices),
			Multiprocessors: uint32(i.profile.Multiprocessors * slices / whole),
			Copy:            uint32(e.Copy), Decoders: uint32(e.Decoders), Encoders: uint32(e.Encoders), JPEG: uint32(e.JPEG), OFA: uint32(e.OFA),
		}}
		abi.SetString(info.Name[:], "MIG "+i.nameOf(slices))
		return answer(info)
	})
}

// nameOf a compute instance of so many slices: "1c.3g.40gb", or "3g.40gb" of all.
func (i gpuInstance) nameOf(slices int) string {
	if slices == i.profile.ComputeSlices {
		return i.profile.Name
	}
	return fmt.Sprintf("%dc.%s", slices, i.profile.Name)
}

//export nvmlGpuInstanceGetComputeInstanceProfileInfo
func nvmlGpuInstanceGetComputeInstanceProfileInfo(h unsafe.Pointer, number, engines uint32, to unsafe.Pointer) int32 {
	return computeProfile(h, number, engines, func(v abi.ComputeProfileInfoV2) abi.Return { return store(to, v.ComputeProfileInfo) })
}

//export nvmlGpuInstanceGetComputeInstanceProfileInfoV
func nvmlGpuInstanceGetComputeInstanceProfileInfoV(h unsafe.Pointer, number, engines uint32, to unsafe.Pointer) int32 {
	return computeProfile(h, number, engines, func(v abi.ComputeProfileInfoV2) abi.Return {
		switch v.Version = version(to); v.Version {
		case abi.Version[abi.ComputeProfileInfoV2](2):
			return store(to, v)
		case abi.Version[abi.ComputeProfileInfoV3](3):
			return store(to, abi.ComputeProfileInfoV3{ComputeProfileInfoV2: v})
		}
		return abi.ArgumentVersionMismatch
	})
}

// ofComputeProfile answers a call about a GPU instance and a compute profile's ID.
func ofComputeProfile(how caller, h unsafe.Pointer, call string, profile uint32, answer func(i gpuInstance, slices int) abi.Return) abi.Return {
	return inGPUInstance(how, h, call, func(i gpuInstance) abi.Return {
		if profile >= uint32(len(abi.ComputeProfileSlices)) || !i.offers(abi.ComputeProfileSlices[profile]) {
			return abi.NotSupported
		}
		return answer(i, abi.ComputeProfileSlices[profile])
	})
}

//export nvmlGpuInstanceGetComputeInstanceRemainingCapacity
func nvmlGpuInstanceGetComputeInstanceRemainingCapacity(h unsafe.Pointer, profile uint32, count *uint32) int32 {
	return ofComputeProfile(query, h, "nvmlGpuInstanceGetComputeInstanceRemainingCapacity", profile, func(i gpuInstance, slices int) abi.Return {
		left := i.profile.ComputeSlices
		for _, ci := range i.in.ComputeInstances {
			left -= ci.ComputeSlices
		}
		return set(count, uint32(left/slices))
	})
}

//export nvmlGpuInstanceGetComputeInstances
func nvmlGpuInstanceGetComputeInstances(h unsafe.Pointer, profile uint32, to *unsafe.Pointer, count *uint32) int32 {
	return ofComputeProfile(query, h, "nvmlGpuInstanceGetComputeInstances", profile, func(i gpuInstance, slices int) abi.Return {
		var handles []unsafe.Pointer
		for _, ci := range i.in.ComputeInstances {
			if ci.ComputeSlices == slices {
				handles = append(handles, computeInstanceHandle(i, ci.ID))
			}
		}
		return setAll(to, count, handles)
	})
}

//export nvmlGpuInstanceGetComputeInstanceById
func nvmlGpuInstanceGetComputeInstanceById(h unsafe.Pointer, id uint32, to *unsafe.Pointer) int32 {
	return inGPUInstance(query, h, "nvmlGpuInstanceGetComputeInstanceById", func(i gpuInstance) abi.Return {
		if _, ok := findComputeInstance(i, int(id)); !ok {
			return abi.NotFound
		}
		return set(to, computeInstanceHandle(i, int(id)))
	})
}

//export nvmlGpuInstanceCreateComputeInstance
func nvmlGpuInstanceCreateComputeInstance(h unsafe.Pointer, profile uint32, to *unsafe.Pointer) int32 {
	return ofComputeProfile(change, h, simulator.CallMakeComputeInstance, profile, func(i gpuInstance, slices int) abi.Return {
		if to == nil {
			return abi.InvalidArgument
		}
		made, err := session.machine.Load().MakeComputeInstance(i.gpu.Spec.UUID, i.in.ID, slices)
		if code := codeOf(i.gpu, err); code != abi.Success {
			return code
		}
		return set(to, computeInstanceHandle(i, made.ID))
	})
}

//export nvmlComputeInstanceDestroy
func nvmlComputeInstanceDestroy(h unsafe.Pointer) int32 {
	return inComputeInstance(change, h, simulator.CallDestroyComputeInstance, func(c computeInstance) abi.Return {
		return codeOf(c.gpu, session.machine.Load().DestroyComputeInstance(c.gpu.Spec.UUID, c.in.ID, c.ci.ID))
	})
}

//export nvmlComputeInstanceGetInfo
func nvmlComputeInstanceGetInfo(h unsafe.Pointer, to unsafe.Pointer) int32 {
	return nvmlComputeInstanceGetInfo_v2(h, to)
}

//export nvmlComputeInstanceGetInfo_v2
func nvmlComputeInstanceGetInfo_v2(h unsafe.Pointer, to unsafe.Pointer) int32 {
	return inComputeInstance(query, h, "nvmlComputeInstanceGetInfo", func(c computeInstance) abi.Return {
		return store(to, abi.ComputeInstanceInfo{
			Device: handle(c.gpu.Index), GPUInstance: gpuInstanceHandle(c.gpu, c.in.ID), ID: uint32(c.ci.ID),
			Profile:   uint32(slices.Index(abi.ComputeProfileSlices[:], c.ci.ComputeSlices)),
			Placement: placement(machine.Placement{Start: c.start, Size: c.ci.ComputeSlices}),
		})
	})
}
