package nvml

import (
	"context"

	api "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// SetMIGMode implements hardware.MIG.
func (g *GPUs) SetMIGMode(ctx context.Context, uuid string, enabled bool) error {
	_, err := change(ctx, g, uuid, func(p partitioned) (nothing, error) {
		onDemand, err := onDemand(p.device)
		switch {
		case err != nil:
			return nothing{}, err
		case p.on == enabled && (p.pending == enabled || !onDemand):
			return nothing{}, nil
		case !onDemand:
			return nothing{}, needsReset(uuid)
		}
		return nothing{}, p.switchMode(enabled)
	})
	return err
}

// switchMode switches the mode at once, or leaves it as it was.
func (p partitioned) switchMode(enabled bool) error {
	if p.on {
		profiles, err := profilesOf(p.device)
		if err != nil {
			return err
		}
		instances, err := instancesOf(p.device, profiles)
		if err != nil {
			return err
		}
		if len(instances) > 0 {
			return failure.New(failure.Conflict, "GPU %s has %d GPU instances: destroy them before MIG mode is switched", p.uuid, len(instances))
		}
	}
	activation, ret := p.device.SetMigMode(migMode(enabled))
	if ret == api.SUCCESS && activation == api.SUCCESS {
		return nil
	}
	// The mode may be pending now, and would come with the GPU's next reset, whoever
	// resets it.
	if _, pending, ret := p.device.GetMigMode(); ret == api.SUCCESS && pending != migMode(p.on) {
		p.device.SetMigMode(migMode(p.on)) //nolint:errcheck // the caller hears what went wrong already
	}
	switch {
	case ret == api.ERROR_IN_USE || activation == api.ERROR_IN_USE:
		return failure.New(failure.Busy, "GPU %s is in use: stop what uses it before MIG mode is switched", p.uuid)
	case ret != api.SUCCESS:
		return check("nvmlDeviceSetMigMode", ret)
	case activation == api.ERROR_RESET_REQUIRED: // behind some hypervisors
		return needsReset(p.uuid)
	}
	return check("nvmlDeviceSetMigMode", activation)
}

func needsReset(uuid string) error {
	return failure.New(failure.Unsupported,
		"GPU %s must be reset for its MIG mode to change: drain the node, switch it with nvidia-smi -mig, and reset the GPU or reboot", uuid)
}

func migMode(enabled bool) int {
	if enabled {
		return api.DEVICE_MIG_ENABLE
	}
	return api.DEVICE_MIG_DISABLE
}

// onDemand says whether MIG mode switches without a reset. A driver that does not say
// leaves it to the generation: Hopper and later do (NVIDIA, MIG User Guide).
func onDemand(d api.Device) (bool, error) {
	value, ret := field(d, api.FI_DEV_IS_RESETLESS_MIG_SUPPORTED)
	if ret == api.ERROR_NOT_SUPPORTED {
		major, minor, ret := d.GetCudaComputeCapability()
		return switchesAtOnce(machine.Version{Major: major, Minor: minor}), check("nvmlDeviceGetCudaComputeCapability", ret)
	}
	return value != 0, check("nvmlDeviceGetFieldValues", ret)
}

func switchesAtOnce(capability machine.Version) bool { return capability.Major >= 9 }
