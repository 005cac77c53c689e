package main

// #include "platform.h"
import "C"

import (
	"unsafe"

	"github.com/dovetail-dra/dovetail/cmd/libnvidia-ml/internal/abi"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/model"
)

// gpuInstance is what a handle of one stands for.
type gpuInstance struct {
	gpu     simulator.GPU
	in      *machine.GPUInstance
	profile *model.Profile
}

func gpuInstanceHandle(g simulator.GPU, id int) unsafe.Pointer {
	return unsafe.Pointer(&C.gpu_instance_handles[g.Index*C.MAX_GPU_INSTANCES+id])
}

// inGPUInstance answers a call about a GPU instance. how is query or change.
func inGPUInstance(how caller, h unsafe.Pointer, call string, answer func(gpuInstance) abi.Return) abi.Return {
	i := uintptr(h) - uintptr(unsafe.Pointer(&C.gpu_instance_handles[0]))
	if i >= uintptr(len(C.gpu_instance_handles)) {
		return abi.InvalidArgument
	}
	return how(handle(int(i/C.MAX_GPU_INSTANCES)), call, func(g simulator.GPU) abi.Return {
		if in, ok := findGPUInstance(g, int(i%C.MAX_GPU_INSTANCES)); ok {
			return answer(in)
		}
		return abi.InvalidArgument
	})
}

func findGPUInstance(g simulator.GPU, id int) (gpuInstance, bool) {
	in, ok := g.Instance(id)
	if !ok {
		return gpuInstance{}, false
	}
	profile, ok := g.Model.MIG.Profile(in.ProfileID)
	return gpuInstance{g, in, profile}, ok
}

// divided answers a call that needs MIG mode.
func divided(h unsafe.Pointer, call string, answer func(simulator.GPU) abi.Return) abi.Return {
	return query(h, call, func(g simulator.GPU) abi.Return {
		if !g.MIGEnabled {
			return abi.NotSupported
		}
		return answer(g)
	})
}

//export nvmlDeviceGetGpuInstanceRemainingCapacity
func nvmlDeviceGetGpuInstanceRemainingCapacity(h unsafe.Pointer, profile uint32, count *uint32) int32 {
	return divided(h, "nvmlDeviceGetGpuInstanceRemainingCapacity", func(g simulator.GPU) abi.Return {
		if _, ok := g.Model.MIG.Profile(int(profile)); !ok {
			return abi.NotSupported
		}
		return set(count, uint32(g.Remaining(int(profile))))
	})
}

//export nvmlDeviceGetGpuInstances
func nvmlDeviceGetGpuInstances(h unsafe.Pointer, profile uint32, to *unsafe.Pointer, count *uint32) int32 {
	return divided(h, "nvmlDeviceGetGpuInstances", func(g simulator.GPU) abi.Return {
		if _, ok := g.Model.MIG.Profile(int(profile)); !ok {
			return abi.NotSupported
		}
		var handles []unsafe.Pointer
		for _, in := range g.Instances {
			if in.ProfileID == int(profile) {
				handles = append(handles, gpuInstanceHandle(g, in.ID))
			}
		}
		return setAll(to, count, handles)
	})
}

// setAll stores handles where the caller has room for as many as there can be.
func setAll(to *unsafe.Pointer, count *uint32, handles []unsafe.Pointer) abi.Return {
	if to == nil {
		return abi.InvalidArgument
	}
	copy(unsafe.Slice(to, len(handles)), handles)
	return set(count, uint32(len(handles)))
}

//export nvmlDeviceGetGpuInstanceById
func nvmlDeviceGetGpuInstanceById(h unsafe.Pointer, id uint32, to *unsafe.Pointer) int32 {
	return divided(h, "nvmlDeviceGetGpuInstanceById", func(g simulator.GPU) abi.Return {
		if _, ok := g.Instance(int(id)); !ok {
			return abi.NotFound
		}
		return set(to, gpuInstanceHandle(g, int(id)))
	})
}

//export nvmlGpuInstanceGetInfo
func nvmlGpuInstanceGetInfo(h unsafe.Pointer, to unsafe.Pointer) int32 {
	return inGPUInstance(query, h, "nvmlGpuInstanceGetInfo", func(i gpuInstance) abi.Return {
		return store(to, abi.InstanceInfo{
			Device: handle(i.gpu.Index), ID: uint32(i.in.ID), Profile: uint32(i.in.ProfileID), Placement: placement(i.in.Placement),
		})
	})
}

func placement(p machine.Placement) abi.Placement {
	return abi.Placement{Start: uint32(p.Start), Size: uint32(p.Size)}
}

//export nvmlDeviceCreateGpuInstance
func nvmlDeviceCreateGpuInstance(h unsafe.Pointer, profile uint32, to *unsafe.Pointer) int32 {
	return makeGPUInstance(h, profile, nil, to)
}

//export nvmlDeviceCreateGpuInstanceWithPlacement
func nvmlDeviceCreateGpuInstanceWithPlacement(h unsafe.Pointer, profile uint32, at unsafe.Pointer, to *unsafe.Pointer) int32 {
	if at == nil {
		return abi.InvalidArgument
	}
	p := (*abi.Placement)(at)
	return makeGPUInstance(h, profile, &machine.Placement{Start: int(p.Start), Size: int(p.Size)}, to)
}

func makeGPUInstance(h unsafe.Pointer, profile uint32, at *machine.Placement, to *unsafe.Pointer) abi.Return {
	return change(h, simulator.CallMakeGPUInstance, func(g simulator.GPU) abi.Return {
		switch {
		case to == nil:
			return abi.InvalidArgument
		case !g.MIGEnabled:
			return abi.NotSupported
		}
		made, err := session.machine.Load().MakeGPUInstance(g.Spec.UUID, int(profile), at)
		if code := codeOf(g, err); code != abi.Success {
			return code
		}
		return set(to, gpuInstanceHandle(g, made.ID))
	})
}

//export nvmlGpuInstanceDestroy
func nvmlGpuInstanceDestroy(h unsafe.Pointer) int32 {
	return inGPUInstance(change, h, simulator.CallDestroyGPUInstance, func(i gpuInstance) abi.Return {
		code := codeOf(i.gpu, session.machine.Load().DestroyGPUInstance(i.gpu.Spec.UUID, i.in.ID))
		if code == abi.InsufficientResources { // it has compute instances
			return abi.InUse
		}
		return code
	})
}
