package nvml

import (
	"context"
	"fmt"

	api "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// partitioned is a GPU with MIG, at the moment of a change.
type partitioned struct {
	device      api.Device
	uuid        string
	on, pending bool
}

func migOf(s *session, d api.Device, uuid string) (partitioned, error) {
	now, pending, ret := d.GetMigMode()
	if err := check("nvmlDeviceGetMigMode", ret); err != nil {
		return partitioned{}, err
	}
	if !s.partitions {
		return partitioned{}, failure.New(failure.Unsupported, "GPU %s: the driver lacks functions that partitions need: install a newer one", uuid)
	}
	return partitioned{device: d, uuid: uuid, on: now == api.DEVICE_MIG_ENABLE, pending: pending == api.DEVICE_MIG_ENABLE}, nil
}

// change makes a change to the GPU with that UUID, as long as a change may take.
func change[T any](ctx context.Context, g *GPUs, uuid string, do func(partitioned) (T, error)) (T, error) {
	return within(ctx, g, g.options.ChangePatience, uuid, func(s *session, d api.Device) (T, error) {
		p, err := migOf(s, d, uuid)
		if err != nil {
			var none T
			return none, err
		}
		return do(p)
	})
}

func (p partitioned) gpuInstance(id int) (api.GpuInstance, error) {
	if !p.on {
		return nil, p.absent(id)
	}
	in, ret := p.device.GetGpuInstanceById(id)
	return in, p.gone(id, check("nvmlDeviceGetGpuInstanceById", ret))
}

func (p partitioned) absent(gpuInstance int) error {
	return failure.New(failure.Absent, "GPU %s has no GPU instance %d", p.uuid, gpuInstance)
}

// gone is what a call on a GPU instance failed with, where that may be its absence.
func (p partitioned) gone(gpuInstance int, err error) error {
	if wentAway(codeOf(err)) {
		return p.absent(gpuInstance)
	}
	return err
}

// noRoom says why there is no room for a compute instance that spans the GPU instance.
func (p partitioned) noRoom(in api.GpuInstance, id int) error {
	inside, err := computeInstancesOf(in)
	switch {
	case err != nil:
		return p.gone(id, err)
	case len(inside) > 0:
		return p.inhabited(id, len(inside))
	}
	return failure.New(failure.Conflict, "GPU %s: GPU instance %d has no compute instance, nor room for one: others have what it needs", p.uuid, id)
}

func (p partitioned) inhabited(gpuInstance, inside int) error {
	return failure.New(failure.Conflict, "GPU %s: GPU instance %d has compute instances (%d): destroy them first", p.uuid, gpuInstance, inside)
}

// look is what a new compute instance is known by.
func (p partitioned) look(made api.ComputeInstance, gpuInstance int) (machine.ComputeInstance, error) {
	info, ret := made.GetInfo()
	if err := check("nvmlComputeInstanceGetInfo", ret); err != nil {
		return machine.ComputeInstance{}, err
	}
	uuids, err := uuidsOf(p.device)
	if err != nil {
		return machine.ComputeInstance{}, err
	}
	uuid, ok := uuids[place{gpuInstance, int(info.Id)}]
	if !ok {
		return machine.ComputeInstance{}, fmt.Errorf("GPU %s: compute instance %d of GPU instance %d is not among its MIG devices", p.uuid, info.Id, gpuInstance)
	}
	return machine.ComputeInstance{ID: int(info.Id), UUID: uuid}, nil
}

// wholeOf is the profile of a compute instance that spans the GPU instance.
func (p partitioned) wholeOf(in api.GpuInstance) (api.ComputeInstanceProfileInfo, error) {
	var none api.ComputeInstanceProfileInfo
	info, ret := in.GetInfo()
	if err := check("nvmlGpuInstanceGetInfo", ret); err != nil {
		return none, err
	}
	profiles, err := profilesOf(p.device)
	if err != nil {
		return none, err
	}
	inside, err := computeProfilesOf(in)
	if err != nil {
		return none, err
	}
	for i := range profiles {
		for _, whole := range inside {
			if profiles[i].Id == info.ProfileId && whole.SliceCount == profiles[i].SliceCount {
				return whole, nil
			}
		}
	}
	return none, failure.New(failure.Unsupported, "GPU %s: GPU instance %d, of profile %d, can have no compute instance that spans it",
		p.uuid, info.Id, info.ProfileId)
}
