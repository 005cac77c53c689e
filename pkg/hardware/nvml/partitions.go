package nvml

import (
	"strings"

	api "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// profileNumbers bounds the search for profiles: nvml.h says to count up until
// INVALID_ARGUMENT, and knows 18.
const profileNumbers = 64

// partitions reads how the GPU can be divided, whether MIG is on or not, and
// what engines the whole of it has: those of its largest profile.
func (r *reader) partitions() {
	r.gpu.MIG = ask(r, "nvmlDeviceGetMigMode", machine.MIG{}, func() (machine.MIG, api.Return) {
		now, pending, ret := r.device.GetMigMode()
		return machine.MIG{
			Capable: true,
			Enabled: now == api.DEVICE_MIG_ENABLE,
			Pending: pending == api.DEVICE_MIG_ENABLE,
		}, ret
	})
	// Older drivers do not give profiles names, so that they cannot be offered.
	if !r.gpu.MIG.Capable || !r.session.has["nvmlDeviceGetGpuInstanceProfileInfoV"] {
		return
	}
	for number := range profileNumbers {
		profile, ret := r.profile(number)
		if ret == api.ERROR_INVALID_ARGUMENT || r.ended != api.SUCCESS {
			break
		}
		if ret == api.SUCCESS {
			r.gpu.MIG.Profiles = append(r.gpu.MIG.Profiles, profile)
		}
	}
	largest := 0
	for _, p := range r.gpu.MIG.Profiles {
		if p.ComputeSlices > largest {
			largest, r.gpu.Engines = p.ComputeSlices, p.Engines
		}
	}
}

func (r *reader) profile(number int) (machine.MIGProfile, api.Return) {
	info, ret := r.device.GetGpuInstanceProfileInfoV(number).V2()
	switch ret {
	case api.SUCCESS:
	case api.ERROR_INVALID_ARGUMENT, api.ERROR_NOT_SUPPORTED:
		return machine.MIGProfile{}, ret
	default:
		r.fail("nvmlDeviceGetGpuInstanceProfileInfoV", ret)
		return machine.MIGProfile{}, ret
	}
	name := strings.TrimPrefix(text(info.Name[:]), "MIG ")
	return machine.MIGProfile{
		ID:              int(info.Id),
		Name:            name,
		ComputeSlices:   int(info.SliceCount),
		Memory:          info.MemorySizeMB << 20,
		Multiprocessors: int(info.MultiprocessorCount),
		Engines: machine.Engines{
			Copy: int(info.CopyEngineCount), Decoders: int(info.DecoderCount), Encoders: int(info.EncoderCount),
			JPEG: int(info.JpegCount), OFA: int(info.OfaCount),
		},
		Media:        strings.Contains(name, "+me"),
		MaxInstances: int(info.InstanceCount),
		Placements:   r.placements(info.Id),
	}, api.SUCCESS
}

func (r *reader) placements(id uint32) []machine.Placement {
	found := ask(r, "nvmlDeviceGetGpuInstancePossiblePlacements", nil, func() ([]api.GpuInstancePlacement, api.Return) {
		return r.device.GetGpuInstancePossiblePlacements(&api.GpuInstanceProfileInfo{Id: id})
	})
	placements := make([]machine.Placement, len(found))
	for i, p := range found {
		placements[i] = machine.Placement{Start: int(p.Start), Size: int(p.Size)}
	}
	return placements
}

// text is a C string in an array.
func text(array []int8) string {
	var b strings.Builder
	for _, c := range array {
		if c == 0 {
			break
		}
		b.WriteByte(byte(c))
	}
	return b.String()
}
