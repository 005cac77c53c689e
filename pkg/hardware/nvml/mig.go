package nvml

import (
	"context"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// Partitions implements hardware.MIG.
func (g *GPUs) Partitions(ctx context.Context, uuid string) (hardware.Partitions, error) {
	return hardware.Partitions{}, failure.New(failure.Unsupported, "GPU %s: partitions are not read yet", uuid)
}

// SetMIGMode implements hardware.MIG.
func (g *GPUs) SetMIGMode(ctx context.Context, uuid string, enabled bool) error {
	return failure.New(failure.Unsupported, "GPU %s: MIG mode is not set yet", uuid)
}

// MakeGPUInstance implements hardware.MIG.
func (g *GPUs) MakeGPUInstance(ctx context.Context, uuid string, profileID int, at machine.Placement) (int, error) {
	return 0, failure.New(failure.Unsupported, "GPU %s: instances are not made yet", uuid)
}

// MakeComputeInstance implements hardware.MIG.
func (g *GPUs) MakeComputeInstance(ctx context.Context, uuid string, gpuInstance int) (machine.ComputeInstance, error) {
	return machine.ComputeInstance{}, failure.New(failure.Unsupported, "GPU %s: instances are not made yet", uuid)
}

// DestroyComputeInstance implements hardware.MIG.
func (g *GPUs) DestroyComputeInstance(ctx context.Context, uuid string, gpuInstance, computeInstance int) error {
	return failure.New(failure.Unsupported, "GPU %s: instances are not destroyed yet", uuid)
}

// DestroyGPUInstance implements hardware.MIG.
func (g *GPUs) DestroyGPUInstance(ctx context.Context, uuid string, gpuInstance int) error {
	return failure.New(failure.Unsupported, "GPU %s: instances are not destroyed yet", uuid)
}
