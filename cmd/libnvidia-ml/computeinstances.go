package main

// #include "platform.h"
import "C"

import (
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
