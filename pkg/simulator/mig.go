package simulator

import (
	"context"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// Partitions implements hardware.MIG.
func (g *GPUs) Partitions(ctx context.Context, uuid string) (hardware.Partitions, error) {
	gpu, err := g.look(ctx, uuid, "nvmlDeviceGetGpuInstances")
	if err != nil {
		return hardware.Partitions{}, err
	}
	if gpu.Model.MIG == nil {
		return hardware.Partitions{}, withoutMIG(gpu)
	}
	return hardware.Partitions{Enabled: gpu.MIGEnabled, Instances: gpu.cloneInstances()}, nil
}

// begin is a call that changes a GPU with MIG, as far as it takes time.
func (g *GPUs) begin(ctx context.Context, uuid, call string) (GPU, error) {
	gpu, err := g.usable(uuid)
	if err != nil {
		return GPU{}, err
	}
	if gpu.Model.MIG == nil {
		return GPU{}, withoutMIG(gpu)
	}
	return gpu, g.machine.Linger(ctx, gpu.DelayOf(call))
}

// SetMIGMode implements hardware.MIG.
func (g *GPUs) SetMIGMode(ctx context.Context, uuid string, enabled bool) error {
	gpu, err := g.begin(ctx, uuid, CallSetMIGMode)
	switch {
	case err != nil:
		return err
	case !gpu.Model.MIG.OnDemand && gpu.MIGEnabled == enabled:
		return nil
	case !gpu.Model.MIG.OnDemand:
		return failure.New(failure.Unsupported, "GPU %s: model %s needs a reset to switch MIG mode: use nvidia-smi -mig and --gpu-reset",
			uuid, gpu.Model.Name)
	}
	return g.machine.SetMIGMode(uuid, enabled)
}

// MakeGPUInstance implements hardware.MIG.
func (g *GPUs) MakeGPUInstance(ctx context.Context, uuid string, profileID int, at machine.Placement) (int, error) {
	if _, err := g.begin(ctx, uuid, CallMakeGPUInstance); err != nil {
		return 0, err
	}
	made, err := g.machine.MakeGPUInstance(uuid, profileID, &at)
	return made.ID, err
}

// MakeComputeInstance implements hardware.MIG.
func (g *GPUs) MakeComputeInstance(ctx context.Context, uuid string, gpuInstance int) (machine.ComputeInstance, error) {
	var none machine.ComputeInstance
	if _, err := g.begin(ctx, uuid, CallMakeComputeInstance); err != nil {
		return none, err
	}
	gpu, err := g.usable(uuid)
	if err != nil {
		return none, err
	}
	in, err := gpu.instance(gpuInstance)
	if err != nil {
		return none, err
	}
	return g.machine.MakeComputeInstance(uuid, gpuInstance, gpu.slicesOf(in.ProfileID))
}

// DestroyComputeInstance implements hardware.MIG.
func (g *GPUs) DestroyComputeInstance(ctx context.Context, uuid string, gpuInstance, computeInstance int) error {
	if _, err := g.begin(ctx, uuid, CallDestroyComputeInstance); err != nil {
		return err
	}
	return g.machine.DestroyComputeInstance(uuid, gpuInstance, computeInstance)
}

// DestroyGPUInstance implements hardware.MIG.
func (g *GPUs) DestroyGPUInstance(ctx context.Context, uuid string, gpuInstance int) error {
	if _, err := g.begin(ctx, uuid, CallDestroyGPUInstance); err != nil {
		return err
	}
	return g.machine.DestroyGPUInstance(uuid, gpuInstance)
}
