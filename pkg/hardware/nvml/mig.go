package nvml

import (
	"context"
	"slices"

	api "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// Partitions implements hardware.MIG.
func (g *GPUs) Partitions(ctx context.Context, uuid string) (hardware.Partitions, error) {
	return query(ctx, g, uuid, func(s *session, d api.Device) (hardware.Partitions, error) {
		p, err := migOf(s, d, uuid)
		if err != nil || !p.on {
			return hardware.Partitions{}, err
		}
		profiles, err := profilesOf(d)
		if err != nil {
			return hardware.Partitions{}, err
		}
		instances, err := instancesOf(d, profiles)
		return hardware.Partitions{Enabled: true, Instances: instances}, err
	})
}

// MakeGPUInstance implements hardware.MIG.
func (g *GPUs) MakeGPUInstance(ctx context.Context, uuid string, profileID int, at machine.Placement) (int, error) {
	return change(ctx, g, uuid, func(p partitioned) (int, error) {
		profile := api.GpuInstanceProfileInfo{Id: uint32(profileID)}
		places, ret := p.device.GetGpuInstancePossiblePlacements(&profile)
		if ret == api.ERROR_NOT_SUPPORTED || ret == api.ERROR_INVALID_ARGUMENT {
			return 0, failure.New(failure.Invalid, "GPU %s has no MIG profile with ID %d: describe it anew", uuid, profileID)
		}
		if err := check("nvmlDeviceGetGpuInstancePossiblePlacements", ret); err != nil {
			return 0, err
		}
		wanted := api.GpuInstancePlacement{Start: uint32(at.Start), Size: uint32(at.Size)}
		if !slices.Contains(places, wanted) {
			return 0, failure.New(failure.Invalid, "GPU %s: an instance of profile %d cannot lie at %d (size %d): use one of %v",
				uuid, profileID, at.Start, at.Size, places)
		}
		if !p.on {
			return 0, failure.New(failure.Conflict, "GPU %s: MIG mode is off: switch it on first", uuid)
		}
		made, ret := p.device.CreateGpuInstanceWithPlacement(&profile, &wanted)
		if ret == api.ERROR_INSUFFICIENT_RESOURCES {
			return 0, failure.New(failure.Conflict, "GPU %s: no room for an instance of profile %d at %d: others have what it needs",
				uuid, profileID, at.Start)
		}
		if err := check("nvmlDeviceCreateGpuInstanceWithPlacement", ret); err != nil {
			return 0, err
		}
		info, ret := made.GetInfo()
		if ret != api.SUCCESS {
			made.Destroy() //nolint:errcheck // the caller hears why already, and nobody would know the instance
		}
		return int(info.Id), check("nvmlGpuInstanceGetInfo", ret)
	})
}

// MakeComputeInstance implements hardware.MIG.
func (g *GPUs) MakeComputeInstance(ctx context.Context, uuid string, gpuInstance int) (machine.ComputeInstance, error) {
	return change(ctx, g, uuid, func(p partitioned) (machine.ComputeInstance, error) {
		var none machine.ComputeInstance
		in, err := p.gpuInstance(gpuInstance)
		if err != nil {
			return none, err
		}
		whole, err := p.wholeOf(in)
		if err != nil {
			return none, p.gone(gpuInstance, err)
		}
		made, ret := in.CreateComputeInstance(&whole)
		if ret == api.ERROR_INSUFFICIENT_RESOURCES {
			return none, p.noRoom(in, gpuInstance)
		}
		if err := check("nvmlGpuInstanceCreateComputeInstance", ret); err != nil {
			return none, p.gone(gpuInstance, err)
		}
		instance, err := p.look(made, gpuInstance)
		if err != nil {
			made.Destroy() //nolint:errcheck // the caller hears why already, and nobody would know the instance
			return none, err
		}
		instance.ComputeSlices = int(whole.SliceCount)
		return instance, nil
	})
}

// DestroyComputeInstance implements hardware.MIG.
func (g *GPUs) DestroyComputeInstance(ctx context.Context, uuid string, gpuInstance, computeInstance int) error {
	_, err := change(ctx, g, uuid, func(p partitioned) (nothing, error) {
		in, err := p.gpuInstance(gpuInstance)
		if err != nil {
			return nothing{}, err
		}
		victim, ret := in.GetComputeInstanceById(computeInstance)
		if ret == api.SUCCESS {
			ret = victim.Destroy()
		}
		switch ret {
		case api.ERROR_NOT_FOUND, api.ERROR_INVALID_ARGUMENT:
			return nothing{}, failure.New(failure.Absent, "GPU %s: GPU instance %d has no compute instance %d", uuid, gpuInstance, computeInstance)
		case api.ERROR_IN_USE:
			return nothing{}, failure.New(failure.Busy, "GPU %s: compute instance %d of GPU instance %d is in use", uuid, computeInstance, gpuInstance)
		}
		return nothing{}, check("nvmlComputeInstanceDestroy", ret)
	})
	return err
}

// DestroyGPUInstance implements hardware.MIG.
func (g *GPUs) DestroyGPUInstance(ctx context.Context, uuid string, gpuInstance int) error {
	_, err := change(ctx, g, uuid, func(p partitioned) (nothing, error) {
		in, err := p.gpuInstance(gpuInstance)
		if err != nil {
			return nothing{}, err
		}
		ret := in.Destroy()
		if ret != api.ERROR_IN_USE {
			return nothing{}, p.gone(gpuInstance, check("nvmlGpuInstanceDestroy", ret))
		}
		switch inside, err := computeInstancesOf(in); {
		case err != nil:
			return nothing{}, p.gone(gpuInstance, err)
		case len(inside) > 0:
			return nothing{}, p.inhabited(gpuInstance, len(inside))
		}
		return nothing{}, failure.New(failure.Busy, "GPU %s: GPU instance %d is in use", uuid, gpuInstance)
	})
	return err
}
