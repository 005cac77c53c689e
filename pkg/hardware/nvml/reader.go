package nvml

import (
	"fmt"
	"strings"

	api "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// reader asks one GPU for everything. A query that the GPU does not support
// leaves a stated default; one that fails otherwise becomes a fault; a GPU
// that is lost or wants a reset is asked no further.
type reader struct {
	gpus    *GPUs
	session *session
	index   int
	device  api.Device

	name   string // the best that the GPU has, for faults
	gpu    machine.GPU
	faults []machine.Fault
	usable bool
	ended  api.Return // why there was no use in asking on; SUCCESS: nothing
}

func newReader(g *GPUs, s *session, index int) *reader {
	return &reader{gpus: g, session: s, index: index, name: g.nameOf(index)}
}

func (r *reader) read() {
	if !r.identify() {
		return
	}
	r.attributes()
	r.vital(r.memory)
	r.vital(r.partitions)
	r.limits()
	r.nvlink()
	r.health()
	r.usable = r.ended == api.SUCCESS
}

// vital makes queries that decide whether, and as what, a GPU is offered. Where one
// goes wrong it is not offered as what it may not be.
func (r *reader) vital(queries func()) {
	known := len(r.faults)
	queries()
	for _, f := range r.faults[known:] {
		if f.Kind == machine.FaultUnreadable && r.ended == api.SUCCESS {
			r.ended = api.ERROR_UNKNOWN
		}
	}
}

// identify reads what a GPU cannot be offered without.
func (r *reader) identify() bool {
	var ret api.Return
	if r.device, ret = r.session.DeviceGetHandleByIndex(r.index); ret != api.SUCCESS {
		return r.fail("nvmlDeviceGetHandleByIndex", ret)
	}
	info, ret := r.device.GetPciInfo()
	if ret != api.SUCCESS {
		return r.fail("nvmlDeviceGetPciInfo", ret)
	}
	r.gpu.Address = machine.Address{Domain: info.Domain, Bus: uint8(info.Bus), Device: uint8(info.Device)}
	r.name = r.gpu.Address.String()
	if r.gpu.UUID, ret = r.device.GetUUID(); ret != api.SUCCESS {
		return r.fail("nvmlDeviceGetUUID", ret)
	}
	r.gpus.learn(r.index, identity{uuid: r.gpu.UUID, address: r.gpu.Address})
	r.gpu.Index = r.index
	r.gpu.Location.NUMANode = -1
	return true
}

func (r *reader) attributes() {
	d := r.device
	r.gpu.Minor = ask(r, "nvmlDeviceGetMinorNumber", -1, d.GetMinorNumber)
	r.gpu.ProductName = ask(r, "nvmlDeviceGetName", "", d.GetName)
	r.gpu.Brand = brand(ask(r, "nvmlDeviceGetBrand", api.BRAND_UNKNOWN, d.GetBrand))
	r.gpu.ComputeCapability = ask(r, "nvmlDeviceGetCudaComputeCapability", machine.Version{},
		func() (v machine.Version, ret api.Return) {
			v.Major, v.Minor, ret = d.GetCudaComputeCapability()
			return v, ret
		})
	if r.session.has["nvmlDeviceGetArchitecture"] {
		r.gpu.Architecture = architecture(ask(r, "nvmlDeviceGetArchitecture",
			api.DeviceArchitecture(api.DEVICE_ARCH_UNKNOWN), d.GetArchitecture))
	}
	if r.session.has["nvmlDeviceGetNumGpuCores"] {
		cores := ask(r, "nvmlDeviceGetNumGpuCores", 0, d.GetNumGpuCores)
		r.gpu.Multiprocessors = multiprocessors(cores, r.gpu.ComputeCapability)
	}
	r.gpu.ECCEnabled = ask(r, "nvmlDeviceGetEccMode", false, func() (bool, api.Return) {
		now, _, ret := d.GetEccMode()
		return now == api.FEATURE_ENABLED, ret
	})
	r.gpu.ComputeMode = computeMode(ask(r, "nvmlDeviceGetComputeMode", api.COMPUTEMODE_DEFAULT, d.GetComputeMode))
}

// memory: integrated GPUs have none of their own, and say so; of a GPU in MIG mode only
// who has privileges is told (nvml.h).
func (r *reader) memory() {
	const unknown = ^uint64(0)
	why := "the GPU does not say how much memory it has"
	m := ask(r, "nvmlDeviceGetMemoryInfo", machine.Memory{Total: unknown}, func() (machine.Memory, api.Return) {
		m, ret := r.memoryInfo()
		if ret == api.ERROR_NO_PERMISSION {
			why, ret = explain("nvmlDeviceGetMemoryInfo", ret), api.ERROR_NOT_SUPPORTED
		}
		return m, ret
	})
	if m.Total != unknown {
		r.gpu.Memory = m
	} else if r.ended == api.SUCCESS {
		r.fault(machine.FaultMemoryUnknown, why+": it is offered with a capacity of 0 bytes; claim it without asking for memory")
	}
}

func (r *reader) memoryInfo() (machine.Memory, api.Return) {
	if !r.session.has["nvmlDeviceGetMemoryInfo_v2"] {
		info, ret := r.device.GetMemoryInfo()
		return machine.Memory{Total: info.Total}, ret
	}
	info, ret := r.device.GetMemoryInfo_v2()
	return machine.Memory{Total: info.Total, Reserved: info.Reserved}, ret
}

// nvlink: a GPU that shares a fabric with no other node has a cluster of zeros.
func (r *reader) nvlink() {
	if !r.session.has["nvmlDeviceGetGpuFabricInfo"] && !r.session.has["nvmlDeviceGetGpuFabricInfoV"] {
		return
	}
	info := ask(r, "nvmlDeviceGetGpuFabricInfo", api.GpuFabricInfo{}, func() (api.GpuFabricInfo, api.Return) {
		if !r.session.has["nvmlDeviceGetGpuFabricInfoV"] {
			return r.device.GetGpuFabricInfo()
		}
		v, ret := r.device.GetGpuFabricInfoV().V2()
		return api.GpuFabricInfo{ClusterUuid: v.ClusterUuid, Status: v.Status, CliqueId: v.CliqueId, State: v.State}, ret
	})
	if info.State != api.GPU_FABRIC_STATE_COMPLETED || info.Status != uint32(api.SUCCESS) || info.ClusterUuid == [16]uint8{} {
		return
	}
	c := info.ClusterUuid
	r.gpu.NVLinkDomain = fmt.Sprintf("%x-%x-%x-%x-%x.%d", c[0:4], c[4:6], c[6:8], c[8:10], c[10:16], info.CliqueId)
}

// ask makes one query. What is not supported is otherwise.
func ask[T any](r *reader, call string, otherwise T, query func() (T, api.Return)) T {
	if r.ended != api.SUCCESS {
		return otherwise
	}
	value, ret := query()
	switch ret {
	case api.SUCCESS:
		return value
	case api.ERROR_NOT_SUPPORTED, api.ERROR_FUNCTION_NOT_FOUND:
	default:
		r.fail(call, ret)
	}
	return otherwise
}

// fail notes a query that went wrong, and returns false.
func (r *reader) fail(call string, ret api.Return) bool {
	switch ret {
	case api.ERROR_GPU_IS_LOST, api.ERROR_RESET_REQUIRED, api.ERROR_DRIVER_NOT_LOADED, api.ERROR_UNINITIALIZED:
		r.ended = ret
	}
	r.fault(faultKind(ret), explain(call, ret))
	return false
}

func (r *reader) fault(kind machine.FaultKind, message string) {
	r.faults = append(r.faults, machine.Fault{Device: r.name, Kind: kind, Message: strings.TrimSpace(message)})
}
