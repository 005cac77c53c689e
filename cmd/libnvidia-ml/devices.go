package main

import "C"

import (
	"strings"
	"unsafe"

	"github.com/dovetail-dra/dovetail/cmd/libnvidia-ml/internal/abi"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

//export nvmlDeviceGetCount
func nvmlDeviceGetCount(to *uint32) int32 { return nvmlDeviceGetCount_v2(to) }

//export nvmlDeviceGetCount_v2
func nvmlDeviceGetCount_v2(to *uint32) int32 {
	state, code := current()
	if code != abi.Success {
		return code
	}
	return set(to, uint32(len(state.GPUs)))
}

//export nvmlDeviceGetHandleByIndex
func nvmlDeviceGetHandleByIndex(index uint32, to *unsafe.Pointer) int32 {
	return nvmlDeviceGetHandleByIndex_v2(index, to)
}

//export nvmlDeviceGetHandleByIndex_v2
func nvmlDeviceGetHandleByIndex_v2(index uint32, to *unsafe.Pointer) int32 {
	state, code := current()
	if code != abi.Success {
		return code
	}
	if int(index) >= len(state.GPUs) {
		return abi.InvalidArgument
	}
	return setHandle(to, int(index), "nvmlDeviceGetHandleByIndex")
}

//export nvmlDeviceGetHandleByUUID
func nvmlDeviceGetHandleByUUID(uuid *C.char, to *unsafe.Pointer) int32 {
	if uuid == nil {
		return abi.InvalidArgument
	}
	wanted := C.GoString(uuid)
	if strings.HasPrefix(strings.ToUpper(wanted), "MIG-") {
		return setMIGHandle(to, wanted)
	}
	return handleOf(to, "nvmlDeviceGetHandleByUUID", func(g *simulator.GPUSpec) bool {
		return strings.EqualFold(g.UUID, wanted)
	})
}

//export nvmlDeviceGetHandleByPciBusId
func nvmlDeviceGetHandleByPciBusId(id *C.char, to *unsafe.Pointer) int32 {
	return nvmlDeviceGetHandleByPciBusId_v2(id, to)
}

//export nvmlDeviceGetHandleByPciBusId_v2
func nvmlDeviceGetHandleByPciBusId_v2(id *C.char, to *unsafe.Pointer) int32 {
	if id == nil {
		return abi.InvalidArgument
	}
	address, err := machine.ParseAddress(C.GoString(id))
	if err != nil {
		return abi.InvalidArgument
	}
	return handleOf(to, "nvmlDeviceGetHandleByPciBusId", func(g *simulator.GPUSpec) bool { return g.Address == address })
}

func handleOf(to *unsafe.Pointer, call string, wanted func(*simulator.GPUSpec) bool) abi.Return {
	state, code := current()
	if code != abi.Success {
		return code
	}
	for i := range state.Spec.GPUs {
		if wanted(&state.Spec.GPUs[i]) {
			return setHandle(to, i, call)
		}
	}
	return abi.NotFound
}

// setHandle hands out a handle, though not that of a lost GPU.
func setHandle(to *unsafe.Pointer, index int, call string) abi.Return {
	h := handle(index)
	return identity(h, call, func(simulator.GPU) abi.Return { return set(to, h) })
}

//export nvmlDeviceGetIndex
func nvmlDeviceGetIndex(h unsafe.Pointer, to *uint32) int32 {
	return either(identity, h, "nvmlDeviceGetIndex",
		func(g simulator.GPU) abi.Return { return set(to, uint32(g.Index)) },
		func(d migDevice) abi.Return { return set(to, uint32(d.index)) })
}

//export nvmlDeviceGetMinorNumber
func nvmlDeviceGetMinorNumber(h unsafe.Pointer, to *uint32) int32 {
	return identity(h, "nvmlDeviceGetMinorNumber", func(g simulator.GPU) abi.Return { return set(to, uint32(g.Spec.Minor)) })
}

//export nvmlDeviceGetUUID
func nvmlDeviceGetUUID(h unsafe.Pointer, to *byte, size uint32) int32 {
	return either(identity, h, "nvmlDeviceGetUUID",
		func(g simulator.GPU) abi.Return { return setString(to, size, g.Spec.UUID) },
		func(d migDevice) abi.Return { return setString(to, size, d.ci.UUID) })
}

//export nvmlDeviceGetPciInfo_v2
func nvmlDeviceGetPciInfo_v2(h unsafe.Pointer, to unsafe.Pointer) int32 {
	return nvmlDeviceGetPciInfo_v3(h, to)
}

//export nvmlDeviceGetPciInfo_v3
func nvmlDeviceGetPciInfo_v3(h unsafe.Pointer, to unsafe.Pointer) int32 {
	return identity(h, "nvmlDeviceGetPciInfo", func(g simulator.GPU) abi.Return {
		a := g.Spec.Address
		info := abi.PCIInfo{
			Domain: a.Domain, Bus: uint32(a.Bus), Device: uint32(a.Device),
			DeviceID: g.Model.PCIDevice, Subsystem: g.Model.PCISubsystem,
		}
		abi.SetString(info.BusIDLegacy[:], strings.ToUpper(a.String()))
		abi.SetString(info.BusID[:], busID(a))
		return store(to, info)
	})
}

//export nvmlDeviceGetPciInfoExt
func nvmlDeviceGetPciInfoExt(h unsafe.Pointer, to unsafe.Pointer) int32 {
	return identity(h, "nvmlDeviceGetPciInfoExt", func(g simulator.GPU) abi.Return {
		if version(to) != abi.Version[abi.PCIInfoExt](1) {
			return abi.ArgumentVersionMismatch
		}
		a := g.Spec.Address
		info := abi.PCIInfoExt{
			Version: version(to), Domain: a.Domain, Bus: uint32(a.Bus), Device: uint32(a.Device),
			DeviceID: g.Model.PCIDevice, Subsystem: g.Model.PCISubsystem, BaseClass: 3, SubClass: 2,
		}
		abi.SetString(info.BusID[:], busID(a))
		return store(to, info)
	})
}

// busID has a domain of eight digits and capital letters.
func busID(a machine.Address) string { return strings.ToUpper("0000" + a.String()) }
