package main

import "C"

import (
	"encoding/hex"
	"strings"
	"unsafe"

	"github.com/dovetail-dra/dovetail/cmd/libnvidia-ml/internal/abi"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

//export nvmlDeviceGetNvLinkState
func nvmlDeviceGetNvLinkState(h unsafe.Pointer, link uint32, to *uint32) int32 {
	return query(h, "nvmlDeviceGetNvLinkState", func(g simulator.GPU) abi.Return {
		switch {
		case g.Model.NVLinks == 0:
			return abi.NotSupported
		case link >= uint32(g.Model.NVLinks):
			return abi.InvalidArgument
		}
		return set(to, 1)
	})
}

//export nvmlDeviceGetGpuFabricInfo
func nvmlDeviceGetGpuFabricInfo(h unsafe.Pointer, to unsafe.Pointer) int32 {
	return fabric(h, func(v abi.FabricInfoV2) abi.Return {
		return store(to, abi.FabricInfo{Cluster: v.Cluster, Clique: v.Clique, State: v.State})
	})
}

//export nvmlDeviceGetGpuFabricInfoV
func nvmlDeviceGetGpuFabricInfoV(h unsafe.Pointer, to unsafe.Pointer) int32 {
	return fabric(h, func(v abi.FabricInfoV2) abi.Return {
		switch v.Version = version(to); v.Version {
		case abi.Version[abi.FabricInfoV2](2):
			return store(to, v)
		case abi.Version[abi.FabricInfoV3](3):
			return store(to, abi.FabricInfoV3{FabricInfoV2: v, HealthSummary: 1}) // healthy
		}
		return abi.ArgumentVersionMismatch
	})
}

// fabric answers for GPUs that register with a fabric. One that is in no
// fabric of several nodes has a cluster UUID of zeros.
func fabric(h unsafe.Pointer, answer func(abi.FabricInfoV2) abi.Return) abi.Return {
	return query(h, "nvmlDeviceGetGpuFabricInfo", func(g simulator.GPU) abi.Return {
		if !g.Model.Fabric {
			return abi.NotSupported
		}
		info := abi.FabricInfoV2{State: abi.FabricCompleted}
		if f := g.Spec.Fabric; f != nil {
			if _, err := hex.Decode(info.Cluster[:], []byte(strings.ReplaceAll(f.ClusterUUID, "-", ""))); err != nil {
				return abi.Unknown
			}
			info.Clique = f.Clique
		}
		return answer(info)
	})
}

//export nvmlDeviceGetFieldValues
func nvmlDeviceGetFieldValues(h unsafe.Pointer, count int32, values unsafe.Pointer) int32 {
	return query(h, "nvmlDeviceGetFieldValues", func(g simulator.GPU) abi.Return {
		if values == nil || count <= 0 {
			return abi.InvalidArgument
		}
		fields := unsafe.Slice((*abi.FieldValue)(values), count)
		for i := range fields {
			f := &fields[i]
			f.Value, f.ValueType, f.Return = [8]byte{}, abi.ValueUint, abi.Success
			switch {
			case f.Field == abi.FieldRecoveryAction && g.ReportsRecovery:
				*(*uint32)(unsafe.Pointer(&f.Value)) = uint32(g.Recovery)
			case f.Field == abi.FieldResetlessMIG && g.Model.MIG != nil:
				*(*uint32)(unsafe.Pointer(&f.Value)) = number(g.Model.MIG.OnDemand)
			case f.Field == abi.FieldNVLinkCount && g.Model.NVLinks > 0:
				*(*uint32)(unsafe.Pointer(&f.Value)) = uint32(g.Model.NVLinks)
			default:
				f.Return = abi.NotSupported
			}
		}
		return abi.Success
	})
}

// processes answers that nothing runs on the GPU: the simulator runs nothing.
func processes(h unsafe.Pointer, call string, count *uint32) abi.Return {
	return query(h, call, func(simulator.GPU) abi.Return { return set(count, 0) })
}

//export nvmlDeviceGetComputeRunningProcesses_v3
func nvmlDeviceGetComputeRunningProcesses_v3(h unsafe.Pointer, count *uint32, infos unsafe.Pointer) int32 {
	return processes(h, "nvmlDeviceGetComputeRunningProcesses", count)
}

//export nvmlDeviceGetGraphicsRunningProcesses_v3
func nvmlDeviceGetGraphicsRunningProcesses_v3(h unsafe.Pointer, count *uint32, infos unsafe.Pointer) int32 {
	return processes(h, "nvmlDeviceGetGraphicsRunningProcesses", count)
}

//export nvmlDeviceGetMPSComputeRunningProcesses_v3
func nvmlDeviceGetMPSComputeRunningProcesses_v3(h unsafe.Pointer, count *uint32, infos unsafe.Pointer) int32 {
	return processes(h, "nvmlDeviceGetMPSComputeRunningProcesses", count)
}
