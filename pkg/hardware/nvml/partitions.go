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
// what engines the whole of it has. A driver that tells profiles in MIG mode alone
// (nvml.h, NVML_FI_DEV_IS_MIG_MODE_INDEPENDENT_MIG_QUERY_CAPABLE) leaves the GPU without
// any until somebody has switched it.
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
		r.undivided("the driver lacks functions that partitions need: install a newer one")
		return
	}
	r.gpu.MIG.OnDemand = tell(r, onDemand)
	tell(r, r.divide)
}

// divide reads profiles and instances. A process without privileges is told neither
// placements nor instances (nvml.h): such an agent offers no partitions.
func (r *reader) divide(d api.Device) (nothing, error) {
	profiles, err := profilesOf(d)
	r.gpu.Engines = enginesOf(profiles)
	var shapes []machine.MIGProfile
	if err == nil {
		shapes, err = shapesOf(d, profiles)
	}
	var instances []machine.GPUInstance
	if err == nil && r.gpu.MIG.Enabled {
		instances, err = instancesOf(d, profiles)
	}
	var f *failed
	if errors.As(err, &f) && f.ret == api.ERROR_NO_PERMISSION {
		r.undivided(f.Error())
		return nothing{}, nil
	}
	r.gpu.MIG.Profiles, r.gpu.MIG.Instances = shapes, instances
	return nothing{}, err
}

// undivided reports a GPU that is in MIG mode, and whose partitions cannot be had. With
// the mode off there is nothing to report: the GPU can be had whole.
func (r *reader) undivided(why string) {
	if r.gpu.MIG.Enabled {
		r.fault(machine.FaultMIGUnusable, "it is in MIG mode, and can be given out neither whole nor in partitions: "+why)
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

// enginesOf the whole GPU: those of its largest profile.
func enginesOf(profiles []api.GpuInstanceProfileInfo_v2) machine.Engines {
	var largest api.GpuInstanceProfileInfo_v2
	for _, p := range profiles {
		if p.SliceCount > largest.SliceCount {
			largest = p
		}
	}
	return engines(&largest)
}

func engines(p *api.GpuInstanceProfileInfo_v2) machine.Engines {
	return machine.Engines{
		Copy: int(p.CopyEngineCount), Decoders: int(p.DecoderCount), Encoders: int(p.EncoderCount),
		JPEG: int(p.JpegCount), OFA: int(p.OfaCount),
	}
}

// shapesOf describes profiles, and where their instances can lie.
func shapesOf(d api.Device, profiles []api.GpuInstanceProfileInfo_v2) ([]machine.MIGProfile, error) {
	var shapes []machine.MIGProfile
	for i := range profiles {
		p := &profiles[i]
		placements, err := placementsOf(d, p.Id)
		if err != nil {
			return nil, err
		}
		name := strings.TrimPrefix(text(p.Name[:]), "MIG ")
		shapes = append(shapes, machine.MIGProfile{
			ID:              int(p.Id),
			Name:            name,
			ComputeSlices:   int(p.SliceCount),
			Memory:          p.MemorySizeMB << 20,
			Multiprocessors: int(p.MultiprocessorCount),
			Engines:         engines(p),
			Media:           strings.Contains(name, "+me"),
			MaxInstances:    int(p.InstanceCount),
			Placements:      placements,
		})
	}
	return shapes, nil
}

func placementsOf(d api.Device, profile uint32) ([]machine.Placement, error) {
	found, ret := d.GetGpuInstancePossiblePlacements(&api.GpuInstanceProfileInfo{Id: profile})
	if ret != api.ERROR_NOT_SUPPORTED {
		if err := check("nvmlDeviceGetGpuInstancePossiblePlacements", ret); err != nil {
			return nil, err
		}
	}
	placements := make([]machine.Placement, len(found))
	for i, p := range found {
		placements[i] = machine.Placement{Start: int(p.Start), Size: int(p.Size)}
	}
	return placements, nil
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
