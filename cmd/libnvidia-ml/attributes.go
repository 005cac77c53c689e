package main

import "C"

import (
	"unsafe"

	"github.com/dovetail-dra/dovetail/cmd/libnvidia-ml/internal/abi"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

//export nvmlDeviceGetName
func nvmlDeviceGetName(h unsafe.Pointer, to *byte, size uint32) int32 {
	return either(query, h, "nvmlDeviceGetName",
		func(g simulator.GPU) abi.Return { return setString(to, size, g.Model.ProductName) },
		func(d migDevice) abi.Return {
			return setString(to, size, d.gpu.Model.ProductName+" MIG "+d.profileName())
		})
}

//export nvmlDeviceGetBrand
func nvmlDeviceGetBrand(h unsafe.Pointer, to *uint32) int32 {
	return query(h, "nvmlDeviceGetBrand", func(g simulator.GPU) abi.Return { return set(to, abi.Brands[g.Model.Brand]) })
}

//export nvmlDeviceGetArchitecture
func nvmlDeviceGetArchitecture(h unsafe.Pointer, to *uint32) int32 {
	return query(h, "nvmlDeviceGetArchitecture", func(g simulator.GPU) abi.Return {
		return set(to, abi.Architectures[g.Model.Architecture])
	})
}

//export nvmlDeviceGetCudaComputeCapability
func nvmlDeviceGetCudaComputeCapability(h unsafe.Pointer, major, minor *int32) int32 {
	return query(h, "nvmlDeviceGetCudaComputeCapability", func(g simulator.GPU) abi.Return {
		return max(set(major, int32(g.Model.ComputeCapability.Major)), set(minor, int32(g.Model.ComputeCapability.Minor)))
	})
}

//export nvmlDeviceGetNumGpuCores
func nvmlDeviceGetNumGpuCores(h unsafe.Pointer, to *uint32) int32 {
	return query(h, "nvmlDeviceGetNumGpuCores", func(g simulator.GPU) abi.Return { return set(to, uint32(g.Model.Cores)) })
}

//export nvmlDeviceGetMemoryInfo
func nvmlDeviceGetMemoryInfo(h unsafe.Pointer, to unsafe.Pointer) int32 {
	return memory(h, func(m machine.Memory) abi.Return {
		// Version 1 counts what the driver reserves as used.
		return store(to, abi.Memory{Total: m.Total, Free: m.Usable(), Used: m.Reserved})
	})
}

//export nvmlDeviceGetMemoryInfo_v2
func nvmlDeviceGetMemoryInfo_v2(h unsafe.Pointer, to unsafe.Pointer) int32 {
	return memory(h, func(m machine.Memory) abi.Return {
		if version(to) != abi.Version[abi.MemoryV2](2) {
			return abi.ArgumentVersionMismatch
		}
		return store(to, abi.MemoryV2{Version: version(to), Total: m.Total, Reserved: m.Reserved, Free: m.Usable()})
	})
}

func memory(h unsafe.Pointer, answer func(machine.Memory) abi.Return) abi.Return {
	return either(query, h, "nvmlDeviceGetMemoryInfo",
		func(g simulator.GPU) abi.Return {
			if g.Has(simulator.FaultMemoryNotSupported) {
				return abi.NotSupported
			}
			return answer(g.Model.Memory)
		},
		func(d migDevice) abi.Return { return answer(machine.Memory{Total: d.profile.Memory}) })
}

//export nvmlDeviceGetEccMode
func nvmlDeviceGetEccMode(h unsafe.Pointer, now, pending *uint32) int32 {
	return query(h, "nvmlDeviceGetEccMode", func(g simulator.GPU) abi.Return {
		if !g.Model.ECC {
			return abi.NotSupported
		}
		return max(set(now, number(g.Spec.ECC)), set(pending, number(g.Spec.ECC)))
	})
}

//export nvmlDeviceGetPersistenceMode
func nvmlDeviceGetPersistenceMode(h unsafe.Pointer, to *uint32) int32 {
	return query(h, "nvmlDeviceGetPersistenceMode", func(simulator.GPU) abi.Return { return set(to, 1) })
}

// computeModes are nvmlComputeMode_t.
var computeModes = map[machine.ComputeMode]uint32{
	machine.ComputeModeDefault: 0, machine.ComputeModeProhibited: 2, machine.ComputeModeExclusiveProcess: 3,
}

//export nvmlDeviceGetComputeMode
func nvmlDeviceGetComputeMode(h unsafe.Pointer, to *uint32) int32 {
	return query(h, "nvmlDeviceGetComputeMode", func(g simulator.GPU) abi.Return { return set(to, computeModes[g.ComputeMode]) })
}

//export nvmlDeviceSetComputeMode
func nvmlDeviceSetComputeMode(h unsafe.Pointer, mode uint32) int32 {
	return change(h, "nvmlDeviceSetComputeMode", func(g simulator.GPU) abi.Return {
		for word, number := range computeModes {
			if number == mode {
				return codeOf(g, session.machine.Load().SetComputeMode(g.Spec.UUID, word))
			}
		}
		return abi.InvalidArgument
	})
}

// number is nvmlEnableState_t.
func number(enabled bool) uint32 {
	if enabled {
		return 1
	}
	return 0
}
