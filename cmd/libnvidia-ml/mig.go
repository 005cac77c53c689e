package main

import "C"

import (
	"strings"
	"unsafe"

	"github.com/dovetail-dra/dovetail/cmd/libnvidia-ml/internal/abi"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/model"
)

//export nvmlDeviceGetMigMode
func nvmlDeviceGetMigMode(h unsafe.Pointer, now, pending *uint32) int32 {
	return query(h, "nvmlDeviceGetMigMode", func(g simulator.GPU) abi.Return {
		if g.Model.MIG == nil {
			return abi.NotSupported
		}
		return max(set(now, number(g.MIGEnabled)), set(pending, number(g.MIGPending)))
	})
}

//export nvmlDeviceSetMigMode
func nvmlDeviceSetMigMode(h unsafe.Pointer, mode uint32, activation *int32) int32 {
	return change(h, simulator.CallSetMIGMode, func(g simulator.GPU) abi.Return {
		if activation == nil || mode > 1 {
			return abi.InvalidArgument
		}
		switch code := codeOf(g, session.machine.Load().SetMIGMode(g.Spec.UUID, mode == 1)); code {
		case abi.InUse, abi.InsufficientResources: // somebody holds the GPU, or it has instances
			return set(activation, abi.InUse)
		case abi.Success:
			if !g.Model.MIG.OnDemand && g.MIGEnabled != (mode == 1) {
				return set(activation, abi.ResetRequired)
			}
			return set(activation, abi.Success)
		default:
			return code
		}
	})
}

// profile answers with one of a GPU's profiles, by its number in nvml.h.
func profile(h unsafe.Pointer, number uint32, answer func(model.Profile) abi.Return) abi.Return {
	return query(h, "nvmlDeviceGetGpuInstanceProfileInfo", func(g simulator.GPU) abi.Return {
		if number >= abi.ProfileCount {
			return abi.InvalidArgument
		}
		if g.Model.MIG == nil || !g.TellsProfiles() {
			return abi.NotSupported
		}
		for _, p := range g.Model.MIG.Profiles {
			if p.Number == int(number) {
				return answer(p)
			}
		}
		return abi.NotSupported
	})
}

//export nvmlDeviceGetGpuInstanceProfileInfo
func nvmlDeviceGetGpuInstanceProfileInfo(h unsafe.Pointer, number uint32, to unsafe.Pointer) int32 {
	return profile(h, number, func(p model.Profile) abi.Return {
		v := profileInfo(p)
		return store(to, abi.ProfileInfo{
			ID: v.ID, Slices: v.Slices, Instances: v.Instances, Multiprocessors: v.Multiprocessors,
			Copy: v.Copy, Decoders: v.Decoders, Encoders: v.Encoders, JPEG: v.JPEG, OFA: v.OFA, MemoryMiB: v.MemoryMiB,
		})
	})
}

//export nvmlDeviceGetGpuInstanceProfileInfoV
func nvmlDeviceGetGpuInstanceProfileInfoV(h unsafe.Pointer, number uint32, to unsafe.Pointer) int32 {
	return profile(h, number, func(p model.Profile) abi.Return {
		v := profileInfo(p)
		switch v.Version = version(to); v.Version {
		case abi.Version[abi.ProfileInfoV2](2):
			return store(to, abi.ProfileInfoV2{
				Version: v.Version, ID: v.ID, Slices: v.Slices, Instances: v.Instances, Multiprocessors: v.Multiprocessors,
				Copy: v.Copy, Decoders: v.Decoders, Encoders: v.Encoders, JPEG: v.JPEG, OFA: v.OFA,
				MemoryMiB: v.MemoryMiB, Name: v.Name,
			})
		case abi.Version[abi.ProfileInfoV3](3):
			return store(to, v)
		}
		return abi.ArgumentVersionMismatch
	})
}

func profileInfo(p model.Profile) abi.ProfileInfoV3 {
	info := abi.ProfileInfoV3{
		ID: uint32(p.ID), Slices: uint32(p.ComputeSlices), Instances: uint32(p.MaxInstances),
		Multiprocessors: uint32(p.Multiprocessors),
		Copy:            uint32(p.Engines.Copy), Decoders: uint32(p.Engines.Decoders), Encoders: uint32(p.Engines.Encoders),
		JPEG: uint32(p.Engines.JPEG), OFA: uint32(p.Engines.OFA),
		MemoryMiB: p.Memory >> 20,
	}
	abi.SetString(info.Name[:], "MIG "+p.Name) // as nvidia-smi shows it
	if strings.Contains(p.Name, "+gfx") {
		info.Capabilities = abi.CapsGFX
	}
	return info
}

//export nvmlDeviceGetGpuInstancePossiblePlacements_v2
func nvmlDeviceGetGpuInstancePossiblePlacements_v2(h unsafe.Pointer, id uint32, to unsafe.Pointer, count *uint32) int32 {
	return query(h, "nvmlDeviceGetGpuInstancePossiblePlacements", func(g simulator.GPU) abi.Return {
		if count == nil {
			return abi.InvalidArgument
		}
		p, ok := g.Model.MIG.Profile(int(id))
		if !ok {
			return abi.NotSupported
		}
		room := *count
		*count = uint32(len(p.Placements))
		if to == nil {
			return abi.Success
		}
		if room < *count {
			return abi.InsufficientSize
		}
		for i, place := range p.Placements {
			unsafe.Slice((*abi.Placement)(to), room)[i] = placement(place)
		}
		return abi.Success
	})
}
