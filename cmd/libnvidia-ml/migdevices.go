package main

// #include "platform.h"
import "C"

import (
	"strings"
	"unsafe"

	"github.com/dovetail-dra/dovetail/cmd/libnvidia-ml/internal/abi"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// migDevice is a compute instance seen as a device.
type migDevice struct {
	computeInstance
	index int // among those of the GPU
}

// either answers a call about a GPU or a MIG device, whichever the handle stands for.
func either(how caller, h unsafe.Pointer, call string, gpu func(simulator.GPU) abi.Return, mig func(migDevice) abi.Return) abi.Return {
	place := uintptr(h) - uintptr(unsafe.Pointer(&C.mig_device_handles[0]))
	if place >= uintptr(len(C.mig_device_handles)) {
		return how(h, call, gpu)
	}
	return atPlace(how, place, call, func(c computeInstance) abi.Return {
		for index, d := range migDevices(c.gpu) {
			if d.ci == c.ci {
				return mig(migDevice{c, index})
			}
		}
		return abi.InvalidArgument
	})
}

// onMIG is either for calls that GPUs do not have.
func onMIG(h unsafe.Pointer, call string, answer func(migDevice) abi.Return) abi.Return {
	return either(identity, h, call, func(simulator.GPU) abi.Return { return abi.InvalidArgument }, answer)
}

// migDevices are those of a GPU, in the order of their indices.
func migDevices(g simulator.GPU) []computeInstance {
	var devices []computeInstance
	for id := range C.MAX_GPU_INSTANCES {
		i, ok := findGPUInstance(g, id)
		if !ok {
			continue
		}
		for _, ci := range i.in.ComputeInstances {
			if c, ok := findComputeInstance(i, ci.ID); ok {
				devices = append(devices, c)
			}
		}
	}
	return devices
}

func migHandle(c computeInstance) unsafe.Pointer {
	return unsafe.Pointer(&C.mig_device_handles[computePlace(c.gpuInstance, c.ci.ID)])
}

// setMIGHandle finds a MIG device by its UUID.
func setMIGHandle(to *unsafe.Pointer, uuid string) abi.Return {
	state, code := current()
	if code != abi.Success {
		return code
	}
	for i := range state.GPUs {
		for _, d := range migDevices(state.GPU(i)) {
			if strings.EqualFold(d.ci.UUID, uuid) {
				h := migHandle(d)
				return onMIG(h, "nvmlDeviceGetHandleByUUID", func(migDevice) abi.Return { return set(to, h) })
			}
		}
	}
	return abi.NotFound
}

func (d migDevice) profileName() string { return d.nameOf(d.ci.ComputeSlices) }

//export nvmlDeviceIsMigDeviceHandle
func nvmlDeviceIsMigDeviceHandle(h unsafe.Pointer, to *uint32) int32 {
	return either(identity, h, "nvmlDeviceIsMigDeviceHandle",
		func(simulator.GPU) abi.Return { return set(to, 0) },
		func(migDevice) abi.Return { return set(to, 1) })
}

//export nvmlDeviceGetMaxMigDeviceCount
func nvmlDeviceGetMaxMigDeviceCount(h unsafe.Pointer, to *uint32) int32 {
	return query(h, "nvmlDeviceGetMaxMigDeviceCount", func(g simulator.GPU) abi.Return {
		if !g.MIGEnabled {
			return set(to, 0)
		}
		return set(to, uint32(g.Model.MIG.Slices))
	})
}

//export nvmlDeviceGetMigDeviceHandleByIndex
func nvmlDeviceGetMigDeviceHandleByIndex(h unsafe.Pointer, index uint32, to *unsafe.Pointer) int32 {
	return query(h, "nvmlDeviceGetMigDeviceHandleByIndex", func(g simulator.GPU) abi.Return {
		devices := migDevices(g)
		if index >= uint32(len(devices)) {
			return abi.NotFound
		}
		return set(to, migHandle(devices[index]))
	})
}

//export nvmlDeviceGetDeviceHandleFromMigDeviceHandle
func nvmlDeviceGetDeviceHandleFromMigDeviceHandle(h unsafe.Pointer, to *unsafe.Pointer) int32 {
	return onMIG(h, "nvmlDeviceGetDeviceHandleFromMigDeviceHandle", func(d migDevice) abi.Return { return set(to, handle(d.gpu.Index)) })
}

//export nvmlDeviceGetGpuInstanceId
func nvmlDeviceGetGpuInstanceId(h unsafe.Pointer, to *uint32) int32 {
	return onMIG(h, "nvmlDeviceGetGpuInstanceId", func(d migDevice) abi.Return { return set(to, uint32(d.in.ID)) })
}

//export nvmlDeviceGetComputeInstanceId
func nvmlDeviceGetComputeInstanceId(h unsafe.Pointer, to *uint32) int32 {
	return onMIG(h, "nvmlDeviceGetComputeInstanceId", func(d migDevice) abi.Return { return set(to, uint32(d.ci.ID)) })
}

//export nvmlDeviceGetAttributes
func nvmlDeviceGetAttributes(h unsafe.Pointer, to unsafe.Pointer) int32 {
	return nvmlDeviceGetAttributes_v2(h, to)
}

//export nvmlDeviceGetAttributes_v2
func nvmlDeviceGetAttributes_v2(h unsafe.Pointer, to unsafe.Pointer) int32 {
	return either(query, h, "nvmlDeviceGetAttributes", func(simulator.GPU) abi.Return { return abi.NotSupported }, func(d migDevice) abi.Return {
		p, e := d.profile, d.profile.Engines
		return store(to, abi.Attributes{
			Multiprocessors: uint32(p.Multiprocessors * d.ci.ComputeSlices / p.ComputeSlices),
			Copy:            uint32(e.Copy), Decoders: uint32(e.Decoders), Encoders: uint32(e.Encoders), JPEG: uint32(e.JPEG), OFA: uint32(e.OFA),
			GPUSlices: uint32(p.ComputeSlices), ComputeSlices: uint32(d.ci.ComputeSlices), MemoryMiB: p.Memory >> 20,
		})
	})
}
