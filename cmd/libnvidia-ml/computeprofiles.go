package main

import "C"

import (
	"fmt"
	"unsafe"

	"github.com/dovetail-dra/dovetail/cmd/libnvidia-ml/internal/abi"
)

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
