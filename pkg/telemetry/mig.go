package telemetry

import (
	"context"

	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

func (t timedGPUs) Partitions(ctx context.Context, uuid string) (p hardware.Partitions, err error) {
	defer t.metrics.call("get-partitions")(&err)
	return t.GPUs.Partitions(ctx, uuid)
}

func (t timedGPUs) SetMIGMode(ctx context.Context, uuid string, enabled bool) (err error) {
	defer t.metrics.call("set-mig-mode")(&err)
	return t.GPUs.SetMIGMode(ctx, uuid, enabled)
}

func (t timedGPUs) MakeGPUInstance(ctx context.Context, uuid string, profileID int, at machine.Placement) (id int, err error) {
	defer t.metrics.call("make-gpu-instance")(&err)
	return t.GPUs.MakeGPUInstance(ctx, uuid, profileID, at)
}

func (t timedGPUs) MakeComputeInstance(ctx context.Context, uuid string, gpuInstance int) (c machine.ComputeInstance, err error) {
	defer t.metrics.call("make-compute-instance")(&err)
	return t.GPUs.MakeComputeInstance(ctx, uuid, gpuInstance)
}

func (t timedGPUs) DestroyComputeInstance(ctx context.Context, uuid string, gpuInstance, computeInstance int) (err error) {
	defer t.metrics.call("destroy-compute-instance")(&err)
	return t.GPUs.DestroyComputeInstance(ctx, uuid, gpuInstance, computeInstance)
}

func (t timedGPUs) DestroyGPUInstance(ctx context.Context, uuid string, gpuInstance int) (err error) {
	defer t.metrics.call("destroy-gpu-instance")(&err)
	return t.GPUs.DestroyGPUInstance(ctx, uuid, gpuInstance)
}
