package nvml

import (
	"errors"
	"strings"

	api "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// profileNumbers bounds the search for profiles: nvml.h says to count up until
// INVALID_ARGUMENT, and knows 18.
const profileNumbers = 64

// partitions reads how the GPU can be divided, whether MIG is on or not, how it is, and
// what engines the whole of it has: those of its largest profile.
func (r *reader) partitions() {
	r.gpu.MIG = ask(r, "nvmlDeviceGetMigMode", machine.MIG{}, func() (machine.MIG, api.Return) {
		now, pending, ret := r.device.GetMigMode()
		return machine.MIG{
			Capable: r.session.partitions,
			Enabled: now == api.DEVICE_MIG_ENABLE,
			Pending: pending == api.DEVICE_MIG_ENABLE,
		}, ret
	})
	if !r.gpu.MIG.Capable {
		return
	}
	r.gpu.MIG.OnDemand = tell(r, onDemand)
	profiles := tell(r, profilesOf)
	largest := 0
	for i := range profiles {
		p := r.profile(&profiles[i])
		r.gpu.MIG.Profiles = append(r.gpu.MIG.Profiles, p)
		if p.ComputeSlices > largest {
			largest, r.gpu.Engines = p.ComputeSlices, p.Engines
		}
	}
	if r.gpu.MIG.Enabled {
		r.gpu.MIG.Instances = tell(r, func(d api.Device) ([]machine.GPUInstance, error) { return instancesOf(d, profiles) })
	}
}

// tell is ask for questions of several calls.
func tell[T any](r *reader, question func(api.Device) (T, error)) T {
	var none T
	if r.ended != api.SUCCESS {
		return none
	}
	answer, err := question(r.device)
	var f *failed
	if errors.As(err, &f) {
		r.fail(f.call, f.ret)
		return none
	}
	return answer
}

// profilesOf lists the shapes that the GPU's instances can have.
func profilesOf(d api.Device) ([]api.GpuInstanceProfileInfo_v2, error) {
	var profiles []api.GpuInstanceProfileInfo_v2
	for number := range profileNumbers {
		info, ret := d.GetGpuInstanceProfileInfoV(number).V2()
		switch ret {
		case api.SUCCESS:
			profiles = append(profiles, info)
		case api.ERROR_NOT_SUPPORTED:
		case api.ERROR_INVALID_ARGUMENT:
			return profiles, nil
		default:
			return nil, check("nvmlDeviceGetGpuInstanceProfileInfoV", ret)
		}
	}
	return profiles, nil
}

func (r *reader) profile(info *api.GpuInstanceProfileInfo_v2) machine.MIGProfile {
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
	}
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
